/* tools/context.c -- see context.h. */
#include "tools/context.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/guard.h"
#include "tools/args.h"

/* The last resort without memory: there is no way to go on, so the program says so and ends. */
static void end(tec_context *root)
{
    fprintf(stderr, "tec: %s\n", root ? tec_context_error(root) : "error: out of memory");
    exit(TOOL_FAILED);
}

/* TEC_CUDA names a folder of CUDA, where one is needed that is not in the usual place. */
tec_context *tool_context(void)
{
    tec_context *cx = tec_context_new();

    if (!cx)
        end(NULL);
    base_set_last_resort(cx, end);
    tec_context_set_cuda(cx, getenv("TEC_CUDA"));
    return cx;
}
