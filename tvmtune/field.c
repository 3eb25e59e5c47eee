/* tvmtune/field.c -- see field.h. */
#include "tvmtune/field.h"

const char *tvm_text_of(const cJSON *object, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

    return text ? text : "";
}

double tvm_number_of(const cJSON *object, const char *key)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(object, key);

    return cJSON_IsNumber(n) ? n->valuedouble : 0;
}
