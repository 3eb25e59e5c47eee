/* space/task.c -- the keys of tuning tasks (see space/task.h).
 *
 *     b0[v0, v1] sum= b1[v0, v2] * b2[v2, v1] with b0: f32, b1: f32, b2: f32 over v0, v1,
 *         v2 reduce  the family of a matrix product
 *
 * Two definitions of one product, with other names and a different epilogue, have the same family. With other
 * extents they keep the family and differ in the anchor key, whose end lists the extents:
 *
 *     family   b0[v0, v1] sum= b1[v0, v2] * b2[v2, v1] with b0: f32, .. over v0, v1, v2 reduce
 *     anchor   ... [128, 256, s0] where s0 in 1..64
 *     exact    ... in 5f0c.. (a hash of the whole program)
 *
 * A schedule of the exact key fits as it is. One of the anchor key fits the computation, but its trace may
 * name stages that this definition does not have. One of the family is a place to start.
 */
#include "space/task.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/reason/facts.h"
#include "ir/text.h"
#include "ir/walk.h"
#include "te/te.h"

/* ---- extents ---- */

typedef struct {
    tec_context *cx;
    const ir_facts *facts;
    base_vec symbols; /* in order of their first use: s0, s1, ... */
    ir_subst names;
    base_text extents; /* "24, s0 in 1..64" */
    double *shape;
    int n, cap;
} shape_text;

/* The extent with symbols by order of use. */
static const ir_expr *renamed(shape_text *shape, const ir_expr *extent)
{
    base_vec vars = {0};

    ir_free_vars(shape->cx, extent, &vars);
    for (int i = 0; i < vars.n; i++)
        if (!base_map_has(&shape->names.vars, vars.at[i])) {
            base_map_put(shape->cx, &shape->names.vars, vars.at[i],
                         ir_var(shape->cx, base_format(shape->cx, "s%d", shape->symbols.n), BASE_I64));
            base_push(shape->cx, &shape->symbols, vars.at[i]);
        }
    return ir_apply(shape->cx, &shape->names, extent);
}

/* A number that stands for a symbolic extent when shapes are compared: the geometric middle of its bounds; 0
 * where it has none. */
static double size_of(const ir_facts *facts, const ir_expr *extent)
{
    ir_interval r = ir_bounds(facts, extent);

    if (r.max == INT64_MAX || r.max < 0)
        return 0;
    return r.min == r.max ? (double)r.min : sqrt((double)(r.min > 1 ? r.min : 1) * (double)r.max);
}

/* The extent as text for the key, and as number for distances between shapes. `shape` grows by 16 numbers at
 * a time. */
static void add_extent(shape_text *shape, const ir_expr *extent)
{
    base_addf(shape->cx, &shape->extents, "%s%s", shape->n ? ", " : "",
              ir_expr_text(shape->cx, renamed(shape, extent)));
    if (shape->n == shape->cap) {
        double *grown = base_array(shape->cx, double, shape->cap + 16);

        if (shape->n)
            memcpy(grown, shape->shape, (size_t)shape->n * sizeof *grown);
        shape->shape = grown;
        shape->cap += 16;
    }
    shape->shape[shape->n++] = size_of(shape->facts, extent);
}

/* " where s0 in 1..64, s1 % 8 == 0": the ranges and divisibility of the symbols that were used. */
static const char *ranges(shape_text *shape)
{
    base_text out = {0};

    for (int i = 0; i < shape->symbols.n; i++) {
        ir_interval r = ir_bounds(shape->facts, shape->symbols.at[i]);
        ir_modular m = ir_modulus(shape->facts, shape->symbols.at[i]);

        base_addf(shape->cx, &out, "%s s%d in %" PRId64 "..", i ? "," : " where", i, r.min);
        if (r.max != INT64_MAX)
            base_addf(shape->cx, &out, "%" PRId64, r.max);
        if (m.coefficient > 1)
            base_addf(shape->cx, &out, " %% %" PRId64 " == %" PRId64, m.coefficient, m.base);
    }
    return base_text_str(shape->cx, &out);
}

/* ---- the anchor stage of a definition ---- */

/* Points of the block, twice for a reduction: only to find the stage with the most work. */
static double work_of(const ir_facts *facts, const ir_block *block)
{
    double work = 1;

    for (int i = 0; i < block->n_iters; i++)
        work *= size_of(facts, block->iters[i].extent) + 1;
    for (int i = 0; i < block->n_iters; i++)
        if (block->iters[i].kind == IR_REDUCE_ITER)
            return 2 * work;
    return work;
}

/* The stage that gives the task its family: the one with the role, otherwise the one with the most work. */
static const ir_block *anchor_of(const sched *schedule, const ir_facts *facts)
{
    const char **name, *anchor = sched_block_with_role(schedule, IR_ROLE_ANCHOR);
    int n = sched_blocks(schedule, &name);
    const ir_block *best = anchor ? sched_block(schedule, anchor)->block.block : NULL;

    for (int i = 0; i < n && !anchor; i++) {
        const ir_block *block = sched_block(schedule, name[i])->block.block;

        if (!best || work_of(facts, block) > work_of(facts, best))
            best = block;
    }
    return best;
}

typedef struct {
    ir_rewrite rw;
    base_vec seen; /* buffers by order of use: b0, b1, ... */
    base_map names;
} nameless;

/* Buffers are named by the order in which they are met, so that equal computations under other names have one
 * key. */
static const ir_buffer *number_buffer(ir_rewrite *rw, const ir_buffer *buffer)
{
    nameless *n = (nameless *)rw;
    ir_buffer *copy = base_map_get(&n->names, buffer);

    if (copy)
        return copy;
    copy = ir_buffer_copy(rw->cx, buffer);
    copy->name = base_format(rw->cx, "b%d", n->seen.n);
    base_map_put(rw->cx, &n->names, buffer, copy);
    base_push(rw->cx, &n->seen, buffer);
    return copy;
}

/* What one instance does, without names: variables and buffers are numbered.
 *
 *     block C(y, x, k reduce) { C[y, x] sum= A[y, k] * B[k, x] }
 *     =>  "b0[v0, v1] sum= b1[v0, v2] * b2[v2, v1] with b0: f32, b1: f32, b2: f32 over v0, v1, v2 reduce"
 *
 * Two definitions with this text compute the same, whatever their names and extents are. */
static const char *body_text(tec_context *cx, const ir_block *block)
{
    ir_subst vars = {0};
    nameless n = {.rw = {.cx = cx, .buffer = number_buffer}};
    base_text t = {0};

    for (int i = 0; i < block->n_iters; i++)
        base_map_put(cx, &vars.vars, block->iters[i].var, ir_var(cx, base_format(cx, "v%d", i), BASE_I64));
    const ir_stmt *body = ir_rewrite_stmt(&n.rw, ir_apply_stmt(cx, &vars, block->body));
    base_add(cx, &t, ir_stmt_text(cx, body));
    while (t.n && t.data[t.n - 1] == '\n')
        t.data[--t.n] = 0;
    for (int i = 0; i < n.seen.n; i++) {
        char dtype[24];

        base_addf(cx, &t, "%s b%d: %s", i ? "," : " with", i,
                  base_dtype_print(((const ir_buffer *)n.seen.at[i])->dtype, dtype, sizeof dtype));
    }
    for (int i = 0; i < block->n_iters; i++)
        base_addf(cx, &t, "%s v%d%s", i ? "," : " over", i,
                  block->iters[i].kind == IR_REDUCE_ITER ? " reduce"
                  : block->iters[i].kind == IR_SPATIAL   ? ""
                                                         : " in order");
    return base_text_str(cx, &t);
}

/* The family is the text of what one instance does, so that convolutions of all sizes are one family; the
 * extents are the shape within it. */
static void read_stage(tec_context *cx, const ir_block *block, shape_text *shape, space_task *task)
{
    task->family = body_text(cx, block);
    for (int i = 0; i < block->n_iters; i++)
        add_extent(shape, block->iters[i].extent);
}

/* ---- the anchor that an operator names ---- */

/* The key of an operator: its implementation and version, the types of its operands, its attributes. Extents
 * go into the shape, so that a convolution of another size belongs to the same family. The text is that of
 * the operator, so that a new body under the same version keeps its records. */
static void read_anchor(tec_context *cx, const space_anchor *anchor, shape_text *shape, space_task *task)
{
    base_text family = {0};

    base_addf(cx, &family, "%s@%d(", anchor->impl, anchor->version);
    for (int i = 0; i < anchor->n_operands; i++) {
        const ir_buffer *buffer = anchor->operand[i];
        char dtype[24];

        base_addf(cx, &family, "%s%s of rank %d", i ? ", " : "",
                  base_dtype_print(buffer->dtype, dtype, sizeof dtype), buffer->n);
        for (int d = 0; d < buffer->n; d++)
            add_extent(shape, buffer->shape[d]);
    }
    base_addf(cx, &family, ") %s", anchor->attributes ? anchor->attributes : "");
    task->family = base_text_str(cx, &family);
}

/* "conv_packed+add+relu": the operators of a definition in the order of their stages, whose names begin with
 * the operator's: conv_packed.padded, conv_packed.acc, conv_packed, add, relu'2. */
static const char *operators(tec_context *cx, const ir_program *tree)
{
    const char **name;
    int n = sched_blocks(sched_new(cx, tree, NULL), &name);
    base_text text = {0};
    base_dict seen = {0};

    for (int i = 0; i < n; i++) {
        const char *op = base_strndup(cx, name[i], strcspn(name[i], ".'"));

        if (!base_dict_has(&seen, op))
            base_addf(cx, &text, "%s%s", text.n ? "+" : "", op);
        base_dict_put(cx, &seen, op, tree);
    }
    return base_text_str(cx, &text);
}

/* Three keys from coarse to fine: the family (same kind of computation), the anchor (and the same extents),
 * the exact one (the very same tree). Records are looked up by the finest key that matches. */
const space_task *space_task_new(tec_context *cx, const te_def *def, const space_anchor *anchor)
{
    const ir_program *tree = def ? te_tree(cx, def) : NULL;
    space_task *task = base_new(cx, space_task);

    if (!tree)
        return NULL;
    shape_text shape = {.cx = cx, .facts = ir_facts_of_program(cx, tree)};
    const ir_block *stage = anchor ? NULL : anchor_of(sched_new(cx, tree, NULL), shape.facts);
    task->def = def;
    task->family = "empty";
    if (anchor)
        read_anchor(cx, anchor, &shape, task);
    else if (stage)
        read_stage(cx, stage, &shape, task);
    const char *extents = base_format(cx, "[%s]%s", base_text_str(cx, &shape.extents), ranges(&shape));
    task->summary = base_format(cx, "%s %s", operators(cx, tree), extents);
    task->anchor_key = base_format(cx, "%s %s", task->family, extents);
    task->exact_key = base_format(cx, "%s in %016" PRIx64, task->anchor_key, ir_hash_program(cx, tree));
    task->shape = shape.shape;
    task->n_shape = shape.n;
    return base_failed(cx) ? NULL : task;
}
