/* tools/fuzz_plants.h -- `tec fuzz --plant`: the tester tested, by faults that are planted on purpose
 * (base/plants.def).
 *
 *     tool_fuzz_plants(&jobs, "all");               // prints after how many cases each fault was found
 */
#ifndef TOOLS_FUZZ_PLANTS_H
#define TOOLS_FUZZ_PLANTS_H

#include "tools/fuzz_jobs.h"

/* Switches the named fault on in the context; "none": none. False with an error in the context. */
bool tool_fuzz_plant(tec_context *cx, const char *name);
/* "list" names the faults; "all", a name or a number runs cases of `jobs` until each is found. The command's
 * exit status. */
int tool_fuzz_plants(const tool_fuzz_jobs *jobs, const char *which);

#endif
