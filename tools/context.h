/* tools/context.h -- the contexts of the programs.
 *
 *     tec_context *cx = tool_context();
 *     ...
 *     tec_context_free(cx);
 *
 * The commands call the rooms from inside and set no guards (base/guard.h). When memory runs out the program
 * says so and ends.
 */
#ifndef TOOLS_CONTEXT_H
#define TOOLS_CONTEXT_H

#include "tec/base.h"

tec_context *tool_context(void); /* never NULL */

#endif
