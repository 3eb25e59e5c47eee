/* compiler/options.h -- the public build options as the compiler's.
 *
 *     comp_options c;
 *     if (!comp_read_options(cx, options, NULL, &c)) return NULL;
 */
#ifndef COMPILER_OPTIONS_H
#define COMPILER_OPTIONS_H

#include "compiler/compiler.h"
#include "tec/build.h"

/* options may be NULL. The target is the one that the options name, otherwise `known`, otherwise the native
 * one. False with an error in the context. */
bool comp_read_options(tec_context *cx, const tec_build_options *options, const target *known,
                       comp_options *out);

/* rt_module_write's flags. */
unsigned comp_write_flags(const tec_build_options *options);

#endif
