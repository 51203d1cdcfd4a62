/* The nearest of some centres for each row, and the sums of rows by centre (see models/nearest.py).

   A product of matrices followed by a search for the least of each row writes and reads as many numbers as
   there are pairs of rows and centres. Here they stay in registers: six rows meet eight centres at a time,
   and only the least distance of each row is kept.

   Plain C without Python: it is loaded with ctypes, which lets go of the interpreter lock. */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))
#define LANES 4
#define ROWS 6

typedef double vector __attribute__((vector_size(8 * LANES), aligned(8)));
typedef int64_t places __attribute__((vector_size(8 * LANES), aligned(8)));

/* Rows and centres; `Nearest` in nearest.py is the same. */
struct nearest {
    int64_t rows, columns, centres;
    int64_t down;          /* elements from a row to the next */
    int64_t padded;        /* centres in `turned`: a multiple of LANES */
    const double *x;
    const double *shift;   /* taken off every row; or null */
    const double *weight;  /* of rows; or null */
    const double *turned;  /* minus twice the centres, less shift: columns × padded */
    const double *squares; /* of centres, less shift; infinity beyond the last */
    int32_t *labels;       /* of rows; or null */
    double *line;          /* inertia, weights of centres, sums of rows by centre, less shift; or null */
    double *work;          /* ROWS × columns */
};

INLINE vector chosen(places mask, vector a, vector b)
{
    return (vector)(((places)a & mask) | ((places)b & ~mask));
}

/* Distances of ROWS rows from `count` vectors of centres that begin at `first`; keeps the least of each lane.
   `rows` are column by column. */
INLINE void meet(const struct nearest *s, const double *rows, int64_t first, int count, vector *least,
                 places *where)
{
    vector sum[ROWS][2];
    for (int r = 0; r < ROWS; r++)
        for (int v = 0; v < count; v++)
            sum[r][v] = *(const vector *)(s->squares + first + v * LANES);
    const double *turned = s->turned + first;
    for (int64_t k = 0; k < s->columns; k++, turned += s->padded, rows += ROWS) {
        vector c[2];
        for (int v = 0; v < count; v++)
            c[v] = *(const vector *)(turned + v * LANES);
        for (int r = 0; r < ROWS; r++)
            for (int v = 0; v < count; v++)
                sum[r][v] += c[v] * rows[r];
    }
    for (int v = 0; v < count; v++) {
        int64_t place = first + v * LANES;
        places here = {place, place + 1, place + 2, place + 3};
        for (int r = 0; r < ROWS; r++) {
            places closer = sum[r][v] < least[r];
            least[r] = chosen(closer, sum[r][v], least[r]);
            where[r] = (closer & here) | (~closer & where[r]);
        }
    }
}

/* Adds one row, whose elements lie ROWS apart, to what is known of its centre. */
INLINE void add(const struct nearest *s, const double *row, double distance, double weight, int64_t label)
{
    double *sums = s->line + 1 + s->centres + label * s->columns, own = 0.0;
    for (int64_t k = 0; k < s->columns; k++) {
        double value = row[k * ROWS];
        own += value * value;
        sums[k] += weight * value;
    }
    distance += own;
    s->line[0] += weight * (distance > 0.0 ? distance : 0.0);
    s->line[1 + label] += weight;
}

/* Returns how many rows have no distance, since they are not finite. */
INLINE int64_t walk(const struct nearest *s)
{
    int64_t lost = 0;
    for (int64_t start = 0; start < s->rows; start += ROWS) {
        int64_t count = s->rows - start < ROWS ? s->rows - start : ROWS;
        if (count < ROWS)
            memset(s->work, 0, sizeof(double) * ROWS * s->columns);
        for (int64_t r = 0; r < count; r++) {
            const double *from = s->x + (start + r) * s->down;
            for (int64_t k = 0; k < s->columns; k++)
                s->work[k * ROWS + r] = s->shift ? from[k] - s->shift[k] : from[k];
        }
        vector least[ROWS];
        places where[ROWS];
        for (int r = 0; r < ROWS; r++) {
            least[r] = (vector){INFINITY, INFINITY, INFINITY, INFINITY};
            where[r] = (places){0, 0, 0, 0};
        }
        int64_t first = 0;
        for (; first + 2 * LANES <= s->padded; first += 2 * LANES)
            meet(s, s->work, first, 2, least, where);
        if (first < s->padded)
            meet(s, s->work, first, 1, least, where);
        for (int64_t r = 0; r < count; r++) {
            double best = INFINITY;
            int64_t label = 0;
            for (int lane = 0; lane < LANES; lane++)
                if (least[r][lane] < best || (least[r][lane] == best && where[r][lane] < label)) {
                    best = least[r][lane];
                    label = where[r][lane];
                }
            if (!(best < INFINITY && best > -INFINITY)) {
                lost++;
                label = 0;
            }
            if (s->labels)
                s->labels[start + r] = (int32_t)label;
            if (s->line)
                add(s, s->work + r, best, s->weight ? s->weight[start + r] : 1.0, label);
        }
    }
    return lost;
}

static int64_t portable(const struct nearest *s)
{
    return walk(s);
}

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
__attribute__((target("avx2,fma"))) static int64_t wide(const struct nearest *s)
{
    return walk(s);
}
#endif

EXPORT int64_t linnet_nearest(const struct nearest *s)
{
#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return wide(s);
#endif
    return portable(s);
}
