/* tvmtune/views.h -- inside the room: paths that only look: the records by kernel, the devices that measure.
 *
 *     GET /v1/records?search=conv     the kernels with a record whose text has the words, at most
 * TVM_MOST_RECORDS
 *     GET /v1/devices                 each device with its trials and failures, and of this machine load and
 * temperature
 */
#ifndef TVMTUNE_VIEWS_H
#define TVMTUNE_VIEWS_H

#include "tvmtune/routes.h"

enum { TVM_MOST_RECORDS = 200 };

tvm_answer tvm_show_records(tec_context *cx, const tvm_request *request, int64_t id, const char *rest);
tvm_answer tvm_show_devices(tec_context *cx, const tvm_request *request, int64_t id, const char *rest);

#endif
