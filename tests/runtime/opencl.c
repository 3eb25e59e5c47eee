/* Holds the numbers of OpenCL that the runtime declares for itself against the published headers. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <criterion/criterion.h>

#include "runtime/opencl.h"

#define X(name, number) _Static_assert((int64_t)(CL_##name) == (number), #name);
RT_OPENCL_NUMBERS(X)
#undef X
_Static_assert(RT_CL_DEVICE_TYPE_ALL == CL_DEVICE_TYPE_ALL, "all devices");
_Static_assert(sizeof(cl_int) == 4 && sizeof(cl_bitfield) == 8 &&
                   sizeof(cl_context_properties) == sizeof(intptr_t),
               "widths");

Test(opencl, names_a_status_or_gives_its_number)
{
    char text[60];

    cr_assert_str_eq(rt_opencl_status(CL_OUT_OF_RESOURCES, text, sizeof text), "CL_OUT_OF_RESOURCES");
    cr_assert_str_eq(rt_opencl_status(-77, text, sizeof text), "status -77");
}
