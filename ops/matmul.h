/* ops/matmul.h -- matrix products: what its files share.
 *
 *     op_matmul v;
 *     if (!op_matmul_read(c, &v)) return false;
 */
#ifndef OPS_MATMUL_H
#define OPS_MATMUL_H

#include "ops/op.h"

/* A[batch, m, k] (transposed: [batch, k, m]) times B[batch, k, n] (transposed: [batch, n, k]); batches broadcast. */
typedef struct {
    bool trans_a, trans_b;
    int batch; /* dimensions of the output before m and n */
    const ir_expr *m, *n, *k;
    base_dtype sum;  /* what products are added up in */
    int64_t panel;   /* columns of B that lie together */
} op_matmul;
bool op_matmul_read(const op_call *c, op_matmul *v);
bool op_matmul_relation(op_call *c);
bool op_matmul_schedule(sched *s, const char *anchor);

extern const op_impl op_matmul_impls[];
extern const int op_matmul_n_impls;

#endif
