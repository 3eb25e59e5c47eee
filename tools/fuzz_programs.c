/* tools/fuzz_programs.c -- see fuzz_programs.h.
 *
 * Programs have lists and trees, recursion that folds, walks, maps and counts, tensors that grow, tuples,
 * `if` and `match`. Values stay small (each function ends in tanh or averages), so that the two ways of
 * computing may
 * differ in their last bits only; no branch depends on a float, so that both take the same one.
 */
#include "tools/fuzz_programs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/build.h"
#include "graph/interp/interp.h"
#include "lang/lang.h"
#include "runtime/bytecode.h"
#include "tec/program.h"
#include "tools/args.h"

enum { WIDTH = 4, MAX_NAMES = 40 };

/* Everything is drawn from `state`, so a program is a function of its seed. Names are numbered: v3 is the
 * fourth vector. */
typedef struct {
    tec_context *cx;
    uint64_t state;
    base_text text;
    int n_vectors, n_rows, n_trees; /* names so far: v0.., m0.., t0.. */
} maker;

/* Xorshift; the state must not be 0. */
static uint64_t draw(maker *self, uint64_t n)
{
    self->state ^= self->state << 13;
    self->state ^= self->state >> 7;
    self->state ^= self->state << 17;
    return self->state % n;
}

#define ADD(m, ...) base_addf((m)->cx, &(m)->text, __VA_ARGS__)

/* ---- expressions ---- */

static void vector(maker *self, int depth);

/* An expression of type f32[?, WIDTH] that is not deeper than `depth`. */
static void rows(maker *self, int depth)
{
    int name = (int)draw(self, (uint64_t)self->n_rows);

    switch (depth > 0 ? draw(self, 5) : 0) {
    case 1:
        ADD(self, "concat(m%d, ", name);
        rows(self, depth - 1);
        ADD(self, ", axis = 0)");
        break;
    case 2:
        ADD(self, "tanh(m%d * ", name);
        vector(self, depth - 1);
        ADD(self, ")");
        break;
    case 3:
        ADD(self, "concat(m%d, reshape(", name);
        vector(self, depth - 1);
        ADD(self, ", shape = [1, %d]), axis = 0)", WIDTH);
        break;
    case 4: ADD(self, "relu(m%d)", name); break;
    default: ADD(self, "m%d", name);
    }
}

/* Only the parameter c and counts of leaves: no float decides. */
static void condition(maker *self)
{
    if (draw(self, 2))
        ADD(self, "c");
    else
        ADD(self, "(count(t%d) > %d)", (int)draw(self, (uint64_t)self->n_trees), (int)draw(self, 5));
}

/* An expression of type f32[WIDTH] that is not deeper than `depth`. */
static void vector(maker *self, int depth)
{
    static const char *const binary[] = {"+", "-", "*"};
    static const char *const unary[] = {"tanh", "relu", "sigmoid", "neg"};

    switch (depth > 0 ? draw(self, 7) : 0) {
    case 1:
        ADD(self, "(");
        vector(self, depth - 1);
        ADD(self, " %s ", binary[draw(self, 3)]);
        vector(self, depth - 1);
        ADD(self, ")");
        break;
    case 2:
        ADD(self, "%s(", unary[draw(self, 4)]);
        vector(self, depth - 1);
        ADD(self, ")");
        break;
    case 3:
        ADD(self, "(if ");
        condition(self);
        ADD(self, " { ");
        vector(self, depth - 1);
        ADD(self, " } else { ");
        vector(self, depth - 1);
        ADD(self, " })");
        break;
    case 4:
        ADD(self, "tanh(reduce_sum(");
        rows(self, depth - 1);
        ADD(self, ", axes = [0], keepdims = 0))");
        break;
    case 5: ADD(self, "(v%d * 0.5)", (int)draw(self, (uint64_t)self->n_vectors)); break;
    case 6:
        ADD(self, "walk(t%d, ", (int)draw(self, (uint64_t)self->n_trees));
        vector(self, depth - 1);
        ADD(self, ")");
        break;
    default: ADD(self, "v%d", (int)draw(self, (uint64_t)self->n_vectors));
    }
}

/* ---- functions ---- */

/* A new vector, or two of them. */
static void let_vectors(maker *self, bool two)
{
    if (!two) {
        ADD(self, "  let v%d = ", self->n_vectors);
        vector(self, 3);
        self->n_vectors++; /* behind: its own expression must not name it */
        return;
    }
    ADD(self, "  let (v%d, v%d) = (", self->n_vectors, self->n_vectors + 1);
    vector(self, 2);
    ADD(self, ", ");
    vector(self, 2);
    ADD(self, ")");
    self->n_vectors += 2;
}

/* New rows: an expression, or what a recursive function collects. */
static void let_rows(maker *self, bool grown)
{
    ADD(self, grown ? "  let m%d = grow(l, " : "  let m%d = ", self->n_rows);
    rows(self, grown ? 2 : 3);
    ADD(self, "%s", grown ? ")" : "");
    self->n_rows++;
}

/* A new tree: a node above two trees, or what a function makes of one. */
static void let_tree(maker *self, bool mapped)
{
    int tree = (int)draw(self, (uint64_t)self->n_trees);

    ADD(self, mapped ? "  let t%d = map(t%d, " : "  let t%d = Node(t%d, ", self->n_trees, tree);
    vector(self, mapped ? 1 : 2);
    if (mapped)
        ADD(self, ")");
    else
        ADD(self, ", t%d)", (int)draw(self, (uint64_t)self->n_trees));
    self->n_trees++;
}

/* A vector by the case of a tree. */
static void let_match(maker *self)
{
    ADD(self, "  let v%d = match t%d { Leaf(x) => tanh(x + ", self->n_vectors,
        (int)draw(self, (uint64_t)self->n_trees));
    vector(self, 1);
    ADD(self, ") Node(a, x, b) => x * walk(%s, ", draw(self, 2) ? "a" : "b");
    vector(self, 1);
    ADD(self, ") }");
    self->n_vectors++;
}

/* One statement of main: a name more. Later statements may use the new name. */
static void statement(maker *self)
{
    switch (draw(self, 7)) {
    case 0: let_vectors(self, false); break;
    case 1: let_vectors(self, true); break;
    case 2: let_rows(self, true); break;
    case 3: let_rows(self, false); break;
    case 4: let_tree(self, false); break;
    case 5: let_tree(self, true); break;
    default: let_match(self); break;
    }
    ADD(self, "\n");
}

/* The body of a helper sees x (a field) and v0 (a parameter) as v1 and v0. */
static void helper(maker *self, int depth)
{
    maker inner = *self;

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
static const char *make_program(maker *self)
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
    ADD(self, "def main(t0: Tree, l: List, v0: f32[%d], m0: f32[n, %d], c: bool) -> ", WIDTH, WIDTH);
    ADD(self, "(f32[%d], f32[?, %d], Tree, i64) {\n", WIDTH, WIDTH);
    self->n_vectors = self->n_rows = self->n_trees = 1;
    for (int n = 1 + (int)draw(self, 6); n > 0; n--)
        statement(self);
    ADD(self, "  (");
    vector(self, 2);
    ADD(self, ", ");
    rows(self, 2);
    ADD(self, ", t%d, count(t%d))\n}\n", self->n_trees - 1, self->n_trees - 1);
    return base_text_str(self->cx, &self->text);
}

/* ---- inputs ---- */

/* Sixteenths between -1 and 1, which floats hold exactly. */
static interp_value *tensor(maker *self, int n, const int64_t *shape)
{
    interp_value *v = interp_tensor(self->cx, BASE_F32, n, shape, NULL);

    for (int64_t i = 0; i < interp_count(&v->array); i++)
        ((float *)v->array.data)[i] = (float)draw(self, 33) / 16.0F - 1;
    return v;
}

/* Depth 3 at most. */
static interp_value *tree(maker *self, const graph_data *data, int depth)
{
    const int64_t shape[] = {WIDTH};
    interp_value *part[3];

    if (depth == 0 || draw(self, 3) == 0) {
        part[0] = tensor(self, 1, shape);
        return interp_data(self->cx, data, 0, part, 1);
    }
    part[0] = tree(self, data, depth - 1);
    part[1] = tensor(self, 1, shape);
    part[2] = tree(self, data, depth - 1);
    return interp_data(self->cx, data, 1, part, 3);
}

/* May be empty, and so may its tensors. */
static interp_value *list(maker *self, const graph_data *data)
{
    interp_value *l = interp_data(self->cx, data, 0, NULL, 0);

    for (int n = (int)draw(self, 4); n > 0; n--) {
        const int64_t shape[] = {(int64_t)draw(self, 3), WIDTH};
        interp_value *cell[] = {tensor(self, 2, shape), l};

        l = interp_data(self->cx, data, 1, cell, 2);
    }
    return l;
}

static void make_inputs(maker *self, const graph_module *module, interp_value **in)
{
    const int64_t shape[] = {(int64_t)draw(self, 4), WIDTH};

    in[0] = tree(self, graph_find_data(module, "Tree"), 3);
    in[1] = list(self, graph_find_data(module, "List"));
    in[2] = tensor(self, 1, shape + 1);
    in[3] = tensor(self, 2, shape);
    in[4] = interp_tensor(self->cx, BASE_BOOL, 0, NULL, &(uint8_t){(uint8_t)draw(self, 2)});
}

/* The same value for the VM. NULL with an error. */
static tec_object *object_of(tec_program *program, const interp_value *value, tec_error *err)
{
    tec_object *part[8] = {NULL}, *object = NULL;
    bool good = value->n <= BASE_COUNT(part);

    if (value->kind == INTERP_TENSOR) {
        DLTensor t = {.data = value->array.data,
                      .device = {kDLCPU, 0},
                      .ndim = value->array.n,
                      .dtype = value->array.dtype,
                      .shape = (int64_t *)(uintptr_t)value->array.shape};
        return tec_object_tensor(program, &t, err);
    }
    for (int i = 0; i < value->n && good; i++)
        good = (part[i] = object_of(program, value->part[i], err)) != NULL;
    if (good)
        object =
            value->kind == INTERP_TUPLE
                ? tec_object_tuple(program, part, value->n, err)
                : tec_object_data(program, ((const graph_case *)value->data->cases.at[value->which])->name,
                                  part, value->n, err);
    for (int i = 0; i < value->n && i < BASE_COUNT(part); i++)
        tec_object_free(part[i]);
    return object;
}

/* ---- comparing ---- */

/* Relative for large values, absolute for small ones. */
static bool close_enough(double a, double b)
{
    return fabs(a - b) <= 1e-3 * (1 + fabs(a)) || (isnan(a) && isnan(b)) || (isinf(a) && isinf(b));
}

/* Shapes and integers are equal, floats are close. */
static bool same_tensor(const ir_array *array, const DLTensor *tensor)
{
    int64_t n = interp_count(array);

    if (!tensor || tensor->ndim != array->n || !base_dtype_same(tensor->dtype, array->dtype))
        return false;
    for (int d = 0; d < array->n; d++)
        if (tensor->shape[d] != array->shape[d])
            return false;
    for (int64_t i = 0; i < n; i++)
        if (base_dtype_same(array->dtype, BASE_F32)
                ? !close_enough((double)((const float *)array->data)[i],
                                (double)((const float *)tensor->data)[i])
                : ((const int64_t *)array->data)[i] != ((const int64_t *)tensor->data)[i])
            return false;
    return true;
}

/* As deep as the value; trees are shallow. */
static bool same(const tec_program *program, const interp_value *value, const tec_object *object)
{
    if (value->kind == INTERP_TENSOR)
        return same_tensor(&value->array, tec_object_dltensor(object));
    if (tec_object_n_parts(object) != value->n ||
        (value->kind == INTERP_DATA && strcmp(((const graph_case *)value->data->cases.at[value->which])->name,
                                              tec_object_constructor(program, object)) != 0))
        return false;
    for (int i = 0; i < value->n; i++)
        if (!same(program, value->part[i], tec_object_part(object, i)))
            return false;
    return true;
}

/* ---- cases ---- */

/* `why` NULL: no finding so far. */
typedef struct {
    tec_context *cx;
    const target *target;
    const char *text;
    const char *why; /* of a finding */
    int64_t instructions[RT_N_INSTRUCTIONS];
} trial;

/* Which instructions the programs have at all: one with 0 is not tested. */
static void count_instructions(trial *self, const rt_program_desc *program)
{
    for (int i = 0; i < program->n_functions; i++)
        for (int32_t at = 0; at < program->functions[i].n_words;
             at += rt_instruction_words(program->functions[i].words, at, program->functions[i].n_words))
            self->instructions[program->functions[i].words[at]]++;
}

/* Runs the module on the inputs and compares. */
static bool run_vm(trial *self, tec_module *module, interp_value *const *in, const interp_value *expected)
{
    const tec_program_options o = {.run = {.threads = 1}};
    tec_error err = {0};
    tec_program *program = tec_program_new(module, NULL, &o, &err);
    tec_object *given[5] = {NULL}, *out = NULL;
    bool ok = program != NULL;

    for (int i = 0; i < 5 && ok; i++)
        ok = (given[i] = object_of(program, in[i], &err)) != NULL;
    ok = ok && tec_program_run(program, given, 5, &out, 1, &err);
    if (!ok)
        self->why = base_strdup(self->cx, err.text);
    else if (!same(program, expected, out))
        self->why = "the results differ";
    tec_object_free(out);
    for (int i = 0; i < 5; i++)
        tec_object_free(given[i]);
    tec_program_free(program);
    return self->why == NULL;
}

/* Parses twice: building may change a module, and the oracle takes it as it was read. */
static bool try_case(trial *self, uint64_t seed)
{
    maker m = {.cx = self->cx, .state = seed * 0x9e3779b97f4a7c15u + 0x1234567};
    interp_value *in[5], *expected;

    self->text = make_program(&m);
    graph_module *read = lang_parse(self->cx, "case.tecp", self->text, NULL),
                 *built = read ? lang_parse(self->cx, "case.tecp", self->text, NULL) : NULL;
    if (!built)
        return false;
    make_inputs(&m, read, in);
    if (!interp_run(self->cx, read, NULL, in, 5, NULL, &expected, 1))
        return false;
    graph_built *b = graph_build(built, &(graph_build_options){.target = self->target, .jobs = 1});
    if (!b)
        return false;
    count_instructions(self, &b->desc.program);
    tec_module *module = graph_load(b);
    bool good = module && run_vm(self, module, in, expected);
    tec_module_free(module);
    return good;
}

static void print_counts(const trial *self, const tool_fuzz_programs *programs, int64_t findings)
{
    printf("%lld programs, %lld findings; instructions:", (long long)programs->cases, (long long)findings);
    for (int i = 0; i < RT_N_INSTRUCTIONS; i++)
        if (self->instructions[i])
            printf(" %s %lld", rt_instruction_name(i), (long long)self->instructions[i]);
    printf("\n");
}

/* Each case in a context of its own, so that memory does not grow with their number. */
int tool_fuzz_programs_run(tec_context *cx, const tool_fuzz_programs *programs)
{
    int64_t findings = 0;
    trial t = {.target = programs->target};

    for (int64_t i = programs->first; i < programs->first + programs->cases; i++) {
        t.cx = base_child(cx);
        t.why = NULL;
        if (!try_case(&t, programs->seed * 1000003 + (uint64_t)i)) {
            findings++;
            printf("case %lld of seed %llu: %s\n%s\n", (long long)i, (unsigned long long)programs->seed,
                   t.why ? t.why : tec_context_error(t.cx), t.text);
        }
        tec_context_free(t.cx);
    }
    print_counts(&t, programs, findings);
    return findings ? TOOL_FAILED : TOOL_OK;
}
