/* tests/runtime/standin/use.h -- for tests with the driver of opencl.h: open_driver() comes first. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <string.h>

#include "runtime/alloc.h"
#include "tec/runtime.h"
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

typedef bool use_fn(tec_error *err);

/* Each call of the driver that `use` makes fails once, alone and then with all calls behind it. An error
 * names the driver; whatever happens, no object and no memory is left. Gives how often there was no error. */
static inline int64_t let_each_call_fail(use_fn *use, int64_t least)
{
    tec_error err = {0};
    int64_t before = rt_alloc_live(), total, unseen = 0;

    fail_at(0, 0, 0);
    cr_assert(use(&err), "%s", err.text);
    total = calls();
    cr_assert_gt(total, least);
    cr_assert_eq(live(), 0);
    cr_assert_eq(rt_alloc_live(), before);
    for (int lasting = 0; lasting < 2; lasting++)
        for (int64_t n = 1; n <= total; n++) {
            tec_error failed = {0};
            bool ok;

            fail_at(n, OUT_OF_RESOURCES, lasting);
            ok = use(&failed);
            unseen += ok;
            cr_assert(ok == (failed.status == TEC_OK), "call %d: '%s'", (int)n, failed.text);
            cr_assert(ok || strstr(failed.text, "opencl"), "call %d: '%s'", (int)n, failed.text);
            cr_assert_eq(live(), 0, "call %d leaves %d objects: %s", (int)n, (int)live(), failed.text);
            cr_assert_eq(rt_alloc_live(), before, "call %d leaves memory: %s", (int)n, failed.text);
        }
    return unseen;
}

/* The n-th allocation fails, for n = 1, 2, 3 ... until `use` succeeds: nothing is left. */
static inline void let_each_allocation_fail(use_fn *use, int64_t most)
{
    tec_error err = {0};
    int64_t before;

    fail_at(0, 0, 0);
    cr_assert(use(&err), "%s", err.text);
    before = rt_alloc_live();
    for (int64_t n = 1; n < most; n++) {
        tec_error failed = {0};
        bool ok;

        rt_alloc_fail_at(n);
        ok = use(&failed);
        rt_alloc_fail_at(0);
        cr_assert_eq(live(), 0, "allocation %d leaves objects: %s", (int)n, failed.text);
        cr_assert_eq(rt_alloc_live(), before, "allocation %d leaves memory: %s", (int)n, failed.text);
        if (ok)
            return;
        cr_assert_eq(failed.status, TEC_NO_MEMORY, "%s", failed.text);
    }
    cr_assert_fail("it never succeeds");
}
