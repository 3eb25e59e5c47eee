/* fuzz/primitives.c -- the table of primitives for random steps: how often each is tried, and how its
 * arguments are drawn.
 *
 * Arguments are drawn by the kinds of the signature; a row's `fit` then draws those anew that must fit each
 * other (neighbours, a reader's loop), or most of what is tried would be refused. A primitive without a row
 * is tried with the kinds alone.
 */
#include <string.h>

#include "fuzz/stepper.h"

enum { MAX_LOOPS = 12, DEFAULT_WEIGHT = 4 };

/* ---- arguments by kind ---- */

void fuzz_shuffle(fuzz_stepper *p, const char **names, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = fuzz_pick(p, i + 1);
        const char *swap = names[i];

        names[i] = names[j];
        names[j] = swap;
    }
}

/* Loops of a block: two or three neighbours, or any of them in any order. */
static void draw_loops(fuzz_stepper *p, sched_arg *a, bool neighbours)
{
    const char **loops, **pick = base_array(p->cx, const char *, MAX_LOOPS), *block = fuzz_any_block(p);
    int n = block ? sched_loops_of(p->s, block, &loops) : 0;

    if (n > MAX_LOOPS)
        n = MAX_LOOPS;
    if (n < 2)
        return;
    a->n = neighbours ? 2 + (n > 2 && fuzz_odds(p, 20)) : n;
    int first = fuzz_pick(p, n - a->n + 1);
    for (int i = 0; i < a->n; i++)
        pick[i] = loops[first + i];
    a->names = pick;
    if (neighbours)
        return;
    fuzz_shuffle(p, pick, a->n);
    if (n > 2)
        a->n = 2 + fuzz_pick(p, n - 1);
}

static int64_t any_factor(fuzz_stepper *p)
{
    static const int64_t factors[] = {1, 2, 3, 4, 5, 7, 8, 16};

    return factors[fuzz_weighted(p->state, (const int[]){3, 20, 12, 25, 6, 4, 20, 10}, 8)];
}

static void draw_factors(fuzz_stepper *p, sched_arg *a)
{
    int64_t *f = base_array(p->cx, int64_t, 3);

    a->n = 2 + fuzz_odds(p, 20);
    for (int i = 0; i < a->n; i++)
        f[i] = any_factor(p);
    f[fuzz_pick(p, a->n + 1) == 0 ? fuzz_pick(p, a->n) : 0] = TEC_INFER;
    a->ints = f;
}

/* Ones where nothing fits better. */
static void draw_exprs(fuzz_stepper *p, sched_arg *a, int n)
{
    const ir_expr **e = base_array(p->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        e[i] = ir_int(p->cx, 1);
    a->exprs = e;
    a->n = n;
}

static const char *any_scope(fuzz_stepper *p)
{
    static const char *const scopes[] = {"local", "global", "shared"};

    return scopes[fuzz_weighted(p->state, (const int[]){60, 38, p->gpu ? 60 : 0}, 3)];
}

/* One argument of the kind, without regard to the others. */
static void draw_arg(fuzz_stepper *p, sched_arg *a)
{
    switch (a->kind) {
    case SCHED_ARG_LOOP: a->name = fuzz_any_loop(p); return;
    case SCHED_ARG_LOOPS: draw_loops(p, a, fuzz_odds(p, 50)); return;
    case SCHED_ARG_BLOCK: a->name = fuzz_any_block(p); return;
    case SCHED_ARG_BLOCKS:
    case SCHED_ARG_WORDS: return;
    case SCHED_ARG_PLACE: a->name = fuzz_odds(p, 50) ? fuzz_any_loop(p) : fuzz_any_block(p); return;
    case SCHED_ARG_BUFFER: a->name = fuzz_any_buffer(p, true); return;
    case SCHED_ARG_FACTORS: draw_factors(p, a); return;
    case SCHED_ARG_INT: a->i = fuzz_pick(p, 7); return;
    case SCHED_ARG_WORD: a->name = any_scope(p); return;
    case SCHED_ARG_EXPR: a->expr = ir_int(p->cx, 1 + fuzz_pick(p, 32)); return;
    case SCHED_ARG_EXPRS: return;
    case SCHED_ARG_TUPLE:
    case SCHED_ARG_MAP: draw_exprs(p, a, 1 + fuzz_pick(p, 3)); return;
    }
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

/* ---- arguments that must fit each other ---- */

static void set_one_name(fuzz_stepper *p, sched_arg *a, const char *name)
{
    const char **one = base_array(p->cx, const char *, 1);

    one[0] = name;
    a->names = one;
    a->n = name != NULL;
}

static void fit_split(fuzz_stepper *p, sched_arg *a)
{
    static const char *const tails[] = {"guard", "round_up", "shift_inwards"};

    a[2].name = tails[fuzz_weighted(p->state, (const int[]){70, 10, 20}, 3)];
}

static void fit_fuse(fuzz_stepper *p, sched_arg *a)
{
    draw_loops(p, a, true);
}
static void fit_reorder(fuzz_stepper *p, sched_arg *a)
{
    draw_loops(p, a, false);
}

static void fit_tile(fuzz_stepper *p, sched_arg *a)
{
    const char *block = fuzz_any_block(p);
    int64_t *f = base_array(p->cx, int64_t, 2);

    a[0].name = fuzz_own_loop(p, block);
    a[1].name = fuzz_own_loop(p, block);
    f[0] = any_factor(p);
    f[1] = any_factor(p);
    a[2].ints = f;
    a[2].n = 2;
}

/* On a CPU virtual threads alone: what is bound to anything else does not run there. */
static void fit_bind(fuzz_stepper *p, sched_arg *a)
{
    a[1].name =
        ir_how_text(p->gpu ? (ir_how)(IR_BLOCK_X + fuzz_pick(p, IR_N_HOWS - IR_BLOCK_X)) : IR_VTHREAD);
}

static void fit_compute_at(fuzz_stepper *p, sched_arg *a)
{
    a[1].name = fuzz_loop_near(p, a[0].name, true);
}
static void fit_reverse_compute_at(fuzz_stepper *p, sched_arg *a)
{
    a[1].name = fuzz_loop_near(p, a[0].name, false);
}
static void fit_decompose(fuzz_stepper *p, sched_arg *a)
{
    a[1].name = fuzz_own_loop(p, a[0].name);
}

static void fit_cache_read(fuzz_stepper *p, sched_arg *a)
{
    if (fuzz_odds(p, 50))
        set_one_name(p, &a[2], fuzz_any_block(p));
}

static void fit_cache_write(fuzz_stepper *p, sched_arg *a)
{
    if (fuzz_odds(p, 67))
        set_one_name(p, &a[2], fuzz_own_loop(p, a[0].name));
}

static void fit_own_buffer(fuzz_stepper *p, sched_arg *a)
{
    a[0].name = fuzz_any_buffer(p, false);
}

static void fit_rfactor(fuzz_stepper *p, sched_arg *a)
{
    for (int i = 0; i < 6 && (!a[0].name || sched_loop_kind(p->s, a[0].name) != IR_REDUCE_ITER); i++)
        a[0].name = fuzz_any_loop(p);
    a[1].i = fuzz_pick(p, 3);
}

static void fit_storage_align(fuzz_stepper *p, sched_arg *a)
{
    fit_own_buffer(p, a);
    a[1].i = fuzz_pick(p, 3);
    a[2].i = 1 << fuzz_pick(p, 5);
    a[3].i = fuzz_pick(p, (int)a[2].i);
}

/* A map of the buffer's own rank: a dimension is tiled, its remainder going last; or the last one is swizzled
 * by the first. */
static void fit_transform_layout(fuzz_stepper *p, sched_arg *a)
{
    fit_own_buffer(p, a);
    const ir_buffer *b = a[0].name ? sched_buffer_named(sched_tree(p->s), a[0].name) : NULL;
    int n = b ? b->n : 0, d = n ? fuzz_pick(p, n) : 0;
    const ir_expr **var = base_array(p->cx, const ir_expr *, n),
                  **e = base_array(p->cx, const ir_expr *, n + 1), *by = ir_int(p->cx, 1 + fuzz_pick(p, 8));
    bool swizzle = n > 1 && fuzz_odds(p, 33);

    for (int i = 0; i < n; i++)
        e[i] = var[i] = ir_var(p->cx, base_format(p->cx, "i%d", i), BASE_I64);
    if (swizzle)
        e[n - 1] =
            ir_bitxor(p->cx, var[n - 1], ir_floormod(p->cx, var[0], ir_int(p->cx, 1 << fuzz_pick(p, 3))));
    else if (n) {
        e[d] = ir_floordiv(p->cx, var[d], by);
        e[n] = ir_floormod(p->cx, var[d], by);
    }
    a[1] = (sched_arg){.kind = SCHED_ARG_MAP, .vars = var, .n_vars = n, .exprs = e, .n = n + (n && !swizzle)};
    if (fuzz_odds(p, 33))
        draw_exprs(p, &a[2], 1);
}

/* The body of a loop without reductions outside of it has the best chance. */
static void fit_blockize(fuzz_stepper *p, sched_arg *a)
{
    a[0].name = fuzz_own_loop(p, fuzz_any_block(p));
}

/* A loop with at least two blocks below it, after a few tries. */
static void loop_of_several(fuzz_stepper *p, sched_arg *a, base_vec *blocks)
{
    for (int attempt = 0; attempt < 10; attempt++) {
        const ir_stmt *l = (a->name = fuzz_any_loop(p)) ? sched_loop(p->s, a->name) : NULL;
        tree_sites below = {0};

        if (l)
            below = tree_all_sites(p->cx, l);
        blocks->n = 0;
        for (int i = 0; i < below.n; i++)
            base_push(p->cx, blocks, below.at[i].block->name);
        if (blocks->n > 1)
            return;
    }
}

/* All blocks of a loop in their order, each in the stage of the one before it or the next. */
static void fit_pipeline(fuzz_stepper *p, sched_arg *a)
{
    base_vec blocks = {0};

    loop_of_several(p, &a[0], &blocks);
    int64_t *stage = base_array(p->cx, int64_t, blocks.n + 1);
    for (int i = 1; i < blocks.n; i++)
        stage[i] = stage[i - 1] + fuzz_odds(p, 50);
    a[1].names = (const char *const *)blocks.at;
    a[1].n = blocks.n;
    a[2].ints = stage;
    a[2].n = blocks.n;
    a[3].name = fuzz_odds(p, 80) ? "sync" : "async";
}

static void fit_double_buffer(fuzz_stepper *p, sched_arg *a)
{
    base_vec blocks = {0};

    loop_of_several(p, &a[0], &blocks);
    a[1].name = fuzz_odds(p, 80) ? "sync" : "async";
}

/* What a stride leaves beyond the smaller ones: nothing or some room; now and then it is one short of their
 * reach. */
static int any_room(fuzz_stepper *p)
{
    return fuzz_odds(p, 15) ? -1 : fuzz_odds(p, 35) ? fuzz_pick(p, 4) : 0;
}

/* Strides in the order of the dimensions or in any other, with room or without, and a small offset. */
static void fit_buffer_bind(fuzz_stepper *p, sched_arg *a)
{
    fit_own_buffer(p, a);
    const ir_buffer *b = a[0].name ? sched_buffer_named(sched_tree(p->s), a[0].name) : NULL;
    int n = b ? b->n : 0, *order = base_array(p->cx, int, n);
    const ir_expr **stride = base_array(p->cx, const ir_expr *, n), *next = ir_int(p->cx, 1);
    bool other = fuzz_odds(p, 25);

    for (int d = 0; d < n; d++)
        order[d] = d;
    for (int d = n - 1; d >= 0; d--) {
        int k = other ? fuzz_pick(p, d + 1) : d, last = order[k];

        order[k] = order[d];
        stride[last] = next;
        next = ir_add(p->cx, ir_mul(p->cx, next, b->shape[last]), ir_int(p->cx, any_room(p)));
    }
    a[1].exprs = stride;
    a[1].n = n;
    a[2].expr = ir_int(p->cx, fuzz_odds(p, 50) ? fuzz_pick(p, 9) : 0);
    a[3].i = 16 << fuzz_pick(p, 3);
}

static void fit_prefetch(fuzz_stepper *p, sched_arg *a)
{
    a[1].name = fuzz_any_loop(p);
    a[2].i = 1 + fuzz_pick(p, 4);
}

static void fit_store_predicate(fuzz_stepper *p, sched_arg *a)
{
    set_one_name(p, &a[1], fuzz_own_loop(p, a[0].name));
}

/* One or two axes of a device that has some. */
static void fit_env_threads(fuzz_stepper *p, sched_arg *a)
{
    const char **axis = base_array(p->cx, const char *, 2);

    for (int i = 0; i < 2; i++)
        axis[i] = ir_how_text((ir_how)(IR_BLOCK_X + fuzz_pick(p, IR_N_HOWS - IR_BLOCK_X)));
    a[1].names = axis;
    a[1].n = p->gpu ? 1 + fuzz_pick(p, 2) : 0;
}

static void fit_rolling(fuzz_stepper *p, sched_arg *a)
{
    const char *block = fuzz_any_block(p);

    a[0].name = block; /* most stages write a buffer of their name */
    a[1].name = fuzz_loop_near(p, block, true);
}

static void fit_tensorize(fuzz_stepper *p, sched_arg *a)
{
    int n = p->intrinsics->list.n;

    a[0].name = fuzz_own_loop(p, fuzz_any_block(p));
    a[1].name = n ? ((const te_intrinsic *)p->intrinsics->list.at[fuzz_pick(p, n)])->name : "bits.1x1";
}

static void fit_pragma(fuzz_stepper *p, sched_arg *a)
{
    static const char *const keys[] = {"auto_unroll", "auto_unroll_depth"};

    a[1].name = keys[fuzz_pick(p, BASE_COUNT(keys))];
}

/* ---- the table ---- */

enum {
#define SCHED_PRIMITIVE(name, signature) AT_##name,
#include "schedule/primitives.def"
    N_PRIMITIVES
};

static const struct {
    int weight;
    void (*fit)(fuzz_stepper *p, sched_arg *a); /* NULL: the kinds are enough */
} drawers[N_PRIMITIVES] = {
    [AT_split] = {22, fit_split},
    [AT_cut] = {4, NULL},
    [AT_fuse] = {9, fit_fuse},
    [AT_reorder] = {14, fit_reorder},
    [AT_tile] = {6, fit_tile},
    [AT_parallel] = {3, NULL},
    [AT_vectorize] = {4, NULL},
    [AT_unroll] = {3, NULL},
    [AT_bind] = {4, fit_bind},
    [AT_env_threads] = {2, fit_env_threads},
    [AT_compute_at] = {14, fit_compute_at},
    [AT_reverse_compute_at] = {12, fit_reverse_compute_at},
    [AT_compute_inline] = {5, NULL},
    [AT_reverse_inline] = {4, NULL},
    [AT_compute_root] = {2, NULL},
    [AT_cache_read] = {6, fit_cache_read},
    [AT_cache_write] = {8, fit_cache_write},
    [AT_set_scope] = {2, fit_own_buffer},
    [AT_decompose_reduction] = {6, fit_decompose},
    [AT_rfactor] = {4, fit_rfactor},
    [AT_storage_align] = {3, fit_storage_align},
    [AT_blockize] = {4, fit_blockize},
    [AT_tensorize] = {1, fit_tensorize},
    [AT_buffer_bind] = {4, fit_buffer_bind},
    [AT_prefetch] = {3, fit_prefetch},
    [AT_rolling_buffer] = {5, fit_rolling},
    [AT_store_predicate] = {6, fit_store_predicate},
    [AT_pipeline] = {7, fit_pipeline},
    [AT_double_buffer] = {4, fit_double_buffer},
    [AT_transform_layout] = {6, fit_transform_layout},
    [AT_pragma] = {2, fit_pragma},
};

/* A primitive by weight with random arguments, which may be refused. */
const sched_primitive *fuzz_draw_step(fuzz_stepper *p, sched_arg arg[SCHED_MAX_ARGS], int *n)
{
    int weight[N_PRIMITIVES];

    for (int i = 0; i < N_PRIMITIVES; i++)
        weight[i] = drawers[i].weight ? drawers[i].weight : DEFAULT_WEIGHT;
    int k = fuzz_weighted(p->state, weight, N_PRIMITIVES);
    const sched_primitive *q = &sched_primitives[k];
    memset(arg, 0, SCHED_MAX_ARGS * sizeof *arg);
    *n = 0;
    for (const char *w = q->signature; *w; ++*n) {
        arg[*n].kind = kind_of_word(w, strcspn(w, " ="));
        draw_arg(p, &arg[*n]);
        w += strcspn(w, " ");
        w += strspn(w, " ");
    }
    if (drawers[k].fit)
        drawers[k].fit(p, arg);
    return q;
}
