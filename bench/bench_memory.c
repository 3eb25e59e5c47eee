/* bench/bench_memory.c -- what planning saves of the memory of programs, and what memory costs in a run.
 *
 *     bench_memory DIR [BERT.onnx]        DIR: bench/programs; the model of `bench/run programs`
 *
 * Prints four parts. (1) Storages and their bytes, the time of the instructions that allocate and free them,
 * and of all that make and free values, in one run of a program: as it is compiled, and with every
 * optimisation off. (2) What a loop with
 * known shapes asks the system for, by its number of iterations. (3) Bytes for each step of a decoder whose
 * cache grows, written as a loop and as a function that calls itself. (4) The most bytes that BERT holds in
 * the VM, in whole blocks, beside the storages of the static plan. Ends with 1 if the loop asks the system
 * for more with more iterations, if the bytes for each step grow, or if the VM holds more than 1.2 times what
 * the static plan does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build.h"
#include "graph/node.h"
#include "graph/onnx/onnx.h"
#include "graph/program.h"
#include "graph/text.h"
#include "ir/eval.h"
#include "ir/walk.h"
#include "lang/lang.h"
#include "tec/program.h"

enum { RUNS = 5, SAMPLES = 21, DEPTH = 5, MAX_INPUTS = 8, STEPS = 2000 };

static const char
    chain[] = "def main(x: f32[n, 64], k: bool) -> f32[n, 64] {\n"
              "  let y = softmax(softmax(softmax(softmax(x, axis = 1), axis = 0), axis = 1), "
              "axis = 0)\n"
              "  if k { softmax(y, axis = 1) } else { x }\n}\n",
    decode[] = "def go(i: i64, all: f32[?, 16], y: f32[1, 16], steps: i64) -> f32[?, 16] {\n"
               "  if i < steps { go(i + 1, concat(all, y, axis = 0), tanh(y), steps) } else { all }\n}\n"
               "def main(steps: i64, y: f32[1, 16]) -> f32[?, 16] { go(0, y, y, steps) }\n",
    cache[] = "graph \"g\" { function \"main\" { symbols d\ninput v1 \"steps\": i64[]\n"
              "input v0 \"row\": f32[1, 16]\n"
              "v9: f32[d, 16] = loop \"decode\"(v1, _, v0) { symbols n\n"
              "input i: i64[] input go: bool[] input c: f32[n, 16]\n"
              "v5: f32[1, 16] = op neg \"r\"(v0)\n"
              "v6: f32[n + 1, 16] = op concat \"append\"(c, v5) @axis(0)\n"
              "output go output v6 }\noutput \"y\" v9 } }",
    loop[] = "graph \"g\" { function \"main\" { input n: i64[]\ninput x: f32[64, 4]\n"
             "v1: f32[64, 4] = loop \"l\"(n, _, x) { input i: i64[] input go: bool[] input y: f32[64, 4]\n"
             "a: f32[64, 4] = op softmax \"a\"(y) @axis(1)\nb: f32[64, 4] = op softmax \"b\"(a) "
             "@axis(0)\noutput go output b }\noutput \"y\" v1 } }";

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench_memory: %s\n", what);
    exit(1);
}

/* ---- programs ---- */

typedef enum {
    TEXT,  /* the text of a program */
    GRAPH, /* the text of a graph */
    PROGRAM_FILE,
    MODEL_FILE
} form;

/* A module of the VM or of the static executor, with the context that it lives in. */
typedef struct {
    tec_context *cx;
    graph_module *module;
    graph_built *built;
    tec_module *loaded;
    tec_program *program; /* NULL: static */
} compiled;

static graph_module *read_module(tec_context *cx, form kind, const char *source)
{
    switch (kind) {
    case TEXT: return lang_parse(cx, "bench.tecp", source, NULL);
    case GRAPH: return graph_parse(cx, "bench.graph", source, NULL);
    case PROGRAM_FILE: {
        size_t size;
        char *text = base_read_file(cx, source, &size);

        return text ? lang_parse(cx, source, text, lang_params_zero(cx)) : NULL;
    }
    case MODEL_FILE: return onnx_import(cx, source, &(onnx_options){0});
    }
    return NULL;
}

static compiled compile(form kind, const char *source, bool for_vm, bool unoptimised)
{
    compiled c = {.cx = tec_context_new()};
    const graph_build_options o = {.target = target_parse(c.cx, "native"), .unoptimised = unoptimised};
    tec_program_options options = {.run = {.threads = 1, .profile = true}};
    tec_error err = {0};

    c.module = read_module(c.cx, kind, source);
    if (c.module)
        c.module->for_vm = for_vm;
    c.built = c.module ? graph_build(c.module, &o) : NULL;
    c.loaded = c.built ? graph_load(c.built) : NULL;
    if (!c.loaded)
        fail(tec_context_error(c.cx));
    if (for_vm && !(c.program = tec_program_new(c.loaded, NULL, &options, &err)))
        fail(err.text);
    return c;
}

static void discard(compiled *c)
{
    tec_program_free(c->program);
    tec_module_free(c->loaded);
    tec_context_free(c->cx);
}

/* ---- inputs ---- */

/* Every number is `n` if it is an integer, so that counts and extents are n. */
static tec_object *tensor(const compiled *c, const op_type *type, int64_t n)
{
    int64_t shape[8], count = 1, extent;
    tec_error err = {0};

    for (int d = 0; d < type->n; d++) {
        shape[d] = ir_is_int(type->dim[d], &extent) ? extent : n;
        count *= shape[d];
    }
    void *data = calloc((size_t)count + 1, 8);
    if (!data)
        fail("out of memory");
    if (type->n == 0)
        *(int64_t *)data = base_dtype_same(type->dtype, BASE_BOOL) ? 1 : n;
    DLTensor t = {.data = data, .device = {kDLCPU, 0}, .ndim = type->n, .dtype = type->dtype, .shape = shape};
    tec_object *object = tec_object_tensor(c->program, &t, &err);
    free(data);
    if (!object)
        fail(err.text);
    return object;
}

/* A value of a data type is as deep as `depth` says: by the last constructor, below by the first. */
static tec_object *value(const compiled *c, const graph_type *type, int64_t n, int depth)
{
    tec_object *field[MAX_INPUTS], *object;
    tec_error err = {0};

    if (type->kind == GRAPH_TENSOR)
        return tensor(c, &type->tensor, n);
    const graph_data *data = graph_find_data(c->module, type->data);
    if (type->kind != GRAPH_DATA || !data)
        fail("an input is neither a tensor nor a value of a data type");
    const graph_case *constructor = data->cases.at[depth ? data->cases.n - 1 : 0];
    for (int i = 0; i < constructor->n; i++)
        field[i] = value(c, &constructor->field[i], n, depth - 1);
    if (!(object = tec_object_data(c->program, constructor->name, field, constructor->n, &err)))
        fail(err.text);
    for (int i = 0; i < constructor->n; i++)
        tec_object_free(field[i]);
    return object;
}

/* What one run did; the others before it have filled the pool, unless `runs` is 1. */
static tec_program_counts run(const compiled *c, int64_t n, int runs)
{
    const graph_body *body = ((const graph_function *)c->module->functions.at[0])->body;
    tec_object *in[MAX_INPUTS], *out[MAX_INPUTS];
    tec_program_counts counts = {0};
    tec_error err = {0};

    if (body->inputs.n > MAX_INPUTS || body->outputs.n > MAX_INPUTS)
        fail("the program has too many inputs or outputs");
    for (int i = 0; i < body->inputs.n; i++) {
        graph_type type = graph_type_of(body->inputs.at[i]);

        in[i] = value(c, &type, n, DEPTH);
    }
    for (int k = 0; k < runs; k++) {
        if (k == runs - 1)
            tec_program_profile_reset(c->program);
        if (!tec_program_run(c->program, in, body->inputs.n, out, body->outputs.n, &err))
            fail(err.text);
        tec_program_count(c->program, &counts);
        for (int i = 0; i < body->outputs.n; i++)
            tec_object_free(out[i]);
    }
    for (int i = 0; i < body->inputs.n; i++)
        tec_object_free(in[i]);
    return counts;
}

/* ---- the parts ---- */

/* Microseconds since the profile was reset: in instructions that allocate and free storages, and in all
 * that make, copy and free values. `ret` frees what is alive at the end of a function, so it counts among
 * these. */
typedef struct {
    double storages, all;
} memory_time;

static memory_time time_of(const compiled *c)
{
    memory_time time = {0};
    tec_profile_row row;

    for (int i = 0; tec_program_profile(c->program, i, &row); i++) {
        bool storage = !strcmp(row.name, "alloc_storage") || !strcmp(row.name, "free_storage");

        time.storages += storage ? row.total_s * 1e6 : 0;
        time.all += row.group == TEC_ROW_MEMORY || !strcmp(row.name, "ret") ? row.total_s * 1e6 : 0;
    }
    return time;
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double median(double *value, int n)
{
    qsort(value, (size_t)n, sizeof *value, compare);
    return value[n / 2];
}

static void print_pair(double planned, double not, int digits)
{
    printf(" %9.*f %9.*f %5.0f %%", digits, planned, digits, not, 100 - 100 * planned / not);
}

/* Both forms run in turns; the times are medians. */
static void print_savings(form kind, const char *name, const char *source, int64_t n)
{
    compiled c[] = {compile(kind, source, true, false), compile(kind, source, true, true)};
    double storages[2][SAMPLES], all[2][SAMPLES];
    tec_program_counts counts[2];

    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < 2; k++) {
            counts[k] = run(&c[k], n, i ? 1 : RUNS);
            const memory_time time = time_of(&c[k]);

            storages[k][i] = time.storages;
            all[k][i] = time.all;
        }
    printf("%-9s", name);
    print_pair((double)counts[0].storages, (double)counts[1].storages, 0);
    print_pair((double)counts[0].storage_bytes, (double)counts[1].storage_bytes, 0);
    print_pair(median(storages[0], SAMPLES), median(storages[1], SAMPLES), 1);
    print_pair(median(all[0], SAMPLES), median(all[1], SAMPLES), 1);
    printf("\n");
    fflush(stdout);
    for (int k = 0; k < 2; k++)
        discard(&c[k]);
}

static bool print_loop(void)
{
    static const int64_t trips[] = {1, 3, 10, 100, 1000};
    int64_t asked[BASE_COUNT(trips)];

    printf("\na loop with known shapes\n%-10s %28s\n", "iterations", "objects from the system");
    for (int i = 0; i < BASE_COUNT(trips); i++) {
        compiled c = compile(GRAPH, loop, true, false);

        asked[i] = run(&c, trips[i], 1).from_system;
        printf("%-10lld %28lld\n", (long long)trips[i], (long long)asked[i]);
        discard(&c);
    }
    return asked[BASE_COUNT(trips) - 1] == asked[1];
}

/* Bytes for each step that move rows: those of `append`, or of kernels that make all rows anew, which are the
 * bytes of storages. One form of the decoder has few other storages. */
static bool print_decode(void)
{
    compiled c[] = {compile(GRAPH, cache, true, false), compile(TEXT, decode, true, false)};
    bool constant = true;

    printf("\na decoder whose cache grows by a row of 64 bytes in each step: bytes for each step\n"
           "%-10s %25s %25s\n%-10s %12s %12s %12s %12s\n",
           "", "a loop", "a call of itself", "steps", "extending", "storages", "extending", "storages");
    for (int64_t n = 100; n <= STEPS; n += n < 500 ? 100 : 500) {
        printf("%-10lld", (long long)n);
        for (int k = 0; k < BASE_COUNT(c); k++) {
            tec_program_counts counts = run(&c[k], n, RUNS);
            double copied = (double)counts.copied / (double)n,
                   made = (double)counts.storage_bytes / (double)n;

            printf(" %12.1f %12.1f", copied, made);
            constant = constant && copied <= 3 * 64 && made <= 8 * 64;
        }
        printf("\n");
    }
    for (int k = 0; k < BASE_COUNT(c); k++)
        discard(&c[k]);
    return constant;
}

/* Bytes of all storages of a static plan, where every symbol is n. */
static int64_t planned_bytes(const compiled *c, int64_t n)
{
    const graph_body *body = ((const graph_function *)c->built->planned->functions.at[0])->body;
    int64_t total = 0;

    for (int i = 0; i < body->nodes.n; i++) {
        const graph_node *node = body->nodes.at[i];
        base_map vars = {0};
        base_vec free_vars = {0};
        ir_value bytes, each = {.i = n};

        if (node->kind != GRAPH_ALLOC_STORAGE)
            continue;
        ir_free_vars(c->cx, node->out[0]->type.dim[0], &free_vars);
        for (int k = 0; k < free_vars.n; k++)
            base_map_put(c->cx, &vars, free_vars.at[k], &each);
        if (!ir_eval(c->cx, node->out[0]->type.dim[0], &vars, &bytes))
            fail("the size of a storage cannot be computed");
        total += bytes.i;
    }
    return total;
}

static bool print_bert(const char *path)
{
    static const int64_t words[] = {25, 128};
    bool small = true;
    compiled vm = compile(MODEL_FILE, path, true, false), plan = compile(MODEL_FILE, path, false, false);

    printf("\nBERT: the most bytes at one time\n%-10s %12s %12s %8s\n", "words", "VM", "static plan",
           "ratio");
    for (int i = 0; i < BASE_COUNT(words); i++) {
        tec_program_counts counts = run(&vm, words[i], 2);
        int64_t fixed = planned_bytes(&plan, words[i]);

        printf("%-10lld %12lld %12lld %8.3f\n", (long long)words[i], (long long)counts.peak, (long long)fixed,
               (double)counts.peak / (double)fixed);
        small = small && (double)counts.peak <= 1.2 * (double)fixed;
    }
    discard(&vm);
    discard(&plan);
    return small;
}

int main(int argc, char **argv)
{
    char path[4096];

    if (argc < 2 || argc > 3)
        fail("usage: bench_memory DIR [BERT.onnx]");
    printf("%-9s %27s %27s %27s %27s\n%-9s", "", "storages", "bytes", "us for storages", "us for memory",
           "program");
    for (int i = 0; i < 4; i++)
        printf(" %9s %9s %7s", "planned", "not", "saved");
    printf("\n");
    print_savings(TEXT, "chain", chain, 100);
    print_savings(TEXT, "decode", decode, 100);
    static const char *const files[] = {"lstm1", "tree_lstm"};
    for (int i = 0; i < BASE_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s.tecp", argv[1], files[i]);
        print_savings(PROGRAM_FILE, files[i], path, 25);
    }
    if (argc == 3)
        print_savings(MODEL_FILE, "bert", argv[2], 25);
    bool ok = print_loop();
    ok = print_decode() && ok;
    ok = (argc < 3 || print_bert(argv[2])) && ok;
    return ok ? 0 : 1;
}
