/* tests/cuda/emulator/tensor.h -- what the instructions of several threads do, element by element, as the
 * manual of PTX defines them: which thread has which element in which register.
 *
 * A word of a thread's registers is `unsigned`. Each function waits until all threads of the group have come
 * with their registers, and then does the work of all once. Sums of floats are computed in double and rounded
 * once.
 */
#ifndef TESTS_CUDA_EMULATOR_TENSOR_H
#define TESTS_CUDA_EMULATOR_TENSOR_H

struct tec_registers {
    const unsigned *a, *b;
    unsigned *c;
    const void *row; /* of ldmatrix: the address that this thread gives; of wgmma: a */
    const void *other;
    long distance[4]; /* of wgmma: between the core matrices of a along rows and k, and of b */
};

static inline const tec_registers &tec_of(const void *const *given, int lane)
{
    return *(const tec_registers *)given[lane];
}

/* Element `number` of a word that holds elements of these types. */
static inline double tec_as_f16(unsigned word, int number)
{
    return (double)tec_f16_load((unsigned short)(word >> 16 * number));
}
static inline double tec_as_bf16(unsigned word, int number)
{
    return (double)__builtin_bit_cast(float, (word >> 16 * number & 0xffff) << 16);
}
static inline double tec_as_f32(unsigned word, int number)
{
    (void)number;
    return (double)__builtin_bit_cast(float, word);
}
static inline double tec_as_s8(unsigned word, int number)
{
    return (double)(signed char)(word >> 8 * number);
}

/* ---- ldmatrix ---- */

/* Row r of matrix m begins at the address of thread 8*m + r. Thread 4*g + t gets word t of row g;
 * transposed, the elements 2t and 2t + 1 of column g. */
template <int matrices, bool transposed> static void tec_read_matrices(const void *const *given)
{
    for (int m = 0; m < matrices; m++)
        for (int lane = 0; lane < 32; lane++) {
            unsigned short half[2];

            for (int i = 0; i < 2; i++) {
                int row = transposed ? lane % 4 * 2 + i : lane / 4,
                    column = transposed ? lane / 4 : lane % 4 * 2 + i;

                half[i] = ((const unsigned short *)tec_of(given, 8 * m + row).row)[column];
            }
            tec_of(given, lane).c[m] = half[0] | (unsigned)half[1] << 16;
        }
}
static inline void tec_ldmatrix_x4(unsigned *f, const void *row)
{
    tec_registers mine = {nullptr, nullptr, f, row, nullptr, {}};

    tec_together(32, &mine, tec_read_matrices<4, false>);
}
static inline void tec_ldmatrix_x2(unsigned *f, const void *row)
{
    tec_registers mine = {nullptr, nullptr, f, row, nullptr, {}};

    tec_together(32, &mine, tec_read_matrices<2, false>);
}
static inline void tec_ldmatrix_x2_trans(unsigned *f, const void *row)
{
    tec_registers mine = {nullptr, nullptr, f, row, nullptr, {}};

    tec_together(32, &mine, tec_read_matrices<2, true>);
}

/* ---- mma.sync ---- */

/* c is 16 x 8, the sum over k of a (16 x `depth`) by b (`depth` x 8); a word has `per` elements along k. */
template <int depth, int per, double (*element)(unsigned, int), typename Sum>
static void tec_multiply(const void *const *given)
{
    Sum sum[16][8];

    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            const unsigned *c = tec_of(given, i % 8 * 4 + j / 2).c;
            double s = (double)__builtin_bit_cast(Sum, c[i / 8 * 2 + j % 2]);

            for (int k = 0; k < depth; k++) {
                int thread = k / per % 4, part = k / per / 4;
                unsigned a = tec_of(given, i % 8 * 4 + thread).a[i / 8 + part * 2],
                         b = tec_of(given, j * 4 + thread).b[part];

                s += element(a, k % per) * element(b, k % per);
            }
            sum[i][j] = (Sum)s;
        }
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++)
            tec_of(given, i % 8 * 4 + j / 2).c[i / 8 * 2 + j % 2] = __builtin_bit_cast(unsigned, sum[i][j]);
}
#define TEC_EMULATED_MMA(name, depth, per, element, sum)                                                     \
    static inline void name(const unsigned *a, const unsigned *b, unsigned *c)                               \
    {                                                                                                        \
        tec_registers mine = {a, b, c, nullptr, nullptr, {}};                                                \
                                                                                                             \
        tec_together(32, &mine, tec_multiply<depth, per, element, sum>);                                     \
    }
TEC_EMULATED_MMA(tec_mma_f16, 16, 2, tec_as_f16, float)
TEC_EMULATED_MMA(tec_mma_bf16, 16, 2, tec_as_bf16, float)
TEC_EMULATED_MMA(tec_mma_of_tf32, 8, 1, tec_as_f32, float)
TEC_EMULATED_MMA(tec_mma_s8, 32, 4, tec_as_s8, int)

/* To nearest, ties away from zero, of 10 bits. */
static inline unsigned tec_tf32(unsigned a)
{
    return (a + 0x1000) & 0xffffe000;
}

/* ---- the copy engine, and wgmma ---- */

static inline int tec_thread();
static inline void tec_fence_shared() {}
static inline void tec_bulk_256(const void *s, void *d)
{
    if (tec_thread() % 32 == 0) {
        tec_emulated->copy(d, s, 256);
        tec_emulated->commit();
        tec_emulated->settle(0);
    }
    __syncwarp();
}

/* Four warps: c is 64 x 64, warp w has rows 16*w to 16*w + 15. The operands lie in shared memory as core
 * matrices of 8 rows of 8 elements, two along k. */
template <double (*element)(unsigned, int)> static void tec_multiply_shared(const void *const *given)
{
    const unsigned short *a = (const unsigned short *)tec_of(given, 0).row,
                         *b = (const unsigned short *)tec_of(given, 0).other;
    const long *to = tec_of(given, 0).distance;

    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++) {
            unsigned *c =
                &tec_of(given, i / 16 * 32 + i % 8 * 4 + j % 8 / 2).c[j / 8 * 4 + i % 16 / 8 * 2 + j % 2];
            double s = (double)__builtin_bit_cast(float, *c);

            for (int k = 0; k < 16; k++)
                s += element(a[i / 8 * to[0] + k / 8 * to[1] + i % 8 * 8 + k % 8], 0) *
                     element(b[j / 8 * to[2] + k / 8 * to[3] + j % 8 * 8 + k % 8], 0);
            *c = __builtin_bit_cast(unsigned, (float)s);
        }
}
#define TEC_EMULATED_WGMMA(name, element)                                                                    \
    static inline void name(const unsigned short *a, long am, long ak, const unsigned short *b, long bn,     \
                            long bk, unsigned *c)                                                            \
    {                                                                                                        \
        tec_registers mine = {nullptr, nullptr, c, a, b, {am, ak, bn, bk}};                                  \
                                                                                                             \
        tec_together(128, &mine, tec_multiply_shared<element>);                                              \
    }
TEC_EMULATED_WGMMA(tec_wgmma_f16, tec_as_f16)
TEC_EMULATED_WGMMA(tec_wgmma_bf16, tec_as_bf16)

#endif
