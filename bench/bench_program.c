/* bench/bench_program.c -- a worker of bench/run: runs a program of bench/programs on all its inputs, when it
 * is told to.
 *
 *     bench_program trees MODULE THREADS FOLDER        // FOLDER: what bench/programs/make.py has written
 *     bench_program sentences MODULE THREADS FOLDER
 *     bench_program bert MODULE THREADS FOLDER         // f32[1, n, 768] for a few n
 *     bench_program words MODULE THREADS N             // f32[1, N, 768]
 *     bench_program list MODULE THREADS LENGTH         // a list of that many elements
 *     bench_program tensors MODULE THREADS FOLDER      // the bytes of input N are in FOLDER/N.bin
 *     < sample 0.2                                     // run for so many seconds
 *     > 31.25                                       // the medians of all inputs, added up, in milliseconds
 *     < write FILE  // the results of a pass, as floats, one behind the other
 *     < steps                                          // instructions of a pass
 *     < profile  // of one pass: milliseconds of kernels, shape kernels,
 *                                                      // memory, control, and bytes that kernels touch
 *
 * First it says "ready 0". It links the runtime alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tec/program.h"

enum { WORD = 300, MOST = 4096 };

typedef struct {
    tec_module *module;
    tec_program *program;
    const char *folder;
    float *words;
    int64_t n_words;
    tec_object *in[MOST], *state, *out[MOST];
    int n, n_in;
    tec_error err;
} worker;

/* ---- inputs ---- */

static char *read_file(worker *self, const char *name, size_t *size)
{
    char path[1000];
    char *text = NULL;
    FILE *f;
    long n;

    snprintf(path, sizeof path, "%s/%s", self->folder, name);
    f = fopen(path, "rb");
    if (f && fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
        text = calloc(1, (size_t)n + 1);
        *size = text ? fread(text, 1, (size_t)n, f) : 0;
    }
    if (f)
        fclose(f);
    if (!text)
        snprintf(self->err.text, sizeof self->err.text, "cannot read %.400s", path);
    return text;
}

static tec_object *matrix(worker *self, const float *data, int64_t rows, int64_t columns)
{
    int64_t shape[] = {rows, columns};
    DLTensor t = {.data = (void *)(uintptr_t)data,
                  .device = {kDLCPU, 0},
                  .ndim = 2,
                  .dtype = {kDLFloat, 32, 1},
                  .shape = shape};

    return tec_object_tensor(self->program, &t, &self->err);
}

static tec_object *data(worker *self, const char *constructor, tec_object **field, int n)
{
    tec_object *made = tec_object_data(self->program, constructor, field, n, &self->err);

    for (int i = 0; i < n; i++)
        tec_object_free(field[i]);
    return made;
}

/* 3 or [tree, tree]: a leaf is the number of a word. */
static tec_object *read_tree(worker *self, const char **at)
{
    tec_object *child[2];

    while (**at == ' ' || **at == ',')
        ++*at;
    if (**at != '[') {
        long word = strtol(*at, (char **)(uintptr_t)at, 10);

        child[0] = matrix(self, self->words + WORD * (word % self->n_words), 1, WORD);
        return data(self, "Leaf", child, 1);
    }
    ++*at;
    child[0] = read_tree(self, at);
    child[1] = read_tree(self, at);
    while (**at == ' ' || **at == ']') {
        ++*at;
        if ((*at)[-1] == ']')
            break;
    }
    return data(self, "Node", child, 2);
}

static bool read_inputs(worker *self, bool trees)
{
    size_t size;
    char *text = read_file(self, trees ? "trees.json" : "lengths.json", &size);
    const char *at = text;

    self->words = (float *)(void *)read_file(self, "words.f32", &size);
    self->n_words = (int64_t)(size / sizeof(float)) / WORD;
    if (!text || !self->words)
        return false;
    while (*at && *at != '[')
        at++;
    for (at++; *at && *at != ']' && self->n < MOST && !self->err.status;) {
        self->in[self->n++] = trees
                                  ? read_tree(self, &at)
                                  : matrix(self, self->words, strtol(at, (char **)(uintptr_t)&at, 10), WORD);
        while (*at == ',' || *at == ' ')
            at++;
    }
    if (!trees) {
        float *zeros = calloc(512, sizeof *zeros);

        self->state = matrix(self, zeros, 1, 512);
        free(zeros);
    }
    free(text);
    return self->err.status == TEC_OK;
}

/* The first `count` rows of what was read. */
static void add_words(worker *self, int64_t count)
{
    int64_t shape[] = {1, count, 768};
    DLTensor t = {
        .data = self->words, .device = {kDLCPU, 0}, .ndim = 3, .dtype = {kDLFloat, 32, 1}, .shape = shape};

    self->in[self->n++] = tec_object_tensor(self->program, &t, &self->err);
}

/* The first rows of one matrix, so many as each length says. */
static bool read_bert(worker *self)
{
    static const int64_t lengths[] = {12, 19, 25, 32}; /* of bench/peers/programs_peer.py too */
    size_t size;

    self->words = (float *)(void *)read_file(self, "bert.f32", &size);
    for (size_t i = 0; self->words && i < sizeof lengths / sizeof *lengths; i++)
        add_words(self, lengths[i]);
    return self->words && self->err.status == TEC_OK;
}

/* The same numbers as bench_model's. */
static bool make_words(worker *self, int64_t count)
{
    uint32_t state = 12345;

    self->words = calloc((size_t)count * 768, sizeof *self->words);
    for (int64_t i = 0; i < count * 768; i++) {
        state = state * 1664525 + 1013904223;
        self->words[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
    add_words(self, count);
    return self->err.status == TEC_OK;
}

static bool make_list(worker *self, long length)
{
    float zero[2] = {0, 0};
    tec_object *list = data(self, "Nil", NULL, 0);

    for (long i = 0; i < length && list; i++) {
        tec_object *field[] = {matrix(self, zero, 1, 2), list};

        list = data(self, "Cons", field, 2);
    }
    self->in[self->n++] = list;
    return list != NULL;
}

/* The type that the program prints, as in "i64[2]"; all extents are constant. */
static bool read_type(worker *self, int index, DLDataType *dtype, int64_t *shape, int *rank)
{
    static const struct {
        const char *name;
        DLDataType dtype;
    } types[] = {{"f32", {kDLFloat, 32, 1}}, {"i64", {kDLInt, 64, 1}}, {"bool", {kDLBool, 8, 1}}};
    char text[200];
    const char *at = strchr(tec_program_input_text(self->program, index, text, sizeof text), '[');
    bool known = false;

    for (size_t i = 0; at && i < sizeof types / sizeof *types; i++)
        if (strlen(types[i].name) == (size_t)(at - text) &&
            strncmp(types[i].name, text, (size_t)(at - text)) == 0) {
            *dtype = types[i].dtype;
            known = true;
        }
    for (*rank = 0; known && *rank < 8 && *at != ']' && at[1] != ']'; ++*rank) {
        char *end;

        shape[*rank] = strtoll(at + 1, &end, 10);
        known = end > at + 1;
        at = end;
    }
    if (!known)
        snprintf(self->err.text, sizeof self->err.text, "input %d is %.100s, whose bytes cannot be read",
                 index, text);
    return known;
}

static tec_object *read_tensor(worker *self, int index)
{
    char name[40];
    int64_t shape[8];
    size_t size;
    DLTensor t = {.device = {kDLCPU, 0}, .shape = shape};

    if (!read_type(self, index, &t.dtype, shape, &t.ndim))
        return NULL;
    snprintf(name, sizeof name, "%d.bin", index);
    t.data = read_file(self, name, &size);
    tec_object *made = NULL;
    if (t.data && (int64_t)size == tec_tensor_bytes(&t))
        made = tec_object_tensor(self->program, &t, &self->err);
    else if (t.data)
        snprintf(self->err.text, sizeof self->err.text, "%s holds %zu bytes, expected %zu", name, size,
                 (size_t)tec_tensor_bytes(&t));
    free(t.data);
    return made;
}

/* One set of inputs. */
static bool read_tensors(worker *self)
{
    if (self->n_in > 2)
        return snprintf(self->err.text, sizeof self->err.text, "%d inputs, expected one or two", self->n_in) <
               0;
    self->in[self->n++] = read_tensor(self, 0);
    if (self->n_in > 1)
        self->state = read_tensor(self, 1);
    return self->in[0] && (self->n_in < 2 || self->state);
}

/* ---- runs ---- */

static tec_status pass(void *user)
{
    worker *self = user;

    for (int i = 0; i < self->n; i++) {
        tec_object *in[] = {self->in[i], self->state};

        tec_object_free(self->out[i]);
        self->out[i] = NULL;
        if (!tec_program_run(self->program, in, self->n_in, &self->out[i], 1, &self->err))
            return self->err.status;
    }
    return TEC_OK;
}

static bool write_results(worker *self, const char *path)
{
    FILE *f = fopen(path, "wb");

    for (int i = 0; f && i < self->n; i++) {
        const DLTensor *t = tec_object_dltensor(self->out[i]);

        if (t)
            fwrite(t->data, sizeof(float), (size_t)tec_tensor_elements(t), f);
    }
    return f && fclose(f) == 0;
}

static long long count_steps(worker *self)
{
    tec_program_counts counts;
    long long steps = 0;

    for (int i = 0; i < self->n; i++) {
        tec_object *in[] = {self->in[i], self->state}, *out = NULL;

        if (!tec_program_run(self->program, in, self->n_in, &out, 1, &self->err))
            return -1;
        tec_object_free(out);
        tec_program_count(self->program, &counts);
        steps += counts.steps;
    }
    return steps;
}

static bool print_profile(worker *self)
{
    double ms[4] = {0}, bytes = 0;
    tec_profile_row row;

    tec_program_profile_reset(self->program);
    if (pass(self) != TEC_OK)
        return false;
    for (int i = 0; tec_program_profile(self->program, i, &row); i++) {
        ms[row.group] += row.total_s * 1e3;
        bytes += row.gbytes * row.total_s * 1e9;
    }
    printf("%.6f %.6f %.6f %.6f %.0f\n", ms[0], ms[1], ms[2], ms[3], bytes);
    return true;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median time of each input, added up: a sample is as short as one run, so that what else the machine
 * does spoils few of them. Negative: a run failed. */
static double sample(worker *self, double seconds)
{
    enum { ROUNDS = 256 };
    double *times = calloc((size_t)self->n * ROUNDS, sizeof *times), end = tec_clock() + seconds, all = 0;
    int rounds = 0;

    for (; times && rounds < ROUNDS && (rounds < 3 || tec_clock() < end); rounds++)
        for (int i = 0; i < self->n; i++) {
            tec_object *in[] = {self->in[i], self->state}, *out = NULL;
            double start = tec_clock();

            if (!tec_program_run(self->program, in, self->n_in, &out, 1, &self->err))
                return free(times), -1;
            times[i * ROUNDS + rounds] = tec_clock() - start;
            tec_object_free(out);
        }
    for (int i = 0; times && i < self->n; i++) {
        qsort(times + (ptrdiff_t)i * ROUNDS, (size_t)rounds, sizeof *times, compare_doubles);
        all += times[i * ROUNDS + rounds / 2];
    }
    free(times);
    return all * 1e3;
}

/* Answers one line. */
static bool answer(worker *self, const char *line)
{
    char path[1000];
    double seconds, ms;

    if (sscanf(line, "write %999s", path) == 1)
        return pass(self) == TEC_OK && write_results(self, path) && printf("written\n") > 0;
    if (strncmp(line, "steps", 5) == 0)
        return printf("%lld\n", count_steps(self)) > 0 && !self->err.status;
    if (strncmp(line, "profile", 7) == 0)
        return print_profile(self);
    if (sscanf(line, "sample %lf", &seconds) != 1 || (ms = sample(self, seconds)) < 0)
        return false;
    return printf("%.6f\n", ms) > 0;
}

static bool open_program(worker *self, char **argv)
{
    const tec_program_options o = {
        .run = {.threads = atoi(argv[3]), .profile = getenv("BENCH_PROFILE") != NULL}};

    self->module = tec_module_open(argv[2], &(tec_module_options){.copy_weights = true}, &self->err);
    self->program = self->module ? tec_program_new(self->module, NULL, &o, &self->err) : NULL;
    self->folder = argv[4];
    if (!self->program)
        return false;
    self->n_in = tec_program_n_inputs(self->program);
    return strcmp(argv[1], "list") == 0      ? make_list(self, atol(argv[4]))
           : strcmp(argv[1], "bert") == 0    ? read_bert(self)
           : strcmp(argv[1], "words") == 0   ? make_words(self, atol(argv[4]))
           : strcmp(argv[1], "tensors") == 0 ? read_tensors(self)
                                             : read_inputs(self, strcmp(argv[1], "trees") == 0);
}

int main(int argc, char **argv)
{
    static worker w;
    char line[1100];

    if (argc != 5) {
        fprintf(
            stderr,
            "usage: bench_program trees|sentences|bert|words|list|tensors MODULE THREADS FOLDER|LENGTH\n");
        return 2;
    }
    bool good = open_program(&w, argv) && pass(&w) == TEC_OK && printf("ready 0\n") > 0;
    fflush(stdout);
    while (good && fgets(line, sizeof line, stdin)) {
        good = answer(&w, line);
        fflush(stdout);
    }
    if (!good)
        fprintf(stderr, "bench_program: %s\n", w.err.text);
    for (int i = 0; i < w.n; i++) {
        tec_object_free(w.in[i]);
        tec_object_free(w.out[i]);
    }
    tec_object_free(w.state);
    tec_program_free(w.program);
    tec_module_free(w.module);
    free(w.words);
    return good ? 0 : 1;
}
