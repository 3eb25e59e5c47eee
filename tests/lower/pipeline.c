/* tests/lower/pipeline.c -- all passes together: what code generators rely on, dumps, slices. */
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lower/pass.h"

TestSuite(pipeline, .init = open_context, .fini = close_context);

#define MATMUL                                                                                               \
    "program mm(symbol n, A: f32[n, 24], B: f32[24, 20], out C: f32[n, 20]) {\n"                             \
    "  for y in 0..n { for x in 0..20 { for k in 0..24 {\n"                                                  \
    "    block C(y = y in 0..n, x = x in 0..20, k reduce = k in 0..24) {\n"                                  \
    "      reads A[y, k], B[k, x] writes C[y, x] init { C[y, x] = 0.0 } C[y, x] sum= A[y, k]*B[k, x]\n"      \
    "    }\n"                                                                                                \
    "  } } }\n"                                                                                              \
    "}\n"

/* A tile of 4 x 32 in a local buffer, as a schedule makes it with cache_write. */
#define TILED                                                                                                \
    "program mm(symbol n, A: f32[n, 24], B: f32[24, 40], out C: f32[n, 40]) {\n"                             \
    "  buffer T: f32[n, 40] @local\n"                                                                        \
    "  for y.0 in 0..floordiv(n + 3, 4) parallel { for x.0 in 0..2 {\n"                                      \
    "    for k in 0..24 { for y.1 in 0..4 unrolled { for x.1 in 0..32 vectorised {\n"                        \
    "      block T(y = y.0*4 + y.1 in 0..n, x = x.0*32 + x.1 in 0..40, k reduce = k in 0..24) where y.0*4 "  \
    "+ y.1 < n && x.0*32 + x.1 < 40 {\n"                                                                     \
    "        reads A[y, k], B[k, x] writes T[y, x] init { T[y, x] = 0.0 } T[y, x] sum= A[y, k]*B[k, x]\n"    \
    "      }\n"                                                                                              \
    "    } } }\n"                                                                                            \
    "    for y.1 in 0..4 unrolled { for x.1 in 0..32 vectorised {\n"                                         \
    "      block C(y = y.0*4 + y.1 in 0..n, x = x.0*32 + x.1 in 0..40) where y.0*4 + y.1 < n && x.0*32 + "   \
    "x.1 < 40 {\n"                                                                                           \
    "        reads T[y, x] writes C[y, x] C[y, x] = T[y, x]\n"                                               \
    "      }\n"                                                                                              \
    "    } }\n"                                                                                              \
    "  } }\n"                                                                                                \
    "}\n"

#define CONV                                                                                                 \
    "program conv(symbol h, A: f32[3, h, 17], W: f32[5, 3, 3, 3], out C: f32[5, h, 17]) {\n"                 \
    "  buffer P: f32[3, h + 2, 19]\n"                                                                        \
    "  for c in 0..3 { for y in 0..h + 2 { for x in 0..19 {\n"                                               \
    "    block P(c = c in 0..3, y = y in 0..h + 2, x = x in 0..19) {\n"                                      \
    "      reads A[0:3, 0:h, 0:17] writes P[c, y, x]\n"                                                      \
    "      P[c, y, x] = select(1 <= y && y < h + 1 && 1 <= x && x < 18, A[c, y - 1, x - 1], 0.0)\n"          \
    "    }\n"                                                                                                \
    "  } } }\n"                                                                                              \
    "  for o in 0..5 { for y in 0..h { for x in 0..17 { for c in 0..3 { for ky in 0..3 { for kx in 0..3 {\n" \
    "    block C(o = o in 0..5, y = y in 0..h, x = x in 0..17, c reduce = c in 0..3, ky reduce = ky in "     \
    "0..3, kx reduce = kx in 0..3) {\n"                                                                      \
    "      reads P[c, y + ky, x + kx], W[o, c, ky, kx] writes C[o, y, x]\n"                                  \
    "      init { C[o, y, x] = 0.0 }\n"                                                                      \
    "      C[o, y, x] sum= P[c, y + ky, x + kx]*W[o, c, ky, kx]\n"                                           \
    "    }\n"                                                                                                \
    "  } } } } } }\n"                                                                                        \
    "}\n"

typedef struct {
    ir_walk walk;
    int64_t stack;
    bool parallel;
} contract;

static bool check_stmt(ir_walk *w, const ir_stmt *s)
{
    contract *c = (contract *)w;

    if (s->kind == IR_FOR)
        cr_assert(s->loop.how == IR_SERIAL || s->loop.how == IR_PARALLEL, "loop %s", s->loop.var->var.name);
    cr_assert(s->kind != IR_BLOCK && s->kind != IR_UPDATE && s->kind != IR_ATTRIBUTE);
    if (s->kind != IR_ALLOCATE)
        return true;
    bool here = ir_note_get(s->allocate.notes, "workspace"),
         per_thread = ir_note_get(s->allocate.notes, "thread_workspace");
    cr_assert_eq(s->allocate.buffer->scope != IR_LOCAL, here || per_thread, "buffer %s",
                 s->allocate.buffer->name);
    if (s->allocate.buffer->scope == IR_LOCAL) {
        int64_t n;

        cr_assert(ir_is_int(s->allocate.buffer->shape[0], &n));
        c->stack += n * base_dtype_bytes(s->allocate.buffer->dtype);
    }
    return true;
}

static void keeps_the_contract(const ir_program *p)
{
    contract c = {.walk = {.stmt = check_stmt, .cx = cx}};

    cr_assert(ir_verify(cx, p, IR_VERIFY_SCALAR), "%s", tec_context_error(cx));
    cr_assert(ir_note_get(p->notes, "workspace") && ir_note_get(p->notes, "thread_workspace"));
    cr_assert_eq(p->n_buffers, 0);
    ir_walk_stmt(&c.walk, p->body);
    cr_assert_leq(c.stack, 16 * 1024);
}

Test(pipeline, lowers_a_default_matrix_product)
{
    keeps_the_contract(same_meaning("all", AVX512, MATMUL, SIZES(0, 1, 5)));
}

Test(pipeline, lowers_a_default_padded_convolution)
{
    keeps_the_contract(same_meaning("all", AVX512, CONV, SIZES(0, 1, 2, 5)));
}

Test(pipeline, keeps_a_tile_in_registers)
{
    const ir_program *p = same_meaning("all", AVX512, TILED, SIZES(0, 1, 3, 4, 9));
    const char *text = ir_program_text(cx, p);

    keeps_the_contract(p);
    HAS("allocate T.0: f32[16] @local", text);
    HAS("T.48[ramp(0, 1, 16)] = fma(broadcast(A[", text);
    HAS_NOT("allocate T:", text);
    keeps_the_contract(same_meaning("all", SSE2, TILED, SIZES(0, 1, 3, 4, 9)));
}

Test(pipeline, gives_the_same_text_for_the_same_input)
{
    const char *first = base_strdup(cx, after("all", AVX512, TILED));

    SHOWS(first, after("all", AVX512, TILED));
}

static int has_file(const char *dir, const char *name)
{
    struct stat st;

    return stat(base_format(cx, "%s/%s", dir, name), &st) == 0;
}

Test(pipeline, dumps_after_passes_that_changed_something)
{
    char dir[] = "/tmp/tec-lower-XXXXXX";
    cr_assert(mkdtemp(dir));
    lower_options o = {.cx = cx, .target = target_parse(cx, AVX512), .dump_dir = dir};

    cr_assert(lower_run(&o, parse(MATMUL)), "%s", tec_context_error(cx));
    cr_assert_eq(has_file(dir, "mm.05-init.tir"), 1);
    cr_assert_eq(has_file(dir, "mm.03-lanes.tir"), 0);
    cr_assert_eq(system(base_format(cx, "rm -r %s", dir)), 0);
}

Test(pipeline, reports_a_directory_that_cannot_be_written)
{
    lower_options o = {.cx = cx, .target = target_parse(cx, AVX512), .dump_dir = "/nonexistent"};

    cr_assert_not(lower_run(&o, parse(MATMUL)));
    HAS("/nonexistent", tec_context_error(cx));
}

Test(pipeline, names_a_pass_that_does_not_exist)
{
    HAS("there is no pass 'polish'", refusal("init,polish", AVX512, MATMUL));
    cr_assert_null(lower_find("polish"));
    cr_assert_str_eq(lower_find("unroll")->name, "unroll");
}

Test(pipeline, hands_on_an_earlier_error)
{
    lower_options o = {.cx = cx, .target = target_parse(cx, AVX512)};

    cr_assert_null(lower_run(&o, NULL));
}

static void note_pass(void *user, const char *pass, const ir_program *before, const ir_program *now)
{
    (void)before, (void)now;
    base_addf(cx, user, "%s ", pass);
}

static const char *passes_for(const char *name)
{
    base_text t = {0};
    lower_options o = {.cx = cx, .target = target_parse(cx, name), .watch = note_pass, .user = &t};

    cr_assert(lower_run(&o, parse(MATMUL)), "%s", tec_context_error(cx));
    return base_text_str(cx, &t);
}

Test(pipeline, runs_the_passes_whose_features_the_target_offers)
{
    SHOWS(
        "imports reasons lanes init blocks compact tensors trim overlap vthread simplify partition prefetch "
        "flatten intrinsics simplify vectorize"
        " unroll simplify masks columns promote share fma math storage finish ",
        passes_for(AVX512));
    SHOWS("reasons lanes threads init blocks compact tensors trim overlap vthread simplify partition alone "
          "warps barriers "
          "flatten intrinsics simplify unroll"
          " simplify share fma split ",
          passes_for("cuda"));
    SHOWS("reasons lanes init blocks compact tensors trim overlap vthread simplify partition flatten "
          "intrinsics "
          "simplify unroll simplify share ",
          passes_for("vdla"));
}
