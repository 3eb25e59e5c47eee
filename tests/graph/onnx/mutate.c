/* tests/graph/onnx/mutate.c -- random models: nodes of all operators with attributes and operands that mostly
 * fit, and damaged bytes.
 *
 *   TEC_MUTATIONS=1000000 TEC_MUTATION_SEED=7 build/asan/tests/test_graph_onnx_mutate --jobs 1
 *
 * TEC_MUTATIONS_TO=DIR keeps each model as DIR/SEED.onnx: tests/tvmtune/hostile.sh submits them as jobs.
 *
 * Each model ends with an error or as a graph that verifies, within seconds and megabytes. At the end the
 * test says how many models there were, how many of them could be unpacked, and how many became graphs.
 */
#include "tests/graph/onnx/fitting.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "graph/emit.h"
#include "graph/onnx/import.h"
#include "graph/pass.h"
#include "tests/mutate.h"

enum { MOST_MEGABYTES = 512, MOST_SECONDS = 10 };

/* Most inputs of a model are floats of one shape, so that most operators fit. */
static const char *usual[8];
static int usual_rank;

static void add_input(void)
{
    static const int dtypes[] = {1, 6, 7, 7, 9, 10, 11, 2, 3, 16, 13, 17};
    static const char *const dims[] = {"n", "m", "",  "1", "2", "3",         "4",
                                       "4", "5", "6", "8", "0", "2147483648"};
    const char *dim[8] = {NULL};

    for (int i = 0, rank = below(6); i < rank; i++)
        dim[i] = chance(95) ? dims[below(11)] : PICK(dims);
    input_of(new_value(), chance(75) ? 1 : PICK(dtypes), chance(80) ? usual : dim);
}

static void choose_shape(void)
{
    static const char *const dims[] = {"n", "1", "2", "3", "4", "4", "6", "8"};

    usual_rank = 1 + below(5);
    for (int i = 0; i < 8; i++)
        usual[i] = i < usual_rank ? PICK(dims) : NULL;
}

/* Floats of the usual rank, as weights are, or of one dimension, as biases are; sometimes with too few
 * bytes. */
static void add_weights(const char *name)
{
    static const float f[256] = {1, 0.5f, -2, 3};
    int64_t dim[5], size = 4;
    int rank = chance(60) ? usual_rank : 1;

    for (int i = 0; i < rank; i++) {
        dim[i] = 1 + below(3);
        size *= dim[i];
    }
    raw(tensor(name, 1, dim, (size_t)rank), f, (size_t)(chance(97) && size <= 1024 ? size : 7));
}

/* A list of ints, or a few floats, or an integer scalar. */
static void add_constant(void)
{
    int64_t v[6], n = below(5), kind = below(10);
    const float f[6] = {1, 0.5f, 2, -1, 0, 3};
    const char *name = new_value();

    for (int i = 0; i < 6; i++)
        v[i] = some_int();
    if (kind == 0)
        raw(tensor(name, 1, &n, 1), f, (size_t)n * 4);
    else if (kind < 4)
        add_weights(name);
    else if (kind == 4)
        raw(tensor(name, 7, NULL, 0), v, 8);
    else
        int64s(name, v, (size_t)n);
    if (kind > 3 && n_lists < MOST_VALUES)
        list[n_lists++] = name;
}

/* ---- nodes ---- */

static Onnx__AttributeProto *new_attribute(const char *name, char type)
{
    Onnx__AttributeProto *a = type == 'i'   ? attr_int(name, some_int())
                              : type == 'f' ? attr_float(name, (float)some_int() / 2)
                                            : MESSAGE(Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
    int64_t ints[8];
    float floats[8];

    a->name = (char *)name;
    for (int i = 0; i < 8; i++) {
        ints[i] = some_int();
        floats[i] = (float)ints[i];
    }
    if (type == 'I')
        return attr_ints(name, ints,
                         (size_t)(chance(80) && usual_rank > 2
                                      ? (usual_rank - 2) * (base_same(name, "pads") ? 2 : 1)
                                      : below(7)));
    if (type == 'F') {
        a->n_floats = (size_t)below(5);
        a->floats = base_copy(cx, floats, sizeof floats);
    }
    if (type == 't') {
        a->t = tensor("of_attribute", chance(70) ? 1 : 7, (const int64_t[]){1}, 1);
        g->n_initializer--;
        raw(a->t, ints, a->t->data_type == 1 ? 4 : 8);
    }
    a->has_type = chance(50) && type != 't';
    a->type = type == 'i' ? 2 : type == 'f' ? 1 : type == 's' ? 3 : type == 'F' ? 6 : 0;
    return a;
}

static void set_string(Onnx__AttributeProto *a, const char *text, size_t n)
{
    a->has_s = true;
    a->s = (ProtobufCBinaryData){n, base_copy(cx, text, n + 1)};
}

/* One of the values A|B|C, sometimes something else. */
static void choose_string(Onnx__AttributeProto *a, const char *values)
{
    static const char *const others[] = {"ij,jk->ik", "bii,bi->b", "...ij->...ji", "i,i",    "FOO",
                                         "",          "->",        "ij->ii",       "...,..."};
    int n = 1, k;

    for (const char *p = values; p && *p && *p != ')'; p++)
        n += *p == '|';
    k = below(n);
    for (; values && k > 0; k--)
        values = strchr(values, '|') + 1;
    if (values && chance(95))
        set_string(a, values, strcspn(values, "|)"));
    else {
        const char *text = PICK(others);

        set_string(a, text, strlen(text));
    }
}

/* "name:type(values)@11": present more often where it is required. */
static void add_attribute(Onnx__NodeProto *p, const char *word, size_t n)
{
    const char *colon = memchr(word, ':', n);
    bool required = *word == '!';

    if (!colon || !chance(required ? 98 : 25))
        return;
    char type = chance(97) ? colon[1] : "ifsIFt"[below(6)];
    Onnx__AttributeProto *a =
        new_attribute(base_strndup(cx, word + required, (size_t)(colon - word) - required), type);
    if (type == 's')
        choose_string(a, colon[2] == '(' ? colon + 3 : NULL);
    PUSH(p, attribute, a);
}

static void add_attributes(Onnx__NodeProto *p, const char *form)
{
    for (const char *word = strchr(form, ' '); word && *word; word += strcspn(word, " ")) {
        word += strspn(word, " ");
        add_attribute(p, word, strcspn(word, " "));
    }
}

static const char *operand(int k)
{
    if (chance(1))
        return "";
    return k > 0 && n_lists && chance(30) ? list[below(n_lists)] : value[below(n_values)];
}

/* A number in "1-3" or "2" or "1-*", or beside it now and then. */
static int between(const char *range)
{
    size_t n = strcspn(range, "> ");
    const char *dash = memchr(range, '-', n);
    int least = atoi(range), most = !dash ? least : dash[1] == '*' ? least + 2 : atoi(dash + 1);

    return chance(97) ? least + below(most - least + 1) : below(6);
}

static const onnx_row *some_row(int64_t opset)
{
#define X(family) &onnx_##family##_rows,
    static const onnx_rows *const families[] = {ONNX_FAMILY_LIST(X)};
#undef X
    const onnx_rows *f = PICK(families);
    const onnx_row *row = &f->rows[below(f->n)], *fits = onnx_find(row->op, opset);

    return fits ? fits : row;
}

static void add_node(int64_t opset)
{
    const onnx_row *row = some_row(opset);
    const char *form = base_format(cx, "%s ", row->form);
    base_text in = {0}, out = {0};
    int n_in = between(form), n_out = between(strchr(form, '>') + 1);

    n_in = n_in < 0 || n_in > 8 ? 2 : n_in;
    n_out = n_out < 1 || n_out > 4 ? 1 : n_out;
    for (int k = 0; k < n_in; k++)
        base_addf(cx, &in, "%s%s", k ? "," : "", operand(k));
    for (int k = 0; k < n_out; k++)
        base_addf(cx, &out, "%s%s", k ? "," : "",
                  chance(98) ? base_format(cx, "v%d", n_values + k) : value[below(n_values)]);
    Onnx__NodeProto *p = node_of(row->op, base_text_str(cx, &in), base_text_str(cx, &out),
                                 (Onnx__AttributeProto *const[]){NULL});
    for (int k = 0; k < n_out; k++)
        new_value();
    add_attributes(p, form);
}

static void name_entry(Onnx__TensorProto *t, const char *key, const char *text)
{
    Onnx__StringStringEntryProto *e =
        MESSAGE(Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);

    e->key = (char *)key;
    e->value = (char *)text;
    PUSH(t, external_data, e);
}

/* Data in typed fields, or beside the model under all kinds of names. */
static void add_odd_tensor(void)
{
    static const int types[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16, 8, 14, 17, 99};
    static const char *const keys[] = {"location", "offset", "length", "checksum"},
                             *const values[] = {
                                 "w.bin", "/etc/passwd",         "../w", "a/b", "", ".", "0", "4", "-1",
                                 "x",     "99999999999999999999"};
    int64_t n = below(4);
    Onnx__TensorProto *t = tensor(new_value(), PICK(types), &n, 1);

    t->n_float_data = t->n_int32_data = t->n_int64_data = t->n_double_data = t->n_uint64_data =
        (size_t)(chance(80) ? n : below(5));
    t->float_data = base_array(cx, float, 8);
    t->int32_data = base_array(cx, int32_t, 8);
    t->int64_data = base_array(cx, int64_t, 8);
    t->double_data = base_array(cx, double, 8);
    t->uint64_data = base_array(cx, uint64_t, 8);
    t->has_data_location = chance(30);
    t->data_location = 1;
    if (t->has_data_location && chance(60))
        name_entry(t, "location", chance(80) ? "w.bin" : "a/b");
    for (int i = below(4); t->has_data_location && i > 0; i--)
        name_entry(t, PICK(keys), PICK(values));
}

/* Operators that random operands seldom suit. */
static void add_fitting(int64_t opset)
{
    switch (below(7)) {
    case 0:
    case 1: add_recurrent(); break;
    case 2: add_if(); break;
    case 3: add_loop(); break;
    case 4: add_scan(opset); break;
    case 5: add_resize(); break;
    default: add_sized(opset); break;
    }
}

/* A weight so large that the import leaves it where the file is mapped. */
static void add_large(void)
{
    static const float f[(1 << 18) + 1024];
    const int64_t dim[] = {1 << 10, 1 << 8};

    raw(tensor(new_value(), 1, dim, 2), f, chance(90) ? (size_t)4 << 18 : sizeof f);
}

static void random_model(void)
{
    static const int64_t opsets[] = {1,  6,  7,  9,  10, 11, 12, 13, 13, 14,
                                     15, 17, 17, 18, 18, 19, 21, 23, 24, 28};
    int64_t opset = PICK(opsets);

    n_values = n_lists = 0;
    open_model(opset);
    choose_shape();
    for (int i = 1 + below(3); i > 0; i--)
        add_input();
    for (int i = below(6); i > 0; i--)
        add_constant();
    if (chance(10))
        add_odd_tensor();
    if (below(1000) == 0)
        add_large();
    if (chance(14) && opset >= 7)
        add_fitting(opset);
    for (int i = 1 + below(chance(70) ? 2 : 6); i > 0 && n_values < MOST_VALUES - 8; i--)
        add_node(opset);
    for (int i = chance(90) ? 1 : below(4); i > 0; i--)
        output(value[n_values - i > 0 ? n_values - i : 0]);
}

/* ---- bytes ---- */

/* A bit, a byte, a piece that is moved, left out or doubled; the file becomes at most twice as long. */
static size_t damage(uint8_t *bytes, size_t size)
{
    size_t at = (size_t)below((int)size), n = (size_t)below((int)(size - at < 40 ? size - at : 40));

    switch (below(5)) {
    case 0: bytes[at] ^= (uint8_t)(1 << below(8)); return size;
    case 1: bytes[at] = (uint8_t)below(256); return size;
    case 2: memmove(bytes + at, bytes + at + n, size - at - n); return size - n;
    case 3: memmove(bytes + at + n, bytes + at, size - at); return size + n;
    default: memmove(bytes + below((int)(size - n)), bytes + at, n); return size;
    }
}

/* ---- runs ---- */

static struct {
    int64_t models, unpacked, graphs;
} total;

/* The passes that need no code generator, then each kernel as a tree: false where a part of tec is wrong,
 * rather than the model. */
static bool passes(graph_module *m)
{
    static graph_pass_fn *const all[] = {graph_simplify, graph_share_common, graph_fold_batch_norm,
                                         graph_remove_dead, graph_fuse};
    const target *t = target_parse(cx, "llvm -mcpu=x86-64-v3");

    for (int i = 0; i < BASE_COUNT(all) && m; i++)
        m = all[i](m, t);
    if (!m || !graph_verify(m))
        return tec_context_status(cx) != TEC_INTERNAL;
    const graph_body *body = ((const graph_function *)m->functions.at[0])->body;
    for (int i = 0; i < body->nodes.n && !base_failed(cx); i++) {
        const graph_node *node = body->nodes.at[i];
        bool is_kernel = node->kind == GRAPH_OP || node->kind == GRAPH_GROUP || node->kind == GRAPH_PACK;
        const te_def *d = is_kernel ? graph_definition(m, node, t) : NULL;

        if (d)
            te_tree(cx, d);
    }
    return tec_context_status(cx) != TEC_INTERNAL;
}

/* Values and shapes that a caller may give; most fit no model. */
static const onnx_options *some_options(void)
{
    static const char *const names[] = {"n", "m", "v0.0", "k"};
    static const int64_t shape[] = {3, 4, 2, 2};
    onnx_dim *dim = base_array(cx, onnx_dim, 2);
    onnx_shape *given = base_array(cx, onnx_shape, 1);
    onnx_options *options = base_new(cx, onnx_options);

    for (int i = 0; i < 2; i++)
        dim[i] = (onnx_dim){chance(90) ? names[0] : PICK(names), chance(90) ? below(6) : some_int()};
    *given = (onnx_shape){chance(50) ? "v0" : NULL, 0, below(5), shape};
    options->n_dims = below(3), options->n_shapes = below(2);
    options->dims = dim, options->shapes = given;
    return options;
}

/* A folder with a model and files beside it, which the tensors of add_odd_tensor may name. */
static const char *folder(void)
{
    static char path[] = TEC_BINARY_DIR "/tests/onnx-XXXXXX";
    static bool there;

    if (!there) {
        cr_assert(mkdtemp(path), "%s", path);
        cr_assert_eq(mkdir(base_format(cx, "%s/a", path), 0700), 0);
        cr_assert_eq(symlink("w.bin", base_format(cx, "%s/x", path)), 0);
        cr_assert(base_write_file(cx, base_format(cx, "%s/w.bin", path), path, 32));
        cr_assert(base_write_file(cx, base_format(cx, "%s/a/b", path), path, 8));
    }
    there = true;
    return path;
}

/* The same by a file: what lies beside it is read, and the model is summed up. */
static graph_module *import_file(const uint8_t *bytes, size_t size, const onnx_options *options)
{
    const char *path = base_format(cx, "%s/m.onnx", folder());

    cr_assert(base_write_file(cx, path, bytes, size));
    const char *summary = onnx_summary(cx, path);
    if (!summary)
        cr_assert_neq(tec_context_status(cx), TEC_INTERNAL, "%s", tec_context_error(cx));
    tec_context_clear(cx);
    return onnx_import(cx, path, options);
}

static void import(const uint8_t *bytes, size_t size, uint64_t start)
{
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees each read behind the end */
    time_t begin = time(NULL);

    memcpy(exact, bytes, size);
    const onnx_options *options = chance(10) ? some_options() : NULL;
    graph_module *m =
        chance(2) ? import_file(exact, size, options) : onnx_import_bytes(cx, "m.onnx", exact, size, options);
    const char *text = tec_context_error(cx);
    if (getenv("TEC_MUTATION_SHOW"))
        fprintf(stderr, "why: %s\n", text ? text : "ok");
    total.models++;
    total.unpacked += m || !strstr(text, "no ONNX model");
    total.graphs += m != NULL;
    cr_assert(m ? graph_verify(m) && passes(m)
                : tec_context_status(cx) != TEC_OK && tec_context_status(cx) != TEC_INTERNAL,
              "seed %llu: %s", (unsigned long long)start, tec_context_error(cx));
    cr_assert(time(NULL) - begin <= MOST_SECONDS, "seed %llu takes %d s", (unsigned long long)start,
              (int)(time(NULL) - begin));
    cr_assert(base_used(cx) >> 20 <= MOST_MEGABYTES, "seed %llu takes %zu MB", (unsigned long long)start,
              base_used(cx) >> 20);
    free(exact);
}

/* The model as a file, where the environment names a folder for it. */
static void keep(const uint8_t *bytes, size_t size, uint64_t start)
{
    const char *folder = getenv("TEC_MUTATIONS_TO");

    if (folder)
        cr_assert(base_write_file(cx, base_format(cx, "%s/%llu.onnx", folder, (unsigned long long)start),
                                  bytes, size));
}

static void one(void)
{
    uint64_t start = dice;
    size_t size;

    mutation_note(start);
    cx = tec_context_new();
    random_model();
    uint8_t *bytes = packed(&size), *longer = base_alloc(cx, 2 * size + 200);
    memcpy(longer, bytes, size);
    for (int edits = chance(75) ? 0 : 1 + below(3); edits > 0 && size > 1; edits--)
        size = damage(longer, size);
    keep(longer, size, start);
    import(longer, size, start);
    tec_context_free(cx);
}

Test(onnx_mutate, every_model_ends_with_an_error_or_a_graph)
{
    int64_t n = mutation_count(4000);

    dice = mutation_begin();
    for (int64_t i = 0; i < n; i++)
        one();
    fprintf(stderr, "%lld models: %.1f %% unpacked, %.1f %% became graphs\n", (long long)total.models,
            100.0 * (double)total.unpacked / (double)total.models,
            100.0 * (double)total.graphs / (double)total.models);
    cr_assert(total.unpacked * 10 >= total.models * 3, "too few models can be unpacked");
    cx = tec_context_new();
    cr_assert_eq(system(base_format(cx, "rm -rf '%s'", folder())), 0);
    tec_context_free(cx);
}
