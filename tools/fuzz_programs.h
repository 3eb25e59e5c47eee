/* tools/fuzz_programs.h -- `tec fuzz --programs`: random programs, by the interpreter of graphs and by the VM
 * (fuzz/programs/programs.h).
 *
 *     tool_fuzz_programs o = {.target = t, .seed = 1, .cases = 1000, .plant = "none"};
 *     return tool_fuzz_programs_run(cx, &o);
 *
 * A finding is printed with its text and its seed; TOOL_FAILED where there is one. With a plant cases run
 * until one differs with the fault and not without it.
 */
#ifndef TOOLS_FUZZ_PROGRAMS_H
#define TOOLS_FUZZ_PROGRAMS_H

#include "base/base.h"
#include "targets/target.h"

typedef struct {
    const target *target;
    uint64_t seed;
    int64_t first, cases;
    const char *plant; /* "none", a name, or "all" */
} tool_fuzz_programs;

int tool_fuzz_programs_run(tec_context *cx, const tool_fuzz_programs *programs);

#endif
