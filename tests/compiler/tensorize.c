/* tests/compiler/tensorize.c -- tensorized programs lowered and compiled: equal to the definition after every
 * pass and in machine code. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/compiler.h"
#include "ir/build.h"
#include "ir/interp/interp.h"
#include "ir/text.h"
#include "lower/pass.h"
#include "schedule/sched.h"
#include "te/text.h"
#include "tec/build.h"
#include "tests/plain.h"

static tec_context *cx;

static void open_context(void)
{
    cx = tec_context_new();
}
static void close_context(void)
{
    tec_context_free(cx);
}
TestSuite(build_tensorize, .init = open_context, .fini = close_context);

enum { MAX_PARAMS = 8, N = 7 };

static sched *scheduled(const char *text, const char *device)
{
    te_file *f = te_parse(cx, "f.te", text);

    cr_assert(f, "%s", tec_context_error(cx));
    const te_def *d = f->defs.at[0];
    sched *s = sched_new(cx, te_tree(cx, d), target_parse(cx, device));
    sched_use_intrinsics(s, &f->intrinsics);
    cr_assert(sched_replay(s, "f.te", base_dict_get(&f->schedules, d->name)), "%s", sched_error(s));
    return s;
}

static int64_t extent(const ir_expr *e)
{
    int64_t n;

    return ir_is_int(e, &n) ? n : N;
}

static int64_t elements(const ir_buffer *b)
{
    int64_t n = 1;

    for (int i = 0; i < b->n; i++)
        n *= extent(b->shape[i]);
    return n;
}

/* Small integers, so that the order of a sum changes nothing. */
static void fill(const ir_buffer *b, void *data, uint64_t seed)
{
    for (int64_t i = 0; i < elements(b); i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        int64_t v = (int64_t)(seed >> 33) % 256;
        if (b->dtype.code == kDLBfloat)
            ((uint16_t *)data)[i] = base_double_to_bfloat((double)(v % 9 - 4));
        else if (base_is_float(b->dtype))
            ((float *)data)[i] = (float)(v % 9 - 4);
        else if (b->dtype.bits == 8)
            ((uint8_t *)data)[i] = (uint8_t)v;
        else if (b->dtype.bits == 32)
            ((int32_t *)data)[i] = (int32_t)v;
        else
            ((uint64_t *)data)[i] = seed * 0x9E3779B97F4A7C15u;
    }
}

static void *data_of(const ir_program *p, int i, uint64_t seed)
{
    void *data = base_alloc(
        cx, (size_t)(elements(p->params[i].buffer) * base_dtype_bytes(p->params[i].buffer->dtype)));

    fill(p->params[i].buffer, data, seed + (uint64_t)i);
    return data;
}

/* The output (the last parameter) as the interpreter computes it; shapes are those of the tree. */
static void *interpret(const ir_program *tree, const ir_program *p, uint64_t seed)
{
    ir_array array[MAX_PARAMS];
    ir_arg arg[MAX_PARAMS] = {{0}};
    const char *name[] = {"n"};
    const int64_t value[] = {N};

    for (int i = 0; i < tree->n_params; i++) {
        const ir_buffer *b = p->params[i].buffer;

        arg[i].scalar_float = 3;
        if (!b)
            continue;
        array[i] = (ir_array){.dtype = b->dtype, .n = b->n, .data = data_of(tree, i, seed)};
        for (int d = 0; d < b->n; d++)
            array[i].shape[d] =
                b == tree->params[i].buffer ? extent(b->shape[d]) : elements(tree->params[i].buffer);
        arg[i].array = &array[i];
    }
    bool good = ir_interpret(
        cx, p, &(ir_run){.args = arg, .symbol_name = name, .symbol_value = value, .n_symbols = 1});
    cr_assert(good, "%s\n%s", tec_context_error(cx), ir_program_text(cx, p));
    return array[tree->n_params - 1].data;
}

/* Called after each pass: what it made computes the same. */
typedef struct {
    const ir_program *tree;
    const void *want;
    size_t bytes;
} reference;

static void check_pass(void *user, const char *pass, const ir_program *before, const ir_program *after)
{
    const reference *r = user;

    if (before != after)
        cr_assert(memcmp(interpret(r->tree, after, 5), r->want, r->bytes) == 0, "after %s:\n%s", pass,
                  ir_program_text(cx, after));
}

static reference refer(const ir_program *tree, const char *text)
{
    const te_def *d = te_parse(cx, "f.te", text)->defs.at[0];
    const ir_buffer *out = tree->params[tree->n_params - 1].buffer;
    const ir_program *plain = te_tree(cx, d);

    return (reference){tree, interpret(plain, plain, 5),
                       (size_t)(elements(out) * base_dtype_bytes(out->dtype))};
}

static void every_pass_keeps(const char *text, const char *device)
{
    sched *s = scheduled(text, device);
    reference r = refer(sched_tree(s), text);
    lower_options o = {.cx = cx, .target = sched_target(s), .watch = check_pass, .user = &r};

    cr_assert(lower_run(&o, sched_tree(s)), "%s", tec_context_error(cx));
}

static const char *assembly_of(const char *text, const char *device, bool strict)
{
    sched *s = scheduled(text, device);
    comp_unit u = {.name = "f", .tree = sched_tree(s), .origin = "test"};
    comp_code *code =
        comp_compile(cx, &u, 1, &(comp_options){.target = sched_target(s), .strict = strict, .text = "asm"});

    cr_assert(code, "%s", tec_context_error(cx));
    return comp_code_text(code, 0);
}

static const char *assembly(const char *text, const char *device)
{
    return assembly_of(text, device, false);
}

static DLTensor tensor(const ir_buffer *b, void *data, int64_t *shape)
{
    int code = b->dtype.code == kDLBfloat      ? kDLBfloat
               : base_is_float(b->dtype)       ? kDLFloat
               : b->dtype.code == BASE_U8.code ? kDLUInt
                                               : kDLInt;

    for (int d = 0; d < b->n; d++)
        shape[d] = extent(b->shape[d]);
    return (DLTensor){.data = data,
                      .ndim = b->n,
                      .dtype = {(uint8_t)code, (uint8_t)b->dtype.bits, 1},
                      .device = {kDLCPU, 0},
                      .shape = shape};
}

/* Compiled for this machine, where it can run. */
static void runs_as_defined(const char *text, const char *device)
{
    sched *s = scheduled(text, device);
    const ir_program *tree = sched_tree(s);
    reference r = refer(tree, text);
    comp_unit u = {.name = "f", .tree = tree, .origin = "test"};
    comp_code *code = comp_compile(cx, &u, 1, &(comp_options){.target = sched_target(s)});
    DLTensor t[MAX_PARAMS], *arg[MAX_PARAMS];
    int64_t shape[MAX_PARAMS][8];
    float three = 3;
    tec_error err = {0};

    cr_assert(code, "%s", tec_context_error(cx));
    tec_module *m = comp_load(cx, code, NULL);
    cr_assert(m, "%s", tec_context_error(cx));
    tec_function *f = tec_function_new(m, "f", NULL, &err);
    cr_assert(f, "%s", err.text);
    for (int i = 0; i < tree->n_params; i++) {
        if (tree->params[i].buffer)
            t[i] = tensor(tree->params[i].buffer, data_of(tree, i, 5), shape[i]);
        else
            t[i] = (DLTensor){.data = &three, .dtype = {kDLFloat, 32, 1}, .device = {kDLCPU, 0}};
        arg[i] = &t[i];
    }
    cr_assert(tec_function_call(f, arg, tree->n_params, &err), "%s", err.text);
    cr_assert(memcmp(t[tree->n_params - 1].data, r.want, r.bytes) == 0);
    tec_function_free(f);
    tec_module_free(m);
}

static void is_right(const char *text, const char *device)
{
    every_pass_keeps(text, device);
    if (!target_unfit(cx, target_parse(cx, device)))
        runs_as_defined(text, device);
}

/* ---- x86 ---- */

#define VNNI_CPU "llvm -mcpu=sapphirerapids"

static const char vnni[] =
    "def f(n, A: u8[n, 24], B: i8[3, 6, 16, 4]) {\n"
    "  C[y, xo: 3, xi: 16] = sum[ko: 6, ki: 4](i32(A[y, ko * 4 + ki]) * i32(B[xo, ko, xi, ki]))\n"
    "  return C\n"
    "}\n"
    "schedule f { reorder(C.ko, C.xi, C.ki) tensorize(C.xi, x86.vnni16) parallel(C.y) }\n";

Test(build_tensorize, dot_products_of_bytes_on_512_bits)
{
    is_right(vnni, VNNI_CPU);
    cr_assert(strstr(assembly(vnni, VNNI_CPU), "vpdpbusd") && strstr(assembly(vnni, VNNI_CPU), "%zmm"));
}

/* Half of each tile of 16: the operand's rows are not those of the array's end. */
static const char half[] =
    "def f(n, A: u8[n, 24], B: i8[3, 6, 16, 4]) {\n"
    "  C[y, xo: 3, xi: 16] = sum[ko: 6, ki: 4](i32(B[xo, ko, xi, ki]) * i32(A[y, ko * 4 + ki]))\n"
    "  return C\n"
    "}\n"
    "schedule f { x0, x1 = split(C.xi, _, 8) reorder(x0, C.ko, C.ki, x1) tensorize(C.ki, x86.vnni8) }\n";

Test(build_tensorize, dot_products_of_bytes_on_256_bits)
{
    is_right(half, VNNI_CPU);
    is_right(half, "llvm -mcpu=x86-64-v3 -mattr=+avxvnni");
    cr_assert(strstr(assembly(half, "llvm -mcpu=x86-64-v3 -mattr=+avxvnni"), "vpdpbusd"));
}

Test(build_tensorize, stay_in_a_local_accumulator)
{
    const char *text = base_format(cx,
                                   "%.*sschedule f {\n c = cache_write(C, local) reorder(C.ko, C.xi, C.ki) "
                                   "tensorize(C.xi, x86.vnni16)\n }\n",
                                   (int)(strstr(vnni, "schedule") - vnni), vnni);
    is_right(text, VNNI_CPU);
}

#define BF16_CPU "llvm -mcpu=znver4"

/* With so many lanes. */
static const char *pairs(int lanes)
{
    return base_format(
        cx,
        "def f(n, A: bf16[n, 12], B: bf16[3, 6, %d, 2]) {\n"
        "  C[y, xo: 3, xi: %d] = sum[ko: 6, ki: 2](f32(A[y, ko * 2 + ki]) * f32(B[xo, ko, xi, ki]))\n"
        "  return C\n"
        "}\n"
        "schedule f { reorder(C.ko, C.xi, C.ki) tensorize(C.xi, x86.bf16dot%d) parallel(C.y) }\n",
        lanes, lanes, lanes);
}

Test(build_tensorize, dot_products_of_bfloat16)
{
    static const char *const registers[] = {"%zmm", "%ymm", "%xmm"};

    for (int i = 0; i < 3; i++) {
        const char *text = pairs(16 >> i), *at;

        is_right(text, BF16_CPU);
        at = strstr(assembly(text, BF16_CPU), "vdpbf16ps");
        cr_assert(at && memmem(at, strcspn(at, "\n"), registers[i], 4), "%s", at);
    }
    is_right(pairs(16), "llvm -mcpu=sapphirerapids");
}

/* The instruction flushes denormals, which strict programs keep. */
Test(build_tensorize, dot_products_of_bfloat16_are_none_in_strict_programs)
{
    const char *text = assembly_of(pairs(16), BF16_CPU, true);

    cr_assert(!strstr(text, "vdpbf16ps") && strstr(text, "vmulps"), "%s", text);
}

/* ---- aarch64 ---- */

#define ARM "llvm -mtriple=aarch64-linux-gnu -mattr=+dotprod"

Test(build_tensorize, dot_products_on_arm)
{
    const char *text =
        "def f(n, A: %s[n, 24], B: %s[5, 6, 4, 4]) {\n"
        "  C[y, xo: 5, xi: 4] = sum[ko: 6, ki: 4](%s(A[y, ko * 4 + ki]) * %s(B[xo, ko, xi, ki]))\n"
        "  return C\n"
        "}\n"
        "schedule f { reorder(C.ko, C.xi, C.ki) tensorize(C.xi, %s) }\n";
    const char *s = base_format(cx, text, "i8", "i8", "i32", "i32", "arm.sdot4"),
               *u = base_format(cx, text, "u8", "u8", "u32", "u32", "arm.udot4");

    every_pass_keeps(s, ARM);
    cr_assert(strstr(assembly(s, ARM), "sdot\tv"));
    every_pass_keeps(u, ARM);
    cr_assert(strstr(assembly(u, ARM), "udot\tv"));
}

/* ---- bits ---- */

Test(build_tensorize, products_of_one_and_two_bits)
{
    const char *one = "def f(n, W: u64[24, 16], X: u64[n, 16]) {\n"
                      "  C[y, x: 24] = sum[k: 16](i32(popcount(X[y, k] & W[x, k])))\n"
                      "  return C\n"
                      "}\n"
                      "schedule f { x0, x1 = split(C.x, _, 8) k0, k1 = split(C.k, _, 8) reorder(x0, k0, x1, "
                      "k1) tensorize(x1, bits.1x1) }\n";
    const char *two = "def f(n, W: u64[24, 16], X: u64[n, 2, 16]) {\n"
                      "  C[y, x: 24] = sum[b: 2, k: 16](i32(popcount(W[x, k] & X[y, b, k])) << i32(b))\n"
                      "  return C\n"
                      "}\n"
                      "schedule f { x0, x1 = split(C.x, _, 8) k0, k1 = split(C.k, _, 8) reorder(x0, k0, x1, "
                      "C.b, k1) tensorize(x1, bits.2x1) }\n";

    is_right(one, VNNI_CPU);
    is_right(one, "llvm -mcpu=x86-64-v3");
    is_right(two, VNNI_CPU);
    is_right(two, "llvm -mcpu=x86-64-v3");
    cr_assert(strstr(assembly(one, VNNI_CPU), "vpopcntq"));
}

/* ---- of the user's ---- */

static const char gemm[] =
    "intrinsic tile(m, a: f32[4, m], b: f32[m, 8]) {\n"
    "  c[i: 4, j: 8] = sum[k: m](a[i, k] * b[k, j])\n"
    "  return c\n"
    "  strides a[lda, 1] strides b[ldb, 1] strides c[ldc, 1]\n"
    "  reset \"for i in 0..4 { c[broadcast(i, 8), ramp(0, 1, 8)] = broadcast(0.0, 8) }\"\n"
    "  update \"for i in 0..4 {\"\n"
    "         \"  for k in 0..m {\"\n"
    "         \"    c[broadcast(i, 8), ramp(0, 1, 8)] = c[broadcast(i, 8), ramp(0, 1, 8)] + broadcast(a[i, "
    "k], 8) *\"\n"
    "         \"      b[broadcast(k, 8), ramp(0, 1, 8)]\"\n"
    "         \"  }\"\n"
    "         \"}\"\n"
    "}\n"
    "def f(n, A: f32[20, n], B: f32[n, 24]) { C[y, x] = sum[k](A[y, k] * B[k, x]) return C }\n";

Test(build_tensorize, statements_with_strides_and_lengths)
{
    is_right(base_format(cx,
                         "%sschedule f { y0, y1 = split(C.y, _, 4) x0, x1 = split(C.x, _, 8) reorder(y0, x0, "
                         "y1, x1, C.k) tensorize(y1, tile) }\n",
                         gemm),
             VNNI_CPU);
    is_right(
        base_format(
            cx,
            "%sschedule f { y0, y1 = split(C.y, _, 4) x0, x1 = split(C.x, _, 8) k0, k1 = split(C.k, _, 3)\n"
            "reorder(y0, x0, k0, k1, y1, x1) tensorize(k1, tile) parallel(y0) }\n",
            gemm),
        VNNI_CPU);
}

/* ---- imports ---- */

static const char dot_c[] = "#include <stdint.h>\n"
                            "int32_t tile_update(const float *a, const float *b, float *c, int64_t m, "
                            "int64_t lda, int64_t ldb, int64_t ldc)\n"
                            "{\n"
                            "    for (int i = 0; i < 4; i++)\n"
                            "        for (int64_t k = 0; k < m; k++)\n"
                            "            for (int j = 0; j < 8; j++)\n"
                            "                c[i * ldc + j] += a[i * lda + k] * b[k * ldb + j];\n"
                            "    return 0;\n"
                            "}\n";

static const char dot_ll[] =
    "define i32 @tile_update(ptr %a, ptr %b, ptr %c, i64 %m, i64 %lda, i64 %ldb, i64 %ldc) {\n"
    "  ret i32 3\n"
    "}\n";

/* The text as a string of a schedule. */
static const char *quoted(const char *text)
{
    return ir_expr_text(cx, ir_string(cx, text));
}

/* The tile of a matrix product with tails in the reduction, by the function that the pragma imports. */
static const char *importing(const char *pragma, const char *value)
{
    const char *intrinsic = strstr(gemm, "def f");

    return base_format(
        cx,
        "intrinsic tile(m, a: f32[4, m], b: f32[m, 8]) {\n"
        "  c[i: 4, j: 8] = sum[k: m](a[i, k] * b[k, j]) return c\n"
        "  strides a[lda, 1] strides b[ldb, 1] strides c[ldc, 1] update \"call tile_update\"\n"
        "}\n"
        "%sschedule f {\n"
        "  y0, y1 = split(C.y, _, 4) x0, x1 = split(C.x, _, 8) k0, k1 = split(C.k, _, 3)\n"
        "  reorder(y0, x0, k0, k1, y1, x1) tensorize(k1, tile) pragma(y0, %s, %s) parallel(y0)\n"
        "}\n",
        intrinsic, pragma, quoted(value));
}

Test(build_tensorize, functions_in_c)
{
    is_right(importing("import_c", dot_c), VNNI_CPU);
    is_right(importing("import_c", dot_c), "llvm -mcpu=x86-64");
    cr_assert(strstr(assembly(importing("import_c", dot_c), "llvm -mcpu=x86-64-v3"), "tile_update"));
    cr_assert(strstr(assembly(importing("import_c", dot_c), ARM), "fmadd"));
}

Test(build_tensorize, functions_in_c_with_assembly)
{
    const char *c = base_format(cx, "%.*s__asm__ volatile(\"nop\"); return 0; }",
                                (int)(strstr(dot_c, "return 0;") - dot_c), dot_c);

    is_right(importing("import_c", c), "llvm -mcpu=x86-64-v3");
    cr_assert(strstr(assembly(importing("import_c", c), "llvm -mcpu=x86-64-v3"), "nop"));
    cr_assert(strstr(assembly(importing("import_c", c), ARM), "nop"));
}

/* The accumulator is a buffer on the stack, whose strides are known only once it is allocated. */
Test(build_tensorize, functions_get_local_buffers)
{
    const char *text = importing("import_c", dot_c), *from = strstr(text, "  reorder(");

    is_right(base_format(cx, "%.*s  reorder(y0, x0, k0, k1, y1, x1) c = cache_write(C, local, x0) %s",
                         (int)(from - text), text, strstr(from, "tensorize(k1")),
             VNNI_CPU);
}

Test(build_tensorize, equal_imports_give_equal_code)
{
    const char *text = importing("import_c", dot_c);

    cr_assert_str_eq(assembly(text, VNNI_CPU), assembly(text, VNNI_CPU));
}

static void does_not_compile(const char *text, const char *message)
{
    sched *s = scheduled(text, VNNI_CPU);
    comp_unit u = {.name = "f", .tree = sched_tree(s), .origin = "test"};

    cr_assert_null(comp_compile(cx, &u, 1, &(comp_options){.target = sched_target(s)}), "expected: %s",
                   message);
    cr_assert(strstr(plain(cx, tec_context_error(cx)), message), "expected: %s\nfound: %s", message,
              tec_context_error(cx));
    tec_context_clear(cx);
}

Test(build_tensorize, says_what_is_wrong_with_an_import)
{
    does_not_compile(importing("import_c", "int tile_update(void) { return x; }"),
                     "f.te:3: error: clang-19 refuses the imported C:\nf.te:3:");
    does_not_compile(importing("import_c", "int tile_update(void) { return x; }"),
                     "error: use of undeclared identifier 'x'");
    does_not_compile(importing("import_c", "int tile_update(void) { return 0; }"),
                     "the imported function 'tile_update' has the type 'i32 ()', but it is called as 'i32 "
                     "(ptr, ptr, ptr, i64, i64, i64, i64)'");
    does_not_compile(
        importing("import_c", "int puts(const char *); int tile_update(void) { return puts(\"\"); }"),
        "the imported code calls 'puts', which it does not define");
    does_not_compile(importing("import_c", "int x;"), "the imported code defines no function");
    does_not_compile(importing("import_c", "nowhere.c"), "nowhere.c");
    does_not_compile(importing("import_llvm", "define i32 @tile_update( {"),
                     "f.te:3: error: LLVM refuses the imported text:");
    does_not_compile("def f(A: f32[4]) { B[i] = A[i] * 2.0 return B }\n"
                     "schedule f { pragma(B.i, import_c, \"int g(void) { return 1; }\") pragma(B, "
                     "import_llvm, \"define i32 @g() {\\n ret i32 2\\n}\") }\n",
                     "two imports define 'g'");
    does_not_compile(
        "def f(A: f32[4]) { B[i] = A[i] * 2.0 return B }\nschedule f { pragma(B.i, import_c, 3) }\n",
        "expected a text or a file name in quotes as the value of the pragma import_c, found 3");
}

/* Units are compiled in parallel; the note names the unit that failed. */
Test(build_tensorize, says_which_of_several_units_failed)
{
    sched *good = scheduled(importing("import_c", dot_c), VNNI_CPU),
          *broken = scheduled(importing("import_c", "int x;"), VNNI_CPU);
    comp_unit u[] = {{.name = "good", .tree = sched_tree(good), .origin = "test"},
                     {.name = "broken", .tree = sched_tree(broken), .origin = "test"}};

    cr_assert_null(comp_compile(cx, u, 2, &(comp_options){.target = sched_target(good)}));
    cr_assert(strstr(tec_context_error(cx), "note: while compiling 'broken'"), "%s", tec_context_error(cx));
    cr_assert_null(strstr(tec_context_error(cx), "'good'"), "%s", tec_context_error(cx));
}

Test(build_tensorize, says_that_clang_is_missing)
{
    setenv("PATH", "/nonexistent", 1);
    does_not_compile(importing("import_c", dot_c), "importing C needs the program clang-19, which cannot be "
                                                   "run: No such file or directory (package clang-19)");
}

/* A step after tensorize may move an operand apart. */
Test(build_tensorize, says_what_no_longer_matches)
{
    does_not_compile(
        "intrinsic rows(a: f32[4, 8]) { s[i] = sum[k](a[i, k]) return s update \"call rows\" }\n"
        "def f(A: f32[8, 8]) { B[i, k] = A[i, k] * 2.0 C[i: 8] = sum[k: 8](B[i, k]) return C }\n"
        "schedule f { i0, i1 = split(C.i, _, 4) tensorize(i1, rows) storage_align(B, 0, 16, 1) }\n",
        "the loops that were tensorized no longer match 'rows.update': the stride of 'a' along 's.i' is 8 in "
        "the "
        "intrinsic; in the program 'B' has 17 "
        "along 'C.i.1'");
}

/* What gives something other than 0 fails the call. */
Test(build_tensorize, functions_in_llvm)
{
    sched *s = scheduled(importing("import_llvm", dot_ll), "native");
    comp_unit u = {.name = "f", .tree = sched_tree(s), .origin = "test"};
    comp_code *code = comp_compile(cx, &u, 1, &(comp_options){.target = sched_target(s)});
    float a[20 * 2] = {0}, b[2 * 24] = {0}, c[20 * 24];
    int64_t as[2] = {20, 2}, bs[2] = {2, 24}, cs[2] = {20, 24};
    DLTensor A = {.data = a, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .device = {kDLCPU, 0}, .shape = as},
             B = A, C = A;
    tec_error err = {0};

    cr_assert(code, "%s", tec_context_error(cx));
    tec_module *m = comp_load(cx, code, NULL);
    tec_function *f = tec_function_new(m, "f", NULL, &err);
    B.data = b, B.shape = bs;
    C.data = c, C.shape = cs;
    cr_assert(!tec_function_call(f, (DLTensor *[]){&A, &B, &C}, 3, &err));
    cr_assert(strstr(err.text, "the function 'tile_update' of intrinsic 'tile.update' failed"), "%s",
              err.text);
    tec_function_free(f);
    tec_module_free(m);
}

/* An extern stage may be imported too. */
Test(build_tensorize, extern_stages_in_c)
{
    is_right(
        base_format(
            cx,
            "def f(n, A: i32[n]) {\n"
            "  extern B: i32[n] = negate(A, n) means def neg(m, X: i32[m]) { Y[i: m] = -X[i] return Y }\n"
            "  C[i] = B[i] + 1\n"
            "  return C\n"
            "}\n"
            "schedule f { pragma(C.i, import_c, %s) }\n",
            quoted("#include <stdint.h>\nint32_t negate(const int32_t *a, int32_t *b, int64_t n)\n"
                   "{ for (int64_t i = 0; i < n; i++) b[i] = -a[i]; return 0; }")),
        VNNI_CPU);
}

/* ---- docs/tensorize.md ---- */

/* What stands in the next fence of the kind, from *at on; NULL: no more. */
static const char *fenced(const char *kind, const char **at)
{
    const char *open = base_format(cx, "```%s\n", kind), *from = strstr(*at, open);

    if (!from)
        return NULL;
    from += strlen(open);
    *at = strstr(from, "```\n");
    return base_strndup(cx, from, (size_t)(*at - from));
}

Test(build_tensorize, is_what_the_page_says)
{
    size_t size;
    const char *page = base_read_file(cx, TEC_SOURCE_DIR "/docs/tensorize.md", &size), *at = page, *example,
               *tree;
    int n = 0;

    cr_assert(page);
    for (; (example = fenced("te", &at)); n++)
        is_right(example, VNNI_CPU);
    cr_assert_eq(n, 3);
    at = page;
    example = fenced("te", &at);
    tree = fenced("tree", &at);
    cr_assert(strstr(ir_program_text(cx, sched_tree(scheduled(example, VNNI_CPU))), tree), "%s", tree);
    cr_assert(strstr(assembly(example, VNNI_CPU), "vpdpbusd"));
}
