/* compiler/cache.h -- generated code, found again by the text of the lowered programs.
 *
 *     comp_options options = {.target = t, .jobs = 1, .cache = comp_cache_new(cx)};
 *     comp_compile(one, units, n, &options);
 *     comp_compile(other, units, n, &options);          // generates nothing anew
 *
 * For callers that compile many modules in one process, whose kernels are often the same. The code depends on
 * the lowered programs, the target and `strict` alone, which are the key; functions are named by the key.
 * Lifetime: the code lies in the cache's context, which must outlive the contexts that compile with it.
 * Threads: one; `jobs` must be 1.
 */
#ifndef COMPILER_CACHE_H
#define COMPILER_CACHE_H

#include "targets/codegen.h"

typedef struct comp_cache comp_cache;

comp_cache *comp_cache_new(tec_context *cx);

/* The key of some lowered programs; in the context `cx`. */
const char *comp_cache_key(tec_context *cx, const ir_program *const *lowered, int n, const target *machine,
                           bool strict);
/* A name for the function of that key. */
const char *comp_cache_symbol(tec_context *cx, const char *key);
const target_code *comp_cache_find(const comp_cache *cache, const char *key); /* NULL: none */
/* Copies the code into the cache. */
void comp_cache_add(comp_cache *cache, const char *key, const target_code *code);

#endif
