/* tests/rpc/grammar.h -- random messages of the wire, from the rows of rpc/messages.def, and damage to them.
 *
 *     uint64_t seed = 1;
 *     const rpc_message *m = fuzz_kind(&seed, RPC_FROM_CLIENT);
 *     rt_bytes body = {0};
 *     fuzz_body(&seed, &body, m->record, version);        // a well-formed body with wild values
 *     fuzz_damage(&seed, &body);                          // sometimes: bytes changed, cut, added, doubled
 */
#ifndef TESTS_RPC_GRAMMAR_H
#define TESTS_RPC_GRAMMAR_H

#include <stdlib.h>
#include <string.h>

#include "rpc/link.h"

/* splitmix64 */
static inline uint64_t fuzz_random(uint64_t *seed)
{
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline int64_t fuzz_below(uint64_t *seed, int64_t n)
{
    return (int64_t)(fuzz_random(seed) % (uint64_t)n);
}

static inline int64_t fuzz_number(uint64_t *seed)
{
    static const int64_t edges[] = {0,   1,    -1,    2,         8,         16,        32,     64,
                                    255, 4096, 65536, INT32_MAX, INT64_MAX, INT64_MIN, 1 << 20};

    switch (fuzz_below(seed, 4)) {
    case 0: return edges[fuzz_below(seed, (int64_t)(sizeof edges / sizeof *edges))];
    case 1: return (int64_t)fuzz_random(seed);
    default: return fuzz_below(seed, 6);
    }
}

static inline double fuzz_decimal(uint64_t *seed)
{
    static const double edges[] = {0, -0.0, 1, -1, 1e-300, 1e300, 0.001};
    union {
        uint64_t bits;
        double value;
    } any = {fuzz_random(seed)};

    return fuzz_below(seed, 4) ? edges[fuzz_below(seed, 7)] : any.value;
}

static inline const char *fuzz_text(uint64_t *seed)
{
    static const char *const usual[] = {
        "",       "cpu:0", "cpu",    "board", "ann",         "f",        "../../etc/passwd",
        "x86_64", "a/b",   "opencl", "..",    "127.0.0.1:1", "\x01\xff", "s0/cpu:0"};
    static char longer[3000];

    if (fuzz_below(seed, 20))
        return usual[fuzz_below(seed, (int64_t)(sizeof usual / sizeof *usual))];
    int64_t n = fuzz_below(seed, (int64_t)sizeof longer - 1);
    memset(longer, 'x', (size_t)n);
    longer[n] = '\0';
    return longer;
}

/* Values of the fields in their order, as the encoder would write them. */
static inline void fuzz_body(uint64_t *seed, rt_bytes *b, const rpc_record *r, int version)
{
    static const uint8_t zeros[512];

    for (int i = 0; i < r->n_fields; i++) {
        const rpc_field *f = &r->fields[i];
        int64_t n = fuzz_below(seed, 4);

        if (f->since > version)
            continue;
        switch (f->type) {
        case RPC_TYPE_i64: worker_put_i64(b, fuzz_number(seed)); break;
        case RPC_TYPE_f64: worker_put_f64(b, fuzz_decimal(seed)); break;
        case RPC_TYPE_text: worker_put_text(b, fuzz_text(seed)); break;
        case RPC_TYPE_bytes: worker_put_bytes(b, zeros, (size_t)fuzz_below(seed, sizeof zeros)); break;
        case RPC_TYPE_i64s:
            worker_put_i64(b, n);
            while (n-- > 0)
                worker_put_i64(b, fuzz_number(seed));
            break;
        case RPC_TYPE_rows:
            worker_put_i64(b, n);
            while (n-- > 0)
                fuzz_body(seed, b, f->record, version);
            break;
        }
    }
}

/* A message that one side sends. */
static inline const rpc_message *fuzz_kind(uint64_t *seed, rpc_sender sender)
{
    const rpc_message *m;

    do
        m = &rpc_messages[fuzz_below(seed, rpc_n_messages)];
    while (!(m->sender & sender));
    return m;
}

/* One change to the bytes, or none; lengths and counts are whole words, so words are changed as well as
 * bytes. */
static inline void fuzz_damage(uint64_t *seed, rt_bytes *b)
{
    uint8_t *at = b->data;
    int64_t n = (int64_t)b->n, where = n ? fuzz_below(seed, n) : 0;
    int64_t number = fuzz_number(seed);

    switch (n ? fuzz_below(seed, 5) : 3) {
    case 0: at[where] ^= (uint8_t)(1 << fuzz_below(seed, 8)); break;
    case 1:
        if (n >= 8)
            memcpy(at + where / 8 * 8 - (where / 8 * 8 + 8 > n ? 8 : 0), &number, 8);
        break;
    case 2: b->n = (size_t)where; break;
    case 3: rt_bytes_add(b, &number, sizeof number); break;
    default: {
        rt_bytes again = {0}; /* the bytes move where they grow */

        rt_bytes_add(&again, b->data, (size_t)where);
        rt_bytes_add(b, again.data, again.n);
        rt_bytes_free(&again);
    }
    }
}

/* How many executions: `usual`, or TEC_MUTATIONS. */
static inline int64_t fuzz_executions(int64_t usual)
{
    const char *many = getenv("TEC_MUTATIONS");

    return many ? strtoll(many, NULL, 10) : usual;
}

static inline uint64_t fuzz_seed(void)
{
    const char *given = getenv("TEC_MUTATION_SEED");

    return given ? strtoull(given, NULL, 10) : 1;
}

#endif
