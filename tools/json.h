/* tools/json.h -- tensors as JSON.
 *
 *     1.5    [[1, 2], [3, 4]]    {"shape": [0, 2], "data": []}
 *
 * JSON has no infinity and no NaN: these are the texts "inf", "-inf" and "nan". Integers beyond 2^53 are
 * written, but not read, since the numbers of JSON are double precision for most programs.
 */
#ifndef TOOLS_JSON_H
#define TOOLS_JSON_H

#include <cjson/cJSON.h>

#include "base/base.h"

/* The JSON in the file; to be freed by cJSON_Delete. NULL with an error. */
cJSON *tool_parse_json(tec_context *cx, const char *path);
/* A tensor of that element type and rank, in the context; `path` is for messages. NULL with an error. */
DLTensor *tool_json_tensor(tec_context *cx, const char *path, const cJSON *json, base_dtype dtype, int rank);
/* The same from a file. */
DLTensor *tool_read_json(tec_context *cx, const char *path, base_dtype dtype, int rank);
/* With so many digits that reading gives the same elements. */
void tool_write_json(tec_context *cx, base_text *out, const DLTensor *tensor);
/* Fails with "expected EXPECTED, found ..." and the beginning of the JSON; NULL. */
void *tool_refuse_json(tec_context *cx, const char *path, const char *expected, const cJSON *json);

#endif
