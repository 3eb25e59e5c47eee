/* tools/check_there.h -- inside the room: a case of `tec check` on a device far away.
 *
 *     bool good = check_there(&where, built, inputs, n_inputs, outputs, n_outputs, &err);
 */
#ifndef TOOLS_CHECK_THERE_H
#define TOOLS_CHECK_THERE_H

#include "graph/build.h"
#include "tools/remote.h"

/* Whom to ask for a device, and whom to tell that the device is there. */
typedef struct {
    tool_remote_options options;
    void (*ready)(void); /* may be NULL */
} check_where;

/* Runs compiled code there once: inputs go there, n_outputs come back as arrays, which the caller frees; an
 * output that is no tensor is NULL. False with the reason in err. */
bool check_there(const check_where *where, const graph_built *built, DLTensor *const *inputs, int n_inputs,
                 tec_array **outputs, int n_outputs, tec_error *err);

#endif
