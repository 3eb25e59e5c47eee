/* tests/cuda/emulator/driver.c -- a stand-in for NVIDIA's driver: one device, whose memory is main memory,
 * and whose kernels run on the CPU that calls them.
 *
 * A block's threads are fibers. A fiber runs until it ends or waits for others: at a barrier of the block or
 * of its warp, or at a shuffle. The fibers take their turns in an order that is drawn anew for each turn, so
 * a result that depends on the order among threads between two barriers differs from run to run. Shared
 * memory holds NaN when a block begins, an asynchronous copy is made no earlier than its wait. A block in
 * which some threads wait for others that never come is a failed launch, told on standard error.
 *
 * The compiled kernels reach the emulator through a table (device.h). One launch runs at a time. Work for a
 * stream is done at once, or recorded where the stream is being recorded for a graph.
 */
#define _GNU_SOURCE
#include "counts.h"
#include "stacks.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INVALID_IMAGE = 200,
    INVALID_PTX = 218,
    NOT_FOUND = 500,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719,
    NOT_WHILE_RECORDING = 900
};
enum { WARP = 32, MOST_THREADS = 1024, STACK_BYTES = 1 << 16, MOST_COPIES = 4096, MOST_SHARED = 163 << 10 };
enum { RUNS, WAITS_FOR_BLOCK, WAITS_FOR_WARP, WAITS_FOR_SHUFFLE, WAITS_FOR_GROUP, ENDED };

/* ---- fibers ---- */

typedef struct {
    unsigned x, y, z;
} place;

typedef struct {
    void *to;
    const void *from;
    int bytes, group;
} pending_copy;

typedef struct {
    place thread, block, size; /* first, as in device.h */
    stack_place context;
    int state;
    const void *give; /* of a shuffle */
    void *take;
    int bytes, mask;
    int group; /* of the copies that it begins now */
    pending_copy *copies;
    int n_copies;
} fiber;

/* As in device.h. */
typedef struct {
    const void *now;
    void (*wait)(int kind, const void *give, void *take, int bytes, int mask);
    void (*copy)(void *to, const void *from, int bytes);
    void (*commit)(void);
    void (*settle)(int groups);
    void (*touch)(const void *pc, const void *address, int bytes);
} emulator;

/* An allocation of device memory. */
typedef struct memory {
    char *at;
    size_t bytes;
    struct memory *next;
} memory;

static struct {
    pthread_mutex_t lock;
    fiber *fibers;
    unsigned char *stacks;
    stack_place scheduler;
    fiber *now;
    void (*call)(void **at);
    void **args;
    uint64_t random;
    int64_t live; /* objects that were made and not ended */
    memory *memory;
    const char *shared_begin, *shared_end; /* of the launch under way */
    int launches, counts;
    int lost; /* a kernel accessed an illegal address; every call fails from then on */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER, .random = 88172645463325252ull};

static emulator table;

static uint64_t draw(void)
{
    self.random ^= self.random << 13;
    self.random ^= self.random >> 7;
    return self.random ^= self.random << 17;
}

static void wait_for_others(int kind, const void *give, void *take, int bytes, int mask)
{
    fiber *f = self.now;

    f->state = kind;
    f->give = give;
    f->take = take;
    f->bytes = bytes;
    f->mask = mask;
    switch_stacks(&f->context, &self.scheduler);
}

/* What is neither of the device nor shared is a thread's own, or the emulator's. */
static void touch(const void *pc, const void *address, int bytes)
{
    int thread = (int)(self.now - self.fibers);
    const char *at = address;

    if (!self.counts)
        return;
    if (at >= self.shared_begin && at < self.shared_end)
        counts_touch(thread, pc, (uintptr_t)at, bytes, COUNTS_SHARED);
    for (const memory *m = self.memory; m; m = m->next)
        if (at >= m->at && at < m->at + m->bytes)
            counts_touch(thread, pc, (uintptr_t)at, bytes, COUNTS_GLOBAL);
}

static void begin_copy(void *to, const void *from, int bytes)
{
    fiber *f = self.now;

    touch(__builtin_return_address(0), from, bytes);

    if (!f->copies)
        f->copies = malloc(MOST_COPIES * sizeof *f->copies);
    if (!f->copies || f->n_copies == MOST_COPIES) {
        fprintf(stderr, "emulator: a thread has more than %d copies under way\n", MOST_COPIES);
        abort();
    }
    f->copies[f->n_copies++] = (pending_copy){to, from, bytes, f->group};
}

static void commit_copies(void)
{
    self.now->group++;
}

/* Makes the copies of all but the last `groups` groups. */
static void settle_copies(int groups)
{
    fiber *f = self.now;
    int kept = 0;

    for (int i = 0; i < f->n_copies; i++) {
        const pending_copy *c = &f->copies[i];

        if (c->group < f->group - groups)
            memcpy(c->to, c->from, (size_t)c->bytes);
        else
            f->copies[kept++] = *c;
    }
    f->n_copies = kept;
}

static void run_fiber(void)
{
    self.call(self.args);
    self.now->state = ENDED;
    switch_stacks(&self.now->context, &self.scheduler);
}

/* ---- one block ---- */

static int count_in(const fiber *f, int n, int state)
{
    int found = 0;

    for (int i = 0; i < n; i++)
        found += f[i].state == state;
    return found;
}

static void release(fiber *f, int n)
{
    for (int i = 0; i < n; i++)
        f[i].state = RUNS;
}

/* Each lane gets what its partner gives; a lane without a partner keeps its own. */
static void exchange(fiber *f, int n)
{
    for (int i = 0; i < n; i++) {
        int other = i ^ f[i].mask;

        memcpy(f[i].take, other < n ? f[other].give : f[i].give, (size_t)f[i].bytes);
    }
}

/* Does what the threads of each group came together for, if all of them came to the same; whether any did. */
static int work_together(fiber *f, int n)
{
    const void *given[MOST_THREADS];
    int any = 0;

    for (int first = 0, size = 1; first < n; first += size) {
        void (*work)(const void *const *) = NULL;

        size = f[first].state == WAITS_FOR_GROUP ? f[first].mask : 1;
        if (f[first].state != WAITS_FOR_GROUP || first % size || first + size > n ||
            count_in(f + first, size, WAITS_FOR_GROUP) != size)
            continue;
        for (int i = 0; i < size; i++) {
            given[i] = f[first + i].give;
            if (f[first + i].take != f[first].take)
                return any;
        }
        memcpy(&work, &f[first].take, sizeof work);
        int counts = self.counts;
        self.counts = 0; /* this is no thread's access */
        work(given);
        self.counts = counts;
        release(f + first, size);
        any = 1;
    }
    return any;
}

/* Lets the warps and the block go on whose threads have all come; whether any did. */
static int let_go(fiber *f, int n)
{
    int any = 0;

    if (count_in(f, n, WAITS_FOR_BLOCK) == n) {
        release(f, n);
        return 1;
    }
    for (int w = 0; w < n; w += WARP) {
        int lanes = n - w < WARP ? n - w : WARP;

        if (count_in(f + w, lanes, WAITS_FOR_SHUFFLE) == lanes)
            exchange(f + w, lanes);
        else if (count_in(f + w, lanes, WAITS_FOR_WARP) != lanes)
            continue;
        release(f + w, lanes);
        any = 1;
    }
    return work_together(f, n) || any;
}

/* Every thread that may run does, in a random order; but of some warps none does, drawn anew for each turn,
 * so that a warp may be far ahead of another where no barrier of the block keeps it. */
static void take_turns(fiber *f, int n)
{
    int order[MOST_THREADS];
    uint64_t resting = n > WARP ? draw() : 0;

    for (int i = 0; i < n; i++) {
        int k = (int)(draw() % (uint64_t)(i + 1));

        order[i] = order[k];
        order[k] = i;
    }
    for (int i = 0; i < n; i++)
        if (f[order[i]].state == RUNS && !(resting >> order[i] / WARP & 1)) {
            self.now = &f[order[i]];
            table.now = self.now;
            switch_stacks(&self.scheduler, &self.now->context);
        }
}

static void start(fiber *f, int i, const unsigned size[3], const place *block)
{
    unsigned char *stack = self.stacks + (size_t)i * STACK_BYTES;

    f->thread =
        (place){(unsigned)i % size[0], (unsigned)i / size[0] % size[1], (unsigned)i / size[0] / size[1]};
    f->block = *block;
    f->size = (place){size[0], size[1], size[2]};
    f->state = RUNS;
    f->group = f->n_copies = 0;
    begin_on(&f->context, stack, STACK_BYTES, run_fiber);
}

static int run_block(const unsigned size[3], const place *block)
{
    fiber *f = self.fibers;
    int n = (int)(size[0] * size[1] * size[2]);

    for (int i = 0; i < n; i++)
        start(&f[i], i, size, block);
    do
        take_turns(f, n);
    while (let_go(f, n) || count_in(f, n, RUNS));
    if (self.counts)
        counts_block(n);
    if (count_in(f, n, ENDED) == n)
        return SUCCESS;
    fprintf(
        stderr,
        "emulator: in block (%u, %u, %u) %d of %d threads ended, the others wait for them at a barrier or "
        "shuffle\n",
        block->x, block->y, block->z, count_in(f, n, ENDED), n);
    return LAUNCH_FAILED;
}

static int have_fibers(void)
{
    if (self.fibers)
        return 1;
    self.fibers = calloc(MOST_THREADS, sizeof *self.fibers);
    self.stacks = mmap(NULL, (size_t)MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (self.stacks == MAP_FAILED)
        self.stacks = NULL;
    self.counts = counts_wanted();
    table = (emulator){NULL, wait_for_others, begin_copy, commit_copies, settle_copies, touch};
    return self.fibers && self.stacks;
}

/* ---- modules and launches ---- */

typedef struct {
    void *library;
    char *shared_begin, *shared_end;
} module;

typedef struct {
    module *of;
    char name[200];
    void (*call)(void **at);
    unsigned dynamic; /* bytes of shared memory that launches may ask for */
    int n_args;       /* of at most 8 bytes each */
} function;

/* The bytes of a shared object end with its table of sections. */
static size_t size_of_image(const void *image)
{
    Elf64_Ehdr h;

    memcpy(&h, image, sizeof h);
    return memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 ? h.e_shoff + (size_t)h.e_shnum * h.e_shentsize : 0;
}

static void *symbol(void *library, const char *name, void *into)
{
    void *found = dlsym(library, name);

    memcpy(into, &found, sizeof found);
    return found;
}

/* Of compute capability 8.0, or the one that TEC_EMULATED_CAPABILITY says ("90"). */
static int capability(void)
{
    const char *said = getenv("TEC_EMULATED_CAPABILITY");

    return said ? atoi(said) : 80;
}

/* The image that a text of nvrtc.c holds for this device or one before it; NULL: it is none. */
static char *image_of_ptx(const char *text)
{
    const char *digits;
    char *image;
    int arch, end = 0;
    unsigned byte;

    if (sscanf(text, ".version 8.0 .target sm_%d%n", &arch, &end) != 1 || text[end] != '\n' ||
        arch > capability())
        return NULL;
    digits = text + end + 1;
    image = calloc(1, strlen(digits) / 2 + sizeof(Elf64_Ehdr));
    for (int i = 0; image && sscanf(digits + 2 * i, "%2x", &byte) == 1; i++)
        image[i] = (char)byte;
    return image;
}

static int load_image(void **out, const void *image);

int cuModuleLoadData(void **out, const void *image);
int cuModuleLoadData(void **out, const void *image)
{
    char *compiled;
    int status;

    if (memcmp(image, ".ver", 4) != 0)
        return load_image(out, image);
    compiled = image_of_ptx(image);
    if (!compiled)
        return INVALID_PTX;
    status = load_image(out, compiled);
    free(compiled);
    return status;
}

static int load_image(void **out, const void *image)
{
    size_t size = size_of_image(image);
    module *m = calloc(1, sizeof *m);
    /* A new name each time: what was loaded under a name before may still be there. */
    char path[] = "/tmp/tec-emulator-XXXXXX";
    int fd, written;
    emulator **its_table;
    char *(*begin)(void), *(*end)(void);

    *out = NULL;
    if (!m || size == 0 || !have_fibers())
        return free(m), INVALID_IMAGE;
    fd = mkstemp(path);
    written = fd >= 0 && write(fd, image, size) == (ssize_t)size;
    m->library = written ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (fd >= 0) {
        close(fd);
        unlink(path);
    }
    if (!m->library || !symbol(m->library, "tec_emulated", &its_table) ||
        !symbol(m->library, "tec_shared_begin", &begin) || !symbol(m->library, "tec_shared_end", &end)) {
        fprintf(stderr, "emulator: %s\n", dlerror());
        return INVALID_IMAGE;
    }
    *its_table = &table;
    m->shared_begin = begin();
    m->shared_end = end();
    self.live++;
    *out = m;
    return SUCCESS;
}

int cuModuleUnload(void *of);
int cuModuleUnload(void *of)
{
    module *m = of;

    dlclose(m->library);
    free(m);
    self.live--;
    return SUCCESS;
}

/* Lives as long as the process: a function belongs to its module, and nobody ends it. */
int cuModuleGetFunction(void **out, void *of, const char *name);
int cuModuleGetFunction(void **out, void *of, const char *name)
{
    static function all[1 << 16];
    static int n;
    char call[300];
    function *f;
    int (*count)(void);

    pthread_mutex_lock(&self.lock);
    f = &all[n++ % (int)(sizeof all / sizeof *all)];
    pthread_mutex_unlock(&self.lock);
    snprintf(call, sizeof call, "%s__call", name);
    *f = (function){.of = of};
    snprintf(f->name, sizeof f->name, "%s", name);
    *out = f;
    if (!symbol(f->of->library, call, &f->call))
        return NOT_FOUND;
    snprintf(call, sizeof call, "%s__count", name);
    symbol(f->of->library, call, &count);
    f->n_args = count();
    return SUCCESS;
}

static int run_grid(const function *f, const unsigned grid[3], const unsigned block[3])
{
    int status = SUCCESS;

    for (place b = {0}; b.z < grid[2] && !status; b.z++)
        for (b.y = 0; b.y < grid[1] && !status; b.y++)
            for (b.x = 0; b.x < grid[0] && !status; b.x++) {
                if (f->of->shared_begin)
                    memset(f->of->shared_begin, 0xFF, (size_t)(f->of->shared_end - f->of->shared_begin));
                status = run_block(block, &b);
            }
    return status;
}

/* $TEC_EMULATED_FAULT: the launch of this process, counted from 1, that accesses an illegal address. */
static int fault_at(void)
{
    const char *said = getenv("TEC_EMULATED_FAULT");

    return said ? atoi(said) : 0;
}

int cuFuncSetAttribute(void *of, int what, int value);
int cuFuncSetAttribute(void *of, int what, int value)
{
    if (what != 8 || value < 0 || value > MOST_SHARED)
        return INVALID_VALUE;
    ((function *)of)->dynamic = (unsigned)value;
    return SUCCESS;
}

/* ---- work for a stream, done at once or recorded ---- */

enum { MOST_ARGS = 512 };

/* One launch, copy or clearing. */
typedef struct {
    function *launched; /* NULL: no launch */
    unsigned grid[3], block[3];
    uint64_t args[MOST_ARGS];
    char *to;
    const char *from; /* NULL: bytes are set to `value` */
    size_t bytes;
    unsigned char value;
} work;

typedef struct {
    work *item;
    int n, executables; /* that use it */
    int gone;           /* the graph itself was ended */
} recording;

typedef struct {
    recording *now; /* NULL: work is done at once */
} stream;

/* The numbers 1 and 2 stand for default streams, which cannot be recorded. */
static int is_recording(const void *of)
{
    return (uintptr_t)of > 2 && ((const stream *)of)->now != NULL;
}

static int run_launch(const work *w)
{
    void *at[MOST_ARGS];
    function *f = w->launched;
    int status;

    for (int i = 0; i < f->n_args; i++)
        at[i] = (void *)(uintptr_t)&w->args[i];
    pthread_mutex_lock(&self.lock);
    self.call = f->call;
    self.args = at;
    self.shared_begin = f->of->shared_begin;
    self.shared_end = f->of->shared_end;
    self.lost |= ++self.launches == fault_at();
    status = self.lost ? SUCCESS : run_grid(f, w->grid, w->block); /* told by the call that waits */
    if (self.counts)
        counts_launch(f->name);
    pthread_mutex_unlock(&self.lock);
    return status;
}

static int run_work(const work *w)
{
    if (w->launched)
        return run_launch(w);
    if (self.lost)
        return ILLEGAL_ADDRESS;
    if (w->from)
        memmove(w->to, w->from, w->bytes);
    else
        memset(w->to, w->value, w->bytes);
    return SUCCESS;
}

/* Records the work where the stream is being recorded, else does it. */
static int give(void *to, const work *w)
{
    recording *r = is_recording(to) ? ((stream *)to)->now : NULL;
    work *more;

    if (!r)
        return run_work(w);
    more = realloc(r->item, (size_t)(r->n + 1) * sizeof *more);
    if (!more)
        return OUT_OF_MEMORY;
    r->item = more;
    r->item[r->n++] = *w;
    return SUCCESS;
}

int cuLaunchKernel(void *of, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *to, void **args, void **extra);
int cuLaunchKernel(void *of, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *to, void **args, void **extra)
{
    function *f = of;
    work w = {.launched = f, .grid = {gx, gy, gz}, .block = {bx, by, bz}};

    (void)extra;
    if (!gx || !gy || !gz || !bx || !by || !bz || gy > 65535 || gz > 65535 || shared > f->dynamic ||
        (uint64_t)bx * by * bz > MOST_THREADS || f->n_args > MOST_ARGS)
        return INVALID_VALUE;
    for (int i = 0; i < f->n_args; i++)
        memcpy(&w.args[i], args[i], sizeof w.args[i]);
    return give(to, &w);
}

/* ---- the device ---- */

int64_t standin_live(void); /* objects that were made and not ended */
int64_t standin_live(void)
{
    return self.live;
}

#define CALL(name, ...)                                                                                      \
    int name(__VA_ARGS__);                                                                                   \
    int name(__VA_ARGS__)

CALL(cuInit, unsigned flags)
{
    return flags ? INVALID_VALUE : SUCCESS;
}
CALL(cuDriverGetVersion, int *version)
{
    *version = 12000;
    return SUCCESS;
}
CALL(cuGetErrorName, int status, const char **name)
{
    *name = status == SUCCESS               ? "CUDA_SUCCESS"
            : status == INVALID_VALUE       ? "CUDA_ERROR_INVALID_VALUE"
            : status == OUT_OF_MEMORY       ? "CUDA_ERROR_OUT_OF_MEMORY"
            : status == INVALID_IMAGE       ? "CUDA_ERROR_INVALID_IMAGE"
            : status == INVALID_PTX         ? "CUDA_ERROR_INVALID_PTX"
            : status == NOT_FOUND           ? "CUDA_ERROR_NOT_FOUND"
            : status == ILLEGAL_ADDRESS     ? "CUDA_ERROR_ILLEGAL_ADDRESS"
            : status == LAUNCH_FAILED       ? "CUDA_ERROR_LAUNCH_FAILED"
            : status == NOT_WHILE_RECORDING ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                                            : NULL;
    return *name ? SUCCESS : INVALID_VALUE;
}
CALL(cuDeviceGetCount, int *n)
{
    *n = 1;
    return SUCCESS;
}
CALL(cuDeviceGet, int *out, int number)
{
    *out = number;
    return number == 0 ? SUCCESS : INVALID_VALUE;
}
CALL(cuDeviceGetName, char *name, int size, int device)
{
    (void)device;
    snprintf(name, (size_t)size, "emulated on the CPU");
    return SUCCESS;
}
CALL(cuDeviceTotalMem_v2, size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)1 << 32;
    return SUCCESS;
}
CALL(cuDeviceGetAttribute, int *value, int what, int device)
{
    (void)device;
    *value = what == 1 || what == 2 || what == 3 ? MOST_THREADS
             : what == 4                         ? 64
             : what == 8                         ? 48 << 10
             : what == 97                        ? MOST_SHARED
             : what == 13                        ? 1000000
             : what == 16                        ? 1
             : what == 75                        ? capability() / 10
             : what == 76                        ? capability() % 10
                                                 : 0;
    return SUCCESS;
}
CALL(cuDevicePrimaryCtxRetain, void **context, int device)
{
    (void)device;
    *context = &self;
    self.live++;
    return SUCCESS;
}
CALL(cuDevicePrimaryCtxRelease_v2, int device)
{
    (void)device;
    self.live--;
    return SUCCESS;
}
CALL(cuCtxPushCurrent_v2, void *context)
{
    return context == &self ? SUCCESS : INVALID_VALUE;
}
CALL(cuCtxPopCurrent_v2, void **context)
{
    *context = &self;
    return SUCCESS;
}

/* ---- memory ---- */

CALL(cuMemAlloc_v2, uint64_t *at, size_t bytes)
{
    void *block = bytes > (size_t)1 << 32 || self.lost ? NULL : aligned_alloc(256, (bytes + 255) / 256 * 256);
    memory *m = block ? malloc(sizeof *m) : NULL;

    *at = (uint64_t)(uintptr_t)block;
    if (!m)
        return self.lost ? ILLEGAL_ADDRESS : OUT_OF_MEMORY;
    *m = (memory){block, bytes, self.memory};
    self.memory = m;
    self.live++;
    return SUCCESS;
}
CALL(cuMemFree_v2, uint64_t at)
{
    for (memory **m = &self.memory; *m; m = &(*m)->next)
        if ((uint64_t)(uintptr_t)(*m)->at == at) {
            memory *gone = *m;

            *m = gone->next;
            free(gone);
            break;
        }
    free((void *)(uintptr_t)at);
    self.live--;
    return SUCCESS;
}
CALL(cuMemHostAlloc, void **at, size_t bytes, unsigned flags)
{
    (void)flags;
    *at = aligned_alloc(64, (bytes + 63) / 64 * 64);
    self.live += *at != NULL;
    return *at ? SUCCESS : OUT_OF_MEMORY;
}
CALL(cuMemFreeHost, void *at)
{
    free(at);
    self.live--;
    return SUCCESS;
}
/* Memory of the host may be gone when a recording runs. */
static int copy_with_host(void *to, const void *from, size_t bytes, const void *by)
{
    if (is_recording(by))
        return NOT_WHILE_RECORDING;
    if (self.lost)
        return ILLEGAL_ADDRESS;
    memcpy(to, from, bytes);
    return SUCCESS;
}

CALL(cuMemcpyHtoDAsync_v2, uint64_t to, const void *from, size_t bytes, void *by)
{
    return copy_with_host((void *)(uintptr_t)to, from, bytes, by);
}
CALL(cuMemcpyDtoHAsync_v2, void *to, uint64_t from, size_t bytes, void *by)
{
    return copy_with_host(to, (const void *)(uintptr_t)from, bytes, by);
}
CALL(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, void *by)
{
    return give(by,
                &(work){.to = (char *)(uintptr_t)to, .from = (const char *)(uintptr_t)from, .bytes = bytes});
}
CALL(cuMemsetD8Async, uint64_t at, unsigned char value, size_t bytes, void *by)
{
    return give(by, &(work){.to = (char *)(uintptr_t)at, .value = value, .bytes = bytes});
}

/* ---- streams and events ---- */

CALL(cuStreamCreate, void **out, unsigned flags)
{
    (void)flags;
    *out = calloc(1, sizeof(stream));
    self.live++;
    return *out ? SUCCESS : OUT_OF_MEMORY;
}
CALL(cuStreamDestroy_v2, void *of)
{
    free(of);
    self.live--;
    return SUCCESS;
}
CALL(cuStreamGetCtx, void *of, void **context)
{
    (void)of;
    *context = &self;
    return SUCCESS;
}
CALL(cuStreamSynchronize, void *of)
{
    return is_recording(of) ? NOT_WHILE_RECORDING : self.lost ? ILLEGAL_ADDRESS : SUCCESS;
}
CALL(cuStreamQuery, void *of)
{
    return cuStreamSynchronize(of);
}
CALL(cuEventCreate, void **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(double));
    self.live++;
    return *event ? SUCCESS : OUT_OF_MEMORY;
}
CALL(cuEventRecord, void *event, void *of)
{
    struct timespec now;

    (void)of;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *(double *)event = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
    return SUCCESS;
}
CALL(cuEventElapsedTime, float *milliseconds, void *from, void *to)
{
    *milliseconds = (float)(*(double *)to - *(double *)from);
    return SUCCESS;
}
CALL(cuEventDestroy_v2, void *event)
{
    free(event);
    self.live--;
    return SUCCESS;
}

/* ---- graphs ---- */

static void free_unused(recording *r)
{
    if (!r->gone || r->executables)
        return;
    free(r->item);
    free(r);
}

CALL(cuStreamBeginCapture_v2, void *of, int mode)
{
    stream *s = of;

    if (s->now || mode < 0 || mode > 2)
        return INVALID_VALUE;
    s->now = calloc(1, sizeof *s->now);
    return s->now ? SUCCESS : OUT_OF_MEMORY;
}
CALL(cuStreamEndCapture, void *of, void **graph)
{
    stream *s = of;

    *graph = s->now;
    if (!s->now)
        return INVALID_VALUE;
    s->now = NULL;
    self.live++;
    return SUCCESS;
}
CALL(cuGraphInstantiateWithFlags, void **executable, void *graph, unsigned long long flags)
{
    recording *r = graph;

    (void)flags;
    r->executables++;
    self.live++;
    *executable = r;
    return SUCCESS;
}
CALL(cuGraphDestroy, void *graph)
{
    recording *r = graph;

    r->gone = 1;
    self.live--;
    free_unused(r);
    return SUCCESS;
}
CALL(cuGraphExecDestroy, void *executable)
{
    recording *r = executable;

    r->executables--;
    self.live--;
    free_unused(r);
    return SUCCESS;
}
/* Appends a line to the file $TEC_EMULATED_GRAPHS: how many pieces of work the graph holds. */
CALL(cuGraphLaunch, void *executable, void *of)
{
    const recording *r = executable;
    const char *path = getenv("TEC_EMULATED_GRAPHS");
    FILE *f = path ? fopen(path, "a") : NULL;
    int status = is_recording(of) ? NOT_WHILE_RECORDING : SUCCESS;

    if (f) {
        fprintf(f, "%d\n", r->n);
        fclose(f);
    }
    for (int i = 0; i < r->n && !status; i++)
        status = run_work(&r->item[i]);
    return status;
}
