/* Two contexts compile in two threads at once: each gives the bytes that it gives alone. The thread sanitizer
 * looks on in the build that has it. */
#include <pthread.h>

#include "tests/embed/kit.h"

enum { INPUTS = 3, ROUNDS = 2 };

static const input product = {
    .definition = "def product(n, A: f32[n, 64], B: f32[64, 48]) where n >= 1 {\n"
                  "  C[y, x] = sum[k](A[y, k] * B[k, x])\n  return C\n}\n",
    .steps = "C.y.0, C.y.1 = split(C.y, _, 4)\nC.x.0, C.x.1 = split(C.x, _, 16)\n"
             "reorder(C.y.0, C.x.0, C.k, C.y.1, C.x.1)\nvectorize(C.x.1)\nparallel(C.y.0)\n",
    .jobs = 2,
};

static const input digits = {.model = TEC_SOURCE_DIR "/tests/models/digits/model.onnx", .jobs = 2};

static const input *const inputs[INPUTS] = {&small, &product, &digits};

/* What one thread compiles: all inputs in turn, beginning with another one than its neighbour. */
typedef struct {
    int first;
    bytes made[ROUNDS][INPUTS];
} work;

static void *compile_all(void *arg)
{
    work *w = arg;

    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < INPUTS; i++) {
            int which = (w->first + i) % INPUTS;

            w->made[round][which] = compile_once(inputs[which]);
        }
    return NULL;
}

Test(threads, two_contexts_compile_at_once_what_each_compiles_alone, .timeout = 600)
{
    work w[2] = {{.first = 0}, {.first = 1}};
    pthread_t thread[2];
    bytes alone[INPUTS];

    for (int t = 0; t < 2; t++)
        cr_assert_eq(pthread_create(&thread[t], NULL, compile_all, &w[t]), 0);
    for (int t = 0; t < 2; t++)
        cr_assert_eq(pthread_join(thread[t], NULL), 0);
    for (int i = 0; i < INPUTS; i++)
        alone[i] = compile_once(inputs[i]);
    for (int t = 0; t < 2; t++)
        for (int round = 0; round < ROUNDS; round++)
            for (int i = 0; i < INPUTS; i++) {
                cr_assert(same_bytes(w[t].made[round][i], alone[i]), "thread %d, round %d, input %d", t,
                          round, i);
                free(w[t].made[round][i].data);
            }
    for (int i = 0; i < INPUTS; i++)
        free(alone[i].data);
}
