/* tec/records.h -- measured schedules: the record stores that `tec tune` makes, for those who build.
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
 * A record serves one target and one number of threads: those of the build must be those that it was tuned
 * for. What a tuner adopted last is taken, or else the fastest that was measured. The store is only read;
 * others may write it meanwhile.
 * Lifetime: until it is closed, and no longer than its context; what was built with it does not need it.
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
