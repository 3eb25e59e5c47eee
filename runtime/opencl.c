/* opencl.c -- finds the driver of OpenCL and its functions. */
#include "runtime/opencl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char *const libraries[] = {"libOpenCL.so.1", "libOpenCL.so"};

/* Made once; `failure` says why there is no opencl. */
static struct {
    rt_opencl functions;
    bool loaded;
    char failure[300];
} opencl;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

/* The driver's loader under its usual names; on failure the reason is kept for messages. */
static void *open_library(void)
{
    rt_line line = {opencl.failure, sizeof opencl.failure, 0};
    void *library = NULL;

    for (int i = 0; i < BASE_COUNT(libraries) && !library; i++)
        library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    rt_put(&line, "opencl: no driver: looked for");
    for (int i = 0; i < BASE_COUNT(libraries); i++)
        rt_put(&line, i ? ", '%s'" : " '%s'", libraries[i]);
    rt_put(&line, ": %s", dlerror());
    return NULL;
}

/* A driver of an older version fails with the first function that it lacks. */
static bool find_function(void *library, const char *name, void *into)
{
    void *found = dlsym(library, name);

    if (!found)
        snprintf(opencl.failure, sizeof opencl.failure,
                 "opencl: the driver lacks '%s', a function of OpenCL 1.2", name);
    /* ISO C has no cast from an object's address to a function's; POSIX promises that they have one
     * representation. */
    memcpy(into, &found, sizeof found);
    return found != NULL;
}

/* Once for the process; the library is never closed. */
static void load_driver(void)
{
    void *library = open_library();

    if (!library)
        return;
#define X(name, result, params)                                                                              \
    if (!find_function(library, "cl" #name, &opencl.functions.name))                                         \
        return;
    RT_OPENCL_FUNCTIONS(X)
#undef X
    opencl.loaded = true;
}

const rt_opencl *rt_opencl_driver(tec_error *err)
{
    pthread_once(&driver_once, load_driver);
    if (opencl.loaded)
        return &opencl.functions;
    return rt_fail(err, TEC_DEVICE, "%s", opencl.failure), NULL;
}

/* CL_INVALID_... for a number of OpenCL, "status N" for others. */
const char *rt_opencl_status(int32_t status, char *buffer, size_t size)
{
    static const struct {
        const char *name;
        int32_t number;
    } known[] = {
#define X(name, number) {"CL_" #name, number},
        RT_OPENCL_NUMBERS(X)
#undef X
    };

    snprintf(buffer, size, "status %d", (int)status);
    for (int i = 0; i < BASE_COUNT(known); i++)
        if (known[i].number == status && status < 0)
            snprintf(buffer, size, "%s", known[i].name);
    return buffer;
}
