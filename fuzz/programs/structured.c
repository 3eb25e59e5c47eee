/* fuzz/programs/structured.c -- statements with regions, calls, and values that are no tensors.
 *
 * A region begins with the pools around it and a few statements of its own. Its results have one type
 * whatever was drawn: a vector, rows, a number.
 */
#include "fuzz/programs/inside.h"
#include "graph/scope.h"
#include "ir/build.h"

enum { DEEPEST = 2, MOST_TRIPS = 3 };

/* How long the pools were where a region began. */
typedef struct {
    int n[FUZZ_N_POOLS];
} mark;

static mark enter(fuzz_program *self)
{
    mark m;

    for (int k = 0; k < FUZZ_N_POOLS; k++)
        m.n[k] = self->pool[k].n;
    graph_region_open(self->f);
    self->depth++;
    return m;
}

static graph_body *leave(fuzz_program *self, const mark *before)
{
    for (int k = 0; k < FUZZ_N_POOLS; k++)
        self->pool[k].n = before->n[k];
    self->depth--;
    return graph_region_close(self->f);
}

static bool is_deep(const fuzz_program *self)
{
    return self->depth >= DEEPEST;
}

static void some_statements(fuzz_program *self)
{
    fuzz_statements(self, 1 + (int)fuzz_draw(&self->state, 3));
}

/* A value of the kind, more often than not the latest. */
static graph_value *recent(fuzz_program *self, fuzz_pool kind)
{
    const base_vec *pool = &self->pool[kind];

    return pool->n && fuzz_draw(&self->state, 3) ? pool->at[pool->n - 1] : fuzz_pick(self, kind);
}

static void output(fuzz_program *self, fuzz_pool kind)
{
    graph_output(self->f, "value", recent(self, kind));
}

/* ---- if and match ---- */

static graph_body *branch(fuzz_program *self)
{
    mark m = enter(self);

    some_statements(self);
    output(self, FUZZ_VECTOR);
    output(self, FUZZ_ROWS);
    output(self, FUZZ_NUMBER);
    return leave(self, &m);
}

static bool draw_if(fuzz_program *self)
{
    graph_value *flag = fuzz_pick(self, FUZZ_FLAG);

    if (is_deep(self) || !flag)
        return false;
    graph_body *then = branch(self), *otherwise = branch(self);
    graph_node *node = graph_add_if(self->f, "if", flag, then, otherwise);
    return node && fuzz_keep(self, FUZZ_VECTOR, node->out[0]) && fuzz_keep(self, FUZZ_ROWS, node->out[1]) &&
           fuzz_keep(self, FUZZ_NUMBER, node->out[2]);
}

/* The region of a constructor: its fields join the pools of their kinds. */
static graph_body *arm(fuzz_program *self, const graph_case *constructor, const fuzz_pool *kind,
                       fuzz_pool gives)
{
    mark m = enter(self);
    graph_instance i = {.cx = self->cx};

    for (int k = 0; k < constructor->symbols.n; k++)
        base_map_put(self->cx, &i.map.vars, constructor->symbols.at[k],
                     graph_symbol_in(self->m, self->f->body, NULL));
    for (int k = 0; k < constructor->n; k++) {
        graph_type type = graph_instance_type(&i, &constructor->field[k]);

        fuzz_keep(self, kind[k], graph_typed_input(self->f, "field", &type));
    }
    some_statements(self);
    output(self, gives);
    return leave(self, &m);
}

/* Takes a list or a tree apart: rows of a list, a vector of a tree. */
static bool match(fuzz_program *self)
{
    static const fuzz_pool list[] = {FUZZ_ROWS, FUZZ_LIST}, tree[] = {FUZZ_TREE, FUZZ_VECTOR, FUZZ_TREE},
                           leaf[] = {FUZZ_VECTOR};
    bool of_list = fuzz_draw(&self->state, 2);
    graph_value *value = fuzz_pick(self, of_list ? FUZZ_LIST : FUZZ_TREE);
    const graph_data *data = graph_find_data(self->m, of_list ? "List" : "Tree");
    fuzz_pool gives = of_list ? FUZZ_ROWS : FUZZ_VECTOR;
    graph_body *body[2];

    if (is_deep(self) || !value)
        return false;
    body[0] = arm(self, data->cases.at[0], leaf, gives);
    body[1] = arm(self, data->cases.at[1], of_list ? list : tree, gives);
    graph_node *node = graph_add_match(self->f, "match", value, body, 2);
    return node && fuzz_keep(self, gives, node->out[0]);
}

/* ---- loops ---- */

/* The inputs of a loop's body join the pools; rows have another extent in each iteration. */
static graph_value *open_loop(fuzz_program *self)
{
    tec_context *cx = self->cx;
    const ir_expr *width = ir_int(cx, FUZZ_WIDTH),
                  *dim[] = {graph_symbol_in(self->m, self->f->body, NULL), width};
    graph_value *i = graph_input(self->f, "i", (op_type){.dtype = BASE_I64});

    fuzz_keep(self, FUZZ_FLAG, graph_input(self->f, "go", (op_type){.dtype = BASE_BOOL}));
    fuzz_keep(self, FUZZ_VECTOR, graph_input(self->f, "v", (op_type){BASE_F32, 1, &width}));
    fuzz_keep(self, FUZZ_ROWS,
              graph_input(self->f, "m", (op_type){BASE_F32, 2, base_copy(cx, dim, sizeof dim)}));
    fuzz_keep(self, FUZZ_NUMBER, graph_input(self->f, "k", (op_type){.dtype = BASE_I64}));
    fuzz_keep(self, FUZZ_NUMBER, i);
    return i;
}

/* Carries a vector, rows that grow and a number; collects a vector and a number. Ends by its count, by its
 * condition, or by both; the condition ends it after MOST_TRIPS. */
static bool loop(fuzz_program *self)
{
    graph_value *in[] = {fuzz_draw(&self->state, 3) ? fuzz_pick(self, FUZZ_NUMBER) : NULL,
                         fuzz_draw(&self->state, 2) ? fuzz_pick(self, FUZZ_FLAG) : NULL,
                         fuzz_pick(self, FUZZ_VECTOR), fuzz_pick(self, FUZZ_ROWS),
                         fuzz_pick(self, FUZZ_NUMBER)};

    if (is_deep(self) || !in[2] || !in[3] || !in[4])
        return false;
    mark m = enter(self);
    graph_value *i = open_loop(self);
    some_statements(self);
    graph_value *more = fuzz_two(self, "less", i, fuzz_number(self, MOST_TRIPS));
    if (fuzz_draw(&self->state, 3) == 0)
        more = fuzz_two(self, "and", more, fuzz_pick(self, FUZZ_FLAG));
    graph_output(self->f, "more", more);
    output(self, FUZZ_VECTOR);
    output(self, FUZZ_ROWS);
    output(self, FUZZ_NUMBER);
    output(self, FUZZ_VECTOR);
    output(self, FUZZ_NUMBER);
    graph_node *node = graph_add_loop(self->f, "loop", in, 5, leave(self, &m));
    return node && fuzz_keep(self, FUZZ_VECTOR, node->out[0]) && fuzz_keep(self, FUZZ_ROWS, node->out[1]) &&
           fuzz_keep(self, FUZZ_NUMBER, node->out[2]) && fuzz_keep(self, FUZZ_ROWS, node->out[3]) &&
           fuzz_keep(self, FUZZ_INTS, fuzz_within(self, node->out[4], FUZZ_INTS_BELOW));
}

/* Over the rows, with their numbers beside them; a vector is handed on. */
static bool scan(fuzz_program *self)
{
    graph_value *rows = fuzz_pick(self, FUZZ_ROWS), *state = fuzz_pick(self, FUZZ_VECTOR);
    const ir_expr *width = ir_int(self->cx, FUZZ_WIDTH);
    op_type vector = {BASE_F32, 1, base_copy(self->cx, &width, sizeof width)};

    if (is_deep(self) || !rows || !state)
        return false;
    op_attr shape = op_attr_exprs(self->cx, "shape", rows->type.dim, 1);
    graph_value *in[] = {state, rows, fuzz_op(self, "range", NULL, 0, &shape, 1)};
    mark m = enter(self);
    fuzz_keep(self, FUZZ_VECTOR, graph_input(self->f, "state", vector));
    fuzz_keep(self, FUZZ_VECTOR, graph_input(self->f, "row", vector));
    fuzz_keep(self, FUZZ_NUMBER,
              fuzz_within(self, graph_input(self->f, "at", (op_type){.dtype = BASE_I64}), FUZZ_LARGEST));
    some_statements(self);
    output(self, FUZZ_VECTOR);
    output(self, FUZZ_VECTOR);
    graph_node *node = graph_add_scan(self->f, "scan", in, 3, 1, leave(self, &m));
    return node && fuzz_keep(self, FUZZ_VECTOR, node->out[0]) && fuzz_keep(self, FUZZ_ROWS, node->out[1]);
}

/* ---- carried tuples ---- */

/* NULL where one of the two is not there. */
static graph_value *pair(fuzz_program *self, graph_value *first, graph_value *second)
{
    graph_value *part[] = {first, second};

    return first && second ? graph_add_tuple(self->f, "tuple", part, 2) : NULL;
}

/* What a loop carries: (vector, vector), (rows, number) or ((vector, vector), (rows, number)). */
static graph_value *state_of(fuzz_program *self, int form)
{
    graph_value *vectors =
        form != 1 ? pair(self, recent(self, FUZZ_VECTOR), fuzz_pick(self, FUZZ_VECTOR)) : NULL;
    graph_value *others = form != 0 ? pair(self, recent(self, FUZZ_ROWS), recent(self, FUZZ_NUMBER)) : NULL;

    return form == 0 ? vectors : form == 1 ? others : pair(self, vectors, others);
}

/* Its parts join the pools. */
static void take_apart(fuzz_program *self, graph_value *state, int form)
{
    graph_value *half[] = {state, state};

    for (int k = 0; k < 2 && form == 2; k++)
        half[k] = graph_add_field(self->f, "half", state, k);
    for (int k = 0; k < 2; k++) {
        if (form != 1)
            fuzz_keep(self, FUZZ_VECTOR, graph_add_field(self->f, "part", half[0], k));
        if (form != 0)
            fuzz_keep(self, k ? FUZZ_NUMBER : FUZZ_ROWS, graph_add_field(self->f, "part", half[1], k));
    }
}

/* The state as the body takes it: rows may have another extent in each iteration. */
static graph_value *state_input(fuzz_program *self, int form)
{
    tec_context *cx = self->cx;
    const ir_expr **dim = base_array(cx, const ir_expr *, 2);

    dim[0] = form ? graph_symbol_in(self->m, self->f->body, NULL) : NULL;
    dim[1] = ir_int(cx, FUZZ_WIDTH);
    graph_type vector = graph_tensor_type(&(op_type){BASE_F32, 1, dim + 1}), vectors[] = {vector, vector},
               others[] = {graph_tensor_type(&(op_type){BASE_F32, 2, dim}),
                           graph_tensor_type(&(op_type){.dtype = BASE_I64})},
               half[] = {graph_tuple_type(cx, vectors, 2), graph_tuple_type(cx, others, 2)};
    graph_type type = form == 2 ? graph_tuple_type(cx, half, 2) : half[form];

    return graph_typed_input(self->f, "state", &type);
}

/* The next state: a tuple of what was drawn, or by a condition the state itself. */
static graph_value *next_state(fuzz_program *self, graph_value *state, int form)
{
    graph_value *flag = fuzz_draw(&self->state, 4) == 0 ? fuzz_pick(self, FUZZ_FLAG) : NULL;

    if (!flag)
        return state_of(self, form);
    graph_region_open(self->f);
    graph_output(self->f, "value", state_of(self, form));
    graph_body *then = graph_region_close(self->f);
    graph_region_open(self->f);
    graph_output(self->f, "value", state);
    graph_node *node = graph_add_if(self->f, "keep", flag, then, graph_region_close(self->f));
    return node ? node->out[0] : NULL;
}

/* A loop or a scan whose state is a tuple. */
static bool carry(fuzz_program *self)
{
    int form = (int)fuzz_draw(&self->state, 3);
    bool is_loop = fuzz_draw(&self->state, 2);
    graph_value *along = is_loop ? fuzz_pick(self, FUZZ_NUMBER) : fuzz_pick(self, FUZZ_ROWS),
                *begin = is_deep(self) || !along ? NULL : state_of(self, form);

    if (!begin)
        return false;
    mark m = enter(self);
    graph_value *i = is_loop ? graph_input(self->f, "i", (op_type){.dtype = BASE_I64}) : NULL;
    if (is_loop)
        graph_input(self->f, "go", (op_type){.dtype = BASE_BOOL});
    graph_value *state = state_input(self, form);
    take_apart(self, state, form);
    if (!is_loop) {
        const ir_expr *width = ir_int(self->cx, FUZZ_WIDTH);

        fuzz_keep(
            self, FUZZ_VECTOR,
            graph_input(self->f, "row", (op_type){BASE_F32, 1, base_copy(self->cx, &width, sizeof width)}));
    }
    some_statements(self);
    if (is_loop)
        graph_output(self->f, "more", fuzz_two(self, "less", i, fuzz_number(self, MOST_TRIPS)));
    graph_output(self->f, "state", next_state(self, state, form));
    graph_body *body = leave(self, &m);
    graph_value *loop_in[] = {along, NULL, begin}, *scan_in[] = {begin, along};
    graph_node *node = is_loop ? graph_add_loop(self->f, "carry", loop_in, 3, body)
                               : graph_add_scan(self->f, "carry", scan_in, 2, 1, body);
    if (node)
        take_apart(self, node->out[0], form);
    return node != NULL;
}

/* ---- values ---- */

/* A value by a constructor, more often than not of what was made last, which nothing else may read. */
static bool construct(fuzz_program *self)
{
    static const struct {
        const char *data, *name;
        int n;
        fuzz_pool field[3], gives;
    } rows[] = {{"List", "Cons", 2, {FUZZ_ROWS, FUZZ_LIST}, FUZZ_LIST},
                {"List", "Nil", 0, {0}, FUZZ_LIST},
                {"Tree", "Leaf", 1, {FUZZ_VECTOR}, FUZZ_TREE},
                {"Tree", "Node", 3, {FUZZ_TREE, FUZZ_VECTOR, FUZZ_TREE}, FUZZ_TREE}};
    uint64_t which = fuzz_draw(&self->state, BASE_COUNT(rows));
    graph_value *field[3];

    for (int k = 0; k < rows[which].n; k++)
        if (!(field[k] = recent(self, rows[which].field[k])))
            return false;
    return fuzz_keep(self, rows[which].gives,
                     graph_add_construct(self->f, rows[which].data, rows[which].name, rows[which].name, field,
                                         rows[which].n));
}

static bool tuple(fuzz_program *self)
{
    graph_value *part[] = {fuzz_pick(self, FUZZ_VECTOR), fuzz_pick(self, FUZZ_ROWS)};
    graph_value *both = part[0] && part[1] ? graph_add_tuple(self->f, "tuple", part, 2) : NULL;

    return both && fuzz_keep(self, FUZZ_VECTOR, graph_add_field(self->f, "field", both, 0)) &&
           fuzz_keep(self, FUZZ_ROWS, graph_add_field(self->f, "field", both, 1));
}

/* ---- calls ---- */

/* The functions of fuzz_program_text. */
static bool call(fuzz_program *self)
{
    static const struct {
        const char *name;
        int n;
        fuzz_pool in[4], gives;
    } rows[] = {{"count", 1, {FUZZ_TREE}, FUZZ_NUMBER},
                {"walk", 2, {FUZZ_TREE, FUZZ_VECTOR}, FUZZ_VECTOR},
                {"map", 2, {FUZZ_TREE, FUZZ_VECTOR}, FUZZ_TREE},
                {"grow", 2, {FUZZ_LIST, FUZZ_ROWS}, FUZZ_ROWS},
                {"down", 2, {FUZZ_NUMBER, FUZZ_VECTOR}, FUZZ_VECTOR},
                {"build", 3, {FUZZ_NUMBER, FUZZ_ROWS, FUZZ_LIST}, FUZZ_LIST},
                {"twist", 2, {FUZZ_VECTOR, FUZZ_VECTOR}, FUZZ_VECTOR},
                {"blend", 4, {FUZZ_TREE, FUZZ_VECTOR, FUZZ_ROWS, FUZZ_FLAG}, FUZZ_VECTOR},
                {"stretch", 4, {FUZZ_TREE, FUZZ_VECTOR, FUZZ_ROWS, FUZZ_FLAG}, FUZZ_ROWS}};
    uint64_t which = fuzz_draw(&self->state, BASE_COUNT(rows));
    graph_value *in[4];

    for (int k = 0; k < rows[which].n; k++)
        if (!(in[k] = fuzz_pick(self, rows[which].in[k])))
            return false;
    graph_node *node = graph_add_call(self->f, rows[which].name, rows[which].name, in, rows[which].n);
    if (!node)
        return false;
    return fuzz_keep(self, rows[which].gives,
                     rows[which].gives == FUZZ_NUMBER ? fuzz_within(self, node->out[0], FUZZ_LARGEST)
                                                      : node->out[0]);
}

/* The type of a function of one vector, which gives a vector. */
static graph_type map_type(fuzz_program *self)
{
    const ir_expr *width = ir_int(self->cx, FUZZ_WIDTH);
    graph_type vector = graph_tensor_type(&(op_type){BASE_F32, 1, base_copy(self->cx, &width, sizeof width)}),
               both[] = {vector, vector};

    return (graph_type){
        .kind = GRAPH_FUNCTION, .n = 2, .n_params = 1, .part = base_copy(self->cx, both, sizeof both)};
}

/* The function `twist` with its first parameter given. */
static bool closure(fuzz_program *self)
{
    graph_value *given = fuzz_pick(self, FUZZ_VECTOR);
    graph_type type = map_type(self);

    if (!given)
        return false;
    graph_node *node = graph_add_parts(self->f, &(graph_node_parts){.kind = GRAPH_CLOSURE,
                                                                    .callee = "twist",
                                                                    .name = "closure",
                                                                    .in = &given,
                                                                    .n_in = 1,
                                                                    .result = &type,
                                                                    .n_results = 1});
    return fuzz_keep(self, FUZZ_CLOSURE, node->out[0]);
}

static bool apply(fuzz_program *self)
{
    graph_value *in[] = {fuzz_pick(self, FUZZ_CLOSURE), fuzz_pick(self, FUZZ_VECTOR)};

    if (!in[0] || !in[1])
        return closure(self);
    graph_type vector = graph_type_of(in[1]);
    graph_node *node = graph_add_parts(
        self->f,
        &(graph_node_parts){
            .kind = GRAPH_APPLY, .name = "apply", .in = in, .n_in = 2, .result = &vector, .n_results = 1});
    return fuzz_keep(self, FUZZ_VECTOR, node->out[0]);
}

/* A condition that holds. */
static bool check(fuzz_program *self)
{
    graph_value *holds =
        fuzz_two(self, "less", fuzz_pick(self, FUZZ_NUMBER), fuzz_number(self, FUZZ_LARGEST));
    op_attr message = op_attr_string("message", "a number is too large");

    return holds && graph_add_parts(self->f, &(graph_node_parts){.kind = GRAPH_CHECK,
                                                                 .name = "check",
                                                                 .in = &holds,
                                                                 .n_in = 1,
                                                                 .attr = &message,
                                                                 .n_attrs = 1});
}

/* A branch that no run takes, with a condition that is known not to hold. */
static bool never(fuzz_program *self)
{
    op_attr message = op_attr_string("message", "a branch was taken that no run takes");
    graph_value *number = fuzz_pick(self, FUZZ_NUMBER), *value = fuzz_pick(self, FUZZ_VECTOR);
    graph_value *taken = number ? fuzz_two(self, "less", fuzz_number(self, FUZZ_LARGEST), number) : NULL;

    if (is_deep(self) || !taken || !value)
        return false;
    graph_region_open(self->f);
    graph_value *holds = fuzz_two(self, "less", fuzz_number(self, 1), fuzz_number(self, 0));
    graph_add_parts(
        self->f,
        &(graph_node_parts){
            .kind = GRAPH_CHECK, .name = "never", .in = &holds, .n_in = 1, .attr = &message, .n_attrs = 1});
    graph_output(self->f, "value", value);
    graph_body *then = graph_region_close(self->f);
    graph_region_open(self->f);
    graph_output(self->f, "value", fuzz_op(self, "tanh", &value, 1, NULL, 0));
    graph_node *node = graph_add_if(self->f, "if", taken, then, graph_region_close(self->f));
    return node && fuzz_keep(self, FUZZ_VECTOR, node->out[0]);
}

const fuzz_statement fuzz_structured[] = {
    {"if", 4, draw_if},          {"match", 4, match}, {"loop", 4, loop},   {"scan", 4, scan},
    {"construct", 4, construct}, {"tuple", 3, tuple}, {"call", 6, call},   {"closure", 2, closure},
    {"apply", 5, apply},         {"carry", 2, carry}, {"check", 3, check}, {"never", 2, never},
};
const int fuzz_n_structured = BASE_COUNT(fuzz_structured);
