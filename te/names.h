/* te/names.h -- inside the room: the names of a stage's axes, in its text and in the loop tree.
 *
 *     te_axis_names names = te_name_axes(cx, stage);
 *     base_addf(cx, text, "%s: n", names.axis[0]);          // "n'2" where "n" would hide the symbol n
 *
 * The printer and the loop tree both ask here. So a definition that was built by the C API has the loops of
 * the definition that its text is read as, and a schedule of the one fits the other.
 */
#ifndef TE_NAMES_H
#define TE_NAMES_H

#include "te/te.h"

typedef struct {
    const char *const *axis;   /* n_axes */
    const char *const *reduce; /* n_reduce */
} te_axis_names;

te_axis_names te_name_axes(tec_context *cx, const te_stage *stage);
/* The name of a scan's time, which is the first axis of all its updates. */
const char *te_time_name(tec_context *cx, const te_scan *scan);

#endif
