/* matmul.c -- a matrix product: defined, scheduled, built into this process, run and timed. */
#include <stdio.h>
#include <tec/tec.h>

enum { N = 960, ROWS = 12, COLUMNS = 32 }; /* a tile of sums: 24 of the 32 registers of AVX-512 */

static tec_schedule *make_schedule(tec_context *cx)
{
    tec_def *d = tec_def_new(cx, "matmul");
    const tec_expr *n = tec_int(cx, N), *y = tec_axis(cx, "y", n), *x = tec_axis(cx, "x", n);
    const tec_expr *k = tec_reduce_axis(cx, "k", n);
    tec_tensor *A = tec_input(d, "A", TEC_F32, n, n), *B = tec_input(d, "B", TEC_F32, n, n);
    tec_output(d, tec_compute(d, "C", tec_sum(cx, tec_mul(cx, tec_at(A, y, k), tec_at(B, k, x)), k), y, x));

    tec_schedule *s = tec_schedule_new(cx, d, "native");
    const char *ys[2], *xs[2]; /* names of loops: .0 and .1 of the split ones */
    tec_split(s, "C.x", xs, TEC_INFER, COLUMNS);
    tec_split(s, "C.y", ys, TEC_INFER, ROWS);
    tec_reorder(s, xs[0], ys[0], "C.k", ys[1], xs[1]);
    tec_parallel(s, xs[0]);
    tec_compute_at(s, tec_cache_read(s, "B", "global", "C"), xs[0]); /* a panel of B that fits the cache */
    tec_vectorize(s, "B.cache.global.ax1");
    tec_cache_write_at(s, "C", "local", ys[0]); /* the sums, in registers once their loops are unrolled */
    tec_decompose_reduction(s, "C", "C.k");
    for (int i = 0; i < 3; i++) {
        tec_unroll(s, ((const char *[]){ys[1], "C.init.y.1", "C.cache.local.y"})[i]);
        tec_vectorize(s, ((const char *[]){xs[1], "C.init.x.1", "C.cache.local.x"})[i]);
    }
    return s;
}

int main(void)
{
    tec_context *cx = tec_context_new();
    tec_error err = {0};
    tec_module *m = tec_build(make_schedule(cx), NULL);
    tec_function *f = tec_function_new(m, "matmul", NULL, &err);
    static _Alignas(64) float A[N][N], B[N][N], C[N][N];
    DLTensor a = {A, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, (int64_t[]){N, N}, NULL, 0}, b = a, c = a;
    double best = 1, sum = 0;
    b.data = B, c.data = C;
    for (int i = 0; i < N * N; i++)
        A[i / N][i % N] = B[i / N][i % N] = (float)(i % 7) - 3;
    for (int run = 0; run < 20; run++) {
        double start = tec_clock();
        if (!tec_function_call(f, (DLTensor *[]){&a, &b, &c}, 3, &err))
            return fprintf(stderr, "%s\n", m ? err.text : tec_context_error(cx)), 1;
        best = tec_clock() - start < best ? tec_clock() - start : best;
    }
    for (int k = 0; k < N; k++)
        sum += (double)(A[1][k] * B[k][2]);
    printf("C[1, 2] = %g (a plain loop: %g)\n", (double)C[1][2], sum);
    printf("%.2f ms, %.1f GFLOP/s\n", best * 1e3, 2e-9 * N * N * N / best);
    tec_function_free(f);
    tec_module_free(m);
    tec_context_free(cx);
    return (double)C[1][2] == sum ? 0 : 1; /* small integers: sums are exact */
}
