/* tests/runtime/standin/use.h -- for tests with the driver of opencl.h: open_driver() comes first. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "tests/runtime/standin/opencl.h"

enum { OUT_OF_RESOURCES = -5 };

static standin_live_fn *live;
static standin_fail_fn *fail_at;
static standin_calls_fn *calls;

static inline void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);

    cr_assert(found, "%s", dlerror());
    return found;
}

static inline void open_driver(void)
{
    void *library = dlopen(TEC_STANDIN_OPENCL, RTLD_NOW | RTLD_GLOBAL), *found;

    cr_assert(library, "%s", dlerror());
    found = find(library, "standin_live");
    memcpy(&live, &found, sizeof found);
    found = find(library, "standin_fail");
    memcpy(&fail_at, &found, sizeof found);
    found = find(library, "standin_calls");
    memcpy(&calls, &found, sizeof found);
}
