/* Walks over the tasks of a program that place them on nodes, one after another (see policies/walks.py,
   where the same walks stand in Python).

   Costs are whole numbers (picoseconds, bytes, elements), so that both give the same placement wherever they
   are built. Plain C without Python: it is loaded with ctypes, which lets go of the interpreter lock. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define NO_MEMORY (-1)
#define NO_PLACE (-2) /* a task has no node, and nothing that it reads is anywhere */
#define LATER (-2)

/* Tasks, tiles and the cluster; `_Work` in policies/walks.py is the same. */
struct work {
    int64_t tasks, tiles, nodes;
    const int64_t *order; /* tasks, each after those it waits for */
    const int64_t *read_start;
    const int32_t *read;
    const int64_t *write_start;
    const int32_t *write;
    const int64_t *reader_start;
    const int32_t *reader;
    const int64_t *cost;  /* of each task, for each kind of node */
    const int64_t *kind;  /* of each node */
    const int64_t *move;  /* of each tile, from a node to another */
    const int64_t *bytes; /* of each tile */
    const uint8_t *kept;  /* tiles that are not freed */
};

static inline int64_t cost_on(const struct work *w, int64_t task, int64_t node) {
    return w->cost[w->kind[node] * w->tasks + task];
}

/* Numbers for nodes that are forgotten at once: those of an older round count as 0. */
struct marks {
    int64_t round;
    int64_t *last, *value;
    int32_t *seen;
    int64_t count;
};

static int marks_open(struct marks *m, int64_t nodes) {
    m->round = 0;
    m->count = 0;
    m->last = calloc(nodes, sizeof *m->last);
    m->value = malloc(nodes * sizeof *m->value);
    m->seen = malloc(nodes * sizeof *m->seen);
    return m->last && m->value && m->seen;
}

static void marks_close(struct marks *m) {
    free(m->last);
    free(m->value);
    free(m->seen);
}

static inline void marks_clear(struct marks *m) {
    m->round++;
    m->count = 0;
}

static inline int64_t *mark(struct marks *m, int64_t node) {
    if (m->last[node] != m->round) {
        m->last[node] = m->round;
        m->value[node] = 0;
        m->seen[m->count++] = (int32_t)node;
    }
    return &m->value[node];
}

static inline int64_t marked(const struct marks *m, int64_t node) {
    return m->last[node] == m->round ? m->value[node] : 0;
}

/* Tasks without a node go to the least loaded of the nodes that made their operands; those whose operands
   are nowhere yet stay without. `load` is what each node has to do, its tasks and its messages. */
EXPORT int64_t linnet_forward(const struct work *w, int32_t *node, int32_t *home, int64_t *load) {
    struct marks local;
    if (!marks_open(&local, w->nodes)) {
        marks_close(&local);
        return NO_MEMORY;
    }
    for (int64_t p = 0; p < w->tasks; p++) {
        int64_t task = w->order[p], all = 0;
        marks_clear(&local);
        for (int64_t r = w->read_start[task]; r < w->read_start[task + 1]; r++) {
            int32_t tile = w->read[r];
            if (home[tile] >= 0) {
                *mark(&local, home[tile]) += w->move[tile];
                all += w->move[tile];
            }
        }
        if (node[task] < 0) {
            int64_t best = 0;
            for (int64_t s = 0; s < local.count; s++) {
                int32_t n = local.seen[s];
                int64_t cost = load[n] + cost_on(w, task, n) + all - local.value[n];
                if (node[task] < 0 || cost < best || (cost == best && n < node[task])) {
                    best = cost;
                    node[task] = n;
                }
            }
        }
        int32_t n = node[task];
        if (n < 0)
            continue;
        load[n] += cost_on(w, task, n) + all - marked(&local, n);
        for (int64_t r = w->write_start[task]; r < w->write_start[task + 1]; r++)
            home[w->write[r]] = n;
    }
    marks_close(&local);
    return 0;
}

/* Tasks without a node go to the least loaded of the nodes that read what they make; those that nobody with
   a node reads stay without. */
EXPORT int64_t linnet_backward(const struct work *w, int32_t *node, int64_t *load) {
    for (int64_t p = w->tasks - 1; p >= 0; p--) {
        int64_t task = w->order[p], best = 0;
        if (node[task] >= 0)
            continue;
        int32_t chosen = -1;
        for (int64_t a = w->write_start[task]; a < w->write_start[task + 1]; a++) {
            int32_t tile = w->write[a];
            for (int64_t r = w->reader_start[tile]; r < w->reader_start[tile + 1]; r++) {
                int32_t n = node[w->reader[r]];
                if (n < 0 || n == chosen)
                    continue;
                int64_t cost = load[n] + cost_on(w, task, n);
                if (chosen < 0 || cost < best || (cost == best && n < chosen)) {
                    best = cost;
                    chosen = n;
                }
            }
        }
        node[task] = chosen;
        if (chosen >= 0)
            load[chosen] += cost_on(w, task, chosen);
    }
    return 0;
}

/* Which nodes hold which tiles: a set of bits a tile. */
struct held {
    int64_t words;
    uint64_t *bits;
};

static inline int holds(const struct held *h, int32_t tile, int64_t node) {
    return h->bits[tile * h->words + node / 64] >> (node % 64) & 1;
}

static inline void hold(struct held *h, int32_t tile, int64_t node) {
    h->bits[tile * h->words + node / 64] |= (uint64_t)1 << (node % 64);
}

/* The loads of the thesis (eq. 3.2): memory, elements in and elements out of every node. */
struct loads {
    int64_t *memory, *in, *out;
    int64_t memory_most, in_most, out_most;
};

static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* What eq. 3.2 comes to if a task runs on a node; with `keep` it does run there. */
static int64_t simulated(const struct work *w, struct loads *l, struct held *h, struct marks *sent,
                         const int32_t *home, int64_t task, int64_t node, int keep) {
    int64_t in = 0, made = 0, out_most = l->out_most;
    marks_clear(sent);
    for (int64_t r = w->read_start[task]; r < w->read_start[task + 1]; r++) {
        int32_t tile = w->read[r];
        if (holds(h, tile, node))
            continue;
        in += w->bytes[tile];
        int64_t *from = mark(sent, home[tile]);
        *from += w->bytes[tile];
        out_most = larger(out_most, l->out[home[tile]] + *from);
        if (keep)
            hold(h, tile, node);
    }
    for (int64_t r = w->write_start[task]; r < w->write_start[task + 1]; r++)
        made += w->bytes[w->write[r]];
    int64_t memory_most = larger(l->memory_most, l->memory[node] + in + made);
    int64_t in_most = larger(l->in_most, l->in[node] + in);
    if (keep) {
        l->memory[node] += in + made;
        l->in[node] += in;
        for (int64_t s = 0; s < sent->count; s++)
            l->out[sent->seen[s]] += sent->value[sent->seen[s]];
        l->memory_most = memory_most;
        l->in_most = in_most;
        l->out_most = out_most;
    }
    return memory_most + in_most + out_most;
}

/* The thesis' search: every task where eq. 3.2 is least, of the nodes that hold one of its operands. `bytes`
   are elements here; `node` has the nodes of tasks that have no choice; every input has a home. */
EXPORT int64_t linnet_lshs(const struct work *w, int32_t *node, int32_t *home) {
    struct held held = {(w->nodes + 63) / 64, NULL};
    struct loads loads = {0};
    struct marks sent, options;
    int ready = marks_open(&sent, w->nodes) & marks_open(&options, w->nodes);
    held.bits = calloc(w->tiles * held.words + 1, sizeof *held.bits);
    loads.memory = calloc(3 * w->nodes, sizeof *loads.memory);
    if (!ready || !held.bits || !loads.memory) {
        marks_close(&sent), marks_close(&options), free(held.bits), free(loads.memory);
        return NO_MEMORY;
    }
    loads.in = loads.memory + w->nodes;
    loads.out = loads.in + w->nodes;
    for (int64_t tile = 0; tile < w->tiles; tile++) {
        if (home[tile] < 0)
            continue;
        hold(&held, (int32_t)tile, home[tile]);
        loads.memory[home[tile]] += w->bytes[tile];
        loads.memory_most = larger(loads.memory_most, loads.memory[home[tile]]);
    }
    for (int64_t p = 0; p < w->tasks; p++) {
        int64_t task = w->order[p], best = 0;
        if (node[task] < 0) {
            marks_clear(&options);
            for (int64_t r = w->read_start[task]; r < w->read_start[task + 1]; r++)
                for (int64_t n = 0; n < w->nodes; n++)
                    if (holds(&held, w->read[r], n))
                        mark(&options, n);
            for (int64_t n = 0; n < w->nodes; n++) {
                if (options.last[n] != options.round)
                    continue;
                int64_t cost = simulated(w, &loads, &held, &sent, home, task, n, 0);
                if (node[task] < 0 || cost < best) {
                    best = cost;
                    node[task] = (int32_t)n;
                }
            }
        }
        if (node[task] < 0) {
            marks_close(&sent), marks_close(&options), free(held.bits), free(loads.memory);
            return NO_PLACE;
        }
        simulated(w, &loads, &held, &sent, home, task, node[task], 1);
        for (int64_t r = w->write_start[task]; r < w->write_start[task + 1]; r++) {
            home[w->write[r]] = node[task];
            hold(&held, w->write[r], node[task]);
        }
    }
    marks_close(&sent), marks_close(&options), free(held.bits), free(loads.memory);
    return 0;
}

/* What each node has to do and hold while tasks are placed one by one. */
struct state {
    struct held held;
    int64_t *busy, *in, *out, *memory;
    int32_t *left;   /* of each tile: reads that are still to be placed */
    int64_t *source; /* of each operand of the task at hand: who would send it, -1 if nobody holds it */
};

/* The holder of a tile that has sent least; -1 if nobody holds it. */
static int64_t source_of(const struct state *s, int32_t tile) {
    int64_t best = -1;
    const uint64_t *words = s->held.bits + tile * s->held.words;
    for (int64_t k = 0; k < s->held.words; k++)
        for (uint64_t rest = words[k]; rest; rest &= rest - 1) {
            int64_t n = 64 * k + __builtin_ctzll(rest);
            if (best < 0 || s->out[n] < s->out[best])
                best = n;
        }
    return best;
}

struct price {
    int64_t over; /* bytes above the memory of the node */
    int64_t cost;
};

static struct price price_on(const struct work *w, const struct state *s, const int64_t *memory, int64_t task,
                             int64_t node) {
    int64_t in = 0, need = 0, behind = 0, first = w->read_start[task];
    for (int64_t r = first; r < w->read_start[task + 1]; r++) {
        int32_t tile = w->read[r];
        if (holds(&s->held, tile, node))
            continue;
        need += w->bytes[tile];
        int64_t from = s->source[r - first];
        if (from >= 0) {
            in += w->move[tile];
            behind = larger(behind, s->out[from] + w->move[tile]);
        }
    }
    for (int64_t r = w->write_start[task]; r < w->write_start[task + 1]; r++)
        need += w->bytes[w->write[r]];
    struct price found = {0, s->busy[node] + cost_on(w, task, node) + s->in[node] + 2 * in + behind};
    if (memory[node] >= 0)
        found.over = larger(0, s->memory[node] + need - memory[node]);
    return found;
}

static inline int cheaper(struct price a, struct price b) {
    return a.over < b.over || (a.over == b.over && a.cost < b.cost);
}

/* A tile that nobody will read again: it goes everywhere, but one that is kept stays at home. */
static void let_go(const struct work *w, struct state *s, int32_t tile, int32_t home) {
    uint64_t *words = s->held.bits + tile * s->held.words;
    for (int64_t k = 0; k < s->held.words; k++)
        for (uint64_t rest = words[k]; rest; rest &= rest - 1) {
            int64_t n = 64 * k + __builtin_ctzll(rest);
            if (w->kept[tile] && n == home)
                continue;
            s->memory[n] -= w->bytes[tile];
            words[k] &= ~((uint64_t)1 << (n % 64));
        }
}

static void run_on(const struct work *w, struct state *s, int32_t *home, int64_t task, int64_t node) {
    s->busy[node] += cost_on(w, task, node);
    for (int64_t r = w->read_start[task]; r < w->read_start[task + 1]; r++) {
        int32_t tile = w->read[r];
        if (!holds(&s->held, tile, node)) {
            int64_t from = source_of(s, tile);
            if (from >= 0) {
                s->in[node] += w->move[tile];
                s->out[from] += w->move[tile];
            } else {
                home[tile] = (int32_t)node; /* what is free is loaded where it is read first */
            }
            hold(&s->held, tile, node);
            s->memory[node] += w->bytes[tile];
        }
        if (--s->left[tile] == 0)
            let_go(w, s, tile, home[tile]);
    }
    for (int64_t r = w->write_start[task]; r < w->write_start[task + 1]; r++) {
        int32_t tile = w->write[r];
        home[tile] = (int32_t)node;
        if (s->left[tile] || w->kept[tile]) {
            hold(&s->held, tile, node);
            s->memory[node] += w->bytes[tile];
        }
    }
}

/* Every task where it costs least, of the nodes that hold one of its operands and the one that `wish` names
   (-1: none); nodes that would have to hold more than `memory` (-1: no limit) come last. Tasks that wish for
   LATER are left out: what they make can be made wherever it is read first. */
EXPORT int64_t linnet_greedy(const struct work *w, const int32_t *wish, const int64_t *memory, int32_t *node,
                             int32_t *home) {
    struct state s = {{(w->nodes + 63) / 64, NULL}, NULL, NULL, NULL, NULL, NULL, NULL};
    struct marks options;
    int ready = marks_open(&options, w->nodes);
    s.held.bits = calloc(w->tiles * s.held.words + 1, sizeof *s.held.bits);
    s.busy = calloc(4 * w->nodes, sizeof *s.busy);
    s.left = malloc((w->tiles + 1) * sizeof *s.left);
    int64_t widest = 1;
    for (int64_t task = 0; task < w->tasks; task++)
        widest = larger(widest, w->read_start[task + 1] - w->read_start[task]);
    s.source = malloc(widest * sizeof *s.source);
    if (!ready || !s.held.bits || !s.busy || !s.left || !s.source) {
        marks_close(&options), free(s.held.bits), free(s.busy), free(s.left), free(s.source);
        return NO_MEMORY;
    }
    s.in = s.busy + w->nodes, s.out = s.in + w->nodes, s.memory = s.out + w->nodes;
    for (int64_t tile = 0; tile < w->tiles; tile++) {
        s.left[tile] = (int32_t)(w->reader_start[tile + 1] - w->reader_start[tile]);
        if (home[tile] >= 0) {
            hold(&s.held, (int32_t)tile, home[tile]);
            s.memory[home[tile]] += w->bytes[tile];
        }
    }
    for (int64_t p = 0; p < w->tasks; p++) {
        int64_t task = w->order[p];
        if (wish[task] == LATER)
            continue;
        marks_clear(&options);
        for (int64_t r = w->read_start[task]; r < w->read_start[task + 1]; r++) {
            s.source[r - w->read_start[task]] = source_of(&s, w->read[r]);
            for (int64_t k = 0; k < s.held.words; k++)
                for (uint64_t rest = s.held.bits[w->read[r] * s.held.words + k]; rest; rest &= rest - 1)
                    mark(&options, 64 * k + __builtin_ctzll(rest));
        }
        if (wish[task] >= 0)
            mark(&options, wish[task]);
        int64_t chosen = -1;
        struct price best = {0, 0};
        for (int64_t o = 0; o < options.count; o++) {
            int64_t n = options.seen[o];
            struct price price = price_on(w, &s, memory, task, n);
            if (chosen < 0 || cheaper(price, best) || (!cheaper(best, price) && n < chosen)) {
                best = price;
                chosen = n;
            }
        }
        if (chosen < 0 || best.over) /* nobody has an operand, or nobody who has has room: anybody may */
            for (int64_t n = 0; n < w->nodes; n++) {
                struct price price = price_on(w, &s, memory, task, n);
                if (chosen < 0 || cheaper(price, best)) {
                    best = price;
                    chosen = n;
                }
            }
        node[task] = (int32_t)chosen;
        run_on(w, &s, home, task, chosen);
    }
    marks_close(&options), free(s.held.bits), free(s.busy), free(s.left), free(s.source);
    return 0;
}
