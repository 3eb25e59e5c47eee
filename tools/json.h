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

/* A step from a value into one of its parts, or the whole value of an input. */
typedef struct tool_json_step tool_json_step;
struct tool_json_step {
    const tool_json_step *outer; /* NULL: the whole value */
    const char *name; /* of the input, or of the constructor that has the part; NULL: it has none */
    int index;        /* of the part */
};

/* Where a JSON value stands, for messages. */
typedef struct {
    const char *file;
    const tool_json_step *at; /* NULL: it is all of the file */
} tool_json_place;

/* The JSON in the file; to be freed by cJSON_Delete. NULL with an error. */
cJSON *tool_parse_json(tec_context *cx, const char *path);
/* A tensor of that element type and rank, in the context. NULL with an error. */
DLTensor *tool_json_tensor(tec_context *cx, const tool_json_place *place, const cJSON *json, base_dtype dtype,
                           int rank);
/* The same from a file. */
DLTensor *tool_read_json(tec_context *cx, const char *path, base_dtype dtype, int rank);
/* With so many digits that reading gives the same elements. */
void tool_write_json(tec_context *cx, base_text *out, const DLTensor *tensor);
/* "t.Node[1].Leaf[0]"; the middle of a long path is left out. */
const char *tool_json_path(tec_context *cx, const tool_json_step *at);
/* Fails with "PATH: expected EXPECTED, found FOUND"; NULL. */
void *tool_refuse_value(tec_context *cx, const tool_json_place *place, const char *expected,
                        const char *found);
/* The same with the beginning of the JSON that was found. */
void *tool_refuse_json(tec_context *cx, const tool_json_place *place, const char *expected,
                       const cJSON *json);

#endif
