/* tec/records.h -- measured schedules: builds with the record stores that `tec tune` makes.
 *
 *     tec_records *r = tec_records_open(cx, "tune.db");
 *     // kernels without a record get the default
 *     tec_module *m = tec_graph_build(g, &(tec_build_options){.threads = 1, .records = r});
 *
 *     // of a definition:
 *     tec_schedule *s = tec_schedule_new(cx, def, "native");
 *     const char *trace = tec_records_trace(r, def, NULL);
 *     if (trace) tec_schedule_replay(s, "tune.db", trace);
 *     tec_records_close(r);
 *
 * A record is used only by builds for the target and the number of threads that it was tuned for. Of several
 * records, the one that a tuner adopted last is used, or else the fastest one. The library only reads the
 * store; other processes may write to it meanwhile.
 * Lifetime: a store lives until it is closed, and at most as long as its context. Modules that were built
 *   with a store do not need it.
 * Errors: in the context, NULL.
 * Threads: one context, one thread.
 */
#ifndef TEC_RECORDS_H
#define TEC_RECORDS_H

#include "tec/build.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The file must exist. */
TEC_API TEC_GIVE tec_records *tec_records_open(tec_context *cx, const char *path);
TEC_API void tec_records_close(TEC_TAKE tec_records *records); /* NULL is legal */
/* The schedule, one step a line, for the target and the threads of the options (NULL: native, all cores).
 * NULL: there is no record that fits, or an error. It lives in the context. */
TEC_API const char *tec_records_trace(const tec_records *records, const tec_def *def,
                                      const tec_build_options *options);

#ifdef __cplusplus
}
#endif
#endif
