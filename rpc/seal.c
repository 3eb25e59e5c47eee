/* rpc/seal.c -- see seal.h. Hashes are BLAKE2b; numbers are little-endian. */
#include "rpc/seal.h"

#include <sodium.h>
#include <string.h>

/* The last byte is a newline, which some faulty relays change: such a link fails with its first message. */
static const uint8_t mark[8] = {'t', 'e', 'c', '-', 'r', 'p', 'c', '\n'};

static void put_u16(uint8_t *to, int v)
{
    to[0] = (uint8_t)v;
    to[1] = (uint8_t)(v >> 8);
}

static int get_u16(const uint8_t *from)
{
    return from[0] | from[1] << 8;
}

/* ---- the handshake's bytes ---- */

/* Offsets: mark 0, oldest 8, newest 10, id 12, point 20, nonce 52; 84 bytes. They are the same in every
 * version. */
void rpc_put_greeting(uint8_t out[RPC_GREETING_BYTES], const rpc_greeting *greeting)
{
    memcpy(out, mark, sizeof mark);
    put_u16(out + 8, greeting->oldest);
    put_u16(out + 10, greeting->newest);
    memcpy(out + 12, greeting->id, RPC_ID_BYTES);
    memcpy(out + 20, greeting->point, RPC_POINT_BYTES);
    memcpy(out + 52, greeting->nonce, RPC_POINT_BYTES);
}

bool rpc_may_greet(const uint8_t *in, size_t n)
{
    return memcmp(in, mark, n < sizeof mark ? n : sizeof mark) == 0;
}

/* *greeting is filled in any case; false says that it means nothing. */
bool rpc_get_greeting(const uint8_t in[RPC_GREETING_BYTES], rpc_greeting *greeting)
{
    greeting->oldest = get_u16(in + 8);
    greeting->newest = get_u16(in + 10);
    memcpy(greeting->id, in + 12, RPC_ID_BYTES);
    memcpy(greeting->point, in + 20, RPC_POINT_BYTES);
    memcpy(greeting->nonce, in + 52, RPC_POINT_BYTES);
    return rpc_may_greet(in, RPC_GREETING_BYTES) && greeting->oldest >= 1 &&
           greeting->oldest <= greeting->newest;
}

/* Offsets: mark 0, verdict 8, version 10, oldest 12, newest 14, point 16, nonce 48, proof 80; 112 bytes. The
 * proof is last, so that what it covers is one piece. */
void rpc_put_answer(uint8_t out[RPC_ANSWER_BYTES], const rpc_answer *answer)
{
    memcpy(out, mark, sizeof mark);
    put_u16(out + 8, (int)answer->verdict);
    put_u16(out + 10, answer->version);
    put_u16(out + 12, answer->oldest);
    put_u16(out + 14, answer->newest);
    memcpy(out + 16, answer->point, RPC_POINT_BYTES);
    memcpy(out + 48, answer->nonce, RPC_POINT_BYTES);
    memcpy(out + RPC_ANSWER_HEAD, answer->proof, RPC_PROOF_BYTES);
}

bool rpc_get_answer(const uint8_t in[RPC_ANSWER_BYTES], rpc_answer *answer)
{
    answer->verdict = (rpc_verdict)get_u16(in + 8);
    answer->version = get_u16(in + 10);
    answer->oldest = get_u16(in + 12);
    answer->newest = get_u16(in + 14);
    memcpy(answer->point, in + 16, RPC_POINT_BYTES);
    memcpy(answer->nonce, in + 48, RPC_POINT_BYTES);
    memcpy(answer->proof, in + RPC_ANSWER_HEAD, RPC_PROOF_BYTES);
    return memcmp(in, mark, sizeof mark) == 0 && answer->oldest >= 1 && answer->oldest <= answer->newest;
}

/* ---- agreeing on keys ---- */

bool rpc_seal_ready(void)
{
    return sodium_init() >= 0;
}

void rpc_random(void *to, size_t n)
{
    randombytes_buf(to, n);
}

/* A fresh pair of keys for each connection: a secret that is stolen later opens no old recording. */
void rpc_seal_begin(rpc_seal *seal, uint8_t point[RPC_POINT_BYTES])
{
    *seal = (rpc_seal){.sent = 0};
    randombytes_buf(seal->private_point, sizeof seal->private_point);
    crypto_scalarmult_base(point, seal->private_point);
}

/* 32 bytes that depend on the key and the label. Each label gives another key, and none of them says anything
 * about the others. */
static void derive(uint8_t out[32], const uint8_t key[32], const char *label)
{
    crypto_generichash(out, 32, (const uint8_t *)label, strlen(label), key, 32);
}

/* What all keys come from: secret, Diffie-Hellman product and the hash of both messages. */
static void mix(uint8_t out[32], const rpc_key *key, const uint8_t product[32], const uint8_t seen[32])
{
    crypto_generichash_state h;

    crypto_generichash_init(&h, key->secret, sizeof key->secret, 32);
    crypto_generichash_update(&h, product, 32);
    crypto_generichash_update(&h, seen, 32);
    crypto_generichash_final(&h, out, 32);
    sodium_memzero(&h, sizeof h);
}

/* Both sides compute the same four values and swap the two directions. A point whose product is zero is
 * refused, since the result would not depend on this side's key. Everything that is not needed for frames is
 * wiped here. */
bool rpc_seal_agree(rpc_seal *seal, const rpc_key *key, const uint8_t *point, const uint8_t *greeting,
                    const uint8_t *answer, bool is_server)
{
    uint8_t product[32], root[32];
    crypto_generichash_state h;

    if (crypto_scalarmult(product, seal->private_point, point) != 0)
        return false;
    crypto_generichash_init(&h, NULL, 0, 32);
    crypto_generichash_update(&h, greeting, RPC_GREETING_BYTES);
    crypto_generichash_update(&h, answer, RPC_ANSWER_HEAD);
    crypto_generichash_final(&h, seal->seen, 32);
    mix(root, key, product, seal->seen);
    derive(seal->proof_key, root, "tec-rpc proof");
    derive(is_server ? seal->receive_key : seal->send_key, root, "tec-rpc client to server");
    derive(is_server ? seal->send_key : seal->receive_key, root, "tec-rpc server to client");
    sodium_memzero(seal->private_point, sizeof seal->private_point);
    sodium_memzero(product, sizeof product);
    sodium_memzero(root, sizeof root);
    return true;
}

/* The name of the side is part of the hash: the proof of a server sent back would otherwise pass for a
 * client's. */
void rpc_seal_proof(const rpc_seal *seal, bool of_server, uint8_t proof[RPC_PROOF_BYTES])
{
    crypto_generichash_state h;

    crypto_generichash_init(&h, seal->proof_key, sizeof seal->proof_key, RPC_PROOF_BYTES);
    crypto_generichash_update(&h, (const uint8_t *)(of_server ? "server" : "client"), 6);
    crypto_generichash_update(&h, seal->seen, sizeof seal->seen);
    crypto_generichash_final(&h, proof, RPC_PROOF_BYTES);
}

/* Compares in constant time, as the proof depends on the secret. */
bool rpc_seal_check(const rpc_seal *seal, bool of_server, const uint8_t proof[RPC_PROOF_BYTES])
{
    uint8_t mine[RPC_PROOF_BYTES];

    rpc_seal_proof(seal, of_server, mine);
    return sodium_memcmp(mine, proof, sizeof mine) == 0;
}

void rpc_seal_clear(rpc_seal *seal)
{
    sodium_memzero(seal, sizeof *seal);
}

/* ---- frames ---- */

/*     0 0 0 0 | number of the frame in its direction, 8 bytes, little-endian
 *
 * Each direction has a key of its own, so a nonce is never used twice with one key. */
static void make_nonce(uint8_t nonce[12], uint64_t number)
{
    memset(nonce, 0, 4);
    for (int i = 0; i < 8; i++)
        nonce[4 + i] = (uint8_t)(number >> (8 * i));
}

/* Seals in place; the tag of 16 bytes stands behind, for which the caller has left room. */
bool rpc_seal_close(rpc_seal *seal, uint8_t *data, size_t n, const uint8_t *head, size_t n_head)
{
    uint8_t nonce[12];

    if (seal->sent == UINT64_MAX)
        return false;
    make_nonce(nonce, seal->sent++);
    return crypto_aead_chacha20poly1305_ietf_encrypt(data, NULL, data, n, head, n_head, NULL, nonce,
                                                     seal->send_key) == 0;
}

/* The number rises also for a frame that does not open: the link is broken then and reads no further. */
bool rpc_seal_open(rpc_seal *seal, uint8_t *data, size_t n, const uint8_t *head, size_t n_head)
{
    uint8_t nonce[12];

    if (seal->received == UINT64_MAX)
        return false;
    make_nonce(nonce, seal->received++);
    return crypto_aead_chacha20poly1305_ietf_decrypt(data, NULL, NULL, data, n + RPC_TAG_BYTES, head, n_head,
                                                     nonce, seal->receive_key) == 0;
}
