/* store/queue_users.h -- who may use a daemon, and what they did.
 *
 *     store_user u = {.name = "ada", .role = STORE_USER, .token = hash};
 *     store_user_add(cx, s, &u);
 *     const store_user *who = store_user_find(cx, s, hash_of_what_was_shown);   // NULL without an error:
 * nobody
 *     store_audit_add(cx, s, &(store_audit){.user = who->name, .action = "cancel", .job = 7});
 *
 * A token is stored as its hash alone: who reads the store cannot come in with it.
 * Lifetime, errors, threads: as queue.h.
 */
#ifndef STORE_QUEUE_USERS_H
#define STORE_QUEUE_USERS_H

#include "store/queue.h"

typedef enum { STORE_USER, STORE_ADMIN } store_role;

const char *store_role_text(store_role role);
bool store_role_parse(const char *text, store_role *out);

typedef struct {
    const char *name; /* letters, digits, '-', '_' and '.', at most 64; needed */
    store_role role;
    const char *token; /* a hash */
    int64_t created;   /* set by the store */
} store_user;

/* A name or a token that somebody has already is an error. */
bool store_user_add(tec_context *cx, store *db, const store_user *user);
/* An error where there is no such user. The jobs of the user stay. */
bool store_user_remove(tec_context *cx, store *db, const char *name);
const store_user *store_user_find(tec_context *cx, store *db, const char *token);
/* By name, without tokens; NULL on an error. */
const store_user *store_users(tec_context *cx, store *db, int *count);

typedef struct {
    int64_t id, time; /* set by the store */
    const char *user, *action, *detail;
    int64_t job; /* 0: none */
} store_audit;

bool store_audit_add(tec_context *cx, store *db, const store_audit *audit);
/* The last `most` of them, the newest first; NULL on an error. */
const store_audit *store_audit_last(tec_context *cx, store *db, int most, int *count);

/* The jobs of a user that are not over: what a quota counts. -1 on an error. */
int64_t store_queue_open(tec_context *cx, store *db, const char *user);
/* Removes jobs that were over before this time, with their files; *n of them. Records stay. */
bool store_queue_expire(tec_context *cx, store *db, int64_t before, int64_t *n);

#endif
