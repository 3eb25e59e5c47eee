/* graph/coalesce.c -- tensors of a planned program that live for a short while share one storage.
 *
 *     v5: u8[16] = alloc_storage     v6 = alloc_tensor(v5) @offset(0)      v5: u8[128] = alloc_storage
 *     invoke "exp"(v1, v6)                                                 v6 = alloc_tensor(v5) @offset(0)
 *     v7: u8[16] = alloc_storage     v8 = alloc_tensor(v7) @offset(0)  =>  invoke "exp"(v1, v6)
 *     invoke "neg"(v6, v8)   kill v6                                       v8 = alloc_tensor(v5) @offset(64)
 *     ...                    kill v8                                       invoke "neg"(v6, v8)   kill v6 ...
 *
 * A tensor does not escape if kernels alone use it, or checks, in the body that allocates it, and it is
 * killed there. A *stretch* of a body holds neither calls nor regions, nor nodes that tell symbols. The
 * tensors that begin and end within one stretch and do not escape get places in one storage, by
 * graph_plan_places: they share bytes where they do not live at the same time. Tensors that outlive a stretch
 * keep storages of their own, so that a deep recursion holds nothing that it needs no more, and a value in a
 * list pins only itself. A storage is the host's or the device's alone: a tensor that both touch has its own,
 * so that its bytes alone are copied. The storage goes with the last tensor in it (runtime/object.h). The
 * tensors of the example are shown small; in truth small ones keep their own (graph/coalesce.h).
 */
#include "graph/coalesce.h"

#include "graph/node.h"
#include "graph/plan.h"
#include "graph/rewrite.h"
#include "graph/scope.h"

/* A storage with the one tensor in it, and its views. */
typedef struct {
    graph_place_request place; /* size and lifetime, then its offset */
    const graph_node *storage, *tensor;
    int stretch, alive; /* how many of tensor and views are not killed */
    int device;         /* that touches it: 0 the host; -1: none so far */
    bool escapes;
    const graph_value *group; /* of the storage that all of the stretch share: the first one's */
    const ir_expr *total;     /* bytes of that storage, where this tensor is the first one */
} lodger;

typedef struct {
    tec_context *cx;
    base_map lodgers; /* storage, tensor, view (graph_value *) -> lodger * */
    base_map tensors; /* graph_node * (alloc_storage and alloc_tensor) -> lodger * that has moved */
    base_map merged;  /* new module: group (old graph_value *) -> the new storage */
    const graph_module *m;
    bool small; /* small tensors share too */
} state;

/* ---- lifetimes ---- */

/* Nodes that end a stretch. */
static bool divides(const graph_node *node)
{
    switch (node->kind) {
    case GRAPH_ALLOC_STORAGE:
    case GRAPH_ALLOC_TENSOR:
    case GRAPH_INVOKE:
    case GRAPH_KILL:
    case GRAPH_APPEND:
    case GRAPH_CHECK:
    case GRAPH_MAKE_TUPLE:
    case GRAPH_CONSTRUCT:
    case GRAPH_CLOSURE: return node->n_symbols > 0;
    default: return true;
    }
}

/* A tensor that fills a storage of its own: it may move into one with others. */
static void add_lodger(state *self, const graph_node *storage, const graph_node *tensor, int at, int stretch,
                       base_vec *all)
{
    lodger *l = base_new(self->cx, lodger);

    *l = (lodger){.storage = storage,
                  .tensor = tensor,
                  .stretch = stretch,
                  .alive = 1,
                  .device = -1,
                  .place = {.first = at, .last = -1}};
    base_map_put(self->cx, &self->lodgers, storage->out[0], l);
    base_map_put(self->cx, &self->lodgers, tensor->out[0], l);
    base_push(self->cx, all, l);
}

/* A view is one more way to the tensor's bytes. */
static void note_tensor(state *self, const graph_node *node, int at, int stretch, base_vec *all)
{
    lodger *of = base_map_get(&self->lodgers, node->in[0]);

    if (graph_attribute(node, "offset") && node->in[0]->node) {
        add_lodger(self, node->in[0]->node, node, at, stretch, all);
    } else if (of) {
        of->alive++;
        base_map_put(self->cx, &self->lodgers, node->out[0], of);
    }
}

static void note_kill(state *self, const graph_value *value, int at)
{
    lodger *l = base_map_get(&self->lodgers, value);

    if (l && --l->alive == 0)
        l->place.last = BASE_PLANT_ON(self->cx, coalesce_lives) ? l->place.first : at;
}

static void let_escape(state *self, const graph_value *value)
{
    lodger *l = value ? base_map_get(&self->lodgers, value) : NULL;

    if (l && !BASE_PLANT_ON(self->cx, coalesce_escapes))
        l->escapes = true;
}

/* The node's device reads or writes the tensor. */
static void note_touch(state *self, const graph_node *node, const graph_value *value)
{
    lodger *l = value ? base_map_get(&self->lodgers, value) : NULL;
    int device = node->kind == GRAPH_INVOKE && graph_attribute(node, "device");

    if (l && l->device >= 0 && l->device != device)
        l->escapes = true;
    else if (l)
        l->device = device;
}

/* Lifetimes of the body's own tensors; what regions use is in use by a node that divides. */
static void note_node(state *self, const graph_node *node, int at, int stretch, base_vec *all)
{
    switch (node->kind) {
    case GRAPH_ALLOC_TENSOR: note_tensor(self, node, at, stretch, all); return;
    case GRAPH_KILL: note_kill(self, node->in[0], at); return;
    case GRAPH_ALLOC_STORAGE: return;
    case GRAPH_INVOKE:
    case GRAPH_CHECK:
    case GRAPH_EXTENTS:
        for (int k = 0; k < node->n_in; k++)
            note_touch(self, node, node->in[k]);
        return;
    case GRAPH_APPEND:
        let_escape(self, node->in[0]);
        note_touch(self, node, node->in[1]);
        return;
    default:
        for (int k = 0; k < node->n_in; k++)
            let_escape(self, node->in[k]);
    }
}

/* ---- places ---- */

/* In multiples of 64 bytes. Nodes that tell symbols end a stretch, so the symbols of the size have values
 * where the stretch begins. */
static const ir_expr *rounded_size(const state *self, const graph_body *body, const lodger *of)
{
    tec_context *cx = self->cx;
    const ir_expr *line = ir_int(cx, 64), *size = graph_type_bytes(cx, &of->tensor->out[0]->type);

    return ir_simplify(graph_facts_at_start(self->m, body), ir_mul(cx, ir_ceildiv(cx, size, line), line));
}

/* Whether the tensor keeps its own storage, as it is small (graph/coalesce.h). */
static bool stays_alone(const state *self, const lodger *of)
{
    int64_t bytes;

    return !self->small && of->device <= 0 &&
           ir_is_int(graph_type_bytes(self->cx, &of->tensor->out[0]->type), &bytes) &&
           bytes <= GRAPH_SMALL_BYTES;
}

/* Gives the tensors of one stretch and one device places in one storage; a single one stays where it is. */
static void settle(state *self, const graph_body *body, lodger *const *of, int n)
{
    graph_place_request **places = base_array(self->cx, graph_place_request *, n);

    if (n < 2)
        return;
    for (int i = 0; i < n; i++) {
        of[i]->place.size = rounded_size(self, body, of[i]);
        places[i] = &of[i]->place;
        of[i]->group = of[0]->storage->out[0];
        base_map_put(self->cx, &self->tensors, of[i]->storage, of[i]);
        base_map_put(self->cx, &self->tensors, of[i]->tensor, of[i]);
    }
    of[0]->total = graph_plan_places(self->cx, places, n);
}

/* Finds the lifetimes of a body and of its regions, then settles stretch by stretch. A tensor that is killed
 * in a later stretch than its own counts as one that escapes. */
static void note_body(state *self, const graph_body *body)
{
    base_vec all = {0}, staying[2] = {{0}, {0}};
    int stretch = 0;

    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];

        stretch += divides(node);
        note_node(self, node, i, stretch, &all);
        if (node->kind == GRAPH_KILL) {
            lodger *l = base_map_get(&self->lodgers, node->in[0]);

            if (l && l->alive == 0 && l->stretch != stretch)
                l->escapes = true;
        }
        for (int k = 0; k < node->n_bodies; k++)
            note_body(self, node->body[k]);
    }
    for (int i = 0; i < body->outputs.n; i++)
        let_escape(self, body->outputs.at[i]);
    for (int i = 0; i < all.n; i++) {
        lodger *l = all.at[i];

        for (int d = 0; d < 2; d++)
            if (staying[d].n && ((lodger *)staying[d].at[0])->stretch != l->stretch) {
                settle(self, body, (lodger *const *)staying[d].at, staying[d].n);
                staying[d].n = 0;
            }
        if (!l->escapes && l->place.last >= 0 && !stays_alone(self, l))
            base_push(self->cx, &staying[l->device > 0], l);
    }
    for (int d = 0; d < 2; d++)
        settle(self, body, (lodger *const *)staying[d].at, staying[d].n);
}

static void prepare(graph_rewrite *rw, const graph_body *old)
{
    note_body(rw->user, old);
}

/* ---- rewriting ---- */

/* The first storage of a stretch becomes that of all; the others go. */
static bool visit_storage(graph_rewrite *rw, const graph_node *node, const lodger *moved)
{
    state *st = rw->user;

    if (!moved->total) {
        rw->changed = true;
        return true;
    }
    graph_node *copy = graph_copy_node(rw, node, NULL);
    copy->out[0]->type.dim = base_copy(rw->cx, &moved->total, sizeof moved->total);
    graph_replace(rw, node->out[0], copy->out[0]);
    base_map_put(rw->cx, &st->merged, moved->group, copy->out[0]);
    return true;
}

static bool visit_tensor(graph_rewrite *rw, const graph_node *node, const lodger *moved)
{
    state *st = rw->user;
    graph_value *storage = base_map_get(&st->merged, moved->group);
    const op_attr offset = op_attr_exprs(rw->cx, "offset", &moved->place.offset, 1);
    graph_node *copy = graph_copy_node(rw, node, &storage);

    copy->attr = base_copy(rw->cx, &offset, sizeof offset);
    copy->n_attrs = 1;
    graph_replace(rw, node->out[0], copy->out[0]);
    return true;
}

static bool visit(graph_rewrite *rw, const graph_node *node)
{
    const lodger *moved = base_map_get(&((const state *)rw->user)->tensors, node);

    if (!moved)
        return graph_keep(rw, node);
    return node->kind == GRAPH_ALLOC_STORAGE ? visit_storage(rw, node, moved) : visit_tensor(rw, node, moved);
}

graph_module *graph_coalesce(graph_module *module, bool small)
{
    state st = {.cx = module->cx, .m = module, .small = small};

    return graph_rewrite_module(module, visit, prepare, &st);
}
