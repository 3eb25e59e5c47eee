/* tests/cuda/emulator/counts.c -- see counts.h. */
#include "counts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, THREADS = 1024, SECTOR = 32, BANKS = 32, WORD = 4 };

typedef struct {
    const void *pc;
    uintptr_t address;
    int bytes, space;
    int time; /* how many accesses of this instruction by this thread came before */
    int lane;
} access;

typedef struct {
    access *at;
    int n, cap;
} list;

static struct {
    list of[THREADS]; /* of each thread of the block */
    int64_t requests[2], transactions, fewest, conflicts;
} self;

int counts_wanted(void)
{
    return getenv("TEC_EMULATED_COUNTS") != NULL;
}

static void add(list *to, access one)
{
    if (to->n == to->cap) {
        to->cap = to->cap ? 2 * to->cap : 256;
        to->at = realloc(to->at, (size_t)to->cap * sizeof one);
        if (!to->at)
            abort();
    }
    to->at[to->n++] = one;
}

void counts_touch(int thread, const void *pc, uintptr_t address, int bytes, int space)
{
    add(&self.of[thread], (access){pc, address, bytes, space, self.of[thread].n, thread % WARP});
}

/* ---- requests ---- */

static int by_instruction(const void *left, const void *right)
{
    const access *a = left, *b = right;

    if (a->pc != b->pc)
        return (uintptr_t)a->pc < (uintptr_t)b->pc ? -1 : 1;
    return a->time != b->time ? (a->time < b->time ? -1 : 1) : a->lane - b->lane;
}

/* Numbers the accesses of each instruction; they come in the order in which they were made. */
static void number(list *of)
{
    qsort(of->at, (size_t)of->n, sizeof *of->at, by_instruction);
    for (int i = 0, first = 0; i < of->n; i++) {
        first = i > 0 && of->at[i].pc == of->at[i - 1].pc ? first : i;
        of->at[i].time = i - first;
    }
}

static int by_number(const void *left, const void *right)
{
    const uintptr_t *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

/* How many different numbers there are. */
static int distinct(uintptr_t *number_of, int n)
{
    int found = 0;

    qsort(number_of, (size_t)n, sizeof *number_of, by_number);
    for (int i = 0; i < n; i++)
        found += i == 0 || number_of[i] != number_of[i - 1];
    return found;
}

static void count_global(const access *of, int n)
{
    uintptr_t sector[2 * WARP], byte_group[WARP];

    for (int i = 0; i < n; i++) {
        sector[2 * i] = of[i].address / SECTOR;
        sector[2 * i + 1] = (of[i].address + (uintptr_t)of[i].bytes - 1) / SECTOR;
        byte_group[i] = of[i].address;
    }
    self.requests[COUNTS_GLOBAL]++;
    self.transactions += distinct(sector, 2 * n);
    self.fewest += (distinct(byte_group, n) * of[0].bytes + SECTOR - 1) / SECTOR;
}

/* The passes that the threads of one turn take: the most words that they want of one bank. */
static int passes(const access *of, int n)
{
    int most = 1;

    for (int bank = 0; bank < BANKS; bank++) {
        uintptr_t word[WARP * 4];
        int k = 0;

        for (int i = 0; i < n; i++)
            for (int b = 0; b < of[i].bytes; b += WORD) {
                uintptr_t w = (of[i].address + (uintptr_t)b) / WORD;

                if ((int)(w % BANKS) == bank)
                    word[k++] = w;
            }
        k = distinct(word, k);
        most = k > most ? k : most;
    }
    return most;
}

static void count_shared(const access *of, int n)
{
    int turn = of[0].bytes > WORD ? WARP * WORD / of[0].bytes : WARP;

    self.requests[COUNTS_SHARED]++;
    for (int i = 0; i < n;) {
        int first = i, group = of[i].lane / turn;

        while (i < n && of[i].lane / turn == group)
            i++;
        self.conflicts += passes(of + first, i - first) - 1;
    }
}

static void count_warp(list *of)
{
    list all = {0};

    for (int lane = 0; lane < WARP; lane++) {
        number(&of[lane]);
        for (int i = 0; i < of[lane].n; i++)
            add(&all, of[lane].at[i]);
        of[lane].n = 0;
    }
    qsort(all.at, (size_t)all.n, sizeof *all.at, by_instruction);
    for (int i = 0; i < all.n;) {
        int first = i;

        while (i < all.n && all.at[i].pc == all.at[first].pc && all.at[i].time == all.at[first].time &&
               all.at[i].space == all.at[first].space)
            i++;
        (all.at[first].space == COUNTS_SHARED ? count_shared : count_global)(all.at + first, i - first);
    }
    free(all.at);
}

void counts_block(int threads)
{
    for (int w = 0; w < threads; w += WARP)
        count_warp(self.of + w);
}

void counts_launch(const char *kernel)
{
    FILE *f = fopen(getenv("TEC_EMULATED_COUNTS"), "a");

    if (f) {
        fprintf(f, "%s global %lld %lld %lld shared %lld %lld\n", kernel, (long long)self.requests[0],
                (long long)self.transactions, (long long)self.fewest, (long long)self.requests[1],
                (long long)self.conflicts);
        fclose(f);
    }
    memset(self.requests, 0, sizeof self.requests);
    self.transactions = self.fewest = self.conflicts = 0;
}
