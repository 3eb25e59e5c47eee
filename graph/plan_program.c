/* graph/plan_program.c -- see plan_program.h. A rewrite: operators and groups become allocations and an
 * invocation, what renames elements becomes a view, everything else stays, with its regions rewritten.
 *
 *     v3: f32[n] = op exp "b"(v2)   =>   v5: u8[n*4] = alloc_storage "b"()
 *                                        v6: f32[n] = alloc_tensor "b"(v5) @offset(exprs [0])
 *                                        invoke "exp" "b"(v2, v6) @dims(exprs [n]) @operators("exp")
 *                                        kill "b"(v2)                            // v2 is read no more
 */
#include "graph/plan_program.h"

#include "compiler/generators.h"
#include "graph/emit.h"
#include "graph/place_program.h"
#include "graph/plan.h"
#include "graph/rewrite.h"
#include "graph/scope.h"

typedef struct {
    graph_kernels *kernels;
    bool unoptimised;
    base_vec values; /* graph_value *: of the function, in order */
    base_map homes;  /* graph_value * -> the body that makes it */
    base_map lasts;  /* graph_value * -> the node of that body that reads it last */
    base_map ends;   /* node -> base_vec *: values that it reads last */
    base_map taken;  /* graph_value *: those that end in a branch of that node instead */
    base_map scopes; /* old body -> graph_module *: what is known there */
} planner;

/* ---- which modules ---- */

/* Kinds before the planned ones that are no work of a kernel. The order of graph_node_kind is what the
 * comparison relies on. */
static bool is_control(const graph_node *node)
{
    return node->kind != GRAPH_OP && node->kind != GRAPH_GROUP && node->kind != GRAPH_PACK &&
           node->kind < GRAPH_ALLOC_STORAGE;
}

/* A single function of operators over tensors stays with the static executor. */
bool graph_is_program(const graph_module *module)
{
    const graph_body *main =
        module->functions.n ? ((const graph_function *)module->functions.at[0])->body : NULL;

    if (module->functions.n != 1 || module->for_vm)
        return module->functions.n > 0;
    for (int i = 0; i < main->nodes.n; i++)
        if (is_control(main->nodes.at[i]))
            return true;
    for (int i = 0; i < main->inputs.n + main->outputs.n; i++) {
        const graph_value *value =
            i < main->inputs.n ? main->inputs.at[i] : main->outputs.at[i - main->inputs.n];

        if (value->compound)
            return true;
    }
    for (int i = 0; i < main->symbols.n; i++)
        if (graph_is_solved(module->cx, main, main->symbols.at[i]))
            return true; /* by a sum or a multiple, which the static executor does not solve */
    return false;
}

/* concat(a, b) along the first dimension. `a` may be extended where it stands if it is a value of the
 * program, which no kernel of this body makes. */
bool graph_is_append(const graph_node *node)
{
    const op_attr *axis = graph_attribute(node, "axis");
    const graph_node *from;

    if (node->kind != GRAPH_OP || !base_same(node->op->name, "concat") || node->n_in != 2 ||
        (axis && axis->i != 0) || node->in[0] == node->in[1] || node->in[0]->constant)
        return false;
    from = node->in[0]->node;
    return !from || is_control(from) || graph_is_append(from);
}

/* slice(a) from the first element on, of whole elements along the first dimension: the beginning of the
 * operand's bytes. */
bool graph_is_beginning(const graph_node *node)
{
    const op_attr *begin = graph_attribute(node, "begin"), *step = graph_attribute(node, "step");
    const op_type *type = node->n_in == 1 ? &node->in[0]->type : NULL;

    if (node->kind != GRAPH_OP || !base_same(node->op->name, "slice") || !begin || !step || type->n < 1)
        return false;
    for (int d = 0; d < type->n; d++)
        if (!ir_is_value(begin->exprs[d], 0) || step->ints[d] != 1 ||
            (d > 0 && !ir_same(type->dim[d], node->out[0]->type.dim[d])))
            return false;
    return true;
}

/* ---- where values end ---- */

/* Notes a use of the value, at the node of the value's own body that holds the use: `path` are the nodes
 * around the use, the outermost first, and bodies->at[i] is the body where path->at[i] stands. Later uses
 * overwrite earlier ones, so in the end the last stays.
 *
 *     v2 = exp(v1)
 *     v9 = if "if"(v3) { v4 = neg(v2)  output v4 } { output v1 }
 *
 * v2 ends behind "if", not behind "neg": where the other region runs, nobody else would end it. A constant
 * and an input of a group have no home; nothing is noted for them. */
static void note_use(tec_context *cx, planner *self, const base_vec *bodies, const base_vec *path,
                     const graph_value *value)
{
    const graph_body *home = value ? base_map_get(&self->homes, value) : NULL;

    for (int i = 0; home && i < bodies->n; i++)
        if (bodies->at[i] == home)
            base_map_put(cx, &self->lasts, value, path->at[i]);
}

/* Also keeps the order in which values are made, so that two runs of the compiler write kills in one
 * order. */
static void note_value(tec_context *cx, planner *self, const graph_value *value, const graph_body *home)
{
    base_map_put(cx, &self->homes, value, home);
    base_push(cx, &self->values, value);
}

/* Where each value is made, and which node of that body reads it last, also from inside of a region. */
static void note_body(tec_context *cx, planner *self, base_vec *bodies, base_vec *path,
                      const graph_body *body)
{
    base_push(cx, bodies, body);
    for (int i = 0; i < body->inputs.n; i++)
        note_value(cx, self, body->inputs.at[i], body);
    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        base_push(cx, path, node);
        for (int k = 0; k < node->n_in; k++)
            note_use(cx, self, bodies, path, node->in[k]);
        for (int k = 0; k < node->n_bodies && node->kind != GRAPH_GROUP; k++)
            note_body(cx, self, bodies, path, node->body[k]);
        for (int k = 0; k < node->n_out; k++) {
            note_value(cx, self, node->out[k], body);
            base_map_put(cx, &self->lasts, node->out[k], node);
        }
        path->n--;
    }
    /* Outputs live until the region or the function is over; a use of an outer value is one of the node. */
    for (int i = 0; i < body->outputs.n; i++) {
        const graph_value *value = body->outputs.at[i];

        if (base_map_get(&self->homes, value) == body)
            base_map_put(cx, &self->lasts, value, NULL);
        else
            note_use(cx, self, bodies, path, value);
    }
    bodies->n--;
}

/* For each node of the function the values that it reads last, in the order in which they are made. */
static void note_ends(graph_rewrite *rw, const graph_body *body)
{
    planner *p = rw->user;
    base_vec bodies = {0}, path = {0};

    p->homes = p->lasts = p->ends = p->taken = (base_map){0};
    p->values = (base_vec){0};
    note_body(rw->cx, p, &bodies, &path, body);
    for (int i = 0; i < p->values.n; i++) {
        const graph_node *node = base_map_get(&p->lasts, p->values.at[i]);
        base_vec *ends = node ? base_map_get(&p->ends, node) : NULL;

        if (!node)
            continue;
        if (!ends)
            base_map_put(rw->cx, &p->ends, node, ends = base_new(rw->cx, base_vec));
        base_push(rw->cx, ends, p->values.at[i]);
    }
}

/* ---- nodes ---- */

/* The new node keeps the place and the name of `at`, so that errors and profiles name the user's node. `out`
 * is NULL for a node without results. */
static graph_node *add_node(graph_rewrite *rw, graph_node_kind kind, const graph_node *at,
                            graph_value *const *in, int n, const op_type *out, const op_attr *attr,
                            int n_attrs)
{
    base_set_where(rw->cx, at->loc);
    graph_node *node = graph_node_new(rw->cx, kind, at->name, in, n, out, out ? 1 : 0);

    node->attr = base_copy(rw->cx, attr, (size_t)n_attrs * sizeof *attr);
    node->n_attrs = n_attrs;
    base_push(rw->cx, &rw->body->nodes, node);
    return node;
}

/* A storage of just the tensor's bytes and the tensor at its start: in a program only the run decides which
 * values live at one time, so none share a storage. */
static graph_value *add_tensor(graph_rewrite *rw, const graph_node *at, const graph_value *value)
{
    tec_context *cx = rw->cx;
    const ir_expr *bytes = ir_simplify(graph_facts_at_start(rw->from, rw->old),
                                       graph_type_bytes(cx, &value->type)),
                  *zero = ir_int(cx, 0);
    const op_type type = {BASE_U8, 1, base_copy(cx, &bytes, sizeof bytes)};
    const op_attr offset = op_attr_exprs(cx, "offset", &zero, 1);
    graph_node *storage = add_node(rw, GRAPH_ALLOC_STORAGE, at, NULL, 0, &type, NULL, 0);
    graph_node *t = add_node(rw, GRAPH_ALLOC_TENSOR, at, storage->out, 1, &value->type, &offset, 1);

    t->out[0]->name = value->name;
    return t->out[0];
}

/* Tells the module what a new kernel takes, so that the verifier can hold each invocation against it. */
static void declare_kernel(graph_rewrite *rw, const graph_kernels *kernels, const graph_kernel_def *defined)
{
    graph_kernel_type *k = base_new(rw->cx, graph_kernel_type);

    *k = graph_kernel_type_of(rw->cx, defined);
    k->name = graph_kernel_at(kernels, rw->to->kernels.n)->unit.name;
    base_push(rw->cx, &rw->to->kernels, k);
}

/* One kernel for an operator or a group: storage and tensor for each result, then the invocation. Kernels are
 * shared by nodes with equal definitions, so `kernel` may be an old one, which is declared already. */
static bool plan_kernel(graph_rewrite *rw, const graph_node *node)
{
    planner *p = rw->user;
    tec_context *cx = rw->cx;
    base_vec reads = {0};
    graph_kernel_def k =
        graph_define_kernel(graph_module_in(rw->from, rw->old, &p->scopes), node, p->kernels->target);
    const target *machine =
        k.def && p->kernels->where
            ? graph_place_kernel(cx, node, k.def, p->kernels->try_options, p->kernels->where)
            : p->kernels->target;
    int kernel = k.def && machine
                     ? graph_kernel_for(p->kernels, machine, k.def, k.node, graph_operators_text(cx, node))
                     : -1;

    if (kernel < 0) {
        base_note(cx, node->loc, "while building '%s'", node->name);
        return false;
    }
    p->kernels->n_bounded += k.node != node;
    graph_distinct_operands(cx, node, &reads);
    graph_kernel_reads(p->kernels, kernel, &reads);
    if (kernel == rw->to->kernels.n)
        declare_kernel(rw, p->kernels, &k);
    graph_value **in = base_array(cx, graph_value *, reads.n + node->n_out);
    for (int i = 0; i < reads.n; i++)
        in[i] = graph_new_value(rw, reads.at[i]);
    for (int i = 0; i < node->n_out; i++) {
        in[reads.n + i] = add_tensor(rw, node, node->out[i]);
        graph_replace(rw, node->out[i], in[reads.n + i]);
    }
    const op_attr attr[] = {op_attr_exprs(cx, "dims", k.dims, k.def->symbols.n),
                            op_attr_string("operators", graph_operators_text(cx, node)),
                            op_attr_string("device", comp_codegen(machine)->device)};
    int n_attrs = BASE_COUNT(attr) - (comp_codegen(machine)->device == NULL);
    graph_node *call = add_node(rw, GRAPH_INVOKE, node, in, reads.n + node->n_out, NULL, attr, n_attrs);
    call->callee = graph_kernel_at(p->kernels, kernel)->unit.name;
    return true;
}

/* Shares the operand's storage: no storage, no kernel, another shape. */
static bool plan_view(graph_rewrite *rw, const graph_node *node)
{
    graph_value *of = graph_new_value(rw, node->in[0]);
    graph_node *view = add_node(rw, GRAPH_ALLOC_TENSOR, node, &of, 1, &node->out[0]->type, NULL, 0);

    view->out[0]->name = node->out[0]->name;
    graph_replace(rw, node->out[0], view->out[0]);
    return true;
}

static bool gives(const graph_body *body, const graph_value *value)
{
    for (int i = 0; i < body->outputs.n; i++)
        if (body->outputs.at[i] == value)
            return true;
    return false;
}

/* Whether the node or a region of it reads the value. */
static bool is_reader(const graph_node *node, const graph_value *value)
{
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] == value)
            return true;
    for (int b = 0; b < node->n_bodies; b++) {
        for (int i = 0; i < node->body[b]->nodes.n; i++)
            if (is_reader(node->body[b]->nodes.at[i], value))
                return true;
        if (gives(node->body[b], value))
            return true;
    }
    return false;
}

/* Whether no node of the body behind `node` reads the value, and the body does not give it. */
static bool is_read_last(const graph_body *body, const graph_node *node, const graph_value *value)
{
    int i = body->nodes.n - 1;

    for (; i >= 0 && body->nodes.at[i] != node; i--)
        if (is_reader(body->nodes.at[i], value))
            return false;
    return i >= 0 && !gives(body, value);
}

/* Whether the value of a body further out ends in this one, at the node: each body in between is a branch of
 * the last node of the one around it, so nothing runs behind the branch. Where another branch runs, the value
 * ends when the outermost of these bodies is left.
 *
 *     def go(i: i64, all: f32[?, 4], y: f32[1, 4], n: i64) -> f32[?, 4] {
 *       if i < n { go(i + 1, concat(all, y, axis = 0), tanh(y), n) } else { all }
 *     }
 */
static bool ends_in_branch(planner *self, const graph_body *body, const graph_node *node,
                           const graph_value *value)
{
    const graph_body *home = base_map_get(&self->homes, value);

    while (home && body != home) {
        const graph_body *around = body->outer;
        const graph_node *last = around && around->nodes.n ? around->nodes.at[around->nodes.n - 1] : NULL;
        bool branch = false;

        if (!last || (last->kind != GRAPH_IF && last->kind != GRAPH_MATCH) ||
            !is_read_last(body, node, value))
            return false;
        for (int b = 0; b < last->n_bodies; b++)
            branch = branch || last->body[b] == body;
        if (!branch)
            return false;
        body = around;
        node = last;
    }
    return home && !gives(home, value);
}

/* Whether the result has the operand's elements, or the first of them, in the operand's order. */
static bool only_renames(const planner *self, const graph_node *node)
{
    if (node->kind != GRAPH_OP || self->unoptimised)
        return false;
    return node->op->identity || graph_is_beginning(node) ||
           (BASE_PLANT_ON(self->kernels->cx, plan_view) && base_same(node->op->name, "neg"));
}

/* Whether the second operand lies in the first one's memory, which must move then. */
static bool appends_itself(const planner *self, const graph_node *node)
{
    const graph_value *of = node->in[1];

    while (of->node && only_renames(self, of->node))
        of = of->node->in[0];
    return of == node->in[0];
}

/* Whether the node puts rows behind a tensor that nothing reads afterwards. */
static bool extends_operand(planner *self, const graph_body *body, const graph_node *node)
{
    const base_vec *ends = base_map_get(&self->ends, node);

    if (!graph_is_append(node) || self->unoptimised)
        return false;
    for (int i = 0; ends && i < ends->n; i++)
        if (ends->at[i] == node->in[0])
            return true;
    if (base_map_get(&self->homes, node->in[0]) != body && !appends_itself(self, node) &&
        ends_in_branch(self, body, node, node->in[0])) {
        base_map_put(self->kernels->cx, &self->taken, node->in[0], node);
        return true;
    }
    return BASE_PLANT_ON(self->kernels->cx, plan_append);
}

static bool plan_append(graph_rewrite *rw, const graph_node *node)
{
    graph_value *in[] = {graph_new_value(rw, node->in[0]), graph_new_value(rw, node->in[1])};
    graph_node *append = add_node(rw, GRAPH_APPEND, node, in, 2, &node->out[0]->type, NULL, 0);

    append->out[0]->name = node->out[0]->name;
    graph_replace(rw, node->out[0], append->out[0]);
    return true;
}

/* Ends the values that the node reads last; `append` has ended its first operand itself. */
static void add_kills(graph_rewrite *rw, const graph_node *node, bool append)
{
    const planner *p = rw->user;
    const base_vec *ends = p->unoptimised ? NULL : base_map_get(&p->ends, node);

    for (int i = 0; ends && i < ends->n; i++) {
        graph_value *value = graph_new_value(rw, ends->at[i]);

        if (!value->constant && !(append && ends->at[i] == node->in[0]) &&
            !base_map_get(&p->taken, ends->at[i]))
            add_node(rw, GRAPH_KILL, node, &value, 1, NULL, NULL, 0);
    }
}

/* Rewrites one node; behind it the values end that it reads last. */
static bool plan_node(graph_rewrite *rw, const graph_node *node)
{
    planner *p = rw->user;
    bool append = extends_operand(p, rw->old, node), early = BASE_PLANT_ON(rw->cx, plan_kill), done;

    if (early)
        add_kills(rw, node, append);
    done = only_renames(p, node) ? plan_view(rw, node)
           : append              ? plan_append(rw, node)
           : is_control(node)    ? graph_keep(rw, node)
                                 : plan_kernel(rw, node);
    if (done && !early)
        add_kills(rw, node, append);
    return done;
}

graph_module *graph_planned_program(graph_module *module, graph_kernels *kernels, bool unoptimised)
{
    planner p = {.kernels = kernels, .unoptimised = unoptimised};

    if (kernels->where && !graph_place_program(module, kernels->try_options, kernels->where))
        return NULL;
    return graph_rewrite_module(module, plan_node, note_ends, &p);
}
