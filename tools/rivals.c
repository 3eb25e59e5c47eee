/* tools/rivals.c -- see rivals.h. */
#include "tools/rivals.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { MOST_EXTENTS = 64 };

/* One value of the option, in parts: "mm=./gemm.so:gemm@1,8,64". */
typedef struct {
    const char *kernel, *file, *function;
    int64_t extents[MOST_EXTENTS];
    int n;
} words;

static bool refuse(tec_context *cx, const char *text, const char *what)
{
    base_fail(cx, TEC_INVALID, (base_loc){0}, "--rival %s: expected %s: %s", text, what, TOOL_RIVAL_VALUE);
    return false;
}

/* Without a list the powers of two up to 256. */
static bool read_extents(tec_context *cx, const char *text, const char *list, words *out)
{
    enum { LAST = 8 };

    for (int i = 0; !list && i <= LAST; i++)
        out->extents[out->n++] = INT64_C(1) << i;
    while (list) {
        size_t n = strcspn(list, ",");

        if (out->n == MOST_EXTENTS || !tool_number(base_strndup(cx, list, n), &out->extents[out->n]) ||
            out->extents[out->n] < 1)
            return refuse(cx, text, "up to 64 extents of at least 1 behind '@'");
        out->n++;
        list = list[n] ? list + n + 1 : NULL;
    }
    return true;
}

/* A kernel's name may have '=' in it, and so may have a folder's: the last one before the function counts. */
static bool read_words(tec_context *cx, const char *text, words *out)
{
    const char *colon = strrchr(text, ':'), *at = colon ? strchr(colon, '@') : NULL, *equals = NULL;

    for (const char *p = text; colon && p < colon; p++)
        if (*p == '=')
            equals = p;
    if (!equals || equals == text || colon == equals + 1 || !colon[1] || at == colon + 1)
        return refuse(cx, text, "a kernel, a file and a function");
    *out =
        (words){.kernel = base_strndup(cx, text, (size_t)(equals - text)),
                .file = base_strndup(cx, equals + 1, (size_t)(colon - equals - 1)),
                .function = base_strndup(cx, colon + 1, at ? (size_t)(at - colon - 1) : strlen(colon + 1))};
    return read_extents(cx, text, at ? at + 1 : NULL, out);
}

/* A name without a folder is a file of this folder, as for all other options. False with an error. */
static bool find_function(tec_context *cx, const words *one, tool_rivals *out, tec_kernel_fn **function)
{
    const char *path = strchr(one->file, '/') ? one->file : base_format(cx, "./%s", one->file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *found;

    if (!library) {
        const char *why = dlerror();

        base_fail(cx, TEC_IO, (base_loc){.file = one->file}, "cannot be loaded: %s", why ? why : "?");
        return false;
    }
    base_push(cx, &out->libraries, library);
    found = dlsym(library, one->function);
    if (!found)
        base_fail(cx, TEC_INVALID, (base_loc){.file = one->file}, "has no function '%s'", one->function);
    /* ISO C has no cast from an object's address to a function's; POSIX promises that both look alike. */
    memcpy(function, &found, sizeof *function);
    return found != NULL;
}

/* One value of the option. Measuring takes a moment, and its outcome decides what runs: so it is told. */
static bool add(tec_context *cx, const char *text, tec_module *module, const tec_run_options *options,
                tool_rivals *out)
{
    words one;
    tec_error err = {0};
    int faster = 0;
    tec_kernel_fn *function;

    if (!read_words(cx, text, &one) || !find_function(cx, &one, out, &function))
        return false;
    if (!tec_rivals_add(out->rivals, module, one.kernel, function, one.extents, one.n, options, &faster,
                        &err))
        return base_fail(cx, err.status, (base_loc){0}, "--rival %s: %s", text, err.text);
    fprintf(stderr, "'%s' of %s is faster than kernel '%s' at %d of the extents measured\n", one.function,
            one.file, one.kernel, faster);
    return true;
}

bool tool_open_rivals(tec_context *cx, const tool_list *given, tec_module *module,
                      const tec_run_options *options, tool_rivals *out)
{
    tec_error err = {0};

    *out = (tool_rivals){.rivals = given->n ? tec_rivals_new(&err) : NULL};
    if (given->n && !out->rivals)
        return base_fail(cx, err.status, (base_loc){0}, "%s", err.text);
    for (int i = 0; i < given->n; i++)
        if (!add(cx, given->at[i], module, options, out))
            return false;
    return true;
}

void tool_close_rivals(tool_rivals *rivals)
{
    tec_rivals_free(rivals->rivals);
    for (int i = 0; i < rivals->libraries.n; i++)
        dlclose(rivals->libraries.at[i]);
    *rivals = (tool_rivals){.rivals = NULL};
}
