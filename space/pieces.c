/* space/pieces.c -- results that are chosen by their place along one axis, as a concatenation is: the loop
 * over that axis is cut where the choice changes, so that no loop chooses.
 *
 *     Y[i, j] = select(j < 3, A[i, j], select(j < 7, B[i, j - 3], C[i, j - 7]))       i in 0..512, j in 0..9
 *
 *     for i parallel { for j.0 in 0..3 { Y = A }   for j.1 in 0..4 { Y = B }   for j.2 in 0..2 { Y = C } }
 *
 * With few rows i, each piece has a nest of its own, which runs in parallel by itself. Where a piece goes
 * through memory one by one from the axis on, as along the second axis of f32[8, 3, 56, 56], its loops from
 * there on are one loop.
 *
 * Operands of unknown length are cut apart in the same way, f32[n, a], f32[n, b] and f32[n, c] at a and
 * a + b, where the facts prove that these points rise and lie in the loop. One such point outside of other
 * loops is left to the pass `partition`, which cuts the loop over j with less code, if that loop is not fused
 * with the loops around it: of a fused loop, j is a remainder.
 */
#include <math.h>
#include <string.h>

#include "ir/reason/facts.h"
#include "ir/text.h"
#include "space/loads.h"
#include "space/master.h"

enum {
    MOST_LOOPS = 48,
    MOST_PIECES = 64, /* each is code of its own: of more, several stay together, which are chosen from */
};

static const char *const how_words[] = {"one", "inside", "apart"};

/* ---- finding them ---- */

typedef struct {
    ir_walk w;
    const ir_block *block;
    base_vec *points; /* [n_iters] ir_expr *: where a choice along that variable changes */
    int symbolic;     /* the first variable along which a choice changes at a symbol; -1: none */
} choice_walk;

/* The variable that the comparison asks for, by number, and the first value for which it gives the other
 * answer, which is the same in all iterations; -1: it is of another form. */
static int read_choice(tec_context *cx, const ir_block *block, const ir_expr *cond, const ir_expr **point)
{
    bool beyond = cond->op == IR_LE || cond->op == IR_GT;
    int found = -1;

    if ((cond->op != IR_LT && cond->op != IR_GE && !beyond) || ir_loads(cx, cond->arg[1]))
        return -1;
    for (int i = 0; i < block->n_iters; i++) {
        if (ir_uses_var(cx, cond->arg[1], block->iters[i].var))
            return -1;
        found = cond->arg[0] == block->iters[i].var ? i : found;
    }
    *point = beyond ? ir_add(cx, cond->arg[1], ir_int(cx, 1)) : cond->arg[1];
    return found;
}

/* A choice between two elements that are loaded; one between an element and a number is padding, whose edges
 * the pass `partition` cuts off. */
static bool note_choice(ir_walk *walk, const ir_expr *expr)
{
    choice_walk *self = (choice_walk *)walk;
    const ir_expr *point;

    if (expr->op != IR_SELECT || !ir_loads(walk->cx, expr->arg[1]) || !ir_loads(walk->cx, expr->arg[2]))
        return expr->op != IR_LOAD;
    int i = read_choice(walk->cx, self->block, expr->arg[0], &point);
    if (i >= 0)
        base_push(walk->cx, &self->points[i], (void *)point);
    if (i >= 0 && point->op != IR_INT && (self->symbolic < 0 || i < self->symbolic))
        self->symbolic = i;
    return true;
}

/* Puts the point where it belongs among the rising ones. False: its place is not proven. */
static bool insert_point(const ir_facts *facts, base_vec *rising, const ir_expr *point)
{
    int at = rising->n;

    while (at > 0 && !ir_prove_le(facts, rising->at[at - 1], point))
        at--;
    if (at > 0 && ir_prove_equal(facts, rising->at[at - 1], point))
        return true;
    if (at < rising->n && !ir_prove_le(facts, point, rising->at[at]))
        return false;
    base_push(ir_facts_context(facts), rising, (void *)point);
    memmove(rising->at + at + 1, rising->at + at, (size_t)(rising->n - 1 - at) * sizeof *rising->at);
    rising->at[at] = (void *)point;
    return true;
}

/* The points at which a loop over the extent is cut, each once, by rising value. A point that always or never
 * lies in the loop changes nothing; one of which neither is proven cannot be cut at. */
static base_vec rising_points(const ir_facts *facts, const base_vec *all, const ir_expr *extent)
{
    tec_context *cx = ir_facts_context(facts);
    base_vec out = {0};

    for (int i = 0; i < all->n; i++) {
        const ir_expr *point = ir_simplify(facts, all->at[i]);

        if (ir_prove_le(facts, ir_int(cx, 0), point) && ir_prove_le(facts, point, extent) &&
            !ir_is_value(point, 0) && !ir_prove_equal(facts, point, extent))
            insert_point(facts, &out, point);
    }
    return out;
}

/* Not more points than there may be pieces. */
static void keep_points(tec_context *cx, const base_vec *rising, space_pieces *out)
{
    const ir_expr **point = base_array(cx, const ir_expr *, rising->n);
    int together = (rising->n + MOST_PIECES) / MOST_PIECES;

    for (int i = together - 1; i < rising->n; i += together)
        point[out->n++] = rising->at[i];
    out->point = point;
}

/* ---- what lies one by one ---- */

typedef struct {
    ir_walk w;
    const ir_block *block;
    const ir_stmt *store;
    int axis;
    bool good;
} run_walk;

/* Whether the index is the variable, or the variable less a number. */
static bool is_shifted(const ir_expr *index, const ir_expr *var)
{
    return index == var || ((index->op == IR_SUB || index->op == IR_ADD) && index->arg[0] == var &&
                            index->arg[1]->op == IR_INT);
}

/* The load moves through its buffer as the store does through its own, from the axis on. */
static bool runs_along(tec_context *cx, const run_walk *self, const ir_expr *load)
{
    const ir_expr *const *index = load->load.index, *const *shape = load->load.buffer->shape;

    if (load->load.n == 0)
        return true;
    if (load->load.n != self->store->store.n ||
        !is_shifted(index[self->axis], self->block->iters[self->axis].var))
        return false;
    for (int d = 0; d < load->load.n; d++)
        for (int i = self->axis; i < self->block->n_iters; i++)
            if (d < self->axis ? ir_uses_var(cx, index[d], self->block->iters[i].var)
                               : d > self->axis && (index[d] != self->block->iters[d].var ||
                                                    !ir_same(shape[d], self->store->store.buffer->shape[d])))
                return false;
    return true;
}

static bool is_comparison(const ir_expr *expr)
{
    return expr->op >= IR_EQ && expr->op <= IR_GE;
}

/* A variable that is met outside of loads and of choices is data: its loop is not exchanged for another. */
static bool check_run(ir_walk *walk, const ir_expr *expr)
{
    run_walk *self = (run_walk *)walk;
    const ir_expr *point;

    if (expr->op == IR_LOAD)
        self->good = self->good && runs_along(walk->cx, self, expr);
    for (int i = self->axis; expr->op == IR_VAR && i < self->block->n_iters; i++)
        self->good = self->good && expr != self->block->iters[i].var;
    return expr->op != IR_LOAD &&
           !(is_comparison(expr) && read_choice(walk->cx, self->block, expr, &point) == self->axis);
}

/* From the axis on, whether each piece is a copy of elements that lie one by one in all that is touched.
 * Extents are constant, so that indices of the one loop are seen to follow each other. */
static bool is_run(tec_context *cx, const ir_block *block, int axis)
{
    int64_t extent;
    run_walk w = {.w = {.expr = check_run, .cx = cx, .every = true},
                  .block = block,
                  .store = block->body,
                  .axis = axis,
                  .good = block->body->store.n == block->n_iters};

    for (int i = 0; w.good && i < block->n_iters; i++)
        w.good = block->body->store.index[i] == block->iters[i].var &&
                 (i < axis || ir_is_int(block->iters[i].extent, &extent));
    if (w.good)
        ir_walk_expr(&w.w, block->body->store.value);
    return w.good;
}

/* ---- the analysis ---- */

/* Work of a piece of so many of the axis' elements; of an axis of unknown length, that is much. */
static double piece_cycles(const space_stage *stage, double length)
{
    double extent = (double)stage->loop[stage->pieces->axis].extent;

    return extent > 0 && length > 0 ? stage->cycles * length / extent : INFINITY;
}

/* Where the rows alone would leave threads idle, pieces start apart if each is worth a fork of its own.
 * Pieces of unknown length may be short: they start apart where the rows would leave most threads idle. */
static bool start_apart(const space_stage *stage)
{
    enum { FEW_ROWS = 8 };
    const space_pieces *pieces = stage->pieces;
    double rows = 1, length = (double)stage->loop[pieces->axis].extent / (pieces->n + 1);

    for (int i = 0; i < pieces->axis; i++)
        rows *= (double)(stage->loop[i].extent ? stage->loop[i].extent : SPACE_TASKS);
    if (length == 0)
        return rows < FEW_ROWS;
    return rows < 2 || (rows < SPACE_TASKS && space_is_worth_forks(piece_cycles(stage, length)));
}

/* The choices of a stage that was not scheduled yet: its loops and variables are one to one. False: it is no
 * such stage. */
static bool find_choices(tec_context *cx, const space_stage *stage, choice_walk *out)
{
    const ir_block *block = stage->block;

    *out = (choice_walk){.w = {.expr = note_choice, .cx = cx}, .block = block, .symbolic = -1};
    if (stage->n_reduce || block->body->kind != IR_STORE || stage->n_loops != block->n_iters ||
        !stage->n_loops)
        return false;
    out->points = base_array(cx, base_vec, block->n_iters);
    ir_walk_expr(&out->w, block->body->store.value);
    return true;
}

/* The loops around the axis; with the axis, if each of those runs once. */
int space_count_fusible(tec_context *cx, const space_stage *stage)
{
    choice_walk c;
    int rows = 0, axis;

    if (!find_choices(cx, stage, &c) || c.symbolic < 0)
        return 0;
    axis = c.symbolic;
    if (strcmp(stage->loop[axis].iter, c.block->iters[axis].var->var.name) != 0)
        return 0;
    for (int i = 0; i < axis; i++)
        rows += stage->loop[i].extent != 1;
    return rows ? axis : axis + 1;
}

/* Where the length of the axis is unknown and it is cut once, the pass `partition` does that as well, unless
 * vectors go along the axis: there one vector in the middle is of both pieces, and the pass would leave the
 * choice to all that follow. */
static bool is_left_to_lowering(const space_stage *stage, int axis, int n_points)
{
    return stage->loop[axis].extent == 0 && n_points == 1 && axis != stage->n_loops - 1;
}

/* The variable with the most choices decides. */
const space_pieces *space_find_pieces(const ir_facts *facts, const space_stage *stage)
{
    tec_context *cx = ir_facts_context(facts);
    const ir_block *block = stage->block;
    base_vec points = {0};
    choice_walk c;
    int best = 0;

    if (!find_choices(cx, stage, &c))
        return NULL;
    for (int i = 0; i < block->n_iters; i++) {
        base_vec rising = rising_points(facts, &c.points[i], block->iters[i].extent);

        if (rising.n > points.n) {
            points = rising;
            best = i;
        }
    }
    if (points.n == 0 || is_left_to_lowering(stage, best, points.n) ||
        strcmp(stage->loop[best].iter, block->iters[best].var->var.name) != 0)
        return NULL;
    space_pieces *out = base_new(cx, space_pieces);
    out->axis = best;
    keep_points(cx, &points, out);
    out->run = is_run(cx, block, best);
    return out;
}

space_piece_choice space_pick_pieces(tec_knobs *knobs, const space_stage *stage)
{
    if (!stage->pieces)
        return SPACE_ONE_PIECE;
    int axis = stage->pieces->axis;
    /* Around the first axis are no rows. */
    const char *const first[] = {how_words[SPACE_ONE_PIECE], how_words[SPACE_PIECES_APART]};

    if (axis == 0)
        return space_pick_word(knobs, stage, "pieces", first, 2, 1) ? SPACE_PIECES_APART : SPACE_ONE_PIECE;
    return (space_piece_choice)space_pick_word(knobs, stage, "pieces", how_words, 3,
                                               start_apart(stage) ? SPACE_PIECES_APART : SPACE_PIECES_INSIDE);
}

/* ---- cutting ---- */

/* Cuts the loop, which begins at `begin` of the axis, at the points from .. to - 1, the middle one first: so
 * names grow by a few letters only. */
static bool cut_at(sched *schedule, const space_pieces *pieces, const char *loop, const ir_expr *begin,
                   int from, int to)
{
    tec_context *cx = sched_context(schedule);
    const char *part[2];
    int middle = from + (to - from) / 2;

    if (from == to)
        return true;
    const ir_expr *point = ir_sub(cx, pieces->point[middle], begin);
    if (point->op != IR_INT)
        point = ir_simplify(ir_facts_of_program(cx, sched_tree(schedule)), point);
    return sched_cut_at(schedule, loop, ir_expr_text(cx, point), part) &&
           cut_at(schedule, pieces, part[0], begin, from, middle) &&
           cut_at(schedule, pieces, part[1], pieces->point[middle], middle + 1, to);
}

/* Loops that go through memory one by one become one. The loop over the axis is left out where the others are
 * long enough without it: that loop may run in parallel. Gives the number of loops that are left. */
static int fuse_run(sched *schedule, const space_stage *stage, const char **loop, int n, int at)
{
    enum { VECTORS = 8 };
    int64_t inner = 1;

    if (!stage->pieces->run)
        return n;
    for (int i = at + 1; i < n; i++)
        inner *= space_extent(schedule, loop[i]);
    int from = at + (inner >= VECTORS * stage->lanes);
    loop[from] = space_fuse(schedule, loop + from, n - from);
    return from + 1;
}

/* How many of n loops around the vectors may be fused into a parallel one; `run`: the last one goes through
 * memory with these, which it would no longer be seen to do if it were fused with the loops around it. */
static int most_parallel(sched *schedule, const char *const *loop, int n, bool run)
{
    bool alone = true;

    for (int i = 0; i < n - 1; i++)
        alone = alone && space_extent(schedule, loop[i]) == 1;
    return run && !alone ? n - 1 : n;
}

/* A piece apart stands in a nest of its own: the loop over the axis, then rows, then what is inside. */
static bool restore_order(sched *schedule, const char **loop, int at)
{
    const char *axis = loop[0];

    memmove(loop, loop + 1, (size_t)at * sizeof *loop);
    loop[at] = axis;
    return at == 0 || sched_reorder(schedule, loop, at + 1);
}

/* One piece, whose loop over the axis is number `at` of its nest in the end. */
static bool apply_piece(sched *schedule, const space_stage *stage, const space_nest_choice *choice,
                        const char *block)
{
    const char *loop[MOST_LOOPS], *reduce[MOST_LOOPS], *left;
    int n_reduce, n = space_own_loops(schedule, block, NULL, loop, reduce, &n_reduce),
                  at = n - (stage->n_loops - stage->pieces->axis);
    bool apart = choice->pieces == SPACE_PIECES_APART, parallel = false;

    if (apart) {
        parallel = choice->parallel &&
                   space_is_worth_forks(piece_cycles(stage, (double)space_extent(schedule, loop[0])));
        if (!restore_order(schedule, loop, at))
            return false;
    }
    n = fuse_run(schedule, stage, loop, n, at);
    if (!loop[n - 1] || !space_cut_vectors(schedule, loop[n - 1], choice->lanes, choice->unroll, &left))
        return false;
    loop[n - 1] = left;
    n = left ? most_parallel(schedule, loop, n, stage->pieces->run) : n - 1;
    return !parallel ||
           space_run_outer(schedule, loop, choice->parallel < n ? (int)choice->parallel : n, NULL);
}

/* What stands around the cuts is scheduled before: a loop over several pieces cannot be seen to be parallel,
 * if it is fused. */
static bool open_rows(sched *schedule, const space_nest_choice *choice, const char *const *loop, int at)
{
    const char *order[MOST_LOOPS] = {loop[at]};

    if (choice->pieces == SPACE_PIECES_INSIDE)
        return space_run_outer(schedule, loop, choice->parallel < at ? (int)choice->parallel : at, NULL);
    memcpy(order + 1, loop, (size_t)at * sizeof *loop);
    return at == 0 || sched_reorder(schedule, order, at + 1);
}

/* Cutting makes a block for each piece: the stage's own, and new ones. */
bool space_apply_pieces(sched *schedule, const space_stage *stage, const space_nest_choice *choice)
{
    const char *loop[MOST_LOOPS], *reduce[MOST_LOOPS], **before, **after;
    int n_reduce, n_before = sched_blocks(schedule, &before), at = stage->pieces->axis;

    space_own_loops(schedule, stage->name, NULL, loop, reduce, &n_reduce);
    if (!open_rows(schedule, choice, loop, at) ||
        !cut_at(schedule, stage->pieces, loop[at], ir_int(sched_context(schedule), 0), 0, stage->pieces->n))
        return false;
    int n = sched_blocks(schedule, &after);
    for (int i = 0; i < n; i++)
        if ((strcmp(after[i], stage->name) == 0 || !space_is_among(after[i], before, n_before)) &&
            !apply_piece(schedule, stage, choice, after[i]))
            return false;
    return true;
}
