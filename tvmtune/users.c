/* tvmtune/users.c -- see users.h. */
#include "tvmtune/users.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "store/queue_users.h"

/* ---- tokens ---- */

static void write_hex(char *out, const unsigned char *bytes, int n)
{
    for (int i = 0; i < n; i++)
        snprintf(out + (size_t)2 * (size_t)i, 3, "%02x", bytes[i]);
}

bool tvm_new_token(tec_context *cx, char out[TVM_TOKEN_SIZE])
{
    unsigned char bytes[TVM_TOKEN_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return base_fail(cx, TEC_IO, (base_loc){0}, "cannot get random numbers for a token: %s",
                         strerror(errno));
    write_hex(out, bytes, sizeof bytes);
    return true;
}

/* Unkeyed and without salt: a token has 192 random bits, so that no list of words reaches it. */
const char *tvm_token_hash(tec_context *cx, const char *token)
{
    unsigned char hash[crypto_generichash_BYTES];
    char *text = base_array(cx, char, 2 * (int)sizeof hash + 1);

    crypto_generichash(hash, sizeof hash, (const unsigned char *)token, strlen(token), NULL, 0);
    write_hex(text, hash, sizeof hash);
    return text;
}

/* ---- who may ask what ---- */

/* Status 0: allowed. A job that does not exist is not refused here, so that the answer is 404 for everybody.
 */
tvm_answer tvm_user_refusal(tec_context *cx, const tvm_request *request, int64_t job)
{
    const store_queued *j = request->admin ? NULL : store_queue_get(cx, request->db, job);
    bool own = request->admin || (j && strcmp(j->user, request->user) == 0);

    tec_context_clear(cx);
    return own || !j
               ? (tvm_answer){.status = 0}
               : tvm_error(cx, 403, base_format(cx, "job %lld belongs to another user", (long long)job));
}

/* Counts the user's jobs that are not over; a quota of 0 is none. */
tvm_answer tvm_quota_refusal(tec_context *cx, const tvm_request *request)
{
    int64_t open = request->quota && !request->admin ? store_queue_open(cx, request->db, request->user) : 0;

    if (open < 0)
        return tvm_error(cx, 500, tec_context_error(cx));
    if (!request->quota || open < request->quota)
        return (tvm_answer){.status = 0};
    return tvm_error(cx, 429,
                     base_format(cx, "user '%s' has %lld unfinished jobs; the quota is %lld", request->user,
                                 (long long)open, (long long)request->quota));
}

/* ---- the paths ---- */

static cJSON *describe(const store_user *user)
{
    cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "name", user->name);
    cJSON_AddStringToObject(o, "role", store_role_text(user->role));
    return o;
}

static tvm_answer answer_json(tec_context *cx, int status, cJSON *object)
{
    const char *text = tvm_json_text(cx, object);

    return (tvm_answer){.status = status, .type = "application/json", .data = text, .size = strlen(text)};
}

static const char *value_of(const tvm_request *request, const char *key)
{
    for (int i = 0; i < request->n_pairs; i++)
        if (strcmp(request->keys[i], key) == 0 && request->values[i])
            return request->values[i];
    return "";
}

/* The one answer that shows the token. */
tvm_answer tvm_add_user(tec_context *cx, const tvm_request *request, int64_t id, const char *name)
{
    const char *role = value_of(request, "role");
    char token[TVM_TOKEN_SIZE];
    store_user u = {.name = name};

    (void)id;
    if (*role && !store_role_parse(role, &u.role))
        return tvm_error(cx, 400, base_format(cx, "role: expected user or admin, found '%s'", role));
    if (strcmp(name, TVM_OWNER) == 0)
        return tvm_error(cx, 400, "'" TVM_OWNER "' is the name of the user with the folder's token");
    if (!tvm_new_token(cx, token))
        return tvm_error(cx, 500, tec_context_error(cx));
    u.token = tvm_token_hash(cx, token);
    if (!store_user_add(cx, request->db, &u))
        return tvm_error(cx, tec_context_status(cx) == TEC_INVALID ? 400 : 500, tec_context_error(cx));
    cJSON *o = describe(&u);
    cJSON_AddStringToObject(o, "token", token);
    return answer_json(cx, 201, o);
}

tvm_answer tvm_list_users(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    int n;
    const store_user *all = store_users(cx, request->db, &n);
    cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "users");

    (void)id, (void)rest;
    for (int i = 0; all && i < n; i++)
        cJSON_AddItemToArray(list, describe(&all[i]));
    tvm_answer a = answer_json(cx, 200, o);
    return all ? a : tvm_error(cx, 500, tec_context_error(cx));
}

tvm_answer tvm_remove_user(tec_context *cx, const tvm_request *request, int64_t id, const char *name)
{
    (void)id;
    if (!store_user_remove(cx, request->db, name))
        return tvm_error(cx, tec_context_status(cx) == TEC_INVALID ? 404 : 500, tec_context_error(cx));
    return answer_json(cx, 200, cJSON_CreateObject());
}

/* The last thousand. */
tvm_answer tvm_show_audit(tec_context *cx, const tvm_request *request, int64_t id, const char *rest)
{
    enum { MOST = 1000 };
    int n;
    const store_audit *all = store_audit_last(cx, request->db, MOST, &n);
    cJSON *o = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(o, "audit");

    (void)id, (void)rest;
    for (int i = 0; all && i < n; i++) {
        cJSON *row = cJSON_CreateObject();

        cJSON_AddItemToArray(list, row);
        cJSON_AddNumberToObject(row, "time", (double)all[i].time);
        cJSON_AddStringToObject(row, "user", all[i].user);
        cJSON_AddStringToObject(row, "action", all[i].action);
        cJSON_AddNumberToObject(row, "job", (double)all[i].job);
        cJSON_AddStringToObject(row, "detail", all[i].detail);
    }
    tvm_answer a = answer_json(cx, 200, o);
    return all ? a : tvm_error(cx, 500, tec_context_error(cx));
}
