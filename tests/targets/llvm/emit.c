/* What comes out: objects for other CPUs, shared objects, equal bytes, refused imports; and the shape of the
 * hot loop of a matrix product. */
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <unistd.h>

#include "targets/llvm/gen.h"
#include "tests/targets/llvm/run.h"

static tec_context *cx;

static void setup(void)
{
    cx = tec_context_new();
}
static void teardown(void)
{
    tec_context_free(cx);
}

TestSuite(emit, .init = setup, .fini = teardown, .timeout = 600);

static const ir_expr *double_it(tec_context *c, const void *what, const ir_expr *const *in)
{
    (void)what;
    return ir_mul(c, in[0], ir_imm(c, BASE_F32, 2));
}

static const ir_program *doubling(tec_context *c, const char *name, int lanes)
{
    const base_dtype f32 = BASE_F32;
    return map_program(c, name, &f32, 1, BASE_F32, 64, lanes, double_it, NULL);
}

static const char *const with_asm[] = {"asm", NULL};

static const target_code *generated(tec_context *c, const ir_program *p, const char *words,
                                    const target_codegen_options *o)
{
    const target *t = target_parse(c, words);
    const target_code *code = llvm_generate(c, &p, 1, t, o);
    cr_assert(code != NULL, "%s", tec_context_error(c));
    return code;
}

/* ---- objects ---- */

Test(emit, an_object_for_another_architecture)
{
    const target_code *code =
        generated(cx, doubling(cx, "twice", 4), "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
                  &(target_codegen_options){.texts = with_asm});
    const Elf64_Ehdr *h = code->bytes;
    cr_assert(eq(int, h->e_machine, EM_AARCH64));
    cr_assert(eq(int, h->e_type, ET_REL));
    cr_assert(strstr(target_code_text(code, "asm"), "fadd\tv") != NULL ||
                  strstr(target_code_text(code, "asm"), "fmul\tv") != NULL,
              "%s", target_code_text(code, "asm"));
    cr_assert(strstr(target_code_text(code, "asm"), "fpcr") != NULL ||
                  strstr(target_code_text(code, "asm"), "FPCR") != NULL,
              "%s", target_code_text(code, "asm"));
    size_t size;
    const Elf64_Ehdr *so = llvm_link(cx, &code, 1, &size);
    cr_assert(so != NULL, "%s", tec_context_error(cx));
    cr_assert(eq(int, so->e_machine, EM_AARCH64));
    cr_assert(llvm_jit_open(cx, &code, 1) == NULL || target_arch_name(target_parse(cx, "native"))[0] == 'a');
}

Test(emit, equal_input_gives_equal_bytes)
{
    static const char *const words[] = {"llvm -mcpu=x86-64-v3", "llvm -mcpu=sapphirerapids",
                                        "llvm -mcpu=neoverse-n1"};
    for (int i = 0; i < BASE_COUNT(words); i++) {
        tec_context *other = tec_context_new();
        const target_code *a = generated(cx, doubling(cx, "twice", 8), words[i], NULL),
                          *b = generated(other, doubling(other, "twice", 8), words[i], NULL);
        size_t n, m;
        const void *x = llvm_link(cx, &a, 1, &n), *y = llvm_link(other, &b, 1, &m);
        cr_assert(a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0);
        cr_assert(x != NULL && y != NULL && n == m);
        cr_assert(eq(int, memcmp(x, y, n), 0));
        tec_context_free(other);
    }
}

Test(emit, a_shared_object_is_loaded_and_run)
{
    const ir_program *programs[] = {doubling(cx, "twice", 4), doubling(cx, "twice.again", 1)};
    const target *t = target_parse(cx, "native");
    const target_code *codes[] = {
        llvm_generate(cx, programs, 2, t, NULL),
        llvm_generate(cx, programs, 1, t, &(target_codegen_options){.symbols = (const char *[]){"third"}})};
    size_t size;
    const void *bytes = llvm_link(cx, codes, 2, &size);
    cr_assert(bytes != NULL, "%s", tec_context_error(cx));
    char path[] = "/tmp/tec-test-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    void *library = dlopen(path, RTLD_NOW);
    unlink(path);
    cr_assert(library != NULL, "%s", dlerror());
    static const char *const names[] = {"twice", "twice.again", "third"};
    for (int i = 0; i < 3; i++) {
        union {
            void *data;
            tec_kernel_fn *run;
        } f = {dlsym(library, names[i])};
        float x[64], y[64] = {0};
        for (int j = 0; j < 64; j++)
            x[j] = (float)j;
        cr_assert(f.data != NULL, "%s", names[i]);
        cr_assert(eq(int, f.run(&(tec_env){.abi = TEC_KERNEL_ABI}, (void *[]){x, y}, NULL), 0));
        cr_assert(y[63] == 126);
    }
    dlclose(library);
}

/* An object with one undefined symbol. */
static const void *object_that_needs(const char *name, size_t *size)
{
    struct image {
        Elf64_Ehdr header;
        Elf64_Shdr section[3];
        Elf64_Sym symbol[2];
        char names[32];
    } *o = base_new(cx, struct image);
    memcpy(o->header.e_ident, ELFMAG, SELFMAG);
    o->header.e_machine = EM_AARCH64;
    o->header.e_shoff = offsetof(struct image, section);
    o->header.e_shnum = 3;
    o->section[1] = (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                                 .sh_offset = offsetof(struct image, symbol),
                                 .sh_size = sizeof o->symbol,
                                 .sh_link = 2};
    o->section[2] = (Elf64_Shdr){
        .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct image, names), .sh_size = sizeof o->names};
    o->symbol[1].st_name = 1;
    memcpy(o->names + 1, name, strlen(name));
    *size = sizeof *o;
    return o;
}

Test(emit, only_memcpy_memset_and_memmove_may_be_imported)
{
    size_t size;
    const target_arch *arch = target_arch_find("aarch64");
    const char *helpers;
    const void *good = object_that_needs("memcpy", &size);
    cr_assert(llvm_check_imports(cx, arch, good, size, &helpers));
    const void *bad = object_that_needs("fmodf", &size);
    cr_assert(eq(int, llvm_check_imports(cx, arch, bad, size, &helpers), 0));
    cr_assert(strstr(tec_context_error(cx), "fmodf") != NULL);
}

Test(emit, what_the_target_lacks_is_named)
{
    const ir_expr *acc = ir_imm(cx, base_dtype_lanes(BASE_I32, 8), 0),
                  *v = ir_imm(cx, base_dtype_lanes(BASE_I8, 32), 1);
    const ir_expr *args[] = {acc, v, v};
    const ir_buffer *out = array(cx, "out", BASE_I32, 8), *buffers[] = {out};
    const ir_expr *dot =
        ir_call(cx, base_dtype_lanes(BASE_I32, 8), "x86.vpdpbusd", NULL, args, 3, NULL, 0, true);
    const ir_program *p = program_of(cx, "dot", buffers, 1,
                                     store_at(cx, out, ir_ramp(cx, ir_int(cx, 0), ir_int(cx, 1), 8), dot));
    cr_assert(llvm_generate(cx, &p, 1, target_parse(cx, "llvm -mcpu=haswell"), NULL) == NULL);
    cr_assert(strstr(tec_context_error(cx), "avx512vnni") != NULL, "%s", tec_context_error(cx));
    tec_context_clear(cx);
    const target_code *code =
        generated(cx, p, "llvm -mcpu=cascadelake", &(target_codegen_options){.texts = with_asm});
    cr_assert(strstr(target_code_text(code, "asm"), "vpdpbusd") != NULL);
}

Test(emit, two_functions_of_one_name_are_refused)
{
    const ir_program *programs[] = {doubling(cx, "twice", 4), doubling(cx, "twice", 1)};
    cr_assert(llvm_generate(cx, programs, 2, target_parse(cx, "llvm -mcpu=haswell"), NULL) == NULL);
    cr_assert(strstr(tec_context_error(cx), "two functions have the name 'twice'") != NULL);
}

static void *generate_some(void *arg)
{
    const char *words = arg;
    for (int i = 0; i < 5; i++) {
        tec_context *own = tec_context_new();
        const ir_program *p = doubling(own, "twice", 8);
        const target_code *code = llvm_generate(own, &p, 1, target_parse(own, words), NULL);
        if (!code)
            return (void *)words;
        tec_context_free(own);
    }
    return NULL;
}

Test(emit, several_threads_generate_at_once)
{
    static const char *const words[] = {"llvm -mcpu=haswell", "llvm -mcpu=cortex-a76", "llvm -mcpu=znver4"};
    pthread_t thread[3];
    for (int i = 0; i < 3; i++)
        cr_assert(eq(int, pthread_create(&thread[i], NULL, generate_some, (void *)(uintptr_t)words[i]), 0));
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(thread[i], &failed);
        cr_assert(failed == NULL, "%s", (const char *)failed);
    }
}

/* ---- the hot loop ---- */

/* A tile of rows x vectors accumulators over `depth` steps, `unroll` at a time: C = A B, A strided by rows, B
 * packed in panels. Only the first `used` lanes of each vector are stored. */
static const ir_program *tile_of(int rows, int vectors, int lanes, int used, int depth, int unroll)
{
    int n = rows * vectors, width = vectors * lanes;
    const ir_expr *none = ir_imm(cx, base_dtype_lanes(BASE_F32, lanes), 0);
    const ir_expr *mask = ir_lt(cx, ir_ramp(cx, ir_int(cx, 0), ir_int(cx, 1), lanes),
                                ir_broadcast(cx, ir_int(cx, used), lanes));
    const ir_buffer *a = array(cx, "A", BASE_F32, rows * depth), *b = array(cx, "B", BASE_F32, depth * width),
                    *c = array(cx, "C", BASE_F32, n * lanes);
    const ir_buffer **acc = base_array(cx, const ir_buffer *, n), *buffers[] = {a, b, c};
    const ir_expr *k = ir_var(cx, "k", BASE_I64), *all = ir_ramp(cx, ir_int(cx, 0), ir_int(cx, 1), lanes);
    base_vec before = {0}, step = {0}, after = {0};
    for (int i = 0; i < n; i++) {
        acc[i] = local_array(cx, base_format(cx, "acc%d", i), BASE_F32, lanes);
        base_push(cx, &before, store_at(cx, acc[i], all, ir_imm(cx, base_dtype_lanes(BASE_F32, lanes), 0)));
        const ir_expr *to = ir_ramp(cx, ir_int(cx, i * lanes), ir_int(cx, 1), lanes),
                      *sum = load_at(cx, acc[i], all);
        base_push(cx, &after,
                  used == lanes ? store_at(cx, c, to, sum)
                                : ir_store_masked(cx, c, ir_select(cx, mask, sum, none), &to, 1, mask));
    }
    for (int i = 0; i < n * unroll; i++) {
        const ir_expr *at = ir_add(cx, ir_mul(cx, k, ir_int(cx, unroll)), ir_int(cx, i / n));
        const ir_expr *x = load_at(cx, a, ir_add(cx, ir_int(cx, (int64_t)(i % n / vectors) * depth), at));
        const ir_expr *column =
            ir_add(cx, ir_mul(cx, at, ir_int(cx, width)), ir_int(cx, i % vectors * lanes));
        const ir_expr *y = load_at(cx, b, ir_ramp(cx, column, ir_int(cx, 1), lanes));
        base_push(cx, &step,
                  store_at(cx, acc[i % n], all,
                           ir_fma(cx, ir_broadcast(cx, x, lanes), y, load_at(cx, acc[i % n], all))));
    }
    const ir_stmt *parts[] = {ir_seq(cx, (const ir_stmt *const *)before.at, before.n),
                              ir_for(cx, k, ir_int(cx, 0), ir_int(cx, depth / unroll), IR_SERIAL,
                                     ir_seq(cx, (const ir_stmt *const *)step.at, step.n)),
                              ir_seq(cx, (const ir_stmt *const *)after.at, after.n)};
    const ir_stmt *body = ir_seq(cx, parts, 3);
    for (int i = 0; i < n; i++)
        body = ir_allocate(cx, acc[i], body);
    return program_of(cx, "tile", buffers, 3, body);
}

static const ir_program *tile(int rows, int vectors, int lanes, int depth, int unroll)
{
    return tile_of(rows, vectors, lanes, lanes, depth, unroll);
}

static llvm_spills count_spills(const ir_program *p, const char *words)
{
    const target_code *code = generated(cx, p, words, &(target_codegen_options){.texts = with_asm});
    return llvm_count_spills(cx, code->target, target_code_text(code, "asm"));
}

static llvm_spills spills_of(const char *words, int rows, int vectors, int lanes, int unroll)
{
    return count_spills(tile(rows, vectors, lanes, 256, unroll), words);
}

Test(emit, tiles_that_fit_the_registers_do_not_spill)
{
    static const struct {
        const char *words;
        int rows, vectors, lanes;
    } cases[] = {{"llvm -mcpu=sapphirerapids", 12, 2, 16}, {"llvm -mcpu=sapphirerapids", 13, 2, 16},
                 {"llvm -mcpu=skylake-avx512", 12, 2, 16}, {"llvm -mcpu=skylake-avx512", 6, 4, 16},
                 {"llvm -mcpu=haswell", 6, 2, 8},          {"llvm -mcpu=znver4", 6, 4, 16},
                 {"llvm -mcpu=neoverse-n1", 6, 4, 4}};
    for (int i = 0; i < BASE_COUNT(cases); i++)
        for (int unroll = 1; unroll <= 4; unroll *= 2) {
            llvm_spills s =
                spills_of(cases[i].words, cases[i].rows, cases[i].vectors, cases[i].lanes, unroll);
            cr_assert(eq(int, s.loops, 1));
            cr_assert(eq(int, s.multiply_adds, cases[i].rows *cases[i].vectors *unroll));
            cr_assert(s.stack_loads == 0 && s.stack_stores == 0,
                      "%s %dx%d, unrolled by %d: %d loads, %d stores", cases[i].words, cases[i].rows,
                      cases[i].vectors, unroll, s.stack_loads, s.stack_stores);
        }
}

/* 144 steps of 14 lanes: more than LLVM would move out of the loop by itself, and under a mask at the end. */
Test(emit, a_tile_that_is_stored_under_a_mask_stays_in_registers)
{
    llvm_spills s = count_spills(tile_of(16, 1, 16, 14, 252, 9), "llvm -mcpu=skylake-avx512");
    cr_assert(s.loops == 1 && s.multiply_adds == 144);
    cr_assert(s.stack_loads == 0 && s.stack_stores == 0, "%d loads, %d stores", s.stack_loads,
              s.stack_stores);
}

Test(emit, a_tile_that_does_not_fit_is_seen_to_spill)
{
    llvm_spills s = spills_of("llvm -mcpu=haswell", 10, 2, 8, 1);
    cr_assert(s.loops == 1 && s.worst > 0);
    cr_assert(eq(int, s.worst, s.stack_loads + s.stack_stores));
}

Test(emit, the_hot_loop_uses_whole_vectors_and_constant_displacements)
{
    const target_code *code = generated(cx, tile(12, 2, 16, 256, 2), "llvm -mcpu=sapphirerapids",
                                        &(target_codegen_options){.texts = with_asm});
    const char *loop = strstr(target_code_text(code, "asm"), "vbroadcastss"),
               *end = loop ? strstr(loop, "\tj") : NULL;
    cr_assert(loop != NULL && end != NULL);
    int other = 0;
    for (const char *p = loop; p < end; p = strchr(p, '\n') + 1)
        other += strncmp(p, "\tvfmadd", 7) && strncmp(p, "\tvbroadcastss", 13) &&
                 strncmp(p, "\tvmovups", 8) && strncmp(p, "vbroad", 6) && strncmp(p, "\t#", 2);
    cr_assert(other <= 4, "%d instructions beside the arithmetic\n%.*s", other, (int)(end - loop), loop);
    cr_assert(strstr(target_code_text(code, "asm"), "%ymm0, %ymm1") == NULL);
}

/* ---- single instructions ---- */

static const ir_expr *relu(tec_context *c, const void *what, const ir_expr *const *in)
{
    (void)what;
    return ir_max(c, in[0], ir_imm(c, BASE_F32, 0));
}

static int count_text(const char *text, const char *word)
{
    int n = 0;
    for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
        n++;
    return n;
}

Test(emit, a_maximum_with_a_constant_is_one_instruction)
{
    const base_dtype f32 = BASE_F32;
    static const char *const words[] = {"llvm -mcpu=sapphirerapids", "llvm -mcpu=haswell"};
    for (int i = 0; i < 2; i++) {
        const ir_program *p = map_program(cx, "relu", &f32, 1, BASE_F32, 64, i ? 8 : 16, relu, NULL);
        const target_code *code = generated(cx, p, words[i], &(target_codegen_options){.texts = with_asm});
        cr_assert(eq(int, count_text(target_code_text(code, "asm"), "vmaxps"), 1), "%s",
                  target_code_text(code, "asm"));
        cr_assert(eq(int, count_text(target_code_text(code, "asm"), "vcmp"), 0), "%s",
                  target_code_text(code, "asm"));
    }
}
