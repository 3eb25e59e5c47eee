/* autotune/extents.h -- the extents at which the schedules of a kernel with a symbolic extent are compared.
 *
 *     spec.extents = tune_extents_new(cx, &(tune_range){.from = 1, .to = 256}, 0);   // 1, 2, 4, ..., 256
 *
 * Candidates are proposed and measured at one large extent. Behind the last batch the fastest ones are
 * measured at each of these (Shen et al., 2021, section 4.5), and the one that loses least on average is
 * adopted. Lifetime: the context's. Errors: none. Threads: plain data.
 */
#ifndef AUTOTUNE_EXTENTS_H
#define AUTOTUNE_EXTENTS_H

#include "base/base.h"

/* The largest extent at which candidates are proposed. */
enum { TUNE_LARGE_EXTENT = 64 };
/* 63 powers of two in 64 bits, and both ends of a range. */
enum { TUNE_MOST_EXTENTS = 66 };
/* Of the values that may be listed in place of a range. */
enum { TUNE_MOST_VALUES = 16 };

typedef struct {
    int64_t from, to;
    /* how often each extent comes: n_counts pairs. None: all extents of `at` count alike */
    const int64_t *extent;
    const double *count;
    int n_counts;
    const int64_t *value; /* rising: these alone, each of which gets a kernel of its own */
    int n_values;         /* 0: all of the range, which share their kernels */
} tune_range;

typedef struct {
    int symbol;           /* of the definition */
    const int64_t *at;    /* rising */
    const double *weight; /* they add up to 1 */
    int n;
} tune_extents;

/* The listed values, or the powers of two of the range and its ends. A count belongs to the nearest of them
 * by ratio. */
const tune_extents *tune_extents_new(tec_context *cx, const tune_range *range, int symbol);
/* Where candidates are proposed: TUNE_LARGE_EXTENT, or the end of the range that is nearer to it. */
int64_t tune_large_extent(const tune_range *range);

#endif
