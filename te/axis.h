/* te/axis.h -- inside the room: axes: an axis whose extent the parser learns later.
 *
 *     const ir_expr *k = te_axis_open(cx, "k", NULL, true);
 *     ... parse the body ...
 *     te_axis_set_extent(k, extent);          // once, before any stage holds the axis
 */
#ifndef TE_AXIS_H
#define TE_AXIS_H

#include "te/te.h"

/* extent NULL: not known yet */
const ir_expr *te_axis_open(tec_context *cx, const char *name, const ir_expr *extent, bool reduce);
void te_axis_set_extent(const ir_expr *axis, const ir_expr *extent);

#endif
