/* fuzz/programs/generic.c -- functions with type parameters, and expressions that use them at many types.
 *
 *     def twice[a](x: a, f: fn(a) -> a) -> a { f(f(x)) }
 *     ... twice(v0, (v1) => tanh(v1 * 0.5))   second(swap(Pair(m0, count(t0))))   each(l, first) ...
 *
 * An expression is drawn for a type: by a constructor, or by a call of a function whose type parameter stands
 * for the type. The operands of the call have types of their own, which are drawn too. So one function is
 * used with vectors, rows, numbers, trees, and what is made of these. A lambda sees all names around it.
 */
#include "fuzz/programs/inside.h"

enum { MOST_DEPTH = 1 };

#define ADD FUZZ_ADD

const fuzz_type fuzz_vector_type = {FUZZ_OF_VECTOR, {NULL}}, fuzz_rows_type = {FUZZ_OF_ROWS, {NULL}},
                fuzz_number_type = {FUZZ_OF_NUMBER, {NULL}}, fuzz_tree_type = {FUZZ_OF_TREE, {NULL}};

static int draw(fuzz_text *self, int n)
{
    return (int)fuzz_draw(&self->state, (uint64_t)n);
}

/* ---- types ---- */

static const fuzz_type *type_of(fuzz_text *self, const fuzz_type *left, const fuzz_type *right, int kind)
{
    fuzz_type *type = base_new(self->cx, fuzz_type);

    type->kind = kind;
    type->part[0] = left;
    type->part[1] = right;
    return type;
}

static const fuzz_type *some_type(fuzz_text *self, int depth)
{
    static const fuzz_type *const simple[] = {&fuzz_vector_type, &fuzz_vector_type, &fuzz_rows_type,
                                              &fuzz_rows_type,   &fuzz_number_type, &fuzz_tree_type};

    if (depth == 0 || draw(self, 3))
        return simple[draw(self, BASE_COUNT(simple))];
    const fuzz_type *left = some_type(self, depth - 1), *right = some_type(self, depth - 1);
    return type_of(self, left, right, FUZZ_PAIR + draw(self, 4));
}

static bool same(const fuzz_type *left, const fuzz_type *right)
{
    if (!left || !right || left->kind != right->kind)
        return left == right;
    return left->kind < FUZZ_PAIR || (same(left->part[0], right->part[0]) &&
                                      (left->kind > FUZZ_BOTH || same(left->part[1], right->part[1])));
}

/* The type as a program writes it. */
static const char *type_text(fuzz_text *self, const fuzz_type *type)
{
    const char *left = type->part[0] ? type_text(self, type->part[0]) : "",
               *right = type->part[1] ? type_text(self, type->part[1]) : "";

    switch (type->kind) {
    case FUZZ_OF_VECTOR: return base_format(self->cx, "f32[%d]", FUZZ_WIDTH);
    case FUZZ_OF_ROWS: return base_format(self->cx, "f32[?, %d]", FUZZ_WIDTH);
    case FUZZ_OF_NUMBER: return "i64";
    case FUZZ_OF_TREE: return "Tree";
    case FUZZ_PAIR: return base_format(self->cx, "Pair[%s, %s]", left, right);
    case FUZZ_BOTH: return base_format(self->cx, "(%s, %s)", left, right);
    case FUZZ_SEQ: return base_format(self->cx, "Seq[%s]", left);
    case FUZZ_OPTION: return base_format(self->cx, "Option[%s]", left);
    }
    return NULL;
}

/* ---- lambdas ---- */

/* What is in scope in front of a lambda, to go back to. */
typedef struct {
    int n_vectors, n_rows, n_trees, n_others;
} scope;

static scope scope_of(const fuzz_text *self)
{
    return (scope){self->n_vectors, self->n_rows, self->n_trees, self->others.n};
}

static void leave(fuzz_text *self, const scope *before)
{
    self->n_vectors = before->n_vectors;
    self->n_rows = before->n_rows;
    self->n_trees = before->n_trees;
    self->others.n = before->n_others;
}

/* A new name of the type: a parameter, or for a pair (a, b) sometimes a pattern. */
static void add_parameter(fuzz_text *self, const fuzz_type *type)
{
    fuzz_named *named;

    switch (type->kind) {
    case FUZZ_OF_VECTOR: ADD(self, "v%d", self->n_vectors++); return;
    case FUZZ_OF_ROWS: ADD(self, "m%d", self->n_rows++); return;
    case FUZZ_OF_TREE: ADD(self, "t%d", self->n_trees++); return;
    case FUZZ_BOTH:
        if (draw(self, 2) == 0)
            break;
        ADD(self, "(");
        add_parameter(self, type->part[0]);
        ADD(self, ", ");
        add_parameter(self, type->part[1]);
        ADD(self, ")");
        return;
    case FUZZ_OF_NUMBER:
    case FUZZ_PAIR:
    case FUZZ_SEQ:
    case FUZZ_OPTION: break;
    }
    named = base_new(self->cx, fuzz_named);
    *named = (fuzz_named){type, base_format(self->cx, "k%d", self->others.n)};
    base_push(self->cx, &self->others, named);
    ADD(self, "%s", named->name);
}

static void value(fuzz_text *self, const fuzz_type *type, int depth);

/* Rows that have at most one row more than those of the name, so that a repeated function stays small. */
static void step_of_rows(fuzz_text *self, int depth)
{
    int name = self->n_rows - 1;

    switch (draw(self, 3)) {
    case 0: ADD(self, "relu(m%d)", name); return;
    case 1:
        ADD(self, "concat(m%d, reshape(tanh(", name);
        fuzz_add_vector(self, depth);
        ADD(self, "), shape = [1, %d]), axis = 0)", FUZZ_WIDTH);
        return;
    default:
        ADD(self, "tanh(m%d - ", name);
        fuzz_add_vector(self, depth);
        ADD(self, ")");
    }
}

/* What a function gives that may be applied many times: vectors stay small. */
static void result(fuzz_text *self, const fuzz_type *type, int depth)
{
    if (type->kind == FUZZ_OF_ROWS) {
        step_of_rows(self, depth);
    } else if (type->kind == FUZZ_OF_VECTOR) {
        ADD(self, "tanh(");
        fuzz_add_vector(self, depth);
        ADD(self, ")");
    } else {
        value(self, type, depth);
    }
}

/* (a, b) => e, of n parameters. */
static void lambda(fuzz_text *self, const fuzz_type *const *param, int n, const fuzz_type *gives, int depth)
{
    const scope before = scope_of(self);

    ADD(self, "(");
    for (int i = 0; i < n; i++) {
        ADD(self, i ? ", " : "");
        add_parameter(self, param[i]);
    }
    ADD(self, ") => ");
    result(self, gives, depth);
    leave(self, &before);
}

/* fn(type) -> type: an operator, or a lambda. */
static void step(fuzz_text *self, const fuzz_type *type, int depth)
{
    bool tensor = type->kind == FUZZ_OF_VECTOR || type->kind == FUZZ_OF_ROWS;

    if (tensor && draw(self, 4) == 0)
        ADD(self, draw(self, 2) ? "tanh" : "relu");
    else
        lambda(self, &type, 1, type, depth);
}

/* ---- expressions ---- */

/* A name of the type, where there is one. */
static bool other_name(fuzz_text *self, const fuzz_type *type)
{
    for (int i = self->others.n - 1; i >= 0; i--) {
        const fuzz_named *named = self->others.at[i];

        if (same(named->type, type)) {
            ADD(self, "%s", named->name);
            return true;
        }
    }
    return false;
}

static void number(fuzz_text *self)
{
    if (draw(self, 2) && other_name(self, &fuzz_number_type))
        return;
    if (draw(self, 2))
        ADD(self, "count(t%d)", draw(self, self->n_trees));
    else
        ADD(self, "%d", draw(self, 5));
}

/* A Tree: a name, often, or one that is made of a name. */
static void tree(fuzz_text *self, int depth)
{
    int name = draw(self, self->n_trees);

    switch (depth > 0 ? draw(self, 3) : 0) {
    case 1:
        ADD(self, "map(t%d, ", name);
        fuzz_add_vector(self, depth - 1);
        ADD(self, ")");
        break;
    case 2:
        ADD(self, "Leaf(");
        fuzz_add_vector(self, depth - 1);
        ADD(self, ")");
        break;
    default: ADD(self, "t%d", name);
    }
}

/* Empty where nothing deeper may follow. */
static void sequence(fuzz_text *self, const fuzz_type *type, int depth)
{
    if (depth <= 0 || draw(self, 3) == 0) {
        ADD(self, "End[%s]", type_text(self, type->part[0]));
        return;
    }
    ADD(self, "Link(");
    value(self, type->part[0], depth - 1);
    ADD(self, ", ");
    value(self, type, depth - 1);
    ADD(self, ")");
}

static void option(fuzz_text *self, const fuzz_type *type, int depth)
{
    if (draw(self, 3) == 0) {
        ADD(self, "None[%s]", type_text(self, type->part[0]));
        return;
    }
    ADD(self, "Some(");
    value(self, type->part[0], depth - 1);
    ADD(self, ")");
}

/* By a name, a constructor or operators. */
static void without_call(fuzz_text *self, const fuzz_type *type, int depth)
{
    if (draw(self, 2) && other_name(self, type))
        return;
    switch (type->kind) {
    case FUZZ_OF_VECTOR: fuzz_add_vector(self, depth); return;
    case FUZZ_OF_ROWS: fuzz_add_rows(self, depth); return;
    case FUZZ_OF_NUMBER: number(self); return;
    case FUZZ_OF_TREE: tree(self, depth); return;
    case FUZZ_SEQ: sequence(self, type, depth); return;
    case FUZZ_OPTION: option(self, type, depth); return;
    case FUZZ_PAIR:
    case FUZZ_BOTH:
        ADD(self, type->kind == FUZZ_PAIR ? "Pair(" : "(");
        value(self, type->part[0], depth - 1);
        ADD(self, ", ");
        value(self, type->part[1], depth - 1);
        ADD(self, ")");
    }
}

/* choose(c, x, y), or_else(Some(x), y) */
static void by_choice(fuzz_text *self, const fuzz_type *type, int depth)
{
    if (draw(self, 2)) {
        ADD(self, "choose(");
        fuzz_add_condition(self);
    } else {
        ADD(self, "or_else(");
        value(self, type_of(self, type, NULL, FUZZ_OPTION), depth);
        ADD(self, ", ");
        value(self, type, depth);
        ADD(self, ")");
        return;
    }
    ADD(self, ", ");
    value(self, type, depth);
    ADD(self, ", ");
    value(self, type, depth);
    ADD(self, ")");
}

/* first(Pair(x, y)), second(swap(Pair(x, y))) */
static void by_pair(fuzz_text *self, const fuzz_type *type, int depth)
{
    const fuzz_type *other = some_type(self, 1);
    int way = draw(self, 4);
    bool left = way < 2, swapped = way == 1 || way == 2;

    ADD(self, "%s(%s", way % 2 ? "second" : "first", swapped ? "swap(" : "");
    value(self, type_of(self, left ? type : other, left ? other : type, FUZZ_PAIR), depth);
    ADD(self, swapped ? "))" : ")");
}

/* twice(x, f), times(2, x, f), chain(y, f, g) */
static void by_steps(fuzz_text *self, const fuzz_type *type, int depth)
{
    int way = draw(self, 3);

    if (way == 2) {
        const fuzz_type *from = some_type(self, 1), *between = some_type(self, 1);

        ADD(self, "chain(");
        value(self, from, depth);
        ADD(self, ", ");
        lambda(self, &from, 1, between, depth);
        ADD(self, ", ");
        lambda(self, &between, 1, type, depth);
        ADD(self, ")");
        return;
    }
    ADD(self, way ? "twice(" : "times(");
    if (way == 0)
        ADD(self, "%d, ", draw(self, 4));
    value(self, type, depth);
    ADD(self, ", ");
    step(self, type, depth);
    ADD(self, ")");
}

/* A sequence, also by a function: of pairs by both(), by each(), by spread(). */
static void some_sequence(fuzz_text *self, const fuzz_type *element, int depth)
{
    const fuzz_type *other = some_type(self, 1);
    int way = draw(self, 4);

    if (way == 0 && element->kind == FUZZ_BOTH) {
        ADD(self, "both(");
        some_sequence(self, element->part[0], depth - 1);
        ADD(self, ", ");
        some_sequence(self, element->part[1], depth - 1);
        ADD(self, ")");
    } else if (way == 1 && depth > 0) {
        ADD(self, "each(");
        some_sequence(self, other, depth - 1);
        ADD(self, ", ");
        lambda(self, &other, 1, element, depth - 1);
        ADD(self, ")");
    } else if (way == 2) {
        ADD(self, "spread(%d, ", draw(self, 4));
        value(self, element, depth - 1);
        ADD(self, ", ");
        step(self, element, depth - 1);
        ADD(self, ")");
    } else {
        value(self, type_of(self, element, NULL, FUZZ_SEQ), depth + 1);
    }
}

/* reduce(l, x, f), and over(t, leaf, node) of the tree. */
static void by_fold(fuzz_text *self, const fuzz_type *type, int depth)
{
    const fuzz_type *element = some_type(self, 1), *two[] = {type, element},
                    *node[] = {type, &fuzz_vector_type, type};

    if (draw(self, 2)) {
        ADD(self, "reduce(");
        some_sequence(self, element, depth);
        ADD(self, ", ");
        value(self, type, depth);
        ADD(self, ", ");
        lambda(self, two, 2, type, depth);
    } else {
        ADD(self, "over(t%d, ", draw(self, self->n_trees));
        lambda(self, &node[1], 1, type, depth);
        ADD(self, ", ");
        lambda(self, node, 3, type, depth);
    }
    ADD(self, ")");
}

void fuzz_add_by_generics(fuzz_text *self, const fuzz_type *type, int depth)
{
    switch (draw(self, 4)) {
    case 0: by_choice(self, type, depth); break;
    case 1: by_pair(self, type, depth); break;
    case 2: by_steps(self, type, depth); break;
    default: by_fold(self, type, depth);
    }
}

static void value(fuzz_text *self, const fuzz_type *type, int depth)
{
    if (depth > 0 && draw(self, 3) == 0)
        fuzz_add_by_generics(self, type, depth - 1);
    else
        without_call(self, type, depth > 0 ? depth : 0);
}

/* ---- declarations ---- */

/* Each of these has two bodies that mean the same. */
static void add_functions(fuzz_text *self)
{
    static const char *const two[][2] = {
        {"def swap[a, b](p: Pair[a, b]) -> Pair[b, a] { match p { Pair(x, y) => Pair(y, x) } }\n",
         "def swap[a, b](p: Pair[a, b]) -> Pair[b, a] { Pair(second(p), first(p)) }\n"},
        {"def choose[a](c: bool, x: a, y: a) -> a { if c { x } else { y } }\n",
         "def choose[b](c: bool, x: b, y: b) -> b { first(if c { Pair(x, y) } else { Pair(y, x) }) }\n"},
        {"def twice[a](x: a, f: fn(a) -> a) -> a { f(f(x)) }\n",
         "def twice[a](x: a, f: fn(a) -> a) -> a { chain(x, f, (y) => f(y)) }\n"},
        {"def times[a](k: i64, x: a, f: fn(a) -> a) -> a { if k > 0 { times(k - 1, f(x), f) } else { x } }\n",
         "def times[a](k: i64, x: a, f: fn(a) -> a) -> a { if k > 0 { f(times(k - 1, x, f)) } else { x } "
         "}\n"},
        {"def each[a, b](l: Seq[a], f: fn(a) -> b) -> Seq[b] {\n"
         "  match l { End => End Link(x, rest) => Link(f(x), each(rest, f)) }\n}\n",
         "def each[a, b](l: Seq[a], f: fn(a) -> b) -> Seq[b] {\n"
         "  reduce(turned(l, End), End[b], (done, x) => Link(f(x), done))\n}\n"},
    };

    for (int i = 0; i < BASE_COUNT(two); i++)
        ADD(self, "%s", two[i][draw(self, 2)]);
}

/* The data types and functions come first; `blend` and `stretch` use them with what they are given. */
void fuzz_add_generics(fuzz_text *self)
{
    const scope before = scope_of(self);

    ADD(self, "type Pair[a, b] = Pair(a, b)\n"
              "type Seq[a] = End | Link(a, Seq[a])\n"
              "def first[a, b](p: Pair[a, b]) -> a { match p { Pair(x, y) => x } }\n"
              "def second[a, b](p: Pair[a, b]) -> b { match p { Pair(x, y) => y } }\n"
              "def chain[a, b, c](x: a, f: fn(a) -> b, g: fn(b) -> c) -> c { g(f(x)) }\n"
              "def turned[a](l: Seq[a], done: Seq[a]) -> Seq[a] {\n"
              "  match l { End => done Link(x, rest) => turned(rest, Link(x, done)) }\n}\n"
              "def reduce[a, s](l: Seq[a], state: s, f: fn(s, a) -> s) -> s {\n"
              "  match l { End => state Link(x, rest) => reduce(rest, f(state, x), f) }\n}\n"
              "def both[a, b](l: Seq[a], m: Seq[b]) -> Seq[(a, b)] {\n"
              "  match l {\n    End => End\n    Link(x, rest) => match m {\n"
              "      End => End\n      Link(y, others) => Link((x, y), both(rest, others))\n    }\n  }\n}\n"
              "def spread[a](k: i64, x: a, f: fn(a) -> a) -> Seq[a] {\n"
              "  if k > 0 { Link(x, spread(k - 1, f(x), f)) } else { End }\n}\n");
    ADD(self, "def over[a](t: Tree, leaf: fn(f32[%d]) -> a, node: fn(a, f32[%d], a) -> a) -> a {\n",
        FUZZ_WIDTH, FUZZ_WIDTH);
    ADD(self, "  match t { Leaf(x) => leaf(x) Node(l, x, r) => node(over(l, leaf, node), x, over(r, leaf, "
              "node)) }\n}\n");
    add_functions(self);
    self->n_vectors = self->n_rows = self->n_trees = 1;
    ADD(self, "def blend(t0: Tree, v0: f32[%d], m0: f32[n, %d], c: bool) -> f32[%d] {\n  tanh(", FUZZ_WIDTH,
        FUZZ_WIDTH, FUZZ_WIDTH);
    fuzz_add_by_generics(self, &fuzz_vector_type, MOST_DEPTH);
    ADD(self, ")\n}\ndef stretch(t0: Tree, v0: f32[%d], m0: f32[n, %d], c: bool) -> f32[?, %d] {\n  ",
        FUZZ_WIDTH, FUZZ_WIDTH, FUZZ_WIDTH);
    fuzz_add_by_generics(self, &fuzz_rows_type, MOST_DEPTH);
    ADD(self, "\n}\n");
    leave(self, &before);
}
