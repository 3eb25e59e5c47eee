/* tests/fuzz/programs/kit.h -- programs that the compiler made, with inputs: some written
 * here, the others drawn.
 *
 *     sample s = make_sample(cx, 12);                  // the first N_OWN are written here
 *     interp_value *in[FUZZ_MAX_VALUES];
 *     draw_inputs(&s, 7, in);                          // those of seed 7
 *     tec_program *p = tec_program_new(s.module, s.entry, &options, &err);
 *     give(p, &s, in, given);                          // objects, which are the caller's
 */
#include <criterion/criterion.h>
#include <string.h>

#include "fuzz/programs/inside.h"
#include "fuzz/programs/values.h"
#include "graph/build.h"
#include "lang/lang.h"
#include "tec/program.h"

enum { MAX_OUT = 6 };

/* Types and parameters are those of the programs that are drawn, so that inputs fit both. */
#define TYPES "type Tree = Leaf(f32[4]) | Node(Tree, f32[4], Tree)\ntype List = Nil | Cons(f32[?, 4], List)\n"
#define MAIN "def main(t: Tree, l: List, v: f32[4], x: f32[n, 4], c: bool) -> "

static const struct {
    const char *name, *text;
} own[] = {
    {"lstm", TYPES "param W: f32[4, 16], U: f32[4, 16], b: f32[16]\n"
                   "def part(s: f32[1, 16], i: i64) -> f32[1, 4] {\n"
                   "  reshape(gather(reshape(s, shape = [4, 4]), i, axis = 0), shape = [1, 4])\n"
                   "}\n" MAIN "f32[1, 4] {\n"
                   "  let zero = reshape(v, shape = [1, 4])\n"
                   "  let (h, d) = fold(matmul(x, W) + b, (zero, zero), ((h, d), g) => {\n"
                   "    let s = matmul(h, U) + g\n"
                   "    let next = sigmoid(part(s, 0)) * d + sigmoid(part(s, 1)) * tanh(part(s, 2))\n"
                   "    (sigmoid(part(s, 3)) * tanh(next), next)\n"
                   "  })\n"
                   "  h\n"
                   "}\n"},
    {"tree_lstm", TYPES "param U: f32[4, 4], V: f32[4, 4]\n"
                        "def go(t: Tree) -> (f32[1, 4], f32[1, 4]) {\n"
                        "  match t {\n"
                        "    Leaf(x) => { let g = matmul(reshape(x, shape = [1, 4]), U)  (tanh(g), g) }\n"
                        "    Node(l, x, r) => {\n"
                        "      let (hl, cl) = go(l)\n"
                        "      let (hr, cr) = go(r)\n"
                        "      let d = sigmoid(matmul(hl + hr, V) + x) * (cl + cr)\n"
                        "      (tanh(d), d)\n"
                        "    }\n"
                        "  }\n"
                        "}\n" MAIN "f32[1, 4] { let (h, d) = go(t)  h }\n"},
    {"walk", TYPES "def walk(l: List, n: i64) -> i64 {\n"
                   "  match l { Nil => n  Cons(x, rest) => walk(rest, n + 1) }\n"
                   "}\n" MAIN "i64 { walk(l, 0) }\n"},
    {"decoder", TYPES "param W: f32[4, 4]\n"
                      "def go(i: i64, all: f32[?, 4], y: f32[1, 4]) -> f32[?, 4] {\n"
                      "  if i < 9 {\n"
                      "    let s = softmax(matmul(y, transpose(all, perm = [1, 0])), axis = 1)\n"
                      "    go(i + 1, concat(all, y, axis = 0), tanh(matmul(matmul(s, all), W) + y))\n"
                      "  } else { all }\n"
                      "}\n" MAIN "f32[?, 4] {\n"
                      "  let first = reshape(v, shape = [1, 4])\n"
                      "  go(0, first, first)\n"
                      "}\n"},
    {"data", TYPES MAIN "f32[?, 4] {\n"
                        "  let kept = compress(x, reduce_sum(x, axes = [1], keepdims = 0) > 0.0, axis = 0)\n"
                        "  if c { concat(kept, x, axis = 0) } else { kept }\n"
                        "}\n"},
    {"dispatch",
     TYPES "param W: f32[4, 16], b: f32[16]\n"
           "def sums(l: List) -> f32[16] {\n"
           "  match l {\n"
           "    Nil => b\n"
           "    Cons(x, rest) => reduce_sum(tanh(matmul(x, W)), axes = [0], keepdims = 0) + sums(rest)\n"
           "  }\n"
           "}\n" MAIN "f32[16] { sums(l) }\n"},
};
enum { N_OWN = BASE_COUNT(own) };

typedef struct {
    tec_context *cx;
    tec_module *module;
    const graph_module *graph; /* as it was read, for the interpreter */
    const char *name, *entry;  /* NULL: main */
    int n_in, n_out;
} sample;

static inline graph_module *read_sample(tec_context *cx, int which, sample *s)
{
    uint64_t state = (uint64_t)which * 0x9e3779b97f4a7c15u + 0x1234567;
    bool drawn = which >= N_OWN && fuzz_draw(&state, 3) != 0;

    s->entry = drawn ? "drawn" : NULL;
    s->n_in = drawn ? 7 : 5;
    s->n_out = drawn ? MAX_OUT : 1;
    s->name = which < N_OWN ? own[which].name : base_format(cx, "drawn %d", which);
    const char *text = which < N_OWN ? own[which].text : fuzz_program_text(cx, &state, !drawn);
    graph_module *m = lang_parse(cx, "p.tecp", text, which < N_OWN ? lang_params_zero(cx) : NULL);
    fuzz_program p = {.cx = cx, .state = state, .m = m};
    cr_assert(m && (!drawn || fuzz_program_function(&p)), "%s: %s", s->name, tec_context_error(cx));
    return m;
}

static inline sample make_sample(tec_context *cx, int which)
{
    sample s = {.cx = cx};
    const graph_build_options o = {.target = target_parse(cx, "native"), .jobs = 1};
    graph_module *m = read_sample(cx, which, &s);

    s.graph = read_sample(cx, which, &s);
    graph_built *b = graph_build(m, &o);
    s.module = b ? graph_load(b) : NULL;
    cr_assert(s.module, "%s: %s", s.name, tec_context_error(cx));
    return s;
}

static inline void draw_inputs(const sample *s, uint64_t seed, interp_value **in)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 0x7654321;

    fuzz_program_inputs(s->cx, &state, s->graph, s->n_in == 7, in);
}

static inline bool give(tec_program *p, const sample *s, interp_value *const *in, tec_object **given)
{
    for (int i = 0; i < s->n_in; i++)
        if (!(given[i] = fuzz_object(p, in[i], NULL)))
            return false;
    return true;
}

static inline void take_back(tec_object **objects, int n)
{
    for (int i = 0; i < n; i++)
        tec_object_free(objects[i]);
}
