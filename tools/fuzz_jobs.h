/* tools/fuzz_jobs.h -- cases of `tec fuzz` in processes of their own, so that a crash or a hang is one case's
 * finding.
 *
 *     tool_fuzz_jobs j = {.cx = cx, .target = "native", .seed = 1, .first = 0, .end = 100, .jobs = 2,
 *         .timeout = 30, .row = print_row};
 *     tool_fuzz_run(&j);                            // row is called for each case, in the order of the cases
 */
#ifndef TOOLS_FUZZ_JOBS_H
#define TOOLS_FUZZ_JOBS_H

#include "tools/fuzz_rpc.h"

typedef struct {
    int64_t index;
    fuzz_outcome outcome;
    int accepted, refused;
    uint64_t primitives, passes;
    const char *where, *what;
    const char *text; /* the case as a file, where the process did not live to tell; otherwise NULL */
} tool_fuzz_row;

typedef struct {
    tec_context *cx;
    const char *target;
    uint64_t seed;
    int64_t first, end; /* cases first .. end-1 */
    int jobs;
    const char *rpc, *key_file; /* the server that runs the code; rpc NULL: this machine */
    bool compile_only;          /* no machine runs it */
    double timeout;             /* seconds for one case */
    const char *plant;          /* the planted fault that is switched on; NULL: none */
    /* False: enough, the rest is left out. */
    bool (*row)(void *user, const tool_fuzz_row *row);
    void *user;
} tool_fuzz_jobs;

/* False with *why: a process could not be started ("..."), or the run was interrupted (NULL); rows that came
 * are told of in any case. */
bool tool_fuzz_run(const tool_fuzz_jobs *given, const char **why);
/* One case file in a process of its own. */
bool tool_fuzz_try(const tool_fuzz_jobs *jobs, const char *path, tool_fuzz_row *out);

/* In the child: cases first .. end-1 of the seed, or the file; rows on stdout, what it is about to do in the
 * memory behind fd 3. */
int tool_fuzz_work(const target *machine, tec_context *cx, tool_fuzz_server *server, uint64_t seed,
                   int64_t first, int64_t end);
int tool_fuzz_work_file(const target *machine, tec_context *cx, tool_fuzz_server *server, const char *path);

#endif
