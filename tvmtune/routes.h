/* tvmtune/routes.h -- inside the room: the table of paths, and what a request gets as an answer.
 *
 *     tvm_answer a = tvm_route(cx, &request);     // always one: an error is an answer too
 */
#ifndef TVMTUNE_ROUTES_H
#define TVMTUNE_ROUTES_H

#include <cjson/cJSON.h>

#include "store/queue.h"
#include "tvmtune/devices.h"
#include "tvmtune/http.h"

typedef struct {
    store *db;
    const char *user; /* who asks */
    bool admin;
    int64_t quota; /* jobs of a user that are not over; 0: no limit */
    const char *method, *path;
    const char *const *keys, *const *values; /* of the query */
    int n_pairs;
    const void *body;
    size_t body_size;
    const char *tracker;  /* of the pool; NULL: this machine measures */
    tvm_devices *devices; /* NULL: nothing is known of a pool */
} tvm_request;

typedef struct {
    int status;
    const char *type;
    const void *data;
    size_t size;
} tvm_answer;

/* Whether the asker may see the job. */
bool tvm_may_see(const tvm_request *request, const store_queued *queued);

tvm_answer tvm_route(tec_context *cx, const tvm_request *request);
/* The rows of the table, as docs/openapi.json writes paths; false behind the last one. */
bool tvm_route_row(tec_context *cx, int index, const char **method, const char **path);
tvm_answer tvm_error(tec_context *cx, int status, const char *text);
/* Whether a name can be that of a submitted file: short UTF-8 without slashes and control characters that
 * ends in ".te" or ".onnx". */
bool tvm_is_file_name(const char *name);
const char *tvm_job_json(tec_context *cx, const store_queued *queued);
cJSON *tvm_job_object(const store_queued *queued);       /* the caller deletes it */
const char *tvm_json_text(tec_context *cx, cJSON *json); /* deletes the value */

#endif
