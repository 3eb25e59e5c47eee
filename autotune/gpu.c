/* autotune/gpu.c -- features of GPUs: what the threads of a warp ask memory for together, and how many
 * threads a multiprocessor holds at a time. On CPUs they are 0.
 *
 * A warp is 32 neighbouring threads, x first. An example: loops over 16 threads along x with stride 1 and 8
 * along y with stride 70 of f32. The 32 threads of a warp touch two runs of 64 bytes, 280 bytes apart: five
 * or six sectors of 32 bytes where four would do, and in shared memory no bank twice.
 */
#include <math.h>

#include "autotune/features.h"
#include "autotune/statement.h"

enum { WARP = 32, SECTOR = 32, BANKS = 32, WORD = 4 };

/* Per multiprocessor, of the GPUs of the last ten years. */
enum { MOST_THREADS = 2048, MOST_BLOCKS = 32 };

/* The byte that each thread of a warp touches first, from that of the first thread. How many threads there
 * are. */
static int warp_addresses(const tune_statement *statement, const tune_access *access, double at[WARP])
{
    int n = 1;

    at[0] = 0;
    for (int axis = IR_THREAD_X; axis <= IR_THREAD_Z; axis++)
        for (int i = 0; i < statement->n_loops; i++) {
            double extent = statement->loop[i].how == (ir_how)axis ? statement->loop[i].extent : 1;
            int before = n;

            for (; n < WARP && n < before * extent; n++)
                at[n] = at[n % before] + access->stride[i] * access->bytes * (n / before);
        }
    return n;
}

/* How many of the numbers at[k] / unit are different, of those with number % of == rest (of 0: all). */
static int distinct(const double *at, int n, double unit, int of, int rest)
{
    double seen[WARP];
    int found = 0;

    for (int k = 0; k < n; k++) {
        double number = floor(at[k] / unit);
        int i = 0;

        if (of && (int)fmod(fmod(number, of) + of, of) != rest)
            continue;
        while (i < found && seen[i] != number)
            i++;
        if (i == found)
            seen[found++] = number;
    }
    return found;
}

static int passes(const double *at, int n)
{
    int most = 1;

    for (int bank = 0; bank < BANKS; bank++) {
        int words = distinct(at, n, WORD, BANKS, bank);

        most = words > most ? words : most;
    }
    return most;
}

void tune_gpu_access(const tune_statement *statement, const tune_access *access, float *out)
{
    double at[WARP];
    int n = access->odd ? 1 : warp_addresses(statement, access, at);

    if (n == 1)
        return;
    double needed = fmax(1, ceil(distinct(at, n, access->bytes, 0, 0) * access->bytes / SECTOR));
    if (access->buffer->scope == IR_GLOBAL)
        out[TUNE_ACCESS_sectors] = (float)tune_ratio(distinct(at, n, SECTOR, 0, 0), needed);
    if (access->buffer->scope == IR_SHARED)
        out[TUNE_ACCESS_conflicts] = (float)log2(passes(at, n));
}

/* Position behind the loops over blocks, inside which one block runs. */
static int block_position(const tune_statement *statement)
{
    int position = 0;

    for (int i = 0; i < statement->n_loops; i++)
        if (statement->loop[i].how >= IR_BLOCK_X && statement->loop[i].how <= IR_BLOCK_Z)
            position = i + 1;
    return position;
}

/* Bytes of a scope that one block touches. */
static double block_bytes(const tune_statement *statement, ir_scope scope)
{
    int at = block_position(statement);
    double bytes = 0;

    for (int i = 0; i < statement->n_accesses; i++)
        if (statement->access[i].buffer->scope == scope)
            bytes += statement->access[i].elements[at] * statement->access[i].bytes;
    return bytes;
}

/* Registers are estimated: what the statement touches of local memory, and 24 for addresses and operands. */
void tune_gpu_statement(const tune_statement *statement, const target *machine, float *out)
{
    double threads = tune_extent_of(statement, IR_THREAD_X, IR_THREAD_Z);

    if (!target_offers(machine, TARGET_THREADS) || threads <= 1)
        return;
    double shared = block_bytes(statement, IR_SHARED), local = block_bytes(statement, IR_LOCAL),
           registers = 24 + local / WORD;
    double blocks = fmin(MOST_BLOCKS, floor(MOST_THREADS / threads));

    if (shared > 0)
        blocks = fmin(blocks, floor((double)machine->shared_bytes / shared));
    blocks = fmin(blocks, floor((double)machine->register_bytes / (WORD * registers * threads)));
    out[TUNE_STATEMENT_block_global] = (float)tune_log(block_bytes(statement, IR_GLOBAL));
    out[TUNE_STATEMENT_block_shared] = (float)tune_log(shared);
    out[TUNE_STATEMENT_thread_registers] = (float)tune_log(registers);
    out[TUNE_STATEMENT_occupancy] = (float)(fmax(blocks, 0) * threads / MOST_THREADS);
}
