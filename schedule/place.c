/* schedule/place.c -- compute_at and compute_root: in which loop a block runs.
 *
 *     for P.y { P[y] = A[y]*2 }                       for C.y.0 {
 *     for C.y.0 { for C.y.1 {          compute_at(P,    for P.y in 0..10 {
 *                                                         P[C.y.0*8 + P.y] = ... inside P's domain }
 *       C[y] = P[y] + P[y+1] + P[y+2]  C.y.0)  =>       for C.y.1 { C[y] = P[y] + P[y+1] + P[y+2] }
 *     }}                                              }
 *
 * A moved block gets new loops: over the region that its readers need (compute_at), or over its whole domain
 * (compute_root); over the part that its producers complete: reverse.c. Reductions complete inside. A block
 * with scan variables moves within its step, and all of the step is still written, since later ones may read
 * it.
 *
 * A worked example, of a size n that is known when the function is called: P is read by C at y and y + 2.
 *
 *     for C.y.0 { for C.y.1 in 0..8 { C[y] = P[y] + P[y + 2] } }        y = C.y.0*8 + C.y.1
 *
 *     for C.y.0 { for P.y in 0..10 { block P(y = C.y.0*8 + P.y) where C.y.0*8 + P.y < n { P[y] = A[y]*2 } }
 *                 for C.y.1 in 0..8 { ... } }
 *
 * While C.y.0 stands still, C reads the box P[C.y.0*8 : +10]. P stores at y alone, so its store can be
 * inverted: the instances that write the box are y = C.y.0*8 .. C.y.0*8 + 9. These are the new loops, and the
 * predicate cuts off what lies outside of P's domain, as the last tile reaches over its end. Rows 8 and 9 of
 * a tile are computed again by the next tile, so P must be a block that may run again.
 *
 * What would go wrong without the other checks. If P's input were written in C.y.0 behind this place, P would
 * read it too early (inputs_complete). If somebody outside of C.y.0 read P, the elements that no tile needs
 * would be missing (first_reader). If two instances of P wrote one element, as those of a rolled window do, a
 * nest over the whole domain would leave the last value for all readers (writes_once).
 */
#include "schedule/place.h"
#include "ir/reason/facts.h"
#include "schedule/copy.h"
#include "schedule/depend.h"
#include "schedule/loops.h"
#include "schedule/rewrite.h"
#include "tree/touch.h"

/* The access of reader to what the block writes, in the same step; NULL: none. In a scan the block writes one
 * step of a buffer, and a reader of earlier steps is none of this step's readers. */
static const ir_region *read_of(const sched_move *move, const tree_site *reader, const ir_region *write)
{
    const ir_region *read = reader == move->site || !sched_move_in_step(move, reader)
                                ? NULL
                                : tree_access(reader->block->reads, reader->block->n_reads, write->buffer);

    return read && !(move->step &&
                     tree_accesses_disjoint(&move->c->s->view, reader, read, move->site, write, move->step))
               ? read
               : NULL;
}

/* The loops over threads around the target, where what the block writes is the memory of all of them. Along
 * an axis where any of its buffers is none, each thread computes for itself what it needs. */
static void find_sharing_threads(sched_move *move)
{
    const ir_block *block = move->site->block;

    for (int i = 0; i < move->to.n; i++) {
        const ir_stmt *stmt = move->to.link[i].stmt;
        bool common = stmt->kind == IR_FOR;

        for (int j = 0; common && j < block->n_writes; j++)
            common = sched_is_common_along(block->writes[j].buffer->scope, stmt->loop.how);
        if (common && sched_is_threads(stmt->loop.how))
            base_push(move->c->cx, &move->threads, stmt);
    }
}

/* All threads that share the buffer must come to each iteration in which it is filled. Where the bounds of a
 * loop depend on the thread, some threads run more iterations than others, and nobody fills the buffer there.
 *
 *     for t in 0..3 threadIdx.x { for i in 0..t + 1 { <here> } }       thread 0, which fills, ends with i = 0
 */
static bool threads_run_alike(const sched_move *move)
{
    tec_context *cx = move->c->cx;

    for (int i = 0; i < move->threads.n; i++) {
        const ir_expr *thread = ((const ir_stmt *)move->threads.at[i])->loop.var;

        for (int k = 0; k < move->to.n; k++) {
            const ir_stmt *l = move->to.link[k].stmt;

            if (l->kind == IR_FOR &&
                (ir_uses_var(cx, l->loop.min, thread) || ir_uses_var(cx, l->loop.extent, thread)))
                return sched_refuse(move->c,
                                    "the threads of '%s' would fill '%s' together, but they run different "
                                    "iterations of '%s'",
                                    thread->var.name, move->site->block->writes[0].buffer->name,
                                    l->loop.var->var.name);
        }
    }
    return true;
}

/* The box that all threads which share the buffer touch together.
 *
 *     thread t reads tile[t : +1], t in 0..32      =>  all threads together read tile[0 : +32]
 */
static ir_region over_threads(sched_move *move, const ir_facts *facts, const ir_region *box)
{
    int n = move->threads.n;
    const ir_expr **var = base_array(move->c->cx, const ir_expr *, n),
                  **min = base_array(move->c->cx, const ir_expr *, n),
                  **extent = base_array(move->c->cx, const ir_expr *, n);

    for (int i = 0; i < n; i++) {
        const ir_stmt *l = move->threads.at[i];

        var[i] = l->loop.var;
        min[i] = l->loop.min;
        extent[i] = l->loop.extent;
    }
    ir_ranges threads = {.var = var, .min = min, .extent = extent, .n = n};
    return n ? ir_region_over(facts, box, &threads, NULL) : *box;
}

/* The hull of what blocks under the target read of a buffer. `*facts` receives the facts at the target, as
 * the first reader's site knows them. The boxes are taken with `covering`: a tile at the edge counts as large
 * as any other, which keeps the extents constant. */
static ir_region needed(sched_move *move, const ir_region *write, const ir_facts **facts)
{
    ir_region *boxes = base_array(move->c->cx, ir_region, move->all.n);
    int n = 0;

    for (int i = 0; i < move->all.n; i++) {
        const tree_site *r = &move->all.at[i];
        const ir_region *read = read_of(move, r, write);

        if (!read || (n && BASE_PLANT_ON(move->c->cx, compute_at_hull)))
            continue;
        if (n == 0)
            *facts = tree_site_facts(&move->c->s->view, r, sched_move_fixed_loops(move, r));
        ir_region box = tree_box(&move->c->s->view, r, read, sched_move_fixed_loops(move, r), true);
        boxes[n++] = over_threads(move, *facts, &box);
    }
    return ir_region_union(*facts, boxes, n);
}

/* Narrows one loop of the block; where several buffers ask for different parts, to none. An extent that would
 * be larger than the whole axis, with the least value 0, becomes the whole axis: then the nest needs no
 * predicate. A bound that is out of reach leaves the loop as it is, which computes more than is needed, and
 * never less. */
static void narrow_loop(sched_move *move, const ir_facts *facts, int index, const ir_expr *min,
                        const ir_expr *extent, bool first)
{
    const ir_expr *whole = move->site->block->iters[index].extent;

    if (!sched_move_in_reach(move, min) || !sched_move_in_reach(move, extent))
        return;
    bool same = first || (ir_prove_equal(facts, move->min[index], min) &&
                          ir_prove_equal(facts, move->extent[index], extent));
    move->min[index] = same ? ir_simplify(facts, min) : ir_int(move->c->cx, 0);
    move->extent[index] = same ? ir_simplify(facts, extent) : whole;
    if (ir_is_value(move->min[index], 0) && ir_prove_le(facts, whole, move->extent[index]))
        move->extent[index] = whole;
}

bool sched_span_in_box(const ir_facts *facts, const tree_layout *layout, const ir_expr *var,
                       const ir_region *box, const ir_expr **min, const ir_expr **extent)
{
    ir_ranges inner = {.var = layout->point, .min = box->min, .extent = box->extent, .n = layout->n};

    return ir_span(facts, var, &inner, NULL, min, extent);
}

/* P[floordiv(i, 8), i % 8] = .. is inverted as i = e0*8 + e1; the box of e0 and e1 gives the interval of
 * i. */
static bool invert_layout(sched_move *move, const ir_facts *facts, const ir_region *write,
                          const ir_region *box, bool first)
{
    const ir_expr *min, *extent;
    tree_layout l;

    if (!tree_invert_store(&move->c->s->view, move->site->block, write, &l))
        return sched_refuse(move->c, "the store of '%s' to '%s' cannot be inverted", move->site->block->name,
                            write->buffer->name);
    for (int i = 0; i < move->site->block->n_iters; i++)
        if (l.var[i] && sched_span_in_box(facts, &l, l.var[i], box, &min, &extent))
            narrow_loop(move, facts, i, min, extent, first);
    return true;
}

/* Narrows the loops of the block to the points that write `box`. The plain store, an iteration variable plus
 * a constant in each dimension, needs no layout: the variable's interval is that of the box, less the
 * constant. */
static bool invert_store(sched_move *move, const ir_facts *facts, const ir_region *write,
                         const ir_region *box, bool first)
{
    const ir_block *block = move->site->block;
    int *dim_of = base_array(move->c->cx, int, block->n_iters);

    if (!tree_store_dims(&move->c->s->view, block, write, dim_of))
        return invert_layout(move, facts, write, box, first);
    for (int i = 0; i < block->n_iters; i++)
        if (dim_of[i] >= 0 && block->iters[i].kind != IR_SCAN) {
            const ir_expr *shift = ir_int(move->c->cx, tree_store_shift(write, dim_of[i]));

            narrow_loop(move, facts, i, ir_sub(move->c->cx, box->min[dim_of[i]], shift),
                        box->extent[dim_of[i]], first);
        }
    return true;
}

/* Where no reader runs, the block has nothing to do, and what it would read may be undefined. A condition
 * goes with the block only if all readers have it, since a reader without the condition needs the elements in
 * any case. */
static void inherit_guards(sched_move *move, const tree_site *reader)
{
    base_vec all = {0};

    tree_outer_guards(&move->c->s->view, reader, sched_move_fixed_loops(move, reader), &all);
    for (int i = 0; i < all.n; i++) {
        bool shared = true;

        /* A condition that some of the threads meet says nothing of what all of them need. */
        for (int j = 0; j < move->threads.n; j++)
            shared = shared &&
                     !ir_uses_var(move->c->cx, all.at[i], ((const ir_stmt *)move->threads.at[j])->loop.var);
        for (int j = 0; shared && j < move->all.n; j++)
            for (int k = 0; k < move->site->block->n_writes; k++)
                if (read_of(move, &move->all.at[j], &move->site->block->writes[k]))
                    shared = shared && tree_has_guard(&move->c->s->view, &move->all.at[j], all.at[i]);
        if (shared)
            base_push(move->c->cx, &move->guards, all.at[i]);
    }
}

/* An earlier reader of the same buffer reads what was there before; if the block moved in front of it, that
 * value would be gone. */
bool sched_move_overtakes_nobody(sched_move *move)
{
    for (int j = 0; j < move->site->block->n_writes; j++)
        for (int i = 0; i < move->all.n; i++) {
            const tree_site *r = &move->all.at[i];

            if (r->order < move->site->order && read_of(move, r, &move->site->block->writes[j]))
                return sched_refuse(move->c, "'%s' reads '%s' before '%s' overwrites it", r->block->name,
                                    move->site->block->writes[j].buffer->name, move->site->block->name);
        }
    return true;
}

/* Finds the first block that reads what this one writes; all readers must lie under the target. NULL without
 * a reason: nobody reads the block, which only compute_root allows. An argument of the program must be
 * written whole, and a tile writes what its readers need. */
static const tree_site *first_reader(sched_move *move)
{
    const ir_block *block = move->site->block;
    const tree_site *first = NULL;

    for (int j = 0; j < block->n_writes; j++) {
        const ir_buffer *buffer = block->writes[j].buffer;

        if (move->loop && !move->step && tree_is_parameter(move->c->tree, buffer))
            return sched_refuse(move->c, "'%s' is an argument of the program; all of it must be written",
                                buffer->name);
        if (buffer->alias)
            return sched_refuse(move->c, "'%s' may share memory with other buffers", buffer->name);
        for (int i = 0; i < move->all.n; i++) {
            const tree_site *r = &move->all.at[i];

            if (!read_of(move, r, &block->writes[j]))
                continue;
            if (!sched_move_under(move, r))
                return sched_refuse(move->c, "'%s' reads '%s', but does not lie under '%s'", r->block->name,
                                    buffer->name, move->loop_name);
            first = !first || r->order < first->order ? r : first;
        }
    }
    if (!first && move->loop)
        return sched_refuse(move->c, "no block reads the buffers that '%s' writes", block->name);
    return first;
}

/* Narrows the block's loops, one written buffer after the other. Where the buffers of a tuple ask for
 * different parts of an axis, the whole axis is computed. */
static bool set_region(sched_move *move)
{
    const ir_block *block = move->site->block;

    for (int j = 0; j < block->n_writes; j++) {
        const ir_facts *facts = NULL;
        bool read = false;

        for (int i = 0; i < move->all.n; i++)
            read = read || read_of(move, &move->all.at[i], &block->writes[j]);
        if (!read)
            continue;
        ir_region box = needed(move, &block->writes[j], &facts);
        if (!invert_store(move, facts, &block->writes[j], &box, j == 0))
            return false;
    }
    return true;
}

/* What a scan writes in a step may be read in any later one, and outside. So a block that moves within a step
 * computes all of the step, and not the part that its readers in this step need. */
bool sched_move_keeps_step(sched_move *move, const ir_stmt *root)
{
    tree_sites now = tree_all_sites(move->c->cx, root);
    const tree_site *site = tree_site_named(&now, move->site->block->name);

    for (int j = 0; move->step && j < move->site->block->n_writes; j++) {
        const ir_region *write = &move->site->block->writes[j];
        ir_region box = tree_box(&move->c->s->view, move->site, write, move->step, true);

        if (!tree_touches_whole_box(&move->c->s->view, site, write, &box, move->step))
            return sched_refuse(
                move->c, "it is not proven that '%s' would still write all of '%s' in each step of '%s'",
                move->site->block->name, write->buffer->name,
                move->site->loop[move->step - 1]->loop.var->var.name);
    }
    return true;
}

/* The order matters: the checks of the tree as it is come first, then the region, then the checks of the new
 * tree, which hold the result against what the region was meant to be. compute_at(P, i) in steps, for B[i] =
 * P[i] + P[i + 1] with i in 0..8: P may run again (it stores once what it computes); nobody that stays
 * behind reads P; the first reader under i is B; its inputs are complete; the region that i needs is P[i :
 * +2]; the loops over P become `for ax0 in 0..2` in front of B. */
static const ir_program *place_at(sched_call *call, const char *block, const char *loop, bool judge)
{
    const tree_site *reader;
    sched_move m;

    if (!sched_move_start(call, &m, block, loop) || !sched_move_allowed(&m) ||
        !sched_takes_loops(call, &m.to) || !sched_move_overtakes_nobody(&m) || !(reader = first_reader(&m)))
        return NULL;
    find_sharing_threads(&m);
    if (!threads_run_alike(&m) ||
        !sched_move_inputs_complete(&m, sched_child_with(sched_end(&m.to)->loop.body, reader->block->name)) ||
        !set_region(&m))
        return NULL;
    inherit_guards(&m, reader);
    const ir_stmt *root = sched_move_carry_out(&m, reader->block->name, false);
    return root && sched_move_keeps_step(&m, root) &&
                   sched_reads_are_written(call, root, m.site->block->name) &&
                   (!judge || sched_still_independent(call, &m.to, root))
               ? sched_with_body(call, root)
               : NULL;
}

const ir_program *sched_place_tile(sched_call *call, const char *block, const char *loop)
{
    return place_at(call, block, loop, false);
}

/* compute_at(P, l): P runs inside l, before its first reader there, over what the readers need. */
const ir_program *sched_do_compute_at(sched_call *call)
{
    return place_at(call, call->arg[0].name, call->arg[1].name, true);
}

/* The store of a block that only copies: its value is one element of a buffer. NULL: the block computes
 * something, such as a value for padding, or an expression that was inlined into it. */
static const ir_stmt *copying_store(const ir_block *block)
{
    const ir_stmt *store = block->body->kind == IR_SEQ ? block->body->seq.stmt[0] : block->body;

    return store->kind == IR_STORE && store->store.value->op == IR_LOAD ? store : NULL;
}

/* Limits the iteration variables to the part of the buffer that is written. Only a dimension whose index is
 * the variable alone, as in A[t, 2*i] for t and not for i, tells where its variable may run. Variables in
 * `known` keep their limits. Gives, as bits, the variables that were limited here. */
static uint64_t keep_to(sched_move *move, const ir_buffer *buffer, const ir_expr *const *index,
                        uint64_t known)
{
    const ir_block *block = move->site->block;
    sched_copy written = {0};
    uint64_t found = 0;

    sched_copy_written(move->c, &move->all, buffer, &written);
    for (int i = 0; i < block->n_iters && i < 64; i++)
        for (int d = 0; d < buffer->n && !(known >> i & 1); d++)
            if (index[d] == block->iters[i].var) {
                move->min[i] = written.min[d];
                move->extent[i] = written.extent[d];
                found |= UINT64_C(1) << i;
            }
    return found;
}

/* The domain of a copy is its whole buffer, but other blocks may write the buffer in part only (copy.c). Then
 * compute_root copies this part alone: the elements outside of it hold nothing.
 *
 *     a cache of the steps 1 to 3 of a scan:     for t in 0..3 { block copy(t = 1 + t in 0..4) }
 *
 * Where the layout of the source was transformed, its indices do not name the elements: the copy then keeps
 * to what its own loops have copied so far. */
static void keep_to_written(sched_move *move)
{
    const ir_block *block = move->site->block;
    const ir_stmt *store = copying_store(block);

    if (!store || (block->role != IR_ROLE_COPY && block->role != IR_ROLE_CACHE))
        return;
    const ir_expr *load = store->store.value;
    uint64_t known = keep_to(move, load->load.buffer, load->load.index, 0);
    keep_to(move, store->store.buffer, store->store.index, known);
}

/* compute_root(P): P runs in a nest of its own again, before the first nest that reads it. */
const ir_program *sched_do_compute_root(sched_call *call)
{
    sched_move m;

    if (!sched_move_start(call, &m, call->arg[0].name, NULL) || !sched_move_allowed(&m) ||
        !sched_move_writes_once(&m))
        return NULL;
    const tree_site *reader = first_reader(&m);
    if (call->reason)
        return NULL;
    int index = reader ? sched_child_with(call->tree->body, reader->block->name) : INT32_MAX;
    if (!sched_move_inputs_complete(&m, index))
        return NULL;
    keep_to_written(&m);
    const ir_stmt *root = sched_move_carry_out(&m, reader ? reader->block->name : NULL,
                                               reader && BASE_PLANT_ON(call->cx, compute_root_place));
    return sched_with_body(call, root);
}
