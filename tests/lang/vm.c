/* tests/lang/vm.c -- programs by the VM give what the interpreter of graphs gives, and stop where they must.
 */
#include "tests/lang/kit.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "graph/plan_program.h"
#include "tec/graph.h"

TestSuite(vm, .init = open_context, .fini = close_context);

/* Runs both and compares the one result. */
static void agree(const char *text, interp_value *const *in, int n)
{
    agree_on(compile(text, NULL), in, n, 1);
}

static interp_value *vector(int n, const float *data)
{
    return interp_tensor(cx, BASE_F32, 1, (const int64_t[]){n}, data);
}

/* Values of types of the program do not depend on which module read them. */
static interp_value *data(const graph_module *m, const char *type, const char *name,
                          interp_value *const *part, int n)
{
    const graph_data *d = graph_find_data(m, type);
    int which;

    cr_assert(graph_find_case(d, name, &which));
    return interp_data(cx, d, which, part, n);
}

#define FOLD                                                                                                 \
    "type List = Nil | Cons(f32[?, 2], List)\n"                                                              \
    "def fold(l: List, acc: f32[n, 2]) -> f32[?, 2] {\n"                                                     \
    "  match l {\n"                                                                                          \
    "    Nil => acc\n"                                                                                       \
    "    Cons(x, rest) => fold(rest, concat(acc, relu(x * 2), axis = 0))\n"                                  \
    "  }\n"                                                                                                  \
    "}\n"                                                                                                    \
    "def main(l: List, x: f32[n, 2], more: bool) -> f32[?, 2] {\n"                                           \
    "  let y = fold(l, x) * 2\n"                                                                             \
    "  if more { concat(y, x, axis = 0) } else { y }\n"                                                      \
    "}\n"

Test(vm, a_fold_over_a_list_grows_a_tensor)
{
    graph_module *m = lang_parse(cx, "p.tecp", FOLD, NULL);
    interp_value *rest = data(m, "List", "Nil", NULL, 0);

    for (int n = 0; n < 4; n++) {
        interp_value *cell[] = {
            interp_tensor(cx, BASE_F32, 2, (const int64_t[]){n, 2}, (const float[]){1, -2, 3, 4, -5, 6}),
            rest};
        rest = data(m, "List", "Cons", cell, 2);
    }
    interp_value *x =
        interp_tensor(cx, BASE_F32, 2, (const int64_t[]){2, 2}, (const float[]){.5F, 1.5F, -2, 7});
    for (int more = 0; more < 2; more++)
        agree(FOLD,
              (interp_value *[]){rest, x, interp_tensor(cx, BASE_BOOL, 0, NULL, &(uint8_t){(uint8_t)more})},
              3);
}

#define TREE                                                                                                 \
    "type Tree = Leaf(f32[4]) | Node(Tree, Tree)\n"                                                          \
    "def cell(g: f32[4], c: f32[4]) -> (f32[4], f32[4]) {\n"                                                 \
    "  let c1 = sigmoid(g) * tanh(g) + sigmoid(g) * c\n"                                                     \
    "  (sigmoid(g) * tanh(c1), c1)\n"                                                                        \
    "}\n"                                                                                                    \
    "def main(t: Tree) -> (f32[4], f32[4]) {\n"                                                              \
    "  match t {\n"                                                                                          \
    "    Leaf(x) => cell(x, x * 0)\n"                                                                        \
    "    Node(l, r) => {\n"                                                                                  \
    "      let (hl, cl) = main(l)\n"                                                                         \
    "      let (hr, cr) = main(r)\n"                                                                         \
    "      cell(hl + hr, cl + cr)\n"                                                                         \
    "    }\n"                                                                                                \
    "  }\n"                                                                                                  \
    "}\n"

Test(vm, recursion_over_a_tree_gives_a_tuple)
{
    graph_module *m = lang_parse(cx, "p.tecp", TREE, NULL);
    interp_value *x = vector(4, (const float[]){1, -2, .5F, 3}), *leaf = data(m, "Tree", "Leaf", &x, 1);
    interp_value *both = data(m, "Tree", "Node", (interp_value *[]){leaf, leaf}, 2);

    agree(TREE, (interp_value *[]){data(m, "Tree", "Node", (interp_value *[]){both, leaf}, 2)}, 1);
}

Test(vm, a_model_of_operators_alone_may_become_bytecode)
{
    const char *text =
        "graph \"g\" { function \"main\" { symbols n\ninput x: f32[n, 2]\n"
        "y: f32[n, 2] = op relu \"r\"(x)\nz: f32[n, 2] = op add \"a\"(y, x)\noutput \"z\" z } }";
    graph_module *again = graph_parse(cx, "p.graph", text, NULL);
    interp_value *x = interp_tensor(cx, BASE_F32, 2, (const int64_t[]){2, 2}, (const float[]){1, -2, 3, -4});

    cr_assert(again && !graph_is_program(again), "%s", tec_context_error(cx));
    again->for_vm = true;
    agree_on(build(graph_parse(cx, "p.graph", text, NULL), again, NULL), &x, 1, 1);
}

Test(vm, reshape_takes_a_list_of_extents)
{
    interp_value *x =
        interp_tensor(cx, BASE_F32, 2, (const int64_t[]){3, 2}, (const float[]){1, 2, 3, 4, 5, 6});

    agree("def main(x: f32[n, 2]) -> (f32[?], f32[n, 2]) { (reshape(x, shape = [n * 2]), x + 1) }", &x, 1);
    agree("def main(x: f32[3, 2]) -> (f32[2, 3], f32[]) { (reshape(x, shape = [2, 3]), 1.5) }", &x, 1);
}

Test(vm, the_text_of_a_plan_reads_back_and_holds)
{
    const graph_build_options o = {.target = target_parse(cx, "native"), .jobs = 1};
    graph_built *b = graph_build(lang_parse(cx, "p.tecp", FOLD, NULL), &o);

    cr_assert(b, "%s", tec_context_error(cx));
    const char *text = graph_text(cx, b->planned, 0);
    graph_module *again = graph_parse(cx, "plan", text, b->planned);
    cr_assert(again, "%s", tec_context_error(cx));
    cr_assert_str_eq(graph_text(cx, again, 0), text);
    const char *kill = strstr(text, "kill \"mul\"(v3)"); /* moved before the kernel that reads v3 */
    const char *invoke = strstr(text, "invoke \"mul\"");
    cr_assert(kill && invoke && invoke < kill);
    again = graph_parse(cx, "plan",
                        base_format(cx, "%.*skill \"mul\"(v3)\n%s", (int)(invoke - text), text, invoke),
                        b->planned);
    cr_assert_null(again, "reading a module verifies it");
    cr_assert(strstr(tec_context_error(cx), "a value is used after its kill"), "%s", tec_context_error(cx));
}

/* ---- deep and long ---- */

#define SUM                                                                                                  \
    "type List = Nil | Cons(f32[2], List)\n"                                                                 \
    "def sum(l: List, acc: f32[2]) -> f32[2] {\n"                                                            \
    "  match l { Nil => acc Cons(x, rest) => sum(rest, acc + x) }\n"                                         \
    "}\n"                                                                                                    \
    "def main(l: List, zero: f32[2]) -> f32[2] { sum(l, zero) }\n"

#define SUM_DEEP                                                                                             \
    "type List = Nil | Cons(f32[2], List)\n"                                                                 \
    "def main(l: List, zero: f32[2]) -> f32[2] {\n"                                                          \
    "  match l { Nil => zero Cons(x, rest) => main(rest, zero) + x }\n"                                      \
    "}\n"

static tec_object *pair(const compiled *c, float a, float b)
{
    float v[] = {a, b};
    DLTensor t = {.data = v, .device = {kDLCPU, 0}, .ndim = 1, .dtype = BASE_F32, .shape = (int64_t[]){2}};
    tec_object *o = tec_object_tensor(c->p, &t, &err);

    cr_assert(o, "%s", err.text);
    return o;
}

static tec_object *long_list(const compiled *c, int n)
{
    tec_object *l = tec_object_data(c->p, "Nil", NULL, 0, &err), *x = pair(c, 1, 2);

    for (int i = 0; i < n; i++) {
        tec_object *cell = tec_object_data(c->p, "Cons", (tec_object *[]){x, l}, 2, &err);

        cr_assert(cell, "%s", err.text);
        tec_object_free(l);
        l = cell;
    }
    tec_object_free(x);
    return l;
}

static void sums(const char *text, int n)
{
    compiled c = compile(text, NULL);
    tec_object *in[] = {long_list(&c, n), pair(&c, 0, 0)}, *out;

    cr_assert(tec_program_run(c.p, in, 2, &out, 1, &err), "%s", err.text);
    cr_assert_float_eq(((const float *)tec_object_dltensor(out)->data)[1], 2.0F * (float)n, 1);
    tec_object_free(out);
    tec_object_free(in[0]);
    tec_object_free(in[1]);
    discard(&c);
}

Test(vm, a_long_list_folds_by_tail_calls)
{
    sums(SUM, 1000000);
}

Test(vm, calls_nest_as_deep_as_a_list_is_long)
{
    sums(SUM_DEEP, 100000);
}

/* ---- limits ---- */

static void stops(const char *text, tec_program_options limits, int n, tec_status status, const char *message)
{
    compiled c = compile(text, &limits);
    tec_object *in[] = {long_list(&c, n), pair(&c, 0, 0)}, *out = NULL;
    tec_program_counts before, after;

    cr_assert(!tec_program_run(c.p, in, 2, &out, 1, &err));
    cr_assert(strstr(err.text, message), "found: %s\nexpected: %s", err.text, message);
    cr_assert_eq(err.status, status);
    cr_assert(tec_program_count(c.p, &before));
    err = (tec_error){0};
    cr_assert(!tec_program_run(c.p, in, 2, &out, 1, &err));
    cr_assert(tec_program_count(c.p, &after));
    cr_assert_eq(before.bytes, after.bytes, "a run that failed leaves values behind");
    tec_object_free(in[0]);
    tec_object_free(in[1]);
    discard(&c);
}

#define SUM_TREE                                                                                             \
    "type Tree = Leaf(f32[2]) | Node(Tree, Tree)\n"                                                          \
    "def main(t: Tree) -> f32[2] {\n"                                                                        \
    "  match t { Leaf(x) => x Node(l, r) => main(l) + main(r) }\n"                                           \
    "}\n"

/* Each node's left part is a tree, its right part a leaf. */
Test(vm, a_tree_that_leans_to_the_left_may_be_10000_deep)
{
    compiled c = compile(SUM_TREE, NULL);
    tec_object *x = pair(&c, 1, 2), *leaf = tec_object_data(c.p, "Leaf", &x, 1, &err), *tree = leaf, *y;

    for (int i = 0; i < 10000; i++) {
        tec_object *parts[] = {tree, leaf};
        tec_object *node = tec_object_data(c.p, "Node", parts, 2, &err);

        cr_assert(node, "%s", err.text);
        if (tree != leaf)
            tec_object_free(tree);
        tree = node;
    }
    cr_assert(tec_program_run(c.p, &tree, 1, &y, 1, &err), "%s", err.text);
    cr_assert_eq(((const float *)tec_object_dltensor(y)->data)[1], 20002);
    tec_object_free(y);
    tec_object_free(tree);
    tec_object_free(leaf);
    tec_object_free(x);
    discard(&c);
}

#define BUILD                                                                                                \
    "type List = Nil | Cons(f32[2], List)\n"                                                                 \
    "def build(k: i64, x: f32[2], l: List) -> List {\n"                                                      \
    "  if k > 0 {\n"                                                                                         \
    "    build(k - 1, x, Cons(x, l))\n"                                                                      \
    "  } else { l }\n"                                                                                       \
    "}\n"                                                                                                    \
    "def main(k: i64, x: f32[2]) -> List { build(k, x, Nil) }\n"

/* A list of 10^8 elements needs more than 6 GB: the limit of memory ends the run, and names a line. */
Test(vm, a_list_of_100_million_elements_reaches_the_limit_of_memory)
{
    compiled c = compile(BUILD, &(tec_program_options){.max_bytes = 100 << 20});
    int64_t k = 100000000;
    tec_object *in[] = {object_of(&c, interp_tensor(cx, BASE_I64, 0, NULL, &k)), pair(&c, 1, 2)}, *y;

    cr_assert_not(tec_program_run(c.p, in, 2, &y, 1, &err));
    cr_assert(strstr(err.text, "p.tecp:4: in 'build': the limit of 104857600 bytes of memory is reached"),
              "%s", err.text);
    tec_object_free(in[0]);
    tec_object_free(in[1]);
    discard(&c);
}

Test(vm, stops_at_the_limit_of_depth_and_names_the_line)
{
    stops(SUM_DEEP, (tec_program_options){.max_depth = 100}, 1000, TEC_INVALID,
          "p.tecp:3: in 'main': calls nest deeper");
}

/* Runs a program of one input and one output, which must fail with these words. */
static void fails(const char *text, const tec_program_options *limits, interp_value *input, tec_status status,
                  const char *words)
{
    compiled c = compile(text, limits);
    tec_object *in = object_of(&c, input), *out;

    err = (tec_error){0};
    cr_assert_not(tec_program_run(c.p, &in, 1, &out, 1, &err));
    cr_assert(err.status == status && strstr(err.text, words), "found: %s\nexpected: %s", err.text, words);
    tec_object_free(in);
    discard(&c);
}

Test(vm, recursion_without_end_meets_the_usual_limit_of_depth)
{
    fails("def main(x: f32[2]) -> f32[2] {\n"
          "  main(x) + 1\n"
          "}\n",
          NULL, vector(2, (const float[]){1, 2}), TEC_INVALID,
          "p.tecp:2: in 'main': calls nest deeper than the limit of 2097152");
}

Test(vm, a_negative_extent_is_refused_at_its_line)
{
    fails("def main(x: f32[n]) -> f32[?] {\n"
          "  let y = x * 2\n"
          "  if reduce_sum(y, axes = [0], keepdims = 0) > 0.0 {\n"
          "    slice(y, begin = [3], extent = [n - 3], step = [1])\n"
          "  } else { y }\n"
          "}\n",
          NULL, vector(2, (const float[]){1, 2}), TEC_INVALID,
          "p.tecp:4: in 'main': a tensor with extent -1");
}

Test(vm, stops_at_the_limit_of_steps)
{
    stops(SUM, (tec_program_options){.max_steps = 500}, 1000, TEC_INVALID,
          "the limit of 500 steps is reached");
}

Test(vm, stops_at_the_limit_of_memory)
{
    stops(SUM_DEEP, (tec_program_options){.max_bytes = 65000}, 1000, TEC_NO_MEMORY,
          "the limit of 65000 bytes");
}

Test(vm, stops_at_its_deadline_and_when_cancelled)
{
    stops(SUM, (tec_program_options){.deadline = 1e-9}, 1000, TEC_TIMEOUT,
          "the time limit of the run is reached");
    compiled c = compile(SUM, NULL);
    tec_object *in[] = {long_list(&c, 1000), pair(&c, 0, 0)}, *out = NULL;

    err = (tec_error){0};
    tec_program_cancel(c.p);
    cr_assert(!tec_program_run(c.p, in, 2, &out, 1, &err));
    cr_assert(err.status == TEC_CANCELLED && strstr(err.text, "cancelled"), "%s", err.text);
    err = (tec_error){0};
    cr_assert(tec_program_run(c.p, in, 2, &out, 1, &err), "%s", err.text);
    tec_object_free(out);
    tec_object_free(in[0]);
    tec_object_free(in[1]);
    discard(&c);
}

#define ENDLESS                                                                                              \
    "def main(n: i64) -> i64 {\n"                                                                            \
    "  main(n + 1)\n"                                                                                        \
    "}\n"

static void *cancel_later(void *program)
{
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    tec_program_cancel(program);
    return NULL;
}

/* The limits are looked at every 256 instructions; ten seconds are for a machine with other work. */
Test(vm, a_run_without_end_stops_when_another_thread_cancels_it_or_at_its_deadline)
{
    compiled c = compile(ENDLESS, NULL);
    tec_object *in = object_of(&c, interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){0})), *out;
    double begin = tec_clock();
    pthread_t thread;

    cr_assert_eq(pthread_create(&thread, NULL, cancel_later, c.p), 0);
    cr_assert_not(tec_program_run(c.p, &in, 1, &out, 1, &err));
    pthread_join(thread, NULL);
    cr_assert(err.status == TEC_CANCELLED && strstr(err.text, "p.tecp:2: in 'main': the run was cancelled"),
              "%s", err.text);
    cr_assert_lt(tec_clock() - begin, 10);
    tec_object_free(in);
    discard(&c);
    begin = tec_clock();
    fails(ENDLESS, &(tec_program_options){.deadline = 0.03},
          interp_tensor(cx, BASE_I64, 0, NULL, &(int64_t){0}), TEC_TIMEOUT,
          "p.tecp:2: in 'main': the time limit of the run is reached");
    cr_assert_lt(tec_clock() - begin, 10);
}

/* ---- values ---- */

Test(vm, a_run_that_has_seen_its_shapes_asks_the_system_for_nothing)
{
    compiled c = compile(SUM, NULL);
    tec_object *in[] = {long_list(&c, 100), pair(&c, 0, 0)}, *out;
    tec_program_counts counts;

    for (int i = 0; i < 3; i++) {
        cr_assert(tec_program_run(c.p, in, 2, &out, 1, &err), "%s", err.text);
        tec_object_free(out);
    }
    cr_assert(tec_program_count(c.p, &counts));
    cr_assert_eq(counts.kernels, 100);
    cr_assert_geq(counts.allocations, 100);
    cr_assert_eq(counts.from_system, 0);
    tec_object_free(in[0]);
    tec_object_free(in[1]);
    discard(&c);
}

static void refuses(const compiled *c, tec_object *const *in, int n, const char *message)
{
    tec_object *out;

    err = (tec_error){0};
    cr_assert(!tec_program_run(c->p, in, n, &out, 1, &err));
    cr_assert(strstr(err.text, message), "found: %s\nexpected: %s", err.text, message);
}

Test(vm, values_of_other_types_are_refused)
{
    compiled c = compile(SUM, NULL);
    tec_object *nil = tec_object_data(c.p, "Nil", NULL, 0, &err), *x = pair(&c, 1, 2);
    tec_object *both = tec_object_tuple(c.p, (tec_object *[]){x, nil}, 2, &err);

    refuses(&c, (tec_object *[]){x, x}, 2, "p.tecp:5: in 'main': input 'l': expected List, found f32[2]");
    refuses(&c, (tec_object *[]){nil, both}, 2,
            "p.tecp:5: in 'main': input 'zero': expected f32[2], found a tuple of 2");
    refuses(&c, (tec_object *[]){nil}, 1, "'main' has 2 inputs and 1 outputs, found 1 and 1");
    err = (tec_error){0};
    cr_assert_null(tec_object_data(c.p, "Cons", (tec_object *[]){nil, nil}, 2, &err));
    cr_assert(strstr(err.text, "field '1' of 'Cons': expected f32[2], found List"), "%s", err.text);
    err = (tec_error){0};
    cr_assert_null(tec_object_data(c.p, "Snoc", NULL, 0, &err));
    cr_assert(strstr(err.text, "there is no constructor 'Snoc'"), "%s", err.text);
    tec_object_free(both);
    tec_object_free(nil);
    tec_object_free(x);
    discard(&c);
}

Test(vm, extents_of_inputs_must_agree)
{
    compiled c = compile("def id(x: f32[n]) -> f32[n] { x }\n"
                         "def main(x: f32[n], y: f32[n + 1]) -> f32[n] { id(x) }",
                         NULL);
    tec_object *x = pair(&c, 1, 2);

    refuses(&c, (tec_object *[]){x, x}, 2,
            "p.tecp:2: in 'main': input 'y': expected f32[n + 1]; dimension 0, expected and found: 3 and 2");
    tec_object_free(x);
    discard(&c);
}

/* The place is that of the parameter, also in a file where each has a line of its own and no node has one. */
Test(vm, an_input_is_refused_at_the_line_of_its_parameter)
{
    compiled c = compile("def main(\n"
                         "  x: f32[n],\n"
                         "  y: f32[m - n],\n"
                         "  z: (f32[m], f32[n * 2])\n"
                         ") -> (f32[n], (f32[m], f32[n * 2])) { (x, z) }",
                         NULL);
    tec_object *x = pair(&c, 1, 2), *z = tec_object_tuple(c.p, (tec_object *[]){x, x}, 2, &err);

    refuses(&c, (tec_object *[]){x, x, z}, 3,
            "p.tecp:3: in 'main': input 'y': expected f32[m - n]; dimension 0, expected and found: 0 and 2");
    tec_object_free(z);
    tec_object_free(x);
    discard(&c);
}

/* Rank, element type and constructor, also where the parameters have lines of their own. */
Test(vm, an_input_of_another_type_is_refused_at_the_line_of_its_parameter)
{
    compiled c = compile("type List = Nil | Cons(f32[2], List)\n"
                         "type Other = None_ | Some_(f32[2])\n"
                         "def main(\n"
                         "  x: f32[2],\n"
                         "  l: List,\n"
                         "  o: Other\n"
                         ") -> f32[2] {\n"
                         "  x\n"
                         "}\n",
                         NULL);
    tec_object *x = pair(&c, 1, 2), *nil = tec_object_data(c.p, "Nil", NULL, 0, &err),
               *none = tec_object_data(c.p, "None_", NULL, 0, &err),
               *whole =
                   object_of(&c, interp_tensor(cx, BASE_I64, 1, (const int64_t[]){2}, (int64_t[]){1, 2})),
               *scalar = object_of(&c, interp_tensor(cx, BASE_F32, 0, NULL, (float[]){1}));

    refuses(&c, (tec_object *[]){scalar, nil, none}, 3,
            "p.tecp:4: in 'main': input 'x': expected f32[2], found f32");
    refuses(&c, (tec_object *[]){whole, nil, none}, 3,
            "p.tecp:4: in 'main': input 'x': expected f32[2], found i64[2]");
    refuses(&c, (tec_object *[]){x, none, none}, 3,
            "p.tecp:5: in 'main': input 'l': expected List, found Other");
    refuses(&c, (tec_object *[]){x, nil, x}, 3,
            "p.tecp:6: in 'main': input 'o': expected Other, found f32[2]");
    refuses(&c, (tec_object *[]){x, nil, NULL}, 3,
            "p.tecp:6: in 'main': input 'o': expected Other, found nothing");
    tec_object_free(scalar);
    tec_object_free(whole);
    tec_object_free(none);
    tec_object_free(nil);
    tec_object_free(x);
    discard(&c);
}

/* tec/program.h runs what tec_graph_read_program gives, also without control flow. */
Test(vm, a_program_of_operators_alone_that_the_public_api_reads)
{
    char path[] = "/tmp/tec-plain-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");

    cr_assert(file && fputs("def main(x: f32[n]) -> f32[n] { x * 2 }", file) >= 0);
    fclose(file);
    tec_graph *graph = tec_graph_read_program(cx, path, NULL);
    unlink(path);
    cr_assert(graph, "%s", tec_context_error(cx));
    tec_module *module = tec_graph_build(graph, NULL);
    tec_program *program = tec_program_new(module, NULL, NULL, &err);
    cr_assert(program, "%s", err.text);
    cr_assert_null(tec_executor_new(module, NULL, NULL, &err));
    cr_assert(strstr(err.text, "is a program, not a model of operators alone"), "%s", err.text);
    tec_program_free(program);
    tec_module_free(module);

    graph_module *plain = lang_parse(cx, "p.tecp", "def main(x: f32[n]) -> f32[n] { x * 2 }", NULL);
    module = tec_graph_build(plain, NULL);
    err = (tec_error){0};
    cr_assert_null(tec_program_new(module, NULL, NULL, &err));
    cr_assert(strstr(err.text, "has no program, but a model of operators alone"), "%s", err.text);
    tec_module_free(module);
}
