/* tvmtune/users.h -- inside the room: the paths about users, and who may ask what.
 *
 *     if ((a = tvm_user_refusal(cx, r, id)).status) return a;   // another user's job
 *
 * The owner is the user who can read the folder's token, and is an admin. A user sees and changes own jobs
 * alone; an admin those of all, and the users.
 */
#ifndef TVMTUNE_USERS_H
#define TVMTUNE_USERS_H

#include "tvmtune/routes.h"

#define TVM_OWNER "owner"

enum { TVM_TOKEN_BYTES = 24, TVM_TOKEN_SIZE = 2 * TVM_TOKEN_BYTES + 1 };

/* Hexadecimal digits of random bytes; false with an error where the system has none. */
bool tvm_new_token(tec_context *cx, char out[TVM_TOKEN_SIZE]);
/* What the store keeps of a token. */
const char *tvm_token_hash(tec_context *cx, const char *token);

/* status 0: the job is the asker's own, or there is none of this number. */
tvm_answer tvm_user_refusal(tec_context *cx, const tvm_request *request, int64_t job);
/* The same for one more job of this user; request->quota says how many may be open. */
tvm_answer tvm_quota_refusal(tec_context *cx, const tvm_request *request);

tvm_answer tvm_add_user(tec_context *cx, const tvm_request *request, int64_t id, const char *name);
tvm_answer tvm_list_users(tec_context *cx, const tvm_request *request, int64_t id, const char *rest);
tvm_answer tvm_remove_user(tec_context *cx, const tvm_request *request, int64_t id, const char *name);
tvm_answer tvm_show_audit(tec_context *cx, const tvm_request *request, int64_t id, const char *rest);

#endif
