/* fuzz/programs/text.c -- programs as text: data types, functions that recur, and a drawn `main`.
 *
 * Programs have lists and trees, recursion that folds, walks, maps and counts, tensors that grow, tuples,
 * `if` and `match`, and functions with type parameters (generic.c). Values stay small (each function ends in
 * tanh or averages), so that the two ways of computing may differ in their last bits only; no branch depends
 * on a float, so that both take the same one.
 */
#include "fuzz/programs/inside.h"

enum { WIDTH = FUZZ_WIDTH };

static uint64_t draw(fuzz_text *self, uint64_t n)
{
    return fuzz_draw(&self->state, n);
}

#define ADD FUZZ_ADD

/* ---- expressions ---- */

/* Two extents that only the run can compare, as one of them comes out of `grow`: of an operator, a call, or a
 * declared result. They are equal, unless the names differ, where they may not be: then both ways of running
 * stop. */
static void add_meeting_rows(fuzz_text *self, int name)
{
    int other = draw(self, 3) ? name : (int)draw(self, (uint64_t)self->n_rows);

    switch (draw(self, 6)) {
    case 0: ADD(self, "tanh(m%d - grow(Nil, m%d))", name, other); break;
    case 1: ADD(self, "lap(m%d, grow(Nil, m%d))", name, other); break;
    case 2: ADD(self, "kept(m%d, m%d)", name, other); break;
    case 3: /* rows of another name may be known to be odd together: then the text would be refused */
        ADD(self,
            other == name ? "halved(concat(m%d, m%d, axis = 0))"
                          : "halved(concat(m%d, grow(Nil, m%d), axis = 0))",
            name, other);
        break;
    case 4: ADD(self, "without(concat(m%d, reshape(v0, shape = [1, %d]), axis = 0))", name, WIDTH); break;
    default: ADD(self, "where(m%d > 0.125, m%d, grow(Nil, m%d))", name, name, other); break;
    }
}

/* An expression of type f32[?, WIDTH] that is not deeper than `depth`. */
void fuzz_add_rows(fuzz_text *self, int depth)
{
    int name = (int)draw(self, (uint64_t)self->n_rows);

    switch (depth > 0 ? draw(self, 8) : 0) {
    case 1:
        ADD(self, "concat(m%d, ", name);
        fuzz_add_rows(self, depth - 1);
        ADD(self, ", axis = 0)");
        break;
    case 2:
        ADD(self, "tanh(m%d * ", name);
        fuzz_add_vector(self, depth - 1);
        ADD(self, ")");
        break;
    case 3:
        ADD(self, "concat(m%d, reshape(", name);
        fuzz_add_vector(self, depth - 1);
        ADD(self, ", shape = [1, %d]), axis = 0)", WIDTH);
        break;
    case 4: ADD(self, "relu(m%d)", name); break;
    case 5: fuzz_add_by_generics(self, &fuzz_rows_type, depth - 1); break;
    case 6: add_meeting_rows(self, name); break;
    default: ADD(self, "m%d", name);
    }
}

/* Only the parameter c and counts of leaves: no float decides. */
void fuzz_add_condition(fuzz_text *self)
{
    if (draw(self, 2))
        ADD(self, "c");
    else
        ADD(self, "(count(t%d) > %d)", (int)draw(self, (uint64_t)self->n_trees), (int)draw(self, 5));
}

/* An expression of type f32[WIDTH] that is not deeper than `depth`. */
void fuzz_add_vector(fuzz_text *self, int depth)
{
    static const char *const binary[] = {"+", "-", "*"};
    static const char *const unary[] = {"tanh", "relu", "sigmoid", "neg"};

    switch (depth > 0 ? draw(self, 8) : 0) {
    case 1:
        ADD(self, "(");
        fuzz_add_vector(self, depth - 1);
        ADD(self, " %s ", binary[draw(self, 3)]);
        fuzz_add_vector(self, depth - 1);
        ADD(self, ")");
        break;
    case 2:
        ADD(self, "%s(", unary[draw(self, 4)]);
        fuzz_add_vector(self, depth - 1);
        ADD(self, ")");
        break;
    case 3:
        ADD(self, "(if ");
        fuzz_add_condition(self);
        ADD(self, " { ");
        fuzz_add_vector(self, depth - 1);
        ADD(self, " } else { ");
        fuzz_add_vector(self, depth - 1);
        ADD(self, " })");
        break;
    case 4:
        ADD(self, "tanh(reduce_sum(");
        fuzz_add_rows(self, depth - 1);
        ADD(self, ", axes = [0], keepdims = 0))");
        break;
    case 5: ADD(self, "(v%d * 0.5)", (int)draw(self, (uint64_t)self->n_vectors)); break;
    case 6:
        ADD(self, "walk(t%d, ", (int)draw(self, (uint64_t)self->n_trees));
        fuzz_add_vector(self, depth - 1);
        ADD(self, ")");
        break;
    case 7: fuzz_add_by_generics(self, &fuzz_vector_type, depth - 1); break;
    default: ADD(self, "v%d", (int)draw(self, (uint64_t)self->n_vectors));
    }
}

/* ---- functions ---- */

/* One statement of main: a name more. Later statements may use the new name. */
static void statement(fuzz_text *self)
{
    int tree = (int)draw(self, (uint64_t)self->n_trees);

    switch (draw(self, 8)) {
    case 0:
        ADD(self, "  let v%d = ", self->n_vectors);
        fuzz_add_vector(self, 3);
        self->n_vectors++;
        break;
    case 1:
        ADD(self, "  let (v%d, v%d) = (", self->n_vectors, self->n_vectors + 1);
        fuzz_add_vector(self, 2);
        ADD(self, ", ");
        fuzz_add_vector(self, 2);
        ADD(self, ")");
        self->n_vectors += 2;
        break;
    case 2:
        ADD(self, "  let m%d = grow(l, ", self->n_rows);
        fuzz_add_rows(self, 2);
        ADD(self, ")");
        self->n_rows++;
        break;
    case 3:
        ADD(self, "  let m%d = ", self->n_rows);
        fuzz_add_rows(self, 3);
        self->n_rows++;
        break;
    case 4:
        ADD(self, "  let t%d = Node(t%d, ", self->n_trees, tree);
        fuzz_add_vector(self, 2);
        ADD(self, ", t%d)", (int)draw(self, (uint64_t)self->n_trees));
        self->n_trees++;
        break;
    case 5:
        ADD(self, "  let t%d = map(t%d, ", self->n_trees, tree);
        fuzz_add_vector(self, 1);
        ADD(self, ")");
        self->n_trees++;
        break;
    case 6:
        ADD(self, "  let t%d = ", self->n_trees);
        fuzz_add_by_generics(self, &fuzz_tree_type, 2);
        self->n_trees++;
        break;
    default:
        ADD(self, "  let v%d = match t%d { Leaf(x) => tanh(x + ", self->n_vectors, tree);
        fuzz_add_vector(self, 1);
        ADD(self, ") Node(a, x, b) => x * walk(%s, ", draw(self, 2) ? "a" : "b");
        fuzz_add_vector(self, 1);
        ADD(self, ") }");
        self->n_vectors++;
        break;
    }
    ADD(self, "\n");
}

/* The body of a helper sees x (a field) and v0 (a parameter) as v1 and v0. */
static void helper(fuzz_text *self, int depth)
{
    fuzz_text inner = *self;

    inner.n_vectors = 2;
    inner.n_rows = inner.n_trees = 1;
    ADD(&inner, "tanh(");
    /* vectors of arithmetic alone: a helper has no list, no tree and no condition */
    for (int i = 0; i < depth; i++)
        ADD(&inner, "v%d %s ", (int)draw(&inner, 2), draw(&inner, 2) ? "*" : "+");
    ADD(&inner, "v%d)", (int)draw(&inner, 2));
    self->text = inner.text;
    self->state = inner.state;
}

/* Data types and helpers stand in every program; helpers and main differ in what they compute. `grow` is a
 * tail call, the others are not: both kinds of calls occur. */
static void put_helpers(fuzz_text *self)
{
    ADD(self, "type List = Nil | Cons(f32[?, %d], List)\n", WIDTH);
    ADD(self, "type Tree = Leaf(f32[%d]) | Node(Tree, f32[%d], Tree)\n", WIDTH, WIDTH);
    ADD(self, "def count(t: Tree) -> i64 {\n"
              "  match t { Leaf(x) => 1 Node(a, x, b) => count(a) + count(b) }\n}\n");
    ADD(self, "def walk(t: Tree, v0: f32[%d]) -> f32[%d] {\n  match t {\n    Leaf(v1) => ", WIDTH, WIDTH);
    helper(self, (int)draw(self, 4));
    ADD(self, "\n    Node(a, v1, b) => walk(%s, walk(%s, ", draw(self, 2) ? "a" : "b",
        draw(self, 2) ? "a" : "b");
    helper(self, (int)draw(self, 4));
    ADD(self, "))\n  }\n}\n");
    ADD(self, "def map(t: Tree, v0: f32[%d]) -> Tree {\n  match t {\n    Leaf(v1) => Leaf(", WIDTH);
    helper(self, (int)draw(self, 3));
    ADD(self, ")\n    Node(a, v1, b) => Node(map(a, v0), ");
    helper(self, (int)draw(self, 3));
    ADD(self, ", map(b, v0))\n  }\n}\n");
    ADD(self, "def grow(l: List, acc: f32[n, %d]) -> f32[?, %d] {\n  match l {\n    Nil => acc\n", WIDTH,
        WIDTH);
    ADD(self, "    Cons(x, rest) => grow(rest, concat(%s, axis = 0))\n  }\n}\n",
        draw(self, 2) ? "acc, tanh(x)" : "relu(x), acc");
    ADD(self, "def lap(a: f32[n, %d], b: f32[n, %d]) -> f32[n, %d] { tanh(a + b * 0.5) }\n", WIDTH, WIDTH,
        WIDTH);
    ADD(self,
        "def halved(a: f32[n * 2, %d]) -> f32[n, %d] {\n  slice(a, begin = [%s, 0], extent = [n, %d], "
        "step = [1, 1])\n}\n",
        WIDTH, WIDTH, draw(self, 2) ? "0" : "n", WIDTH);
    ADD(self,
        "def without(a: f32[n + 1, %d]) -> f32[n, %d] {\n  tanh(slice(a, begin = [%d, 0], extent = [n, %d], "
        "step = [1, 1]))\n}\n",
        WIDTH, WIDTH, (int)draw(self, 2), WIDTH);
    ADD(self, "def kept(a: f32[n, %d], b: f32[?, %d]) -> f32[n, %d] { %s }\n", WIDTH, WIDTH, WIDTH,
        draw(self, 2) ? "grow(Nil, b)" : "relu(grow(Nil, b))");
    ADD(self, "def down(k: i64, v0: f32[%d]) -> f32[%d] {\n", WIDTH, WIDTH);
    ADD(self, "  if k > 0 { down(k - 1, tanh(v0 * 0.5 + 0.25)) } else { v0 }\n}\n");
    ADD(self, "def build(k: i64, m: f32[n, %d], l: List) -> List {\n", WIDTH);
    ADD(self, "  if k > 0 { build(k - 1, %s, Cons(m, l)) } else { l }\n}\n",
        draw(self, 2) ? "m * 0.5" : "tanh(m)");
    ADD(self, "def twist(v0: f32[%d], v1: f32[%d]) -> f32[%d] {\n  ", WIDTH, WIDTH, WIDTH);
    helper(self, (int)draw(self, 4));
    ADD(self, "\n}\n");
    fuzz_add_generics(self);
}

static void put_main(fuzz_text *self)
{
    ADD(self, "def main(t0: Tree, l: List, v0: f32[%d], m0: f32[n, %d], c: bool) -> ", WIDTH, WIDTH);
    ADD(self, "(f32[%d], f32[?, %d], Tree, i64) {\n", WIDTH, WIDTH);
    self->n_vectors = self->n_rows = self->n_trees = 1;
    for (int n = 1 + (int)draw(self, 6); n > 0; n--)
        statement(self);
    ADD(self, "  (");
    fuzz_add_vector(self, 2);
    ADD(self, ", ");
    fuzz_add_rows(self, 2);
    ADD(self, ", t%d, count(t%d))\n}\n", self->n_trees - 1, self->n_trees - 1);
}

const char *fuzz_program_text(tec_context *cx, uint64_t *state, bool with_main)
{
    fuzz_text m = {.cx = cx, .state = *state};

    put_helpers(&m);
    if (with_main)
        put_main(&m);
    else
        ADD(&m, "def main(c: bool) -> bool { c }\n");
    *state = m.state;
    return base_text_str(cx, &m.text);
}
