/* tools/check_case.h -- one case of `tec check`, in this process.
 *
 *     check_result r = check_case(cx, "node/test_relu", t, &(check_options){.verbose = true});
 */
#ifndef TOOLS_CHECK_CASE_H
#define TOOLS_CHECK_CASE_H

#include "tools/check_there.h"

typedef enum { CHECK_PASS, CHECK_FAIL, CHECK_UNSUPPORTED } check_outcome;

typedef struct {
    check_outcome outcome;
    const char *reason;
    int on_device, on_host; /* operators that compute something, of a case for a device (graph/place.h) */
} check_result;

typedef struct {
    const check_where *where; /* NULL: it runs in this process */
    bool verbose;             /* names the node that made a wrong value */
    bool compile_only;        /* passes when it is compiled, whatever it would compute */
} check_options;

check_result check_case(tec_context *cx, const char *dir, const target *machine,
                        const check_options *options);

#endif
