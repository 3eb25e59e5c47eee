/* tests/embed/kit.h -- the library as a program that embeds it sees it: one compile from text, or from a
 * model, to the bytes of a module file.
 *
 *     bytes first = compile(cx, &small);                      // NULL bytes: the error is in cx
 *     cr_assert(same_bytes(first, compile(again, &small)));
 */
#ifndef TESTS_EMBED_KIT_H
#define TESTS_EMBED_KIT_H

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tec/tec.h"

/* What is compiled: a definition with steps, or a model. */
typedef struct {
    const char *definition, *steps; /* or */
    const char *model;
    int jobs;
} input;

static const input small = {
    .definition = "def f(n, A: f32[n]) {\n  B[i] = A[i] + 1\n  return B\n}\n",
    .steps = "B.i.0, B.i.1 = split(B.i, _, 4)\nvectorize(B.i.1)\n",
    .jobs = 1,
};

typedef struct {
    char *data; /* malloc; NULL: there are none */
    size_t size;
} bytes;

static inline bytes read_bytes(const char *path)
{
    FILE *f = fopen(path, "rb");
    bytes b = {0};

    cr_assert(f, "%s: %s", path, strerror(errno));
    fseek(f, 0, SEEK_END);
    b.size = (size_t)ftell(f);
    b.data = malloc(b.size);
    rewind(f);
    cr_assert(fread(b.data, 1, b.size, f) == b.size);
    fclose(f);
    return b;
}

static inline bool same_bytes(bytes a, bytes b)
{
    return a.data && b.data && a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static inline bool build_definition(tec_context *cx, const input *in, const tec_build_options *o,
                                    const char *path)
{
    tec_def *d = tec_def_parse(cx, "small.te", in->definition, 0);
    tec_schedule *s = d ? tec_schedule_new(cx, d, o->target) : NULL;
    tec_module *m = s && tec_schedule_replay(s, "small.te", in->steps) ? tec_build(s, o) : NULL;

    tec_module_free(m);
    return m && tec_build_file(s, o, path);
}

static inline bool build_model(tec_context *cx, const input *in, const tec_build_options *o, const char *path)
{
    tec_graph *g = tec_graph_import(cx, in->model, NULL);

    return g && tec_graph_build_file(g, o, path);
}

/* Loads a definition into this process as well. The file is gone afterwards. */
static inline bytes compile(tec_context *cx, const input *in)
{
    tec_build_options o = {.target = "native", .jobs = in->jobs};
    char path[100];
    bytes b = {0};

    snprintf(path, sizeof path, "/tmp/tec-embed-%d-%p.tec", (int)getpid(), (void *)cx);
    if (in->model ? build_model(cx, in, &o, path) : build_definition(cx, in, &o, path))
        b = read_bytes(path);
    unlink(path);
    return b;
}

/* The bytes that a fresh context gives. */
static inline bytes compile_once(const input *in)
{
    tec_context *cx = tec_context_new();
    bytes b = compile(cx, in);

    cr_assert(b.data, "%s", tec_context_error(cx));
    tec_context_free(cx);
    return b;
}

/* ---- what is left behind ---- */

static inline int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

static inline bool has_children(void)
{
    return waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
}

static inline int threads(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    while (d && readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Whether there are no more threads than before, within two seconds: the kernel wakes the caller of
 * pthread_join before the thread that ended is off its list. */
static inline bool threads_ended(int before)
{
    for (int i = 0; i < 200 && threads() > before; i++)
        usleep(10000);
    return threads() <= before;
}

#endif
