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
static uint64_t draw(maker *m, uint64_t n)
{
    m->state ^= m->state << 13;
    m->state ^= m->state >> 7;
    m->state ^= m->state << 17;
    return m->state % n;
}

#define ADD(m, ...) base_addf((m)->cx, &(m)->text, __VA_ARGS__)

/* ---- expressions ---- */

static void vector(maker *m, int depth);

/* An expression of type f32[?, WIDTH] that is not deeper than `depth`. */
static void rows(maker *m, int depth)
{
    int name = (int)draw(m, (uint64_t)m->n_rows);

    switch (depth > 0 ? draw(m, 5) : 0) {
    case 1:
        ADD(m, "concat(m%d, ", name);
        rows(m, depth - 1);
        ADD(m, ", axis = 0)");
        break;
    case 2:
        ADD(m, "tanh(m%d * ", name);
        vector(m, depth - 1);
        ADD(m, ")");
        break;
    case 3:
        ADD(m, "concat(m%d, reshape(", name);
        vector(m, depth - 1);
        ADD(m, ", shape = [1, %d]), axis = 0)", WIDTH);
        break;
    case 4: ADD(m, "relu(m%d)", name); break;
    default: ADD(m, "m%d", name);
    }
}

/* Only the parameter c and counts of leaves: no float decides. */
static void condition(maker *m)
{
    if (draw(m, 2))
        ADD(m, "c");
    else
        ADD(m, "(count(t%d) > %d)", (int)draw(m, (uint64_t)m->n_trees), (int)draw(m, 5));
}

/* An expression of type f32[WIDTH] that is not deeper than `depth`. */
static void vector(maker *m, int depth)
{
    static const char *const binary[] = {"+", "-", "*"};
    static const char *const unary[] = {"tanh", "relu", "sigmoid", "neg"};

    switch (depth > 0 ? draw(m, 7) : 0) {
    case 1:
        ADD(m, "(");
        vector(m, depth - 1);
        ADD(m, " %s ", binary[draw(m, 3)]);
        vector(m, depth - 1);
        ADD(m, ")");
        break;
    case 2:
        ADD(m, "%s(", unary[draw(m, 4)]);
        vector(m, depth - 1);
        ADD(m, ")");
        break;
    case 3:
        ADD(m, "(if ");
        condition(m);
        ADD(m, " { ");
        vector(m, depth - 1);
        ADD(m, " } else { ");
        vector(m, depth - 1);
        ADD(m, " })");
        break;
    case 4:
        ADD(m, "tanh(reduce_sum(");
        rows(m, depth - 1);
        ADD(m, ", axes = [0], keepdims = 0))");
        break;
    case 5: ADD(m, "(v%d * 0.5)", (int)draw(m, (uint64_t)m->n_vectors)); break;
    case 6:
        ADD(m, "walk(t%d, ", (int)draw(m, (uint64_t)m->n_trees));
        vector(m, depth - 1);
        ADD(m, ")");
        break;
    default: ADD(m, "v%d", (int)draw(m, (uint64_t)m->n_vectors));
    }
}

/* ---- functions ---- */

/* One statement of main: a name more. Later statements may use the new name. */
static void statement(maker *m)
{
    int tree = (int)draw(m, (uint64_t)m->n_trees);

    switch (draw(m, 7)) {
    case 0:
        ADD(m, "  let v%d = ", m->n_vectors);
        vector(m, 3);
        m->n_vectors++;
        break;
    case 1:
        ADD(m, "  let (v%d, v%d) = (", m->n_vectors, m->n_vectors + 1);
        vector(m, 2);
        ADD(m, ", ");
        vector(m, 2);
        ADD(m, ")");
        m->n_vectors += 2;
        break;
    case 2:
        ADD(m, "  let m%d = grow(l, ", m->n_rows);
        rows(m, 2);
        ADD(m, ")");
        m->n_rows++;
        break;
    case 3:
        ADD(m, "  let m%d = ", m->n_rows);
        rows(m, 3);
        m->n_rows++;
        break;
    case 4:
        ADD(m, "  let t%d = Node(t%d, ", m->n_trees, tree);
        vector(m, 2);
        ADD(m, ", t%d)", (int)draw(m, (uint64_t)m->n_trees));
        m->n_trees++;
        break;
    case 5:
        ADD(m, "  let t%d = map(t%d, ", m->n_trees, tree);
        vector(m, 1);
        ADD(m, ")");
        m->n_trees++;
        break;
    default:
        ADD(m, "  let v%d = match t%d { Leaf(x) => tanh(x + ", m->n_vectors, tree);
        vector(m, 1);
        ADD(m, ") Node(a, x, b) => x * walk(%s, ", draw(m, 2) ? "a" : "b");
        vector(m, 1);
        ADD(m, ") }");
        m->n_vectors++;
        break;
    }
    ADD(m, "\n");
}

/* The body of a helper sees x (a field) and v0 (a parameter) as v1 and v0. */
static void helper(maker *m, int depth)
{
    maker inner = *m;

    inner.n_vectors = 2;
    inner.n_rows = inner.n_trees = 1;
    ADD(&inner, "tanh(");
    /* vectors of arithmetic alone: a helper has no list, no tree and no condition */
    for (int i = 0; i < depth; i++)
        ADD(&inner, "v%d %s ", (int)draw(&inner, 2), draw(&inner, 2) ? "*" : "+");
    ADD(&inner, "v%d)", (int)draw(&inner, 2));
    m->text = inner.text;
    m->state = inner.state;
}

/* Data types and helpers stand in every program; helpers and main differ in what they compute. `grow` is a
 * tail call, the others are not: both kinds of calls occur. */
static const char *make_program(maker *m)
{
    ADD(m, "type List = Nil | Cons(f32[?, %d], List)\n", WIDTH);
    ADD(m, "type Tree = Leaf(f32[%d]) | Node(Tree, f32[%d], Tree)\n", WIDTH, WIDTH);
    ADD(m, "def count(t: Tree) -> i64 {\n"
           "  match t { Leaf(x) => 1 Node(a, x, b) => count(a) + count(b) }\n}\n");
    ADD(m, "def walk(t: Tree, v0: f32[%d]) -> f32[%d] {\n  match t {\n    Leaf(v1) => ", WIDTH, WIDTH);
    helper(m, (int)draw(m, 4));
    ADD(m, "\n    Node(a, v1, b) => walk(%s, walk(%s, ", draw(m, 2) ? "a" : "b", draw(m, 2) ? "a" : "b");
    helper(m, (int)draw(m, 4));
    ADD(m, "))\n  }\n}\n");
    ADD(m, "def map(t: Tree, v0: f32[%d]) -> Tree {\n  match t {\n    Leaf(v1) => Leaf(", WIDTH);
    helper(m, (int)draw(m, 3));
    ADD(m, ")\n    Node(a, v1, b) => Node(map(a, v0), ");
    helper(m, (int)draw(m, 3));
    ADD(m, ", map(b, v0))\n  }\n}\n");
    ADD(m, "def grow(l: List, acc: f32[n, %d]) -> f32[?, %d] {\n  match l {\n    Nil => acc\n", WIDTH, WIDTH);
    ADD(m, "    Cons(x, rest) => grow(rest, concat(%s, axis = 0))\n  }\n}\n",
        draw(m, 2) ? "acc, tanh(x)" : "relu(x), acc");
    ADD(m, "def main(t0: Tree, l: List, v0: f32[%d], m0: f32[n, %d], c: bool) -> ", WIDTH, WIDTH);
    ADD(m, "(f32[%d], f32[?, %d], Tree, i64) {\n", WIDTH, WIDTH);
    m->n_vectors = m->n_rows = m->n_trees = 1;
    for (int n = 1 + (int)draw(m, 6); n > 0; n--)
        statement(m);
    ADD(m, "  (");
    vector(m, 2);
    ADD(m, ", ");
    rows(m, 2);
    ADD(m, ", t%d, count(t%d))\n}\n", m->n_trees - 1, m->n_trees - 1);
    return base_text_str(m->cx, &m->text);
}

/* ---- inputs ---- */

/* Sixteenths between -1 and 1, which floats hold exactly. */
static interp_value *tensor(maker *m, int n, const int64_t *shape)
{
    interp_value *v = interp_tensor(m->cx, BASE_F32, n, shape, NULL);

    for (int64_t i = 0; i < interp_count(&v->array); i++)
        ((float *)v->array.data)[i] = (float)draw(m, 33) / 16.0F - 1;
    return v;
}

/* Depth 3 at most. */
static interp_value *tree(maker *m, const graph_data *d, int depth)
{
    const int64_t shape[] = {WIDTH};
    interp_value *part[3];

    if (depth == 0 || draw(m, 3) == 0) {
        part[0] = tensor(m, 1, shape);
        return interp_data(m->cx, d, 0, part, 1);
    }
    part[0] = tree(m, d, depth - 1);
    part[1] = tensor(m, 1, shape);
    part[2] = tree(m, d, depth - 1);
    return interp_data(m->cx, d, 1, part, 3);
}

/* May be empty, and so may its tensors. */
static interp_value *list(maker *m, const graph_data *d)
{
    interp_value *l = interp_data(m->cx, d, 0, NULL, 0);

    for (int n = (int)draw(m, 4); n > 0; n--) {
        const int64_t shape[] = {(int64_t)draw(m, 3), WIDTH};
        interp_value *cell[] = {tensor(m, 2, shape), l};

        l = interp_data(m->cx, d, 1, cell, 2);
    }
    return l;
}

static void make_inputs(maker *m, const graph_module *g, interp_value **in)
{
    const int64_t shape[] = {(int64_t)draw(m, 4), WIDTH};

    in[0] = tree(m, graph_find_data(g, "Tree"), 3);
    in[1] = list(m, graph_find_data(g, "List"));
    in[2] = tensor(m, 1, shape + 1);
    in[3] = tensor(m, 2, shape);
    in[4] = interp_tensor(m->cx, BASE_BOOL, 0, NULL, &(uint8_t){(uint8_t)draw(m, 2)});
}

/* The same value for the VM. NULL with an error. */
static tec_object *object_of(tec_program *p, const interp_value *v, tec_error *err)
{
    tec_object *part[8] = {NULL}, *o = NULL;
    bool good = v->n <= BASE_COUNT(part);

    if (v->kind == INTERP_TENSOR) {
        DLTensor t = {.data = v->array.data,
                      .device = {kDLCPU, 0},
                      .ndim = v->array.n,
                      .dtype = v->array.dtype,
                      .shape = (int64_t *)(uintptr_t)v->array.shape};
        return tec_object_tensor(p, &t, err);
    }
    for (int i = 0; i < v->n && good; i++)
        good = (part[i] = object_of(p, v->part[i], err)) != NULL;
    if (good)
        o = v->kind == INTERP_TUPLE
                ? tec_object_tuple(p, part, v->n, err)
                : tec_object_data(p, ((const graph_case *)v->data->cases.at[v->which])->name, part, v->n,
                                  err);
    for (int i = 0; i < v->n && i < BASE_COUNT(part); i++)
        tec_object_free(part[i]);
    return o;
}

/* ---- comparing ---- */

/* Relative for large values, absolute for small ones. */
static bool close_enough(double a, double b)
{
    return fabs(a - b) <= 1e-3 * (1 + fabs(a)) || (isnan(a) && isnan(b)) || (isinf(a) && isinf(b));
}

/* Shapes and integers are equal, floats are close. */
static bool same_tensor(const ir_array *a, const DLTensor *t)
{
    int64_t n = interp_count(a);

    if (!t || t->ndim != a->n || !base_dtype_same(t->dtype, a->dtype))
        return false;
    for (int d = 0; d < a->n; d++)
        if (t->shape[d] != a->shape[d])
            return false;
    for (int64_t i = 0; i < n; i++)
        if (base_dtype_same(a->dtype, BASE_F32)
                ? !close_enough((double)((const float *)a->data)[i], (double)((const float *)t->data)[i])
                : ((const int64_t *)a->data)[i] != ((const int64_t *)t->data)[i])
            return false;
    return true;
}

/* As deep as the value; trees are shallow. */
static bool same(const tec_program *p, const interp_value *v, const tec_object *o)
{
    if (v->kind == INTERP_TENSOR)
        return same_tensor(&v->array, tec_object_dltensor(o));
    if (tec_object_n_parts(o) != v->n ||
        (v->kind == INTERP_DATA &&
         strcmp(((const graph_case *)v->data->cases.at[v->which])->name, tec_object_constructor(p, o)) != 0))
        return false;
    for (int i = 0; i < v->n; i++)
        if (!same(p, v->part[i], tec_object_part(o, i)))
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
static void count_instructions(trial *t, const rt_program_desc *p)
{
    for (int i = 0; i < p->n_functions; i++)
        for (int32_t at = 0; at < p->functions[i].n_words;
             at += rt_instruction_words(p->functions[i].words, at, p->functions[i].n_words))
            t->instructions[p->functions[i].words[at]]++;
}

/* Runs the module on the inputs and compares. */
static bool run_vm(trial *t, tec_module *module, interp_value *const *in, const interp_value *expected)
{
    const tec_program_options o = {.run = {.threads = 1}};
    tec_error err = {0};
    tec_program *p = tec_program_new(module, NULL, &o, &err);
    tec_object *given[5] = {NULL}, *out = NULL;
    bool ok = p != NULL;

    for (int i = 0; i < 5 && ok; i++)
        ok = (given[i] = object_of(p, in[i], &err)) != NULL;
    ok = ok && tec_program_run(p, given, 5, &out, 1, &err);
    if (!ok)
        t->why = base_strdup(t->cx, err.text);
    else if (!same(p, expected, out))
        t->why = "the results differ";
    tec_object_free(out);
    for (int i = 0; i < 5; i++)
        tec_object_free(given[i]);
    tec_program_free(p);
    return t->why == NULL;
}

/* Parses twice: building may change a module, and the oracle takes it as it was read. */
static bool try_case(trial *t, uint64_t seed)
{
    maker m = {.cx = t->cx, .state = seed * 0x9e3779b97f4a7c15u + 0x1234567};
    interp_value *in[5], *expected;

    t->text = make_program(&m);
    graph_module *read = lang_parse(t->cx, "case.tecp", t->text),
                 *built = read ? lang_parse(t->cx, "case.tecp", t->text) : NULL;
    if (!built)
        return false;
    make_inputs(&m, read, in);
    if (!interp_run(t->cx, read, NULL, in, 5, NULL, &expected, 1))
        return false;
    graph_built *b = graph_build(built, &(graph_build_options){.target = t->target, .jobs = 1});
    if (!b)
        return false;
    count_instructions(t, &b->desc.program);
    tec_module *module = graph_load(b);
    bool good = module && run_vm(t, module, in, expected);
    tec_module_free(module);
    return good;
}

static void print_counts(const trial *t, const tool_fuzz_programs *o, int64_t findings)
{
    printf("%lld programs, %lld findings; instructions:", (long long)o->cases, (long long)findings);
    for (int i = 0; i < RT_N_INSTRUCTIONS; i++)
        if (t->instructions[i])
            printf(" %s %lld", rt_instruction_name(i), (long long)t->instructions[i]);
    printf("\n");
}

/* Each case in a context of its own, so that memory does not grow with their number. */
int tool_fuzz_programs_run(tec_context *cx, const tool_fuzz_programs *o)
{
    int64_t findings = 0;
    trial t = {.target = o->target};

    for (int64_t i = o->first; i < o->first + o->cases; i++) {
        t.cx = base_child(cx);
        t.why = NULL;
        if (!try_case(&t, o->seed * 1000003 + (uint64_t)i)) {
            findings++;
            printf("case %lld of seed %llu: %s\n%s\n", (long long)i, (unsigned long long)o->seed,
                   t.why ? t.why : tec_context_error(t.cx), t.text);
        }
        tec_context_free(t.cx);
    }
    print_counts(&t, o, findings);
    return findings ? TOOL_FAILED : TOOL_OK;
}
