/* space/gpu_banks.c -- which layout of a tile keeps the threads of a warp in different banks (gpu_banks.h).
 *
 *     S[x, k] of 64 x 16 words, thread x reads S[x, k] of one k after the other:
 *
 *     compact          words 0, 16, 32, ... of the threads    banks 0 16 0 16 ...    16 turns
 *     rows 17 apart    words 0, 17, 34, ...                   banks 0 17 2 19 ...    one turn
 *
 * The copy is written by threads that take neighbours of the operand, row after row: with rows 17 apart,
 * thread 31 meets thread 0, in one request more. Reads are many for each element that is copied, so they
 * count more.
 */
#include "space/gpu_banks.h"

enum { BANKS = 32, WORD = 4, READ = 16, COPIES = 4 };

static int64_t element_at(const gpu_tile *tile, const int64_t *stride, const int64_t *index)
{
    int64_t at = 0;

    for (int d = 0; d < tile->n; d++)
        at += index[d] * stride[d];
    return at;
}

/* The turns beyond the first that a request of a warp takes: the most different words of one bank. Elements
 * of two words are asked for by half of the warp at a time. */
static int waits_of(const int64_t *element, int bytes)
{
    int words = bytes > WORD ? bytes / WORD : 1, lanes = SPACE_WARP / words, waits = 0;

    for (int first = 0; first < SPACE_WARP; first += lanes) {
        int most = 1, count[BANKS] = {0};

        for (int i = first; i < first + lanes; i++) {
            int64_t word = element[i] * bytes / WORD;
            bool seen = false;

            for (int j = first; j < i && !seen; j++)
                seen = element[j] * bytes / WORD == word;
            if (!seen && ++count[word % BANKS] > most)
                most = count[word % BANKS];
        }
        waits += most - 1;
    }
    return waits;
}

/* Of the first few requests that write the copy: threads take neighbours, row after row. */
static int waits_of_copy(const gpu_tile *tile, const int64_t *stride)
{
    int64_t element[SPACE_WARP], index[IR_MAX_DIMS];
    int waits = 0;

    for (int request = 0; request < COPIES; request++) {
        for (int i = 0; i < SPACE_WARP; i++) {
            int64_t left = request * SPACE_WARP + i;

            for (int d = tile->n - 1; d >= 0; d--) {
                index[d] = left % tile->extent[d];
                left /= tile->extent[d];
            }
            /* a thread without an element rests */
            element[i] = left > 0 ? element[0] : element_at(tile, stride, index);
        }
        waits += waits_of(element, tile->bytes);
    }
    return waits;
}

static int waits_of_tile(const gpu_tile *tile, const int64_t *stride)
{
    int64_t element[SPACE_WARP];

    for (int i = 0; i < SPACE_WARP; i++)
        element[i] = element_at(tile, stride, tile->step[i]);
    return READ * waits_of(element, tile->bytes) + waits_of_copy(tile, stride);
}

/* The tile with neighbours of one dimension apart; dim -1: compact. The strides are those that the step
 * `storage_align` gives. */
static gpu_spread try_spread(const gpu_tile *tile, int dim, int64_t offset)
{
    gpu_spread out = {.dim = dim, .factor = BANKS * WORD / tile->bytes, .offset = offset, .elements = 1};
    int64_t stride[IR_MAX_DIMS], next = 1;

    for (int d = tile->n - 1; d >= 0; d--) {
        stride[d] = next;
        if (d == dim)
            stride[d] += ((offset - next) % out.factor + out.factor) % out.factor;
        next = stride[d] * tile->extent[d];
        out.elements += (tile->extent[d] - 1) * stride[d];
    }
    out.waits = waits_of_tile(tile, stride);
    return out;
}

gpu_spread space_gpu_spread(const gpu_tile *tile)
{
    gpu_spread best = try_spread(tile, -1, 0);

    for (int d = 0; d < tile->n - 1 && best.waits > 0; d++)
        for (int64_t offset = 0; offset < best.factor; offset++) {
            gpu_spread here = try_spread(tile, d, offset);

            if (here.waits < best.waits || (here.waits == best.waits && here.elements < best.elements))
                best = here;
        }
    return best;
}
