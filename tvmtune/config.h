/* tvmtune/config.h -- inside the room: a file of options, put in front of those of the command line.
 *
 *     # tvmtune.conf
 *     port = 8780
 *     keep-days = 30
 *
 *     char **all = tvm_with_config(cx, &usage, &argc, argv);   // argv itself where it has no --config
 *
 * Errors: in the context, with file, line, and the name that the usage does not have.
 */
#ifndef TVMTUNE_CONFIG_H
#define TVMTUNE_CONFIG_H

#include "base/base.h"
#include "tools/args.h"

/* NULL with an error. An option that the command line has too is left out of the file's. */
char **tvm_with_config(tec_context *cx, const tool_usage *usage, int *argc, char **argv);

#endif
