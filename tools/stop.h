/* tools/stop.h -- Ctrl-C of a command that runs for long: the first asks it to come to an end, the second
 * ends it at once.
 *
 *     tool_stop *s = tool_stop_watch(cx, "tune: stopping", lock_path);
 *     while (!tool_stop_asked(s, 0)) ...
 *     tool_stop_close(s);
 *
 * SIGINT and SIGTERM are blocked in the thread that calls and in those that it starts from then on; a thread
 * of its own waits for them, so that a second one is heard whatever the command is busy with.
 * Lifetime: until it is closed. Errors: in the context. Threads: `tool_stop_asked` may be called by any.
 */
#ifndef TOOLS_STOP_H
#define TOOLS_STOP_H

#include "base/base.h"

typedef struct tool_stop tool_stop;

/* The message is printed at the first one; `remove` is a file that must not stay behind at the second one, or
 * NULL. */
tool_stop *tool_stop_watch(tec_context *cx, const char *message, const char *remove);
/* Waits up to so many milliseconds for it. NULL: false at once. */
bool tool_stop_asked(tool_stop *stop, int ms);
void tool_stop_close(tool_stop *stop); /* NULL is legal */

#endif
