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
#include "tests/graph/onnx/kit.h"

#include <stdio.h>
#include <time.h>

#include "graph/emit.h"
#include "graph/onnx/import.h"
#include "graph/pass.h"
#include "tests/mutate.h"

enum { MOST_VALUES = 64, MOST_MEGABYTES = 512, MOST_SECONDS = 10 };

static uint64_t seed;
static const char *value[MOST_VALUES], *list[MOST_VALUES]; /* names: anything so far, and lists of ints */
static int n_values, n_lists;

static int below(int n)
{
    return (int)base_random_below(&seed, n);
}

static bool chance(int percent)
{
    return below(100) < percent;
}

#define PICK(from) (from)[below(BASE_COUNT(from))]

static int64_t some_int(void)
{
    static const int64_t common[] = {0, 1, 1, 2, 2, 3, -1, -1, -2, 4, 5, 7, 8};
    static const int64_t rare[] = {INT64_MAX,        INT64_MIN,           INT64_MAX - 1, INT32_MAX,
                                   (int64_t)1 << 40, -((int64_t)1 << 40), 1000,          -3,
                                   1 << 20};

    return chance(93) ? PICK(common) : PICK(rare);
}

/* ---- values ---- */

static const char *new_value(void)
{
    const char *name = base_format(cx, "v%d", n_values);

    if (n_values < MOST_VALUES)
        value[n_values++] = name;
    return name;
}

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

/* A recurrent operator whose operands fit: weights that fit by chance are too rare. */
static void add_recurrent(void)
{
    static const char *const ops[] = {"RNN", "GRU", "LSTM"}, *const directions[] = {"forward", "reverse",
                                                                                    "bidirectional"};
    static const float zeros[4096];
    int which = below(3), gates = which == 0 ? 1 : which == 1 ? 3 : 4, way = below(3), two = way == 2 ? 2 : 1;
    const char *x = base_format(cx, "x%d", n_values), *w = base_format(cx, "w%d", n_values),
               *r = base_format(cx, "r%d", n_values), *b = base_format(cx, "b%d", n_values);

    input_of(x, 1, (const char *const[]){chance(90) ? "3" : "n", "2", "4", NULL});
    raw(tensor(w, 1, (const int64_t[]){two, gates * 2, 4}, 3), zeros, (size_t)(two * gates * 8 * 4));
    raw(tensor(r, 1, (const int64_t[]){two, gates * 2, 2}, 3), zeros, (size_t)(two * gates * 4 * 4));
    raw(tensor(b, 1, (const int64_t[]){two, gates * 4}, 2), zeros, (size_t)(two * gates * 4 * 4));
    Onnx__NodeProto *p = node_of(
        ops[which], base_format(cx, "%s,%s,%s%s%s", x, w, r, chance(60) ? "," : "", chance(60) ? b : ""),
        base_format(cx, "v%d,v%d", n_values, n_values + 1), (Onnx__AttributeProto *const[]){NULL});
    Onnx__AttributeProto *a = new_attribute("direction", 's');
    new_value();
    new_value();
    set_string(a, directions[way], strlen(directions[way]));
    PUSH(p, attribute, a);
    if (chance(30))
        PUSH(p, attribute, new_attribute("clip", 'f'));
    if (chance(30))
        PUSH(p, attribute, attr_int("hidden_size", 2));
    if (which == 1 && chance(50))
        PUSH(p, attribute, attr_int("linear_before_reset", 1));
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
    for (int i = below(4); t->has_data_location && i > 0; i--) {
        Onnx__StringStringEntryProto *e =
            MESSAGE(Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);

        e->key = (char *)PICK(keys);
        e->value = (char *)PICK(values);
        PUSH(t, external_data, e);
    }
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
    if (chance(4) && opset >= 7)
        add_recurrent();
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

static void import(const uint8_t *bytes, size_t size, uint64_t start)
{
    uint8_t *exact = malloc(size ? size : 1); /* so that a sanitizer sees each read behind the end */
    time_t begin = time(NULL);

    memcpy(exact, bytes, size);
    graph_module *m = onnx_import_bytes(cx, "m.onnx", exact, size, NULL);
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
    uint64_t start = seed;
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

    seed = mutation_begin();
    for (int64_t i = 0; i < n; i++)
        one();
    fprintf(stderr, "%lld models: %.1f %% unpacked, %.1f %% became graphs\n", (long long)total.models,
            100.0 * (double)total.unpacked / (double)total.models,
            100.0 * (double)total.graphs / (double)total.models);
    cr_assert(total.unpacked * 10 >= total.models * 3, "too few models can be unpacked");
}
