/* Tasks on nodes in virtual time. `simulate.py` says what is simulated and does the same in Python;
   both take the same steps in the same order, so that results are equal to the bit. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int64_t number;

typedef struct {
    number tasks, tiles, nodes, pairs;
    double latency, bandwidth, dispatch;
    const int32_t *node;              /* of each task */
    const number *rank;               /* of each task: the lower, the more urgent */
    const double *seconds;            /* of each task */
    const number *read_start, *read_pair;
    const number *write_start;
    const int32_t *write;
    const number *pair_start;         /* of each tile: its pairs, a node each */
    const int32_t *pair_node;
    const number *pair_tile;
    const number *waiter_start;       /* of each pair: the tasks that read the tile there */
    const int32_t *waiter;
    const number *home;               /* of each tile: the pair where it comes to be, or -1 */
    const number *bytes;              /* of each tile */
    const uint8_t *kept;              /* of each tile */
    const number *workers, *ahead;    /* of each node */
    const int32_t *producer;          /* of each tile */
    double *start, *finish;           /* of each task */
    int32_t *worker;                  /* of each task, on its node */
    double *sent, *arrived;           /* of each pair; -1: never moved */
    int32_t *source;                  /* of each pair: the node it came from, or -1 */
    number *memory, *peak;            /* of each node */
} Simulation;

/* ---- heaps: of tasks by rank, and of events by time and number */

typedef struct { number *item; number count, room; } Heap;
typedef struct { double time; number turn, what; } Event;
typedef struct { Event *item; number count, room, turn; } Events;

static int grow(void **items, number *room, number count, size_t size) {
    if (count < *room) return 1;
    number wanted = *room ? 2 * *room : 16;
    void *more = realloc(*items, (size_t)wanted * size);
    if (!more) return 0;
    *items = more;
    *room = wanted;
    return 1;
}

static int push(Heap *heap, number rank) {
    if (!grow((void **)&heap->item, &heap->room, heap->count, sizeof(number))) return 0;
    number place = heap->count++;
    while (place && heap->item[(place - 1) / 2] > rank) {
        heap->item[place] = heap->item[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    heap->item[place] = rank;
    return 1;
}

static number pop(Heap *heap) {
    number first = heap->item[0], last = heap->item[--heap->count], place = 0;
    for (;;) {
        number below = 2 * place + 1;
        if (below >= heap->count) break;
        if (below + 1 < heap->count && heap->item[below + 1] < heap->item[below]) below++;
        if (heap->item[below] >= last) break;
        heap->item[place] = heap->item[below];
        place = below;
    }
    heap->item[place] = last;
    return first;
}

static int before(const Event *a, const Event *b) {
    return a->time < b->time || (a->time == b->time && a->turn < b->turn);
}

static int plan_event(Events *events, double time, number what) {
    if (!grow((void **)&events->item, &events->room, events->count, sizeof(Event))) return 0;
    Event event = {time, events->turn++, what};
    number place = events->count++;
    while (place && before(&event, &events->item[(place - 1) / 2])) {
        events->item[place] = events->item[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    events->item[place] = event;
    return 1;
}

static Event next_event(Events *events) {
    Event first = events->item[0], last = events->item[--events->count];
    number place = 0;
    for (;;) {
        number below = 2 * place + 1;
        if (below >= events->count) break;
        if (below + 1 < events->count && before(&events->item[below + 1], &events->item[below])) below++;
        if (!before(&events->item[below], &last)) break;
        events->item[place] = events->item[below];
        place = below;
    }
    events->item[place] = last;
    return first;
}

/* ---- the run */

enum { ABSENT, COMING, HERE, GONE };

typedef struct {
    const Simulation *given;
    Heap *fetch, *runnable;           /* of each node */
    Events events;
    number *task_of_rank;
    number *lacking;                  /* of each task: operands that do not exist, later that are not here */
    uint8_t *admitted;                /* of each task */
    uint8_t *state;                   /* of each pair */
    double *available;                /* of each pair: when it is, or will be, there */
    number *holds;                    /* of each pair: who needs it still, readers and copies */
    number *in_flight;                /* of each node: tasks admitted and not finished */
    double *out_free, *in_free;       /* of each node */
    uint8_t **busy;                   /* of each node: its workers */
    number *idle;                     /* of each node */
    double now, dispatcher;
} Run;

static void take(Run *run, number pair) {
    const Simulation *s = run->given;
    number node = s->pair_node[pair];
    s->memory[node] += s->bytes[s->pair_tile[pair]];
    if (s->memory[node] > s->peak[node]) s->peak[node] = s->memory[node];
}

static void let_go(Run *run, number pair) {
    const Simulation *s = run->given;
    if (--run->holds[pair] > 0) return;
    number tile = s->pair_tile[pair];
    if (s->kept[tile] && s->home[tile] == pair) return;
    s->memory[s->pair_node[pair]] -= s->bytes[tile];
    run->state[pair] = GONE;
}

static int send(Run *run, number pair) {
    const Simulation *s = run->given;
    number tile = s->pair_tile[pair], best = -1;
    double soonest = 0;
    for (number other = s->pair_start[tile]; other < s->pair_start[tile + 1]; other++) {
        if (run->state[other] == ABSENT || run->state[other] == GONE) continue;
        double could = run->available[other];
        if (run->out_free[s->pair_node[other]] > could) could = run->out_free[s->pair_node[other]];
        if (best < 0 || could < soonest) { best = other; soonest = could; }
    }
    number from = s->pair_node[best], to = s->pair_node[pair];
    double begin = run->now > soonest ? run->now : soonest;
    if (run->in_free[to] > begin) begin = run->in_free[to];
    double end = begin + (s->latency + (double)s->bytes[tile] / s->bandwidth);
    run->out_free[from] = run->in_free[to] = end;
    run->state[pair] = COMING;
    run->available[pair] = end;
    run->holds[best]++;
    s->source[pair] = (int32_t)from;
    s->sent[pair] = begin;
    s->arrived[pair] = end;
    take(run, pair);
    return plan_event(&run->events, end, s->tasks + pair);
}

static int admit(Run *run, number node) {
    const Simulation *s = run->given;
    while (run->fetch[node].count && run->in_flight[node] < s->ahead[node]) {
        number task = run->task_of_rank[pop(&run->fetch[node])], lacking = 0;
        run->in_flight[node]++;
        run->admitted[task] = 1;
        for (number place = s->read_start[task]; place < s->read_start[task + 1]; place++) {
            number pair = s->read_pair[place];
            if (run->state[pair] == ABSENT && !send(run, pair)) return 0;
            if (run->state[pair] != HERE) lacking++;
        }
        run->lacking[task] = lacking;
        if (!lacking && !push(&run->runnable[node], s->rank[task])) return 0;
    }
    return 1;
}

static int begin(Run *run, number node) {
    const Simulation *s = run->given;
    while (run->idle[node] && run->runnable[node].count) {
        number task = run->task_of_rank[pop(&run->runnable[node])], worker = 0;
        while (run->busy[node][worker]) worker++;
        run->busy[node][worker] = 1;
        run->idle[node]--;
        double start = run->now > run->dispatcher ? run->now : run->dispatcher;
        start += s->dispatch;
        run->dispatcher = start;
        s->worker[task] = (int32_t)worker;
        s->start[task] = start;
        s->finish[task] = start + s->seconds[task];
        for (number place = s->write_start[task]; place < s->write_start[task + 1]; place++)
            take(run, s->home[s->write[place]]);
        if (!plan_event(&run->events, s->finish[task], task)) return 0;
    }
    return 1;
}

static int exists(Run *run, number tile) {
    const Simulation *s = run->given;
    number home = s->home[tile];
    run->state[home] = HERE;
    run->available[home] = run->now;
    for (number pair = s->pair_start[tile]; pair < s->pair_start[tile + 1]; pair++) {
        number node = s->pair_node[pair];
        for (number place = s->waiter_start[pair]; place < s->waiter_start[pair + 1]; place++) {
            number task = s->waiter[place];
            if (!--run->lacking[task] && !push(&run->fetch[node], s->rank[task])) return 0;
        }
    }
    return 1;
}

static int settle(Run *run, number node) { return admit(run, node) && begin(run, node); }

static int finished(Run *run, number task) {
    const Simulation *s = run->given;
    number node = s->node[task];
    run->busy[node][s->worker[task]] = 0;
    run->idle[node]++;
    run->in_flight[node]--;
    for (number place = s->write_start[task]; place < s->write_start[task + 1]; place++) {
        number tile = s->write[place];
        if (!exists(run, tile)) return 0;
        /* The task itself held it until now. */
        let_go(run, s->home[tile]);
    }
    for (number place = s->read_start[task]; place < s->read_start[task + 1]; place++)
        let_go(run, s->read_pair[place]);
    for (number place = s->write_start[task]; place < s->write_start[task + 1]; place++) {
        number tile = s->write[place];
        for (number pair = s->pair_start[tile]; pair < s->pair_start[tile + 1]; pair++)
            if (s->pair_node[pair] != node && !settle(run, s->pair_node[pair])) return 0;
    }
    return settle(run, node);
}

static int arrived(Run *run, number pair) {
    const Simulation *s = run->given;
    number node = s->pair_node[pair], tile = s->pair_tile[pair];
    run->state[pair] = HERE;
    for (number place = s->waiter_start[pair]; place < s->waiter_start[pair + 1]; place++) {
        number task = s->waiter[place];
        if (run->admitted[task] && !--run->lacking[task] && !push(&run->runnable[node], s->rank[task])) return 0;
    }
    for (number other = s->pair_start[tile]; other < s->pair_start[tile + 1]; other++)
        if (s->pair_node[other] == s->source[pair]) let_go(run, other);
    /* The home kept it for this node. */
    let_go(run, s->home[tile]);
    return settle(run, node);
}

static int prepare(Run *run) {
    const Simulation *s = run->given;
    for (number task = 0; task < s->tasks; task++) {
        run->task_of_rank[s->rank[task]] = task;
        run->lacking[task] = s->read_start[task + 1] - s->read_start[task];
    }
    for (number pair = 0; pair < s->pairs; pair++) {
        number tile = s->pair_tile[pair];
        run->holds[pair] = s->waiter_start[pair + 1] - s->waiter_start[pair];
        s->source[pair] = -1;
        s->sent[pair] = s->arrived[pair] = -1;
        if (s->home[tile] == pair) {
            run->holds[pair] += s->pair_start[tile + 1] - s->pair_start[tile] - 1;
            if (s->producer[tile] >= 0) run->holds[pair]++;
        }
    }
    for (number node = 0; node < s->nodes; node++) {
        run->idle[node] = s->workers[node];
        run->busy[node] = calloc((size_t)s->workers[node], 1);
        if (!run->busy[node]) return 0;
    }
    for (number tile = 0; tile < s->tiles; tile++)
        if (s->producer[tile] < 0 && s->home[tile] >= 0) {
            take(run, s->home[tile]);
            if (!exists(run, tile)) return 0;
        }
    for (number task = 0; task < s->tasks; task++)
        if (s->read_start[task + 1] == s->read_start[task] && !push(&run->fetch[s->node[task]], s->rank[task]))
            return 0;
    for (number node = 0; node < s->nodes; node++)
        if (!settle(run, node)) return 0;
    return 1;
}

static int go(Run *run) {
    while (run->events.count) {
        Event event = next_event(&run->events);
        run->now = event.time;
        number tasks = run->given->tasks;
        if (!(event.what < tasks ? finished(run, event.what) : arrived(run, event.what - tasks))) return 0;
    }
    return 1;
}

/* Returns 1, or 0 where memory ran out. */
__attribute__((visibility("default"))) int linnet_simulate(const Simulation *s) {
    size_t tasks = (size_t)s->tasks + 1, pairs = (size_t)s->pairs + 1, nodes = (size_t)s->nodes;
    Run run = {.given = s};
    run.fetch = calloc(nodes, sizeof(Heap));
    run.runnable = calloc(nodes, sizeof(Heap));
    run.task_of_rank = malloc(tasks * sizeof(number));
    run.lacking = malloc(tasks * sizeof(number));
    run.admitted = calloc(tasks, 1);
    run.state = calloc(pairs, 1);
    run.available = calloc(pairs, sizeof(double));
    run.holds = calloc(pairs, sizeof(number));
    run.in_flight = calloc(nodes, sizeof(number));
    run.out_free = calloc(nodes, sizeof(double));
    run.in_free = calloc(nodes, sizeof(double));
    run.busy = calloc(nodes, sizeof(uint8_t *));
    run.idle = calloc(nodes, sizeof(number));
    int fine = run.fetch && run.runnable && run.task_of_rank && run.lacking && run.admitted && run.state
        && run.available && run.holds && run.in_flight && run.out_free && run.in_free && run.busy && run.idle
        && prepare(&run) && go(&run);
    for (size_t node = 0; node < nodes; node++) {
        if (run.fetch) free(run.fetch[node].item);
        if (run.runnable) free(run.runnable[node].item);
        if (run.busy) free(run.busy[node]);
    }
    free(run.events.item);
    void *all[] = {run.fetch, run.runnable, run.task_of_rank, run.lacking, run.admitted, run.state, run.available,
                   run.holds, run.in_flight, run.out_free, run.in_free, run.busy, run.idle};
    for (size_t place = 0; place < sizeof all / sizeof *all; place++) free(all[place]);
    return fine;
}
