/* cuda.c -- finds NVIDIA's driver and its functions. */
#include "runtime/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static const char library_name[] = "libcuda.so.1";

/* Made once; `failure` says why there is no driver. */
static struct {
    rt_cuda functions;
    bool loaded;
    char failure[300];
} driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

/* The first function that is missing names the driver as too old. */
static bool find_function(void *library, const char *name, void *into)
{
    void *found = dlsym(library, name);

    if (!found)
        snprintf(driver.failure, sizeof driver.failure,
                 "cuda: the driver lacks '%s', which drivers of CUDA 11.4 and later have", name);
    /* ISO C has no cast from an object's address to a function's; POSIX promises that they have one
     * representation. */
    memcpy(into, &found, sizeof found);
    return found != NULL;
}

/* Loads the library and looks up all functions of the table, once per process (pthread_once). On failure
 * `driver.failure` says why, and every later use of a CUDA device reports that text. A driver without any GPU
 * is not a failure: the machine then has 0 devices. */
static void load_driver(void)
{
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    char text[60];
    int status;

    if (!library) {
        snprintf(driver.failure, sizeof driver.failure, "cuda: no driver: looked for '%s': %s", library_name,
                 dlerror());
        return;
    }
#define X(field, name, params)                                                                               \
    if (!find_function(library, name, &driver.functions.field))                                              \
        return;
    RT_CUDA_FUNCTIONS(X)
#undef X
    status = driver.functions.Init(0);
    if (status != RT_CUDA_SUCCESS && status != RT_CUDA_NO_DEVICE) {
        snprintf(driver.failure, sizeof driver.failure, "cuda: the driver '%s' does not start: %s",
                 library_name, rt_cuda_status(&driver.functions, status, text, sizeof text));
        return;
    }
    driver.loaded = true;
}

/* Cheap after the first call. The library is never unloaded, as contexts may live until the end of the
 * process. */
const rt_cuda *rt_cuda_driver(tec_error *err)
{
    pthread_once(&driver_once, load_driver);
    if (driver.loaded)
        return &driver.functions;
    return rt_fail(err, TEC_DEVICE, "%s", driver.failure), NULL;
}

const char *rt_cuda_status(const rt_cuda *cuda, int status, char *buffer, size_t size)
{
    const char *name = NULL;

    if (cuda->GetErrorName(status, &name) == RT_CUDA_SUCCESS && name)
        snprintf(buffer, size, "%s", name);
    else
        snprintf(buffer, size, "status %d", status);
    return buffer;
}
