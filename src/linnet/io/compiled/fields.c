/* Numbers in rows of text, straight to where they stay (see compiled/__init__.py): Arrow's parser gives
   columns, which then have to be turned into rows.

   Whatever is not plain (quotes, words that are not known, rows of another length) is not judged here: the
   function gives up, and Arrow has the word. So what it does take, it must take for the same as Arrow.

   A number is w · 10^q. Nearly always its nearest double follows from the upper bits of w · 5^q (Lemire,
   "Number parsing at a gigabyte per second", Software: Practice and Experience 51, 2021); where it does not, the
   C library is asked. Plain C without Python: it is loaded with ctypes, which lets go of the interpreter lock. */

#define _GNU_SOURCE /* strtod_l */

#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define LOWEST (-342) /* the powers of ten that the table has */
#define HIGHEST 308
#define LONGEST 400 /* characters of a number that the C library is asked about */

enum kind { SKIPPED, DOUBLES, INTEGERS };

/* What rows look like, and where their numbers go; `Fields` in compiled/__init__.py is the same. */
struct fields {
    int64_t width;     /* columns of a row */
    int64_t delimiter; /* characters */
    int64_t quote;
    int64_t decimal;
    const int64_t *kinds;   /* of each column */
    char *const *places;    /* of each column: where its number in row 0 goes */
    const int64_t *strides; /* of each column: bytes from one row to the next */
    const uint64_t *powers; /* upper and lower half of 5^q, shifted so that the highest bit is 1 */
    const char *numbers;    /* words for missing values that are numbers, each after its length and one more; 0 ends them */
    const char *words;      /* the others */
};

/* Eight characters at once: which of them are no digits (the lowest bit tells of the first), and their value. */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the first of eight characters must be the lowest byte"
#endif

#define ZEROS 0x3030303030303030u /* as characters */

static inline uint64_t eight(const char *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

static inline uint64_t others(uint64_t x) {
    return ((x + 0x4646464646464646u) | (x - ZEROS)) & 0x8080808080808080u;
}

static inline uint64_t value_of(uint64_t x) {
    x -= ZEROS;
    x = (x * 10 + (x >> 8)) & 0x00FF00FF00FF00FFu; /* pairs, then fours, then all: the first digit is lowest */
    x = (x * 100 + (x >> 16)) & 0x0000FFFF0000FFFFu;
    return (x * 10000 + (x >> 32)) & 0xFFFFFFFFu;
}

/* The digits at p are added to w: all that there are, without asking each whether it is one. */
static inline const char *digits_of(const char *p, uint64_t *w) {
    static const uint32_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000};
    uint64_t x, none;
    for (; !(none = others(x = eight(p))); p += 8) *w = *w * 100000000 + value_of(x);
    const int count = __builtin_ctzll(none) >> 3, half = 4 * (8 - count);
    x = (x << half << half) | ZEROS >> (64 - 2 * half); /* zeros in front of them */
    *w = *w * tens[count] + value_of(x);
    return p + count;
}

static inline int is_digit(char c) { return (unsigned char)(c - '0') < 10; }

/* The double nearest to w · 10^q as bits, or -1 where this does not tell. w is not 0. */
static inline int64_t nearest(const struct fields *f, uint64_t w, int64_t q) {
    if (q < LOWEST || q > HIGHEST) return -1;
    const int zeros = __builtin_clzll(w);
    w <<= zeros;
    const uint64_t *power = f->powers + 2 * (q - LOWEST);
    const unsigned __int128 product = (unsigned __int128)w * power[0];
    uint64_t low = (uint64_t)product, high = (uint64_t)(product >> 64);
    if ((high & 0x1FF) == 0x1FF) { /* the lower half of the power may carry into what is kept */
        const uint64_t more = (uint64_t)(((unsigned __int128)w * power[1]) >> 64);
        low += more;
        high += low < more;
        if (low == UINT64_MAX && (q < -27 || q > 55)) return -1;
    }
    const int upper = (int)(high >> 63), shift = upper + 9;
    uint64_t mantissa = high >> shift; /* 54 bits: one more than a double has */
    int64_t exponent = ((217706 * q) >> 16) + 63 + upper - zeros + 1023;
    if (exponent <= 0) return -1; /* below the normal numbers */
    /* Exactly between two doubles: the even one is the nearest. */
    if (low <= 1 && q >= -4 && q <= 23 && (mantissa & 3) == 1 && mantissa << shift == high) mantissa &= ~1ull;
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >= 1ull << 53) {
        mantissa = 1ull << 52;
        exponent++;
    }
    if (exponent >= 2047) return -1;
    return (int64_t)((mantissa & ~(1ull << 52)) | (uint64_t)exponent << 52);
}

/* What the C library makes of a number; 0 if it is out of range, or too long. */
static int asked(const struct fields *f, const char *p, const char *end, double *found) {
    static locale_t plain;
    char text[LONGEST + 1], *stopped;
    locale_t own = __atomic_load_n(&plain, __ATOMIC_ACQUIRE);
    if (!own) { /* threads that meet here make two; one stays unused */
        own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (!own) return 0;
        __atomic_store_n(&plain, own, __ATOMIC_RELEASE);
    }
    if (end - p > LONGEST) return 0;
    memcpy(text, p, (size_t)(end - p));
    text[end - p] = 0;
    for (char *c = text; *c; c++)
        if (*c == (char)f->decimal) *c = '.';
    *found = strtod_l(text, &stopped, own);
    return *stopped == 0 && *found != 0 && __builtin_isfinite(*found);
}

/* A number of digits, decimal point and exponent that begins at p; where it ends, or NULL if there is none. */
static inline const char *number(const struct fields *f, const char *p, double *found) {
    const char *begin = p;
    const int negative = *p == '-';
    p += negative;
    const char *digits = p;
    uint64_t w = 0;
    int64_t q = 0, count;
    while (is_digit(*p)) w = 10 * w + (uint64_t)(*p++ - '0');
    count = p - digits;
    if (*p == (char)f->decimal) {
        const char *point = ++p;
        p = digits_of(p, &w);
        q = point - p;
        count -= q;
    }
    if (!count) return NULL;
    if (*p == 'e' || *p == 'E') {
        p++;
        const int below = *p == '-';
        int64_t e = 0;
        if (*p == '-' || *p == '+') p++;
        if (!is_digit(*p)) return NULL;
        for (; is_digit(*p); p++)
            if (e < 100000) e = 10 * e + (*p - '0');
        q += below ? -e : e;
    }
    if (count > 19) { /* zeros in front count for nothing */
        for (const char *c = digits; *c == '0' || *c == (char)f->decimal; c++) count -= *c == '0';
    }
    if (LIKELY(count <= 19)) { /* else w has overflowed */
        const int64_t bits = w ? nearest(f, w, q) : 0;
        if (LIKELY(bits >= 0)) {
            const uint64_t signed_bits = (uint64_t)bits | (uint64_t)negative << 63;
            memcpy(found, &signed_bits, 8);
            return p;
        }
    }
    return asked(f, begin, p, found) ? p : NULL;
}

static inline const char *integer(const char *p, int64_t *found) {
    const int negative = *p == '-';
    p += negative;
    const char *digits = p;
    int64_t value = 0;
    while (is_digit(*p) && p - digits < 19) value = 10 * value + (*p++ - '0');
    if (p == digits || p - digits > 18) return NULL;
    *found = negative ? -value : value;
    return p;
}

static int among(const char *words, const char *p, int64_t length) {
    for (; *words; words += (unsigned char)*words)
        if ((unsigned char)*words - 1 == length && !memcmp(words + 1, p, (size_t)length)) return 1;
    return 0;
}

/* Where a field ends; NULL if it holds a quote, a line end of another kind, or is not all there. */
static inline const char *ended(const struct fields *f, const char *p, const char *end) {
    for (; p < end; p++) {
        if (*p == (char)f->delimiter || *p == '\n') return p;
        if (*p == '\r') return p[1] == '\n' && p + 1 < end ? p : NULL;
        if (*p == (char)f->quote) return NULL;
    }
    return p;
}

static inline int is_end(const struct fields *f, const char *p, const char *end) {
    return *p == (char)f->delimiter || *p == '\n' || p >= end || (*p == '\r' && p[1] == '\n');
}

static inline const char *past_blanks(const struct fields *f, const char *p) {
    while ((*p == ' ' || *p == '\t') && *p != (char)f->delimiter) p++;
    return p;
}

/* What stands for a double and is no number: where it ends, or NULL. */
static const char *word(const struct fields *f, const char *p, const char *end, double *found) {
    const char *stop = ended(f, p, end);
    if (!stop) return NULL;
    const int negative = *p == '-';
    if (stop - p == 3 + negative && !memcmp(p + negative, "inf", 3))
        *found = negative ? -__builtin_inf() : __builtin_inf();
    else if (among(f->words, p, stop - p)) *found = __builtin_nan("");
    else return NULL;
    return stop;
}

/* One field of a column that is wanted, as a number at its place; where it ends, or NULL. */
static inline const char *field(const struct fields *f, int64_t kind, char *place, const char *p, const char *end) {
    if (*f->numbers) {
        const char *stop = ended(f, p, end);
        if (!stop) return NULL;
        if (among(f->numbers, p, stop - p)) {
            const double none = __builtin_nan("");
            memcpy(place, &none, 8);
            return kind == DOUBLES ? stop : NULL;
        }
    }
    const char *begin = past_blanks(f, p), *stop;
    if (kind == INTEGERS) {
        int64_t value = 0;
        stop = integer(begin, &value);
        if (stop) stop = past_blanks(f, stop);
        if (!stop || !is_end(f, stop, end)) return NULL;
        memcpy(place, &value, 8);
        return stop;
    }
    double value = 0;
    stop = number(f, begin, &value);
    if (stop) stop = past_blanks(f, stop);
    if (!LIKELY(stop && is_end(f, stop, end))) stop = word(f, p, end, &value);
    if (stop) memcpy(place, &value, 8);
    return stop;
}

/* The rows of a text as numbers, from row `row` on and no more than up to row `rows`; the last one ends where the
   text does if `last`, else it may be cut off and is left. Sixteen bytes behind the text may be read, and are no
   digits. `taken` is set to the bytes that were read. Returns the row after, or -1 where something is not plain. */
EXPORT int64_t linnet_fields(const struct fields *f, const char *text, int64_t size, int64_t last, int64_t row,
                             int64_t rows, int64_t *taken) {
    const char *p = text, *end = text + size;
    if (!last) /* a row that is cut off is not begun */
        while (end > text && end[-1] != '\n') end--;
    while (p < end) {
        if (*p == '\n') {
            p++;
            continue;
        }
        if (*p == '\r' && p[1] == '\n' && p + 1 < end) {
            p += 2;
            continue;
        }
        if (row >= rows) return -1;
        for (int64_t column = 0; column < f->width; column++) {
            if (column) {
                if (p >= end || *p != (char)f->delimiter) return -1;
                p++;
            }
            if (f->kinds[column] == SKIPPED) p = ended(f, p, end);
            else p = field(f, f->kinds[column], f->places[column] + row * f->strides[column], p, end);
            if (!p || p > end) return -1;
        }
        if (p < end) {
            if (*p == '\r') p++;
            if (*p != '\n') return -1;
            p++;
        }
        row++;
    }
    *taken = end - text;
    return row;
}

/* How many rows begin behind the line ends among the first `body` bytes of a text, and where the first one does
   (-1: nowhere). What follows tells whether a row is empty; `size` counts all bytes there are. Returns -1 if there is
   a quote among these first bytes. */
EXPORT int64_t linnet_rows(const char *text, int64_t body, int64_t size, int64_t quote, int64_t *first) {
    const char *p = text, *end = text + (body < size - 1 ? body : size - 1);
    int64_t count = 0;
    *first = -1;
    if (memchr(text, (int)quote, (size_t)(body < size ? body : size))) return -1;
    while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
        p++;
        if (*p == '\n' || (*p == '\r' && p + 1 < text + size && p[1] == '\n')) continue;
        if (!count++) *first = p - text;
    }
    return count;
}
