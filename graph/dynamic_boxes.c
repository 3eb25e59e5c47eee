/* graph/dynamic_boxes.c -- non-maximum suppression: of boxes that overlap much the best stays.
 *
 * Boxes are sorted by falling score, each class by itself. A scan walks through them and carries which boxes
 * are alive; a box that is alive when its turn comes ends all later ones that overlap it by more than the
 * limit:
 *
 *     boxes a b c, a overlaps b, b overlaps c:   alive 1 1 1  ->  a ends b: 1 0 1  ->  b is dead: 1 0 1
 *
 * How many boxes stay is known behind the scan only: all places that there could be are computed, and the
 * result is their beginning (an upper bound operator).
 */
#include "graph/steps.h"
#include "ir/build.h"

enum { TOP, LEFT, BOTTOM, RIGHT, AREA, N_SIDES };

/* Sorted boxes: corners and areas as f32[b, c, n]. */
typedef struct {
    const graph_steps *c;
    const ir_expr *dim[3];
    graph_value *order, *score, *side[N_SIDES];
    graph_value *place; /* i64[n]: 0, 1, ... */
} boxes;

static graph_value *operand(const graph_steps *c, int k)
{
    return k < c->n_in ? c->in[k] : NULL;
}

/* One of the four numbers of each box, as [b, n]. */
static graph_value *number_of(const graph_steps *c, int k)
{
    tec_context *cx = graph_step_context(c);
    const ir_expr *const *dim = c->in[0]->type.dim;

    return graph_step_reshape(c, graph_step_part(c, c->in[0], 2, ir_int(cx, k), ir_int(cx, 1)), dim, 2);
}

/* Top, left, bottom, right as [b, n]. The numbers are two corners, y before x, in any order; with `center`
 * the centre, x before y, width and height. */
static void read_sides(const graph_steps *c, bool center, graph_value **side)
{
    graph_value *number[4];

    for (int k = 0; k < 4; k++)
        number[k] = number_of(c, k);
    for (int k = 0; k < 2; k++) {
        graph_value *half = center ? graph_step_number(c, "mul", number[3 - k], 0.5) : NULL;

        side[k] = center ? graph_step_two(c, "sub", number[1 - k], half)
                         : graph_step_two(c, "min", number[k], number[k + 2]);
        side[k + 2] = center ? graph_step_two(c, "add", number[1 - k], half)
                             : graph_step_two(c, "max", number[k], number[k + 2]);
    }
}

/* [b, n] for each class, in the order of the class. */
static graph_value *sorted(const boxes *self, graph_value *value)
{
    op_attr axis = op_attr_int("axis", 2);

    value = graph_step_expand(self->c, graph_step_add_dim(self->c, value, 1), self->dim, 3);
    return GRAPH_STEP(self->c, "gather_elements", &axis, 1, value, self->order);
}

static graph_value *area(const graph_steps *c, graph_value *const *side)
{
    return graph_step_two(c, "mul", graph_step_two(c, "sub", side[BOTTOM], side[TOP]),
                          graph_step_two(c, "sub", side[RIGHT], side[LEFT]));
}

static bool sort_boxes(boxes *self, bool center)
{
    op_attr axis = op_attr_int("axis", 2);

    self->order = graph_step_order(self->c, self->c->in[1], 2, true);
    self->score = GRAPH_STEP(self->c, "gather_elements", &axis, 1, self->c->in[1], self->order);
    read_sides(self->c, center, self->side);
    for (int k = 0; k < AREA; k++)
        self->side[k] = sorted(self, self->side[k]);
    self->side[AREA] = area(self->c, self->side);
    self->place = graph_step_count(self->c, self->dim[2]);
    return self->side[AREA] && self->score && self->place;
}

/* How far two boxes overlap along one direction; [b, c, n] against [b, c, 1]. */
static graph_value *common(const boxes *self, graph_value *const *own, int low, int high)
{
    graph_value *from = graph_step_two(self->c, "max", self->side[low], own[low]),
                *to = graph_step_two(self->c, "min", self->side[high], own[high]);

    return graph_step_number(self->c, "max", graph_step_two(self->c, "sub", to, from), 0);
}

/* Whether each box shares more than the limit of its and the own box's area: common > limit * union, without
 * a quotient, so that boxes without area end nothing. */
static graph_value *overlaps(const boxes *self, graph_value *const *own, graph_value *limit)
{
    const graph_steps *c = self->c;
    graph_value *both =
        graph_step_two(c, "mul", common(self, own, TOP, BOTTOM), common(self, own, LEFT, RIGHT));
    graph_value *all = graph_step_two(c, "sub", graph_step_two(c, "add", self->side[AREA], own[AREA]), both);

    all = limit ? graph_step_two(c, "mul", all, limit) : graph_step_number(c, "mul", all, 0);
    return graph_step_two(c, "greater", both, all);
}

/* The scan's body: box `at` ends those behind that it overlaps. */
static graph_body *walk_body(const boxes *self, const op_type *alive_type, graph_value *limit)
{
    const graph_steps *c = self->c;
    graph_function *f = c->function;
    graph_value *own[N_SIDES];

    graph_region_open(f);
    graph_value *alive = graph_input(f, "alive", *alive_type),
                *at = graph_input(f, "at", (op_type){.dtype = BASE_I64});
    for (int k = 0; k < N_SIDES; k++)
        own[k] = graph_step_add_dim(
            c, graph_input(f, "side", (op_type){self->side[k]->type.dtype, 2, self->dim}), 2);
    graph_value *me = graph_step_where(c, graph_step_two(c, "equal", self->place, at), alive,
                                       graph_step_number(c, "mul", alive, 0));
    me = graph_step_number(c, "greater", graph_step_reduce(c, "reduce_max", me, 2, true), 0);
    graph_value *ends =
        graph_step_two(c, "and", graph_step_two(c, "greater", self->place, at), overlaps(self, own, limit));
    ends = graph_step_two(c, "and", ends, me);
    graph_value *next = graph_step_where(c, ends, graph_step_number(c, "mul", alive, 0), alive);
    if (next)
        graph_output(f, "alive", next);
    graph_body *body = graph_region_close(f);
    return next ? body : NULL;
}

/* i64[b, c, n]: 1 for the boxes that stay. */
static graph_value *walk(const boxes *self, graph_value *limit, graph_value *least)
{
    const graph_steps *c = self->c;
    const int64_t last_first[] = {2, 0, 1};
    graph_value *in[2 + N_SIDES];
    graph_value *good = least ? graph_step_two(c, "greater", self->score, least)
                              : graph_step_two(c, "equal", self->order, self->order);

    in[0] = graph_step_cast(c, good, BASE_I64);
    in[1] = self->place;
    for (int k = 0; k < N_SIDES; k++)
        in[2 + k] = graph_step_transpose(c, self->side[k], last_first);
    graph_body *body = in[0] ? walk_body(self, &in[0]->type, limit) : NULL;
    graph_node *scan = body ? graph_add_scan(c->function, c->name, in, 2 + N_SIDES, 1, body) : NULL;
    return scan ? scan->out[0] : NULL;
}

/* For each place the box there: its batch, its class, its number. */
static graph_value *rows_at(const boxes *self, graph_value *position)
{
    const graph_steps *c = self->c;
    tec_context *cx = graph_step_context(c);
    const ir_expr *class_size = self->dim[2], *batch_size = ir_mul(cx, self->dim[1], self->dim[2]);
    op_attr axis = op_attr_int("axis", 1);
    graph_value *class = graph_step_two(c, "div", position, graph_step_values(c, &class_size, 1)),
                *column[] = {graph_step_two(c, "div", position, graph_step_values(c, &batch_size, 1)),
                             graph_step_two(c, "fmod", class, graph_step_values(c, &self->dim[1], 1)),
                             graph_step_gather(c, graph_step_flat(c, self->order), position, 0)};

    for (int k = 0; k < 3; k++)
        column[k] = graph_step_add_dim(c, column[k], 1);
    return graph_step(c, "concat", column, 3, &axis, 1);
}

/* A number that may come as one element of a vector; NULL for an operand that is left out. */
static graph_value *scalar(const graph_steps *c, int k)
{
    graph_value *value = operand(c, k);

    return value && value->type.n == 1 ? graph_step_reshape(c, value, NULL, 0) : value;
}

/* Sorts, walks, keeps as many of each class as `most` says (none without it), and reads off the rows. */
bool graph_dynamic_boxes(const graph_dynamic_call *call)
{
    const op_type *box = &call->in[0]->type, *score = &call->in[1]->type;
    bool center = false;

    for (int i = 0; i < call->n_attrs; i++)
        center = center || (base_same(call->attr[i].name, "center") && call->attr[i].i);
    if (box->n != 3 || score->n != 3 || !ir_is_value(box->dim[2], 4))
        return graph_step_fail(call, "expected boxes [b, n, 4] and scores [b, c, n]");
    boxes b = {.c = call, .dim = {score->dim[0], score->dim[1], score->dim[2]}};
    graph_value *alive = sort_boxes(&b, center) ? walk(&b, scalar(call, 3), scalar(call, 4)) : NULL,
                *most = scalar(call, 2);
    graph_value *counted = graph_step_sums(call, alive, 2, false);
    graph_value *within =
        most ? graph_step_two(call, "less_equal", counted, graph_step_cast(call, most, BASE_I64))
             : graph_step_number(call, "less_equal", counted, 0);
    graph_value *stays = graph_step_two(call, "and", within, graph_step_number(call, "greater", alive, 0));
    graph_value *position =
        stays ? graph_step_true_positions(call, graph_step_flat(call, stays), true) : NULL;
    call->out[0] = position ? rows_at(&b, position) : NULL;
    return call->out[0] != NULL;
}
