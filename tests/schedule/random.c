/* tests/schedule/random.c -- random definitions under random steps: whatever is accepted keeps the meaning,
 * whatever is refused changes nothing.
 *
 * A failure prints the seed, the definition, and the trace up to the first step that breaks it. TEC_SEED and
 * TEC_CASES choose others, TEC_TRACE=1 prints each case before its next step.
 */
#include <signal.h>
#include <stdio.h>

#include "tests/schedule/run.h"

TestSuite(random_steps, .init = open_context, .fini = close_context);

enum { MAX_STEPS = 12 };

static uint64_t state, current;

/* The verifier ends the process; the seed is what it takes to see why. */
static void tell_seed(int signal)
{
    fprintf(stderr, "seed %llu\n", (unsigned long long)current);
    (void)signal;
}

static int below(int n)
{
    return (int)base_random_below(&state, n);
}

/* ---- definitions ---- */

static void add_matmul(base_text *t)
{
    int m = 1 + below(9), k = below(12) ? 1 + below(9) : 0;

    base_addf(cx, t, "def mm(n, A: f32[n, %d], B: f32[%d, %d], D: f32[%d]) {\n", k, k, m, m);
    base_add(cx, t, "  C[y, x] = sum[k](A[y, k] * B[k, x])\n");
    if (below(2))
        base_add(cx, t, "  E[y, x] = C[y, x] + D[x]\n  R[y, x] = max(E[y, x], 0)\n  return R\n}");
    else
        base_add(cx, t, "  return C\n}");
}

static void add_conv(base_text *t)
{
    int h = 3 + below(5), kernel = 1 + below(3), stride = 1 + below(2), pad = below(2),
        out = (h + 2 * pad - kernel) / stride + 1;

    base_addf(cx, t, "def conv(A: f32[%d, %d, 2], W: f32[%d, %d, 2, 3], B: f32[3]) {\n", h, h, kernel,
              kernel);
    base_addf(
        cx, t,
        "  P[y: %d, x: %d, c] = select(y >= %d && y < %d && x >= %d && x < %d, A[y - %d, x - %d, c], 0)\n",
        h + 2 * pad, h + 2 * pad, pad, h + pad, pad, h + pad, pad, pad);
    base_addf(cx, t,
              "  C[y: %d, x: %d, o] = sum[i: %d, j: %d, c](P[y * %d + i, x * %d + j, c] * W[i, j, c, o])\n",
              out, out, kernel, kernel, stride, stride);
    base_add(cx, t, "  E[y, x, o] = C[y, x, o] + B[o]\n  R[y, x, o] = max(E[y, x, o], 0)\n  return R\n}");
}

static void add_normalise(base_text *t)
{
    base_addf(cx, t,
              "def norm(n, A: f32[n, %d]) {\n  M[y] = max[k](A[y, k])\n  D[y, x] = A[y, x] - M[y]\n  S[y] = "
              "sum[k](D[y, k] * "
              "D[y, k])\n",
              1 + below(9));
    base_add(cx, t, "  Z[y, x] = D[y, x] + S[y]\n  return Z\n}");
}

/* A read of one-dimensional stage k (extent from[k]) by one of extent n: shifted, strided, reversed, or
 * guarded. */
static void add_read(base_text *t, int k, int from, int n)
{
    int way = below(5), slack = from - n;

    if (way == 0 && slack >= 0)
        base_addf(cx, t, "S%d[i + %d]", k, below(slack + 1));
    else if (way == 1 && from >= 2 * n - 1)
        base_addf(cx, t, "S%d[i * 2]", k);
    else if (way == 2 && slack >= 0)
        base_addf(cx, t, "S%d[%d - i]", k, from - 1 - below(slack + 1));
    else if (way == 3)
        base_addf(cx, t, "S%d[(i + %d) %% %d]", k, below(4), from);
    else
        base_addf(cx, t, "select(i >= 1 && i < %d, S%d[i - 1], 1)", from + 1, k);
}

static void add_pipeline(base_text *t)
{
    int extent[6], n = 2 + below(4);

    extent[0] = 4 + below(12);
    base_addf(cx, t, "def pipe(S0: i32[%d]) {\n", extent[0]);
    for (int k = 1; k <= n; k++) {
        int window = below(4) ? 0 : 1 + below(3);

        extent[k] = 1 + below(14);
        base_addf(cx, t, "  S%d[i: %d] = ", k, extent[k]);
        if (window && extent[k - 1] >= extent[k] + window - 1) {
            base_addf(cx, t, "sum[w: %d](S%d[i + w] * 2)\n", window, k - 1);
            continue;
        }
        int last = k - 1;
        add_read(t, last, extent[last], extent[k]);
        for (int more = below(3); more > 0; more--) {
            int other = below(k);
            base_add(cx, t, below(2) ? " + " : " * ");
            add_read(t, other, extent[other], extent[k]);
        }
        base_add(cx, t, "\n");
    }
    base_addf(cx, t, "  return S%d\n}", n);
}

static void add_grid(base_text *t)
{
    int h = 2 + below(6), w = 2 + below(6);

    base_addf(cx, t, "def grid(A: f32[%d, %d]) {\n  P[y, x] = A[y, x] * 2\n", h, w);
    base_addf(cx, t, "  Q[x: %d, y: %d] = P[y, x] + %s\n", w, h, below(2) ? "P[0, x]" : "1");
    base_addf(cx, t, "  R[y: %d, x: %d] = Q[x, y] - %s\n", h, w, below(2) ? "P[y, x]" : "Q[0, y]");
    base_add(cx, t, below(2) ? "  T[y, x] = R[y, x] * R[y, x]\n  return T, P\n}" : "  return R\n}");
}

/* What one step reads of an earlier one: the element beside it, another one, or a sum over all. */
static const char *step_back(const char *name, int back)
{
    switch (below(4)) {
    case 0: return base_format(cx, "%s[t - %d, %d]", name, back, below(2));
    case 1: return base_format(cx, "%s[t - %d, (j + 1) %% m]", name, back);
    case 2: return base_format(cx, "sum[k: m](%s[t - %d, k] * W[j, k])", name, back);
    default: return base_format(cx, "%s[t - %d, j]", name, back);
    }
}

/* Two states of different dtypes, with what is computed within a step; or one that a row at a time adds
 * up. */
static void add_recurrence(base_text *t)
{
    int first = 1 + below(2);

    if (below(3) == 0) {
        base_add(cx, t,
                 "def prefix(n, m, A: i32[n, m]) where n >= 1 {\n  scan S[t: n] {\n    init h[t: 1, j: m] = "
                 "A[0, j]\n");
        base_addf(cx, t, "    update h[t, j] = %s[t, j] + h[t - 1, j]\n  }\n", below(2) ? "A" : "2 * A");
        base_add(cx, t, below(2) ? "  R[t, j] = h[t, j] - 1\n  return R\n}" : "  return h\n}");
        return;
    }
    base_addf(cx, t, "def rec(n, m, A: i32[n, m], W: i32[m, m]) where n >= %d, m >= 2 {\n  scan S[t: n] {\n",
              first);
    base_addf(cx, t, "    init g[t: %d, j: m] = A[0, j] + i32(t)\n    init h[t: %d, j: m] = i64(A[t, j])\n",
              first, first);
    base_addf(cx, t, "    update x[t, j: m] = A[t, j] * %s\n", below(2) ? "2" : step_back("g", first));
    base_addf(cx, t, "    update g[t, j] = x[t, j] + %s\n", step_back("g", 1));
    base_addf(cx, t, "    update h[t, j] = i64(%s) + h[t - %d, j] + i64(g[t, %s])\n  }\n",
              step_back("g", first), first, below(2) ? "j" : "(j + 1) % m");
    base_add(cx, t, below(2) ? "  R[j] = h[n - 1, j] * 2\n  return R\n}" : "  return h, g\n}");
}

static const char *random_definition(void)
{
    base_text t = {0};

    switch (below(6)) {
    case 5: add_recurrence(&t); break;
    case 0: add_matmul(&t); break;
    case 1: add_conv(&t); break;
    case 2: add_normalise(&t); break;
    case 3: add_pipeline(&t); break;
    default: add_grid(&t);
    }
    return t.data;
}

/* ---- steps ---- */

static void list_loops(const ir_stmt *s, base_vec *out)
{
    if (s->kind == IR_FOR)
        base_push(cx, out, s->loop.var->var.name);
    if (s->kind == IR_FOR)
        list_loops(s->loop.body, out);
    for (int i = 0; s->kind == IR_SEQ && i < s->seq.n; i++)
        list_loops(s->seq.stmt[i], out);
}

static const char *any_loop(const sched *s)
{
    base_vec all = {0};

    list_loops(sched_tree(s)->body, &all);
    return all.n ? all.at[below(all.n)] : "none";
}

static const char *any_block(const sched *s)
{
    const char **names;
    int n = sched_blocks(s, &names);

    return names[below(n)];
}

/* A loop around a random reader (or producer) of the block, so that moves are often legal. */
static const char *loop_near(const sched *s, const char *block, bool reader)
{
    const char **names, **loops;
    int n = reader ? sched_readers_of(s, block, &names) : sched_producers_of(s, block, &names);

    if (n == 0)
        return any_loop(s);
    int m = sched_loops_of(s, names[below(n)], &loops);
    return m ? loops[below(m)] : any_loop(s);
}

static const char *own_loop(const sched *s, const char *block)
{
    const char **loops;
    int n = sched_loops_of(s, block, &loops);

    return n ? loops[below(n)] : "none";
}

static const char *any_buffer(const sched *s)
{
    const ir_program *p = sched_tree(s);
    int k = below(p->n_params + p->n_buffers);

    if (k >= p->n_params)
        return p->buffers[k - p->n_params]->name;
    return p->params[k].buffer ? p->params[k].buffer->name : "none";
}

/* Neighbours or a shuffle of a block's loops. */
static void random_loops(sched *s, bool neighbours)
{
    const char **names, *pick[8];
    int n = sched_loops_of(s, any_block(s), &names);

    if (n < 2)
        return;
    int first = neighbours ? below(n - 1) : 0, count = neighbours ? 2 : n > 8 ? 8 : n;
    for (int i = 0; i < count; i++)
        pick[i] = names[first + i];
    for (int i = count - 1; i > 0 && !neighbours; i--) {
        int j = below(i + 1);
        const char *swap = pick[i];
        pick[i] = pick[j];
        pick[j] = swap;
    }
    if (neighbours)
        sched_fuse(s, pick, count);
    else
        sched_reorder(s, pick, count < 2 ? count : 2 + below(count - 1));
}

static void random_split(sched *s)
{
    int64_t f[3] = {TEC_INFER, 1 + below(5), 1 + below(4)};
    int tail = below(6);

    sched_split(s, any_loop(s),
                tail == 0   ? TEC_ROUND_UP
                : tail == 1 ? TEC_SHIFT_INWARDS
                            : TEC_GUARD,
                NULL, f, 2 + below(2));
}

/* A dimension tiled, its remainder going last; the last one swizzled by the first; or all the other way
 * round. */
static void random_layout(sched *s)
{
    const char *name = any_buffer(s);
    const ir_buffer *b = NULL;
    base_text vars = {0}, map = {0};

    for (int k = 0; k < sched_tree(s)->n_buffers; k++)
        if (strcmp(sched_tree(s)->buffers[k]->name, name) == 0)
            b = sched_tree(s)->buffers[k];
    if (!b || b->n == 0)
        return;
    int way = below(3), tiled = below(b->n), by = 1 + below(6), unit = 1 << below(4);
    for (int d = 0; d < b->n; d++) {
        base_addf(cx, &vars, "%si%d", d ? ", " : "", d);
        base_add(cx, &map, d ? ", " : "");
        if (way == 0 && d == tiled)
            base_addf(cx, &map, "floordiv(i%d, %d)", d, by);
        else if (way == 1 && d > 0 && d == b->n - 1)
            base_addf(cx, &map, "i%d ^ (i0 %% %d)", d, unit);
        else
            base_addf(cx, &map, "i%d", way == 2 ? b->n - 1 - d : d);
    }
    if (way == 0)
        base_addf(cx, &map, ", i%d %% %d", tiled, by);
    sched_transform_layout(s, name, base_format(cx, "(%s) -> (%s)", vars.data, map.data),
                           below(3) ? NULL : "1");
}

static void random_step(sched *s)
{
    const char *block = any_block(s);

    switch (below(17)) {
    case 0:
    case 1:
    case 2: random_split(s); break;
    case 3: sched_cut(s, any_loop(s), below(6), NULL); break;
    case 4: random_loops(s, true); break;
    case 5:
    case 6: random_loops(s, false); break;
    case 7: sched_annotate(s, any_loop(s), (ir_how)(IR_PARALLEL + below(3))); break;
    case 8:
    case 9: sched_compute_at(s, block, loop_near(s, block, true)); break;
    case 10:
    case 11: sched_reverse_compute_at(s, block, loop_near(s, block, false)); break;
    case 12:
        if (below(2))
            sched_compute_inline(s, block);
        else
            sched_reverse_inline(s, block);
        break;
    case 13:
        if (below(4))
            sched_cache_read(s, any_buffer(s), "local", NULL, 0);
        else
            sched_storage_align(s, any_buffer(s), below(3), 1 + below(8), below(2));
        break;
    case 14:
        if (below(2))
            sched_cache_write(s, block, "local");
        else
            sched_cache_write_at(s, block, "local", own_loop(s, block));
        break;
    case 15:
        if (below(3))
            random_layout(s);
        else
            sched_rolling_buffer(s, any_buffer(s), loop_near(s, block, true));
        break;
    default:
        if (below(3) == 0)
            sched_decompose_reduction(s, block, own_loop(s, block));
        else if (below(2))
            sched_rfactor(s, own_loop(s, block), below(3));
        else if (below(2))
            sched_compute_root(s, block);
        else
            sched_tile(s, any_loop(s), any_loop(s), 1 + below(4), 1 + below(4), NULL);
    }
}

/* ---- cases ---- */

static int number(const char *name, int otherwise)
{
    const char *text = getenv(name);

    return text ? atoi(text) : otherwise;
}

/* The shortest beginning of the trace that breaks the meaning. */
static const char *blame(const char *text, const char *trace, uint64_t data)
{
    sched *s = schedule_of(text);
    const ir_program *before = sched_tree(s);
    const char *end = trace;

    while (*end) {
        end += strcspn(end, "\n") + 1;
        sched *t = schedule_of(text);
        if (!sched_replay(t, "trace", base_strndup(cx, trace, (size_t)(end - trace))))
            return base_format(cx, "the trace does not replay: %s\n%s", sched_error(t), trace);
        const char *d = difference(before, sched_tree(t), data);
        if (d)
            return base_format(cx, "%s\n%s\nafter:\n%s\n%s", text,
                               base_strndup(cx, trace, (size_t)(end - trace)), tree_text(t), d);
    }
    return "it works when it is replayed";
}

/* Gives the number of steps that were accepted. */
static int run_case(uint64_t seed)
{
    state = current = seed;
    const char *text = random_definition();
    sched *s = schedule_of(text);
    const ir_program *before = sched_tree(s);
    int accepted = 0;

    for (int i = 0; i < MAX_STEPS; i++) {
        const ir_program *was = sched_tree(s);

        if (number("TEC_TRACE", 0))
            fprintf(stderr, "%s\n%s", text, sched_trace_text(cx, s));
        random_step(s);
        if (sched_failed(s))
            cr_assert(sched_tree(s) == was, "seed %llu: a refused step changed the tree: %s",
                      (unsigned long long)seed, sched_error(s));
        cr_assert(tec_context_status(cx) == TEC_OK, "seed %llu: %s\n%s%s", (unsigned long long)seed,
                  tec_context_error(cx), text, sched_trace_text(cx, s));
        accepted += !sched_failed(s);
        sched_clear(s);
    }
    const char *d = difference(before, sched_tree(s), seed);
    cr_assert(!d, "seed %llu: %s\n%s", (unsigned long long)seed, d,
              blame(text, sched_trace_text(cx, s), seed));
    return accepted;
}

Test(random_steps, keep_the_meaning)
{
    int cases = number("TEC_CASES", 1500), seed = number("TEC_SEED", 1), accepted = 0;

    signal(SIGABRT, tell_seed);

    for (int i = 0; i < cases; i++) {
        base_mark mark = base_arena_mark(cx);

        accepted += run_case((uint64_t)(seed + i));
        base_arena_release(cx, mark);
    }
    cr_assert(accepted > 2 * cases, "only %d steps of %d cases were accepted", accepted, cases);
}

/* A trace means the same on a definition of its own. */
Test(random_steps, replay_to_the_same_tree)
{
    for (int i = 0; i < 60; i++) {
        state = (uint64_t)(100000 + i);
        const char *text = random_definition();
        sched *s = schedule_of(text), *t = schedule_of(text);

        for (int k = 0; k < MAX_STEPS; k++)
            random_step(s);
        sched_clear(s);
        cr_assert(sched_replay(t, "trace", sched_trace_text(cx, s)), "case %d: %s\n%s", i, sched_error(t),
                  sched_trace_text(cx, s));
        cr_assert(strcmp(tree_text(s), tree_text(t)) == 0, "case %d:\n%s\n%s", i, tree_text(s), tree_text(t));
    }
}
