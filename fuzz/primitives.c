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

void fuzz_shuffle(fuzz_stepper *stepper, const char **names, int n)
{
    for (int i = n - 1; i > 0; i--) {
        int j = fuzz_pick(stepper, i + 1);
        const char *swap = names[i];

        names[i] = names[j];
        names[j] = swap;
    }
}

/* Loops of a block: two or three neighbours, or any of them in any order. */
static void draw_loops(fuzz_stepper *stepper, sched_arg *arg, bool neighbours)
{
    const char **loops, **pick = base_array(stepper->cx, const char *, MAX_LOOPS),
                        *block = fuzz_any_block(stepper);
    int n = block ? sched_loops_of(stepper->s, block, &loops) : 0;

    if (n > MAX_LOOPS)
        n = MAX_LOOPS;
    if (n < 2)
        return;
    arg->n = neighbours ? 2 + (n > 2 && fuzz_odds(stepper, 20)) : n;
    int first = fuzz_pick(stepper, n - arg->n + 1);
    for (int i = 0; i < arg->n; i++)
        pick[i] = loops[first + i];
    arg->names = pick;
    if (neighbours)
        return;
    fuzz_shuffle(stepper, pick, arg->n);
    if (n > 2)
        arg->n = 2 + fuzz_pick(stepper, n - 1);
}

static int64_t any_factor(fuzz_stepper *stepper)
{
    static const int64_t factors[] = {1, 2, 3, 4, 5, 7, 8, 16};

    return factors[fuzz_weighted(stepper->state, (const int[]){3, 20, 12, 25, 6, 4, 20, 10}, 8)];
}

/* One factor is left to be inferred, in most cases the first: that is how schedules are written. */
static void draw_factors(fuzz_stepper *stepper, sched_arg *arg)
{
    int64_t *f = base_array(stepper->cx, int64_t, 3);

    arg->n = 2 + fuzz_odds(stepper, 20);
    for (int i = 0; i < arg->n; i++)
        f[i] = any_factor(stepper);
    f[fuzz_pick(stepper, arg->n + 1) == 0 ? fuzz_pick(stepper, arg->n) : 0] = TEC_INFER;
    arg->ints = f;
}

/* Ones where nothing fits better. */
static void draw_exprs(fuzz_stepper *stepper, sched_arg *arg, int n)
{
    const ir_expr **e = base_array(stepper->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++)
        e[i] = ir_int(stepper->cx, 1);
    arg->exprs = e;
    arg->n = n;
}

static const char *any_scope(fuzz_stepper *stepper)
{
    static const char *const scopes[] = {"local", "global", "shared", "warp"};
    int gpu = stepper->gpu ? 1 : 0;

    return scopes[fuzz_weighted(stepper->state, (const int[]){60, 38, gpu * 45, gpu * 15}, 4)];
}

/* One argument of the kind, without regard to the others. */
static void draw_arg(fuzz_stepper *stepper, sched_arg *arg)
{
    switch (arg->kind) {
    case SCHED_ARG_LOOP: arg->name = fuzz_any_loop(stepper); return;
    case SCHED_ARG_LOOPS: draw_loops(stepper, arg, fuzz_odds(stepper, 50)); return;
    case SCHED_ARG_BLOCK: arg->name = fuzz_any_block(stepper); return;
    case SCHED_ARG_BLOCKS:
    case SCHED_ARG_WORDS: return;
    case SCHED_ARG_PLACE:
        arg->name = fuzz_odds(stepper, 50) ? fuzz_any_loop(stepper) : fuzz_any_block(stepper);
        return;
    case SCHED_ARG_BUFFER: arg->name = fuzz_any_buffer(stepper, true); return;
    case SCHED_ARG_FACTORS: draw_factors(stepper, arg); return;
    case SCHED_ARG_INT: arg->i = fuzz_pick(stepper, 7); return;
    case SCHED_ARG_WORD: arg->name = any_scope(stepper); return;
    case SCHED_ARG_EXPR: arg->expr = ir_int(stepper->cx, 1 + fuzz_pick(stepper, 32)); return;
    case SCHED_ARG_EXPRS: return;
    case SCHED_ARG_TUPLE:
    case SCHED_ARG_MAP: draw_exprs(stepper, arg, 1 + fuzz_pick(stepper, 3)); return;
    }
}

static sched_arg_kind kind_of_word(const char *word, size_t size)
{
    static const char *const words[] = {
#define X(NAME, text) text,
        SCHED_ARG_LIST(X)
#undef X
    };

    for (int i = 0; i < BASE_COUNT(words); i++)
        if (strlen(words[i]) == size && strncmp(words[i], word, size) == 0)
            return (sched_arg_kind)i;
    return SCHED_ARG_WORD;
}

/* ---- arguments that must fit each other ---- */

static void set_one_name(fuzz_stepper *stepper, sched_arg *arg, const char *name)
{
    const char **one = base_array(stepper->cx, const char *, 1);

    one[0] = name;
    arg->names = one;
    arg->n = name != NULL;
}

static void fit_split(fuzz_stepper *stepper, sched_arg *arg)
{
    static const char *const tails[] = {"guard", "round_up", "shift_inwards"};

    arg[2].name = tails[fuzz_weighted(stepper->state, (const int[]){70, 10, 20}, 3)];
}

/* A small number; or a place that depends on the loop's extent or a symbol. */
static void fit_cut(fuzz_stepper *stepper, sched_arg *arg)
{
    tec_context *cx = stepper->cx;
    const ir_program *tree = sched_tree(stepper->s);
    const ir_stmt *l = arg[0].name ? sched_loop(stepper->s, arg[0].name) : NULL;
    const ir_expr *few = ir_int(cx, fuzz_pick(stepper, 7));

    arg[1].expr = few;
    switch (l ? fuzz_pick(stepper, 8) : 0) {
    case 5: arg[1].expr = ir_floordiv(cx, l->loop.extent, ir_int(cx, 2)); return;
    case 6: arg[1].expr = ir_sub(cx, l->loop.extent, few); return;
    case 7:
        if (tree->n_symbols)
            arg[1].expr = tree->symbols[fuzz_pick(stepper, tree->n_symbols)];
        return;
    default: return;
    }
}

static void fit_fuse(fuzz_stepper *stepper, sched_arg *arg)
{
    draw_loops(stepper, arg, true);
}
static void fit_reorder(fuzz_stepper *stepper, sched_arg *arg)
{
    draw_loops(stepper, arg, false);
}

/* Both loops belong to one block: those of different blocks are always refused. */
static void fit_tile(fuzz_stepper *stepper, sched_arg *arg)
{
    const char *block = fuzz_any_block(stepper);
    int64_t *f = base_array(stepper->cx, int64_t, 2);

    arg[0].name = fuzz_own_loop(stepper, block);
    arg[1].name = fuzz_own_loop(stepper, block);
    f[0] = any_factor(stepper);
    f[1] = any_factor(stepper);
    arg[2].ints = f;
    arg[2].n = 2;
}

/* On a CPU virtual threads alone: what is bound to anything else does not run there. */
static void fit_bind(fuzz_stepper *stepper, sched_arg *arg)
{
    arg[1].name = ir_how_text(stepper->gpu ? (ir_how)(IR_BLOCK_X + fuzz_pick(stepper, IR_N_HOWS - IR_BLOCK_X))
                                           : IR_VTHREAD);
}

static void fit_compute_at(fuzz_stepper *stepper, sched_arg *arg)
{
    arg[1].name = fuzz_loop_near(stepper, arg[0].name, true);
}
static void fit_reverse_compute_at(fuzz_stepper *stepper, sched_arg *arg)
{
    arg[1].name = fuzz_loop_near(stepper, arg[0].name, false);
}
static void fit_decompose(fuzz_stepper *stepper, sched_arg *arg)
{
    arg[1].name = fuzz_own_loop(stepper, arg[0].name);
}

static void fit_cache_read(fuzz_stepper *stepper, sched_arg *arg)
{
    if (fuzz_odds(stepper, 50))
        set_one_name(stepper, &arg[2], fuzz_any_block(stepper));
}

static void fit_cache_write(fuzz_stepper *stepper, sched_arg *arg)
{
    if (fuzz_odds(stepper, 67))
        set_one_name(stepper, &arg[2], fuzz_own_loop(stepper, arg[0].name));
}

static void fit_own_buffer(fuzz_stepper *stepper, sched_arg *arg)
{
    arg[0].name = fuzz_any_buffer(stepper, false);
}

static void fit_rfactor(fuzz_stepper *stepper, sched_arg *arg)
{
    for (int i = 0; i < 6 && (!arg[0].name || sched_loop_kind(stepper->s, arg[0].name) != IR_REDUCE_ITER);
         i++)
        arg[0].name = fuzz_any_loop(stepper);
    arg[1].i = fuzz_pick(stepper, 3);
}

static void fit_storage_align(fuzz_stepper *stepper, sched_arg *arg)
{
    fit_own_buffer(stepper, arg);
    arg[1].i = fuzz_pick(stepper, 3);
    arg[2].i = 1 << fuzz_pick(stepper, 5);
    arg[3].i = fuzz_pick(stepper, (int)arg[2].i);
}

/* A map of the buffer's own rank: a dimension is tiled, its remainder going last; or the last one is swizzled
 * by the first. */
static void fit_transform_layout(fuzz_stepper *stepper, sched_arg *arg)
{
    fit_own_buffer(stepper, arg);
    const ir_buffer *buffer = arg[0].name ? sched_buffer_named(sched_tree(stepper->s), arg[0].name) : NULL;
    int n = buffer ? buffer->n : 0, d = n ? fuzz_pick(stepper, n) : 0;
    const ir_expr **var = base_array(stepper->cx, const ir_expr *, n),
                  **expr = base_array(stepper->cx, const ir_expr *, n + 1),
                  *by = ir_int(stepper->cx, 1 + fuzz_pick(stepper, 8));
    bool swizzle = n > 1 && fuzz_odds(stepper, 33);

    for (int i = 0; i < n; i++)
        expr[i] = var[i] = ir_var(stepper->cx, base_format(stepper->cx, "i%d", i), BASE_I64);
    if (swizzle)
        expr[n - 1] =
            ir_bitxor(stepper->cx, var[n - 1],
                      ir_floormod(stepper->cx, var[0], ir_int(stepper->cx, 1 << fuzz_pick(stepper, 3))));
    else if (n) {
        expr[d] = ir_floordiv(stepper->cx, var[d], by);
        expr[n] = ir_floormod(stepper->cx, var[d], by);
    }
    arg[1] =
        (sched_arg){.kind = SCHED_ARG_MAP, .vars = var, .n_vars = n, .exprs = expr, .n = n + (n && !swizzle)};
    if (fuzz_odds(stepper, 33))
        draw_exprs(stepper, &arg[2], 1);
}

/* The body of a loop without reductions outside of it has the best chance. */
static void fit_blockize(fuzz_stepper *stepper, sched_arg *arg)
{
    arg[0].name = fuzz_own_loop(stepper, fuzz_any_block(stepper));
}

/* A loop with at least two blocks below it, after a few tries. */
static void loop_of_several(fuzz_stepper *stepper, sched_arg *arg, base_vec *blocks)
{
    for (int attempt = 0; attempt < 10; attempt++) {
        const ir_stmt *l = (arg->name = fuzz_any_loop(stepper)) ? sched_loop(stepper->s, arg->name) : NULL;
        tree_sites below = {0};

        if (l)
            below = tree_all_sites(stepper->cx, l);
        blocks->n = 0;
        for (int i = 0; i < below.n; i++)
            base_push(stepper->cx, blocks, below.at[i].block->name);
        if (blocks->n > 1)
            return;
    }
}

/* All blocks of a loop in their order, each in the stage of the one before it or the next. */
static void fit_pipeline(fuzz_stepper *stepper, sched_arg *arg)
{
    base_vec blocks = {0};

    loop_of_several(stepper, &arg[0], &blocks);
    int64_t *stage = base_array(stepper->cx, int64_t, blocks.n + 1);
    for (int i = 1; i < blocks.n; i++)
        stage[i] = stage[i - 1] + fuzz_odds(stepper, 50);
    arg[1].names = (const char *const *)blocks.at;
    arg[1].n = blocks.n;
    arg[2].ints = stage;
    arg[2].n = blocks.n;
    arg[3].name = fuzz_odds(stepper, 80) ? "sync" : "async";
}

static void fit_double_buffer(fuzz_stepper *stepper, sched_arg *arg)
{
    base_vec blocks = {0};

    loop_of_several(stepper, &arg[0], &blocks);
    arg[1].name = fuzz_odds(stepper, 80) ? "sync" : "async";
}

/* What a stride leaves beyond the smaller ones: nothing or some room; now and then it is one short of their
 * reach. */
static int any_room(fuzz_stepper *stepper)
{
    return fuzz_odds(stepper, 15) ? -1 : fuzz_odds(stepper, 35) ? fuzz_pick(stepper, 4) : 0;
}

/* Mostly the limit that inlining has by itself; at times one that most programs exceed, or none does. */
static void fit_compute_inline(fuzz_stepper *stepper, sched_arg *arg)
{
    int64_t *most = base_new(stepper->cx, int64_t);

    *most = fuzz_odds(stepper, 50) ? 20 : 100000;
    arg[1].ints = most;
    arg[1].n = fuzz_odds(stepper, 20);
}

/* Strides in the order of the dimensions or in any other, with room or without, and a small offset. */
static void fit_buffer_bind(fuzz_stepper *stepper, sched_arg *arg)
{
    fit_own_buffer(stepper, arg);
    const ir_buffer *buffer = arg[0].name ? sched_buffer_named(sched_tree(stepper->s), arg[0].name) : NULL;
    int n = buffer ? buffer->n : 0, *order = base_array(stepper->cx, int, n);
    const ir_expr **stride = base_array(stepper->cx, const ir_expr *, n), *next = ir_int(stepper->cx, 1);
    bool other = fuzz_odds(stepper, 25);

    for (int d = 0; d < n; d++)
        order[d] = d;
    for (int d = n - 1; d >= 0; d--) {
        int k = other ? fuzz_pick(stepper, d + 1) : d, last = order[k];

        order[k] = order[d];
        stride[last] = next;
        next = ir_add(stepper->cx, ir_mul(stepper->cx, next, buffer->shape[last]),
                      ir_int(stepper->cx, any_room(stepper)));
    }
    arg[1].exprs = stride;
    arg[1].n = n;
    arg[2].expr = ir_int(stepper->cx, fuzz_odds(stepper, 50) ? fuzz_pick(stepper, 9) : 0);
    arg[3].i = 16 << fuzz_pick(stepper, 3);
}

static void fit_prefetch(fuzz_stepper *stepper, sched_arg *arg)
{
    arg[1].name = fuzz_any_loop(stepper);
    arg[2].i = 1 + fuzz_pick(stepper, 4);
}

static void fit_store_predicate(fuzz_stepper *stepper, sched_arg *arg)
{
    set_one_name(stepper, &arg[1], fuzz_own_loop(stepper, arg[0].name));
}

/* One or two axes of a device that has some. */
static void fit_env_threads(fuzz_stepper *stepper, sched_arg *arg)
{
    const char **axis = base_array(stepper->cx, const char *, 2);

    for (int i = 0; i < 2; i++)
        axis[i] = ir_how_text((ir_how)(IR_BLOCK_X + fuzz_pick(stepper, IR_N_HOWS - IR_BLOCK_X)));
    arg[1].names = axis;
    arg[1].n = stepper->gpu ? 1 + fuzz_pick(stepper, 2) : 0;
}

static void fit_rolling(fuzz_stepper *stepper, sched_arg *arg)
{
    const char *block = fuzz_any_block(stepper);

    arg[0].name = block; /* most stages write a buffer of their name */
    arg[1].name = fuzz_loop_near(stepper, block, true);
}

static void fit_tensorize(fuzz_stepper *stepper, sched_arg *arg)
{
    int n = stepper->intrinsics->list.n;

    arg[0].name = fuzz_own_loop(stepper, fuzz_any_block(stepper));
    arg[1].name =
        n ? ((const te_intrinsic *)stepper->intrinsics->list.at[fuzz_pick(stepper, n)])->name : "bits.1x1";
}

static void fit_pragma(fuzz_stepper *stepper, sched_arg *arg)
{
    static const char *const keys[] = {"auto_unroll", "auto_unroll_depth"};

    arg[1].name = keys[fuzz_pick(stepper, BASE_COUNT(keys))];
}

/* ---- the table ---- */

enum {
#define SCHED_PRIMITIVE(name, signature) AT_##name,
#include "schedule/primitives.def"
    N_PRIMITIVES
};

static const struct {
    int weight;
    void (*fit)(fuzz_stepper *stepper, sched_arg *arg); /* NULL: the kinds are enough */
} drawers[N_PRIMITIVES] = {
    [AT_split] = {22, fit_split},
    [AT_cut] = {4, fit_cut},
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
    [AT_compute_inline] = {5, fit_compute_inline},
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
const sched_primitive *fuzz_draw_step(fuzz_stepper *stepper, sched_arg arg[SCHED_MAX_ARGS], int *count)
{
    int weight[N_PRIMITIVES];

    for (int i = 0; i < N_PRIMITIVES; i++)
        weight[i] = drawers[i].weight ? drawers[i].weight : DEFAULT_WEIGHT;
    int k = fuzz_weighted(stepper->state, weight, N_PRIMITIVES);
    const sched_primitive *q = &sched_primitives[k];
    memset(arg, 0, SCHED_MAX_ARGS * sizeof *arg);
    *count = 0;
    for (const char *w = q->signature; *w; ++*count) {
        arg[*count].kind = kind_of_word(w, strcspn(w, " ="));
        draw_arg(stepper, &arg[*count]);
        w += strcspn(w, " ");
        w += strspn(w, " ");
    }
    if (drawers[k].fit)
        drawers[k].fit(stepper, arg);
    return q;
}
