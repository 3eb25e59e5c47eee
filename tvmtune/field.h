/* tvmtune/field.h -- inside the room: fields of JSON objects that may be absent or of another kind.
 *
 *     printf("%s\n", tvm_text_of(job, "state"));      // "": there is no such text
 */
#ifndef TVMTUNE_FIELD_H
#define TVMTUNE_FIELD_H

#include <cjson/cJSON.h>

const char *tvm_text_of(const cJSON *object, const char *key); /* ""; lives as long as the object */
double tvm_number_of(const cJSON *object, const char *key);    /* 0 */

#endif
