/* fuzz/steps.c -- random steps on a schedule: any row of the table of primitives, with arguments that the tree of the moment offers.
 *
 * Arguments are drawn by the kinds of the signature, so a new primitive is tried as soon as it has a row; those whose arguments must fit
 * each other (neighbours, a reader's loop) have a drawer of their own, or most of what is tried would be refused. What is refused is
 * counted and left out. At the end loops are vectorised, unrolled and made parallel, so that every pass has work.
 */
#include <string.h>

#include "fuzz/draw.h"
#include "fuzz/fuzz.h"
#include "schedule/state.h"
#include "te/text.h"

enum { MAX_LOOPS = 12, MAX_TRIES = 90, MAX_STMTS = 400, MAX_RUNS = 100000, SYMBOL_RUNS = 16 };

typedef struct {
    tec_context *cx;
    uint64_t *state;
    sched *s;
    fuzz_case *c;
    const fuzz_watch *watch;
    bool threads; /* tries blocks and threads of a GPU, and what they share */
    bool broken; /* a step left an error in the context: the last line of the trace, though it was not accepted */
} stepper;

static int below(stepper *p, int n) { return fuzz_below(p->state, n); }

/* ---- what the tree offers ---- */

static void list_loops(tec_context *cx, const ir_stmt *s, base_vec *out)
{
    if (s->kind == IR_FOR)
        base_push(cx, out, s->loop.var->var.name);
    for (int i = 0; i < sched_n_children(s); i++)
        list_loops(cx, sched_child(s, i), out);
}

static const char *any_loop(stepper *p)
{
    base_vec all = {0};

    list_loops(p->cx, sched_tree(p->s)->body, &all);
    return all.n ? all.at[below(p, all.n)] : NULL;
}

static const char *any_block(stepper *p)
{
    const char **names;
    int n = sched_blocks(p->s, &names);

    return n ? names[below(p, n)] : NULL;
}

static const char *own_loop(stepper *p, const char *block)
{
    const char **loops;
    int n = block ? sched_loops_of(p->s, block, &loops) : 0;

    return n ? loops[below(p, n)] : NULL;
}

/* A loop around a random reader (or producer), so that moves are often legal. */
static const char *loop_near(stepper *p, const char *block, bool reader)
{
    const char **names;
    int n = !block ? 0 : reader ? sched_readers_of(p->s, block, &names) : sched_producers_of(p->s, block, &names);
    const char *loop = n ? own_loop(p, names[below(p, n)]) : NULL;

    return loop ? loop : any_loop(p);
}

static const char *any_buffer(stepper *p)
{
    const ir_program *tree = sched_tree(p->s);
    int k = below(p, tree->n_params + tree->n_buffers);

    if (k >= tree->n_params)
        return tree->buffers[k - tree->n_params]->name;
    return tree->params[k].buffer ? tree->params[k].buffer->name : NULL;
}

/* ---- arguments by kind ---- */

static void names_of_block_loops(stepper *p, sched_arg *a, bool neighbours)
{
    const char **loops, **pick = base_array(p->cx, const char *, MAX_LOOPS), *block = any_block(p);
    int n = block ? sched_loops_of(p->s, block, &loops) : 0;

    if (n > MAX_LOOPS)
        n = MAX_LOOPS;
    if (n < 2)
        return;
    a->n = neighbours ? 2 + (n > 2 && below(p, 5) == 0) : n;
    int first = below(p, n - a->n + 1);
    for (int i = 0; i < a->n; i++)
        pick[i] = loops[first + i];
    for (int i = a->n - 1; i > 0 && !neighbours; i--) {
        int j = below(p, i + 1);
        const char *swap = pick[i];

        pick[i] = pick[j];
        pick[j] = swap;
    }
    if (!neighbours && n > 2)
        a->n = 2 + below(p, n - 1);
    a->names = pick;
}

static int64_t any_factor(stepper *p)
{
    static const int64_t factors[] = {1, 2, 3, 4, 5, 7, 8, 16};

    return factors[fuzz_weighted(p->state, (const int[]){3, 20, 12, 25, 6, 4, 20, 10}, 8)];
}

static void draw_factors(stepper *p, sched_arg *a)
{
    int64_t *f = base_array(p->cx, int64_t, 3);

    a->n = 2 + (below(p, 5) == 0);
    for (int i = 0; i < a->n; i++)
        f[i] = any_factor(p);
    f[below(p, a->n + 1) == 0 ? below(p, a->n) : 0] = SCHED_INFER;
    a->ints = f;
}

static const char *any_scope(stepper *p)
{
    static const char *const scopes[] = {"local", "global", "shared"};

    return scopes[fuzz_weighted(p->state, (const int[]){60, 38, p->threads ? 20 : 0}, 3)];
}

static const char *any_axis(stepper *p)
{
    ir_how how = (ir_how)(IR_BLOCK_X + below(p, IR_N_HOWS - IR_BLOCK_X));

    return ir_how_text(how);
}

/* Ones where nothing fits better. */
static void draw_exprs(stepper *p, sched_arg *a, int n)
{
    const ir_expr **e = base_array(p->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        e[i] = ir_int(p->cx, 1);
    a->exprs = e;
    a->n = n;
}

/* One argument of the kind, without regard to the others. */
static void draw_arg(stepper *p, sched_arg *a)
{
    switch (a->kind) {
    case SCHED_ARG_LOOP: a->name = any_loop(p); return;
    case SCHED_ARG_LOOPS: names_of_block_loops(p, a, below(p, 2)); return;
    case SCHED_ARG_BLOCK: a->name = any_block(p); return;
    case SCHED_ARG_BLOCKS: return;
    case SCHED_ARG_PLACE: a->name = below(p, 2) ? any_loop(p) : any_block(p); return;
    case SCHED_ARG_BUFFER: a->name = any_buffer(p); return;
    case SCHED_ARG_FACTORS: draw_factors(p, a); return;
    case SCHED_ARG_INT: a->i = below(p, 7); return;
    case SCHED_ARG_WORD: a->name = any_scope(p); return;
    case SCHED_ARG_EXPR: a->expr = ir_int(p->cx, 1 + below(p, 32)); return;
    case SCHED_ARG_EXPRS: return;
    case SCHED_ARG_TUPLE:
    case SCHED_ARG_MAP: draw_exprs(p, a, 1 + below(p, 3)); return;
    }
}

/* ---- arguments that must fit each other ---- */

static void fit_split(stepper *p, sched_arg *a)
{
    static const char *const tails[] = {"guard", "round_up", "shift_inwards"};

    a[2].name = tails[fuzz_weighted(p->state, (const int[]){70, 10, 20}, 3)];
}

static void fit_fuse(stepper *p, sched_arg *a) { names_of_block_loops(p, a, true); }
static void fit_reorder(stepper *p, sched_arg *a) { names_of_block_loops(p, a, false); }

static void fit_tile(stepper *p, sched_arg *a)
{
    const char *block = any_block(p);
    int64_t *f = base_array(p->cx, int64_t, 2);

    a[0].name = own_loop(p, block);
    a[1].name = own_loop(p, block);
    f[0] = any_factor(p);
    f[1] = any_factor(p);
    a[2].ints = f;
    a[2].n = 2;
}

static void fit_bind(stepper *p, sched_arg *a) { a[1].name = any_axis(p); }
static void fit_compute_at(stepper *p, sched_arg *a) { a[1].name = loop_near(p, a[0].name, true); }
static void fit_reverse_compute_at(stepper *p, sched_arg *a) { a[1].name = loop_near(p, a[0].name, false); }
static void fit_decompose(stepper *p, sched_arg *a) { a[1].name = own_loop(p, a[0].name); }

static void fit_cache_read(stepper *p, sched_arg *a)
{
    const char **blocks;
    int n = sched_blocks(p->s, &blocks);

    if (n == 0 || below(p, 2))
        return;
    const char **one = base_array(p->cx, const char *, 1);
    one[0] = blocks[below(p, n)];
    a[2].names = one;
    a[2].n = 1;
}

static void fit_cache_write(stepper *p, sched_arg *a)
{
    const char **one = base_array(p->cx, const char *, 1);

    one[0] = own_loop(p, a[0].name);
    a[2].names = one;
    a[2].n = one[0] && below(p, 3) ? 1 : 0;
}

/* A map of the buffer's own rank: a dimension is tiled, its remainder going last; or the last one is swizzled by the first. */
static void fit_transform_layout(stepper *p, sched_arg *a)
{
    const ir_buffer *b = a[0].name ? sched_buffer_named(sched_tree(p->s), a[0].name) : NULL;
    int n = b ? b->n : 0, d = n ? below(p, n) : 0;
    const ir_expr **var = base_array(p->cx, const ir_expr *, n), **e = base_array(p->cx, const ir_expr *, n + 1),
                  *by = ir_int(p->cx, 1 + below(p, 8));
    bool swizzle = n > 1 && below(p, 3) == 0;

    for (int i = 0; i < n; i++)
        e[i] = var[i] = ir_var(p->cx, base_format(p->cx, "i%d", i), BASE_I64);
    if (swizzle)
        e[n - 1] = ir_bitxor(p->cx, var[n - 1], ir_floormod(p->cx, var[0], ir_int(p->cx, 1 << below(p, 3))));
    else if (n) {
        e[d] = ir_floordiv(p->cx, var[d], by);
        e[n] = ir_floormod(p->cx, var[d], by);
    }
    a[1] = (sched_arg){.kind = SCHED_ARG_MAP, .vars = var, .n_vars = n, .exprs = e, .n = n + (n && !swizzle)};
    if (below(p, 3) == 0)
        draw_exprs(p, &a[2], 1);
}

static void fit_prefetch(stepper *p, sched_arg *a) { a[1].name = any_loop(p); a[2].i = 1 + below(p, 4); }

static void fit_rolling(stepper *p, sched_arg *a)
{
    const char *block = any_block(p);

    a[0].name = block; /* most stages write a buffer of their name */
    a[1].name = loop_near(p, block, true);
}

static void fit_pragma(stepper *p, sched_arg *a)
{
    static const char *const keys[] = {"auto_unroll", "auto_unroll_depth"};

    a[1].name = keys[below(p, BASE_COUNT(keys))];
}

/* Weight and drawer of the primitives that have one; others are drawn by their kinds, with weight 4. */
static const struct {
    const char *name;
    int weight;
    void (*fit)(stepper *p, sched_arg *a);
} drawers[] = {
    {"split", 22, fit_split}, {"cut", 4, NULL}, {"fuse", 9, fit_fuse}, {"reorder", 14, fit_reorder}, {"tile", 6, fit_tile},
    {"parallel", 3, NULL}, {"vectorize", 4, NULL}, {"unroll", 3, NULL}, {"bind", 6, fit_bind}, {"compute_at", 14, fit_compute_at},
    {"reverse_compute_at", 12, fit_reverse_compute_at}, {"compute_inline", 5, NULL}, {"reverse_inline", 4, NULL}, {"compute_root", 2, NULL},
    {"cache_read", 6, fit_cache_read}, {"cache_write", 9, fit_cache_write}, {"set_scope", 2, NULL}, {"decompose_reduction", 6, fit_decompose},
    {"pragma", 2, fit_pragma}, {"transform_layout", 5, fit_transform_layout}, {"rolling_buffer", 5, fit_rolling}, {"prefetch", 3, fit_prefetch},
};

static int drawer_of(const sched_primitive *q)
{
    for (int i = 0; i < BASE_COUNT(drawers); i++)
        if (strcmp(drawers[i].name, q->name) == 0)
            return i;
    return -1;
}

static const sched_primitive *any_primitive(stepper *p)
{
    int *weight = base_array(p->cx, int, sched_n_primitives);

    for (int i = 0; i < sched_n_primitives; i++) {
        int k = drawer_of(&sched_primitives[i]);

        weight[i] = k < 0 ? 4 : drawers[k].fit == fit_bind && !p->threads ? 0 : drawers[k].weight;
    }
    return &sched_primitives[fuzz_weighted(p->state, weight, sched_n_primitives)];
}

static sched_arg_kind kind_of_word(const char *word, size_t n)
{
    static const char *const words[] = {
#define X(NAME, text) text,
        SCHED_ARG_LIST(X)
#undef X
    };

    for (int i = 0; i < BASE_COUNT(words); i++)
        if (strlen(words[i]) == n && strncmp(words[i], word, n) == 0)
            return (sched_arg_kind)i;
    return SCHED_ARG_WORD;
}

static int draw_args(stepper *p, const sched_primitive *q, sched_arg *arg)
{
    int n = 0, k = drawer_of(q);

    for (const char *w = q->signature; *w; n++) {
        arg[n].kind = kind_of_word(w, strcspn(w, " ="));
        draw_arg(p, &arg[n]);
        w += strcspn(w, " ");
        w += strspn(w, " ");
    }
    if (k >= 0 && drawers[k].fit)
        drawers[k].fit(p, arg);
    return n;
}

/* ---- steps ---- */

static int stmts_of(const ir_stmt *s)
{
    int n = 1;

    for (int i = 0; i < sched_n_children(s); i++)
        n += stmts_of(sched_child(s, i));
    return n;
}

/* How often the innermost statements run: guards do not shorten loops, so factors that do not divide add up. */
static int64_t runs_of(const ir_stmt *s)
{
    int64_t inside = 0, extent = SYMBOL_RUNS;

    for (int i = 0; i < sched_n_children(s); i++) {
        int64_t n = runs_of(sched_child(s, i));

        inside += n;
    }
    if (s->kind == IR_FOR) {
        ir_is_int(s->loop.extent, &extent);
        inside = inside > MAX_RUNS ? inside : inside * extent;
    }
    return sched_n_children(s) ? inside : 1;
}

static bool apply(stepper *p, const sched_primitive *q, const sched_arg *arg, int n)
{
    const ir_program *before = sched_tree(p->s);
    sched_step step = {.primitive = q, .n_args = n};

    if (p->broken)
        return false;
    memcpy(step.arg, arg, (size_t)n * sizeof *arg);
    const char *text = sched_step_text(p->cx, &step);
    if (p->watch) {
        p->c->trace = sched_trace_text(p->cx, p->s);
        p->watch->about_to(p->watch->user, p->c, text);
    }
    sched *undo = sched_fork(p->cx, p->s);
    bool good = sched_apply(p->s, q->name, arg, n, NULL, NULL);
    if (good && runs_of(sched_tree(p->s)->body) > MAX_RUNS) {
        p->s = undo;
        return false;
    }
    if (base_failed(p->cx)) {
        tec_context_clear(p->cx);
        p->broken = true;
        p->c->trace = base_format(p->cx, "%s%s\n", sched_trace_text(p->cx, p->s), text);
        return false;
    }
    p->c->accepted += good;
    p->c->refused += !good;
    sched_clear(p->s);
    return good && sched_tree(p->s) != before;
}

static void random_step(stepper *p)
{
    const sched_primitive *q = any_primitive(p);
    sched_arg arg[SCHED_MAX_ARGS] = {{0}};
    int n = draw_args(p, q, arg);

    apply(p, q, arg, n);
}

static bool apply_to_loop(stepper *p, const char *primitive, const char *loop)
{
    sched_arg arg = {.kind = SCHED_ARG_LOOP, .name = loop};

    return apply(p, sched_primitive_named(primitive), &arg, 1);
}

/* The innermost loop of a block, cut to a length that vectors have. */
static const char *vector_loop(stepper *p, const char *loop)
{
    static const int64_t lanes[] = {4, 8, 16};
    int64_t f[] = {SCHED_INFER, lanes[below(p, 3)]}, extent;
    sched_arg arg[] = {{.kind = SCHED_ARG_LOOP, .name = loop}, {.kind = SCHED_ARG_FACTORS, .ints = f, .n = 2}, {.kind = SCHED_ARG_WORD, .name = "guard"}};

    if (sched_extent(p->s, loop, &extent) && extent <= 16)
        return loop;
    if (!apply(p, sched_primitive_named("split"), arg, 3))
        return loop;
    const sched_step *last = p->s->steps.at[p->s->steps.n - 1];
    return last->result[1];
}

static void finish_block(stepper *p, const char *block)
{
    const char **loops;
    int n = sched_loops_of(p->s, block, &loops);

    if (n && below(p, 10) < 6)
        apply_to_loop(p, "vectorize", vector_loop(p, loops[n - 1 - (n > 1 && below(p, 5) == 0)]));
    n = sched_loops_of(p->s, block, &loops);
    for (int i = n - 1; i >= 0 && i >= n - 3; i--) {
        int64_t extent;

        if (below(p, 10) < 4 && sched_extent(p->s, loops[i], &extent) && extent <= 8)
            apply_to_loop(p, "unroll", loops[i]);
    }
    if (n && below(p, 10) < 3)
        apply_to_loop(p, "parallel", loops[below(p, 4) == 0 && n > 1]);
}

static void finish(stepper *p)
{
    const char **blocks;
    int n = sched_blocks(p->s, &blocks);

    for (int i = 0; i < n; i++)
        if (below(p, 10) < 8)
            finish_block(p, blocks[i]);
}

void fuzz_steps(tec_context *cx, fuzz_case *c, const target *t, uint64_t *state, int wanted, const fuzz_watch *watch)
{
    te_file *file = te_parse(cx, "case.te", c->te);
    const ir_program *tree = file ? te_tree(cx, file->defs.at[0]) : NULL;
    stepper p = {cx, state, tree ? sched_new(cx, tree, t) : NULL, c, watch, fuzz_chance(state, t && t->kind->is_gpu ? 80 : 3), false};

    c->trace = "";
    c->accepted = c->refused = 0;
    for (int i = 0; p.s && i < MAX_TRIES && c->accepted < wanted && !p.broken; i++)
        if (stmts_of(sched_tree(p.s)->body) < MAX_STMTS)
            random_step(&p);
    if (p.s)
        finish(&p);
    if (p.s && !p.broken)
        c->trace = sched_trace_text(cx, p.s);
}
