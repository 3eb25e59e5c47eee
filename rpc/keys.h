/* rpc/keys.h -- the file of pre-shared keys: who may connect, and what they may do.
 *
 *     # id             secret   roles         classes  state   users       note
 *     1f2e3d4c5b6a7988 5b0c...  submit,serve  *        active  users=ann   laptop of Ann
 *
 *     rpc_keys k = {0};
 *     if (!rpc_keys_read(&k, "pool.keys", err)) ...
 *     const rpc_key_row *row = rpc_keys_find(&k, id);
 *     rpc_keys_free(&k);
 *
 * A server reads the file to know whom to let in, a client to have a key: the first one that is not revoked.
 * The state `loopback` lets a key in from this machine alone. A changed file takes the place of the old one
 * at once, so a reader sees either all of the old one or all of the new one.
 *
 * Lifetime: rpc_keys_free overwrites the secrets.
 * Errors: into the caller's tec_error: a file that others may read or write is refused; a line that makes no
 *   sense is named by its number and never quoted, because it may hold a secret.
 * Threads: plain data; writers of one file wait for each other.
 */
#ifndef RPC_KEYS_H
#define RPC_KEYS_H

#include "rpc/message.h"
#include "rpc/seal.h"

enum { RPC_MOST_KEYS = 10000, RPC_KEY_TEXT = 128 };

typedef enum { RPC_KEY_ACTIVE, RPC_KEY_LOOPBACK, RPC_KEY_REVOKED } rpc_key_state;

typedef struct {
    rpc_key key;
    unsigned roles;
    rpc_key_state state;
    char classes[RPC_KEY_TEXT]; /* of devices that the key may use: "gpu,board"; "*": all */
    char
        users[RPC_KEY_TEXT]; /* whose requests for devices it may make: "ann,bob"; "*": anybody's; empty: only
                                 * those of a user that has the name of the key's id */
    char note[RPC_KEY_TEXT]; /* for people; may be empty */
} rpc_key_row;

typedef struct {
    rpc_key_row *rows;
    int n;
} rpc_keys;

bool rpc_keys_read(rpc_keys *keys, const char *path, tec_error *err);
void rpc_keys_free(rpc_keys *keys);
const rpc_key_row *rpc_keys_find(const rpc_keys *keys, const uint8_t id[RPC_ID_BYTES]); /* NULL: none */
/* A client's key: the one whose id has this text, or for NULL the first that is not revoked. NULL with an
 * error. */
const rpc_key_row *rpc_keys_pick(const rpc_keys *keys, const char *id, tec_error *err);

/* Adds a key with a fresh id and secret, which it puts into *row; makes the file where there is none. */
bool rpc_keys_add(const char *path, rpc_key_row *row, tec_error *err);
bool rpc_keys_revoke(const char *path, const char *id, tec_error *err);
/* Makes the file with one loopback key of all roles, unless the file is there; its folder too. */
bool rpc_keys_prepare(const char *path, tec_error *err);

/* "submit,serve"; false: not a list of roles. */
bool rpc_parse_roles(const char *text, unsigned *roles);
const char *rpc_show_roles(unsigned roles); /* as rpc_parse_roles reads them */
/* Whether the classes of a key ("*", "gpu,board") have this one. */
bool rpc_class_allowed(const char *classes, const char *name);

/* The user whose requests a key makes where it asks for those of `wanted`; "" is the first user of the key.
 * False: the key is not that user's. */
bool rpc_key_user(const rpc_key_row *row, const char *wanted, char *to, size_t size);

/* Whether an address HOST:PORT or HOST is on this machine by its text, without looking a name up: there a
 * loopback key is enough, and a server shares its cores with us. */
bool rpc_is_loopback(const char *address);

/* Where the loopback key lies unless a user names a file: below $XDG_STATE_HOME, or else below
 * $HOME/.local/state. Either may be NULL; false: both are. */
bool rpc_keys_default_path(const char *state_home, const char *home, char *to, size_t size);

#endif
