/* rpc/seal.h -- inside rpc/: the cryptography of a connection: one handshake, two keys, sealed frames.
 *
 *     client                                            server
 *     greeting: versions, key id, X25519 key, nonce  ->
 *                                                    <- answer: verdict, version, X25519 key, nonce, proof
 *     proof                                          ->
 *     sealed frames                                 <-> sealed frames
 *
 * Both sides hold a secret of 32 bytes, which is named by an id. The keys of the frames come from that
 * secret, from the Diffie-Hellman product of two fresh X25519 keys and from all bytes of greeting and
 * answer. A proof is a keyed hash of the same: who gives it knows the secret and saw the same bytes, so
 * that neither versions nor keys can be exchanged on the way, and a recorded handshake proves nothing to a
 * fresh one. There is one cipher and no choice of it.
 *
 * A frame is sealed by ChaCha20-Poly1305 with the number of the frame in its direction as nonce and its
 * length as additional data: a frame that is changed, repeated, left out or moved does not open.
 * Lifetime: plain data; rpc_seal_clear overwrites the secrets. Errors: false. Threads: one at a time.
 */
#ifndef RPC_SEAL_H
#define RPC_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RPC_ID_BYTES = 8, RPC_SECRET_BYTES = 32, RPC_POINT_BYTES = 32, RPC_PROOF_BYTES = 32 };

typedef struct {
    uint8_t id[RPC_ID_BYTES];
    uint8_t secret[RPC_SECRET_BYTES];
} rpc_key;

/* ---- the handshake ---- */

enum {
    RPC_GREETING_BYTES = 8 + 4 + RPC_ID_BYTES + 2 * RPC_POINT_BYTES,
    RPC_ANSWER_BYTES = 8 + 8 + 2 * RPC_POINT_BYTES + RPC_PROOF_BYTES,
    RPC_ANSWER_HEAD = RPC_ANSWER_BYTES - RPC_PROOF_BYTES /* what both proofs cover */
};

typedef enum {
    RPC_WELCOME = 0,
    RPC_UNKNOWN_KEY = 1,
    RPC_NO_COMMON_VERSION = 2,
    RPC_FULL = 3 /* as many connections as the server takes */
} rpc_verdict;

typedef struct {
    int oldest, newest; /* versions of the protocol that the client speaks */
    uint8_t id[RPC_ID_BYTES];
    uint8_t point[RPC_POINT_BYTES], nonce[RPC_POINT_BYTES];
} rpc_greeting;

typedef struct {
    rpc_verdict verdict;
    int version;        /* the one to speak */
    int oldest, newest; /* that the server speaks */
    uint8_t point[RPC_POINT_BYTES], nonce[RPC_POINT_BYTES], proof[RPC_PROOF_BYTES];
} rpc_answer;

void rpc_put_greeting(uint8_t out[RPC_GREETING_BYTES], const rpc_greeting *greeting);
bool rpc_get_greeting(const uint8_t in[RPC_GREETING_BYTES], rpc_greeting *greeting);
/* Whether n bytes, fewer than a greeting has or as many, can begin one. */
bool rpc_may_greet(const uint8_t *in, size_t n);
void rpc_put_answer(uint8_t out[RPC_ANSWER_BYTES], const rpc_answer *answer);
bool rpc_get_answer(const uint8_t in[RPC_ANSWER_BYTES], rpc_answer *answer);

/* ---- keys and frames ---- */

typedef struct {
    uint8_t private_point[32];
    uint8_t proof_key[32], send_key[32], receive_key[32];
    uint8_t seen[32]; /* hash of greeting and answer */
    uint64_t sent, received;
} rpc_seal;

/* Once before all else: false where the system gives no random numbers. Any thread, any number of times. */
bool rpc_seal_ready(void);
void rpc_random(void *to, size_t n);

/* A fresh pair: the public half is the point. */
void rpc_seal_begin(rpc_seal *seal, uint8_t point[RPC_POINT_BYTES]);
/* From the other side's point; false: the point is none that a fresh key gives. `answer`: its first
 * RPC_ANSWER_HEAD bytes. */
bool rpc_seal_agree(rpc_seal *seal, const rpc_key *key, const uint8_t *point, const uint8_t *greeting,
                    const uint8_t *answer, bool is_server);
void rpc_seal_proof(const rpc_seal *seal, bool of_server, uint8_t proof[RPC_PROOF_BYTES]);
bool rpc_seal_check(const rpc_seal *seal, bool of_server, const uint8_t proof[RPC_PROOF_BYTES]);
void rpc_seal_clear(rpc_seal *seal);

enum { RPC_TAG_BYTES = 16 };

/* In place: n bytes become n + RPC_TAG_BYTES. `head` is authenticated with them. */
bool rpc_seal_close(rpc_seal *seal, uint8_t *data, size_t n, const uint8_t *head, size_t n_head);
/* In place: n + RPC_TAG_BYTES bytes become n; false: the frame is not the next one of the other side. */
bool rpc_seal_open(rpc_seal *seal, uint8_t *data, size_t n, const uint8_t *head, size_t n_head);

#endif
