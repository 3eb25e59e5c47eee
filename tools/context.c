/* tools/context.c -- see context.h. */
#include "tools/context.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/guard.h"
#include "tools/args.h"

static void end(tec_context *root)
{
    fprintf(stderr, "tec: %s\n", root ? tec_context_error(root) : "error: out of memory");
    exit(TOOL_FAILED);
}

tec_context *tool_context(void)
{
    tec_context *cx = tec_context_new();

    if (!cx)
        end(NULL);
    base_set_last_resort(cx, end);
    tec_context_set_cuda(cx, getenv("TEC_CUDA"));
    return cx;
}
