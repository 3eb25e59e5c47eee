/* Target descriptions: parsing, derived facts, canonical text, errors. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "targets/arch.h"

static tec_context *cx;

static void setup(void)
{
    cx = tec_context_new();
}
static void teardown(void)
{
    tec_context_free(cx);
}

TestSuite(parse, .init = setup, .fini = teardown);

static const target *parsed(const char *text)
{
    const target *t = target_parse(cx, text);
    cr_assert(t != NULL, "%s: %s", text, tec_context_error(cx));
    return t;
}

static void refuses(const char *text, const char *part)
{
    cr_assert(target_parse(cx, text) == NULL, "'%s' was accepted", text);
    cr_assert(strstr(tec_context_error(cx), part) != NULL, "'%s' gives: %s", text, tec_context_error(cx));
    tec_context_clear(cx);
}

Test(parse, a_level_brings_its_features_and_registers)
{
    const target *t = parsed("llvm -mcpu=x86-64-v3 -num-cores=2");
    cr_assert(eq(int, t->vector_bits, 256));
    cr_assert(eq(int, t->vector_registers, 16));
    cr_assert(eq(int, t->num_cores, 2));
    cr_assert(t->has_fma && t->has_f16c && !t->has_avx512 && !t->has_vnni);
    cr_assert(eq(str, (char *)target_arch_name(t), "x86_64"));
    cr_assert(target_has(t, "avx2") && target_has(t, "sse4.1") && !target_has(t, "avx512f"));
}

Test(parse, avx512_means_512_bits_and_32_registers)
{
    const target *t = parsed("llvm -mcpu=sapphirerapids");
    cr_assert(eq(int, t->vector_bits, 512));
    cr_assert(eq(int, t->vector_registers, 32));
    cr_assert(t->has_avx512bf16 && t->has_avx512fp16 && t->has_vnni && t->has_masks);
    cr_assert(t->bf16_pairs == NULL); /* there, multiply-adds of float32 are faster */
    cr_assert(parsed("llvm -mcpu=znver4")->bf16_pairs != NULL);
    cr_assert(eq(int, target_lanes(t, BASE_F32), 16));
    cr_assert(eq(int, target_lanes(t, BASE_F64), 8));
}

Test(parse, the_baseline_has_no_fma)
{
    const target *t = parsed("llvm -mcpu=x86-64");
    cr_assert(t->has_fma == false && t->has_f16c == false);
    cr_assert(eq(int, t->vector_bits, 128));
}

Test(parse, attributes_add_and_remove_features)
{
    const target *t = parsed("llvm -mcpu=x86-64-v4 -mattr=-avx512f,+avxvnni");
    cr_assert(eq(int, t->vector_bits, 256));
    cr_assert(t->has_vnni && !t->has_avx512);
    cr_assert(strstr(t->features, "-avx512f") != NULL);
    const target *plain = parsed("llvm -mcpu=x86-64 -mattr=+avx,+fma");
    cr_assert(plain->has_fma);
    cr_assert(eq(int, plain->vector_bits, 256));
}

Test(parse, a_triple_chooses_the_architecture)
{
    const target *t = parsed("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72");
    cr_assert(eq(str, (char *)target_arch_name(t), "aarch64"));
    cr_assert(eq(int, t->vector_bits, 128));
    cr_assert(t->has_fma && !t->has_dotprod);
    cr_assert(parsed("llvm -mcpu=neoverse-n1")->has_dotprod);
    cr_assert(eq(str, (char *)parsed("llvm -mcpu=neoverse-n1")->triple, "aarch64-linux-gnu"));
}

Test(parse, a_cpu_of_two_architectures_is_that_of_the_triple)
{
    const target *narrow = parsed("llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a53"),
                 *wide = parsed("llvm -mcpu=cortex-a53");
    cr_assert(eq(str, (char *)target_arch_name(narrow), "armv7"));
    cr_assert(eq(str, (char *)target_arch_name(wide), "aarch64"));
    cr_assert(eq(int, narrow->vector_registers, 16));
    cr_assert(narrow->has_fma && !narrow->has_rounding);
    cr_assert(parsed("llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a9")->has_fma == false);
    cr_assert(ne(u64, target_fingerprint(narrow), target_fingerprint(wide)));
    refuses("llvm -mtriple=armv7-linux-gnueabihf -mcpu=haswell",
            "unknown armv7 CPU 'haswell'; there are generic, cortex-a9");
    refuses("llvm -mtriple=sparc-linux-gnu", "there are x86_64-..., aarch64-..., armv7-...");
}

Test(parse, an_instruction_needs_an_architecture_and_a_feature)
{
    const target *t = parsed("llvm -mcpu=cortex-a76");
    cr_assert(target_is_cpu_with(t, NULL, NULL, NULL) && target_is_cpu_with(t, "aarch64", "dotprod", NULL));
    cr_assert(target_is_cpu_with(t, "aarch64", "sve", "dotprod"));
    cr_assert(target_is_cpu_with(t, "x86_64", NULL, NULL) == false);
    cr_assert(target_is_cpu_with(t, "aarch64", "sve", NULL) == false);
}

Test(parse, every_architecture_has_its_cpus)
{
    for (int i = 0; i < target_n_archs; i++)
        for (int k = 0; k < target_archs[i]->n_cpus; k++) {
            const target_arch *a = target_archs[i];
            const target *t =
                parsed(base_format(cx, "llvm -mtriple=%s -mcpu=%s", a->triple, a->cpus[k].name));
            cr_assert(t->arch == a && t->vector_bits >= 128 && t->vector_registers > 0, "%s",
                      a->cpus[k].name);
            cr_assert(parsed(target_text(cx, t))->arch == a, "%s", target_text(cx, t));
        }
}

Test(parse, devices_are_described)
{
    const target *t = parsed("cuda -arch=sm_90");
    cr_assert(target_offers(t, TARGET_THREADS | TARGET_SCRATCHPADS) && !target_offers(t, TARGET_VECTORS));
    cr_assert(eq(int, t->warp_size, 32));
    cr_assert(eq(i64, t->shared_bytes, 227 * 1024));
    cr_assert(t->max_threads == 1024 && t->max_block[1] == 1024 && t->max_block[2] == 64);
    cr_assert(target_offers(parsed("opencl -device=mali"), TARGET_THREADS));
    cr_assert(target_offers(parsed("vdla -config=pynq"), TARGET_TOKENS) &&
              !target_offers(parsed("vdla"), TARGET_THREADS));
}

Test(parse, several_architectures_have_what_all_of_them_have)
{
    const target *t = parsed("cuda -arch=sm_90a,sm_75,sm_80 -host=haswell"),
                 *two = parsed("cuda -arch=sm_90,sm_90a");

    cr_assert(eq(str, (char *)target_text(cx, t), "cuda -arch=sm_75,sm_80,sm_90a -host=haswell"));
    cr_assert(eq(int, t->capability, 75));
    cr_assert(eq(i64, t->shared_bytes, 64 * 1024));
    cr_assert(eq(int, t->max_block[2], 64));
    cr_assert(t->own_instructions == false && two->own_instructions == false);
    cr_assert(eq(int, two->capability, 90));
    /* Each by itself, the one with the most first. */
    cr_assert(eq(int, t->n_each, 3));
    cr_assert(eq(str, (char *)target_text(cx, t->each[0]), "cuda -arch=sm_90a -host=haswell"));
    cr_assert(t->each[0]->own_instructions && t->each[0]->n_each == 0);
    cr_assert(eq(str, (char *)target_text(cx, t->each[2]), "cuda -arch=sm_75 -host=haswell"));
    cr_assert(eq(str, (char *)two->each[0]->cpu, "sm_90a"));
    cr_assert(eq(int, parsed("cuda -arch=sm_80")->n_each, 0));
    cr_assert(target_fingerprint(t) != target_fingerprint(parsed("cuda -arch=sm_75")));
}

Test(parse, the_canonical_text_parses_back_to_the_same_target)
{
    static const char *const texts[] = {"native",
                                        "llvm -mcpu=x86-64-v3 -num-cores=2",
                                        "llvm -mcpu=cortex-a72 -num-cores=4 -model=pi4-5e0c1f07",
                                        "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
                                        "llvm -mcpu=x86-64-v4 -mattr=-avx512f,+avxvnni",
                                        "llvm -mtriple=aarch64-unknown-linux-musl",
                                        "llvm -mcpu=generic",
                                        "llvm -mtriple=armv7-linux-gnueabihf",
                                        "llvm -mtriple=armv7-linux-gnueabihf -mcpu=cortex-a15",
                                        "llvm",
                                        "cuda",
                                        "cuda -arch=sm_90",
                                        "cuda -arch=sm_90a,sm_80",
                                        "opencl -device=mali",
                                        "vdla",
                                        "llvm -mcpu=haswell -l2=524288"};
    for (int i = 0; i < BASE_COUNT(texts); i++) {
        const target *a = parsed(texts[i]), *b = parsed(target_text(cx, a));
        cr_assert(eq(str, (char *)target_text(cx, a), (char *)target_text(cx, b)));
        cr_assert(eq(str, (char *)a->features, (char *)b->features));
        cr_assert(eq(u64, target_fingerprint(a), target_fingerprint(b)));
        cr_assert(a->num_cores == b->num_cores && a->vector_bits == b->vector_bits &&
                  a->l2_bytes == b->l2_bytes && a->native == b->native);
    }
}

Test(parse, native_runs_here_and_is_explicit)
{
    const target *t = parsed("native");
    cr_assert(t->native);
    cr_assert(target_unfit(cx, t) == NULL);
    cr_assert(strchr(t->features, '+') != NULL);
    cr_assert(t->num_cores >= 1);
    cr_assert(t->l1_bytes >= 8 * 1024 && t->l2_bytes >= t->l1_bytes);
    cr_assert(eq(u64, target_fingerprint(t), target_fingerprint(target_native(cx))));
    cr_assert(eq(int, parsed("native -num-cores=7")->num_cores, 7));
}

Test(parse, the_fingerprint_follows_the_code_and_not_the_cores)
{
    cr_assert(eq(u64, target_fingerprint(parsed("llvm -mcpu=x86-64-v3 -num-cores=2")),
                 target_fingerprint(parsed("llvm -mcpu=x86-64-v3 -num-cores=9"))));
    cr_assert(ne(u64, target_fingerprint(parsed("llvm -mcpu=x86-64-v3")),
                 target_fingerprint(parsed("llvm -mcpu=x86-64-v2"))));
}

Test(parse, unfit_names_what_is_missing)
{
    const char *why = target_unfit(cx, parsed("llvm -mcpu=x86-64 -mattr=+fma4,+xop"));
    if (!strcmp(target_arch_name(target_native(cx)), "x86_64")) {
        if (!target_has(target_native(cx), "xop"))
            cr_assert(strstr(why, "fma4, xop") != NULL, "%s", why);
        cr_assert(strstr(target_unfit(cx, parsed("llvm -mcpu=cortex-a53")), "aarch64") != NULL);
    }
    cr_assert(strstr(target_unfit(cx, parsed("cuda")), "does not run on a CPU") != NULL);
}

/* A server knows features that no kernel uses. */
Test(parse, another_machine_is_the_nearest_row_and_what_it_has_besides)
{
    const target *t =
        target_of_machine(cx, "llvm -mtriple=aarch64-linux-gnu -mattr=+neon,+fp-armv8,+crc,+from-the-future "
                              "-num-cores=4 -model=pi");

    cr_assert(t != NULL, "%s", tec_context_error(cx));
    cr_assert(eq(str, (char *)target_arch_name(t), "aarch64"));
    cr_assert(eq(int, t->num_cores, 4));
    cr_assert(eq(str, (char *)t->model, "pi"));
    cr_assert(strstr(target_text(cx, t), "future") == NULL);
    cr_assert(target_parse(cx, target_text(cx, t)) != NULL, "%s", tec_context_error(cx));
    cr_assert(target_of_machine(cx, "cuda") == NULL);
    cr_assert(strstr(tec_context_error(cx), "'cuda' does not describe a CPU") != NULL);
}

Test(parse, mistakes_name_what_was_written_and_what_exists)
{
    refuses("", "native, llvm");
    refuses("lvm -mcpu=haswell", "unknown kind of target 'lvm'");
    refuses("llvm -mcpu=pentium", "x86-64-v3");
    refuses("llvm -mtriple=aarch64-linux-gnu -mcpu=haswell", "unknown aarch64 CPU 'haswell'");
    refuses("llvm -mtriple=riscv64-linux-gnu", "riscv64-linux-gnu");
    refuses("llvm -cpu=haswell", "unknown option '-cpu'");
    refuses("llvm -mcpu", "-mcpu=...");
    refuses("llvm -num-cores=none", "found 'none'");
    refuses("llvm -num-cores=0", "found '0'");
    refuses("llvm -mattr=avx2", "found 'avx2'");
    refuses("llvm -mcpu=haswell -mattr=+avx3", "unknown feature 'avx3'; there are avx, avx2");
    refuses("llvm -mcpu=cortex-a72 -mattr=+avx2", "dotprod");
    refuses("cuda -arch=sm_1", "sm_90");
    refuses("cuda -arch=sm_80,sm_1", "unknown device 'sm_1'");
    refuses("cuda -arch=sm_80,", "unknown device ''");
    refuses("cuda -arch=,sm_80", "unknown device ''");
    refuses("cuda -arch=sm_80,sm_90,sm_80", "-arch names 'sm_80' twice");
    refuses("opencl -device=mali,pocl", "-device names one device, found 'mali,pocl'");
    refuses("native -mcpu=haswell", "cannot be given with it");
}

/* A precision is part of the machine: of its text, which modules and records of runs carry, and of its
 * fingerprint, by which the record store finds records. */
Test(parse, precisions_are_told_apart)
{
    const target *exact = parsed("cuda -arch=sm_80"), *tf32 = parsed("cuda -arch=sm_80 -precision=tf32"),
                 *fast = parsed("cuda -precision=fast -arch=sm_80");

    cr_assert_eq(exact->precision, TARGET_EXACT);
    cr_assert_eq(tf32->precision, TARGET_TF32);
    cr_assert_str_eq(target_text(cx, parsed("cuda -arch=sm_80 -precision=exact")), "cuda -arch=sm_80");
    cr_assert_str_eq(target_text(cx, fast), "cuda -arch=sm_80 -precision=fast");
    cr_assert_eq(parsed("cuda -arch=sm_80,sm_90a -precision=fast")->each[1]->precision, TARGET_FAST);
    cr_assert_neq(target_fingerprint(exact), target_fingerprint(tf32));
    cr_assert_neq(target_fingerprint(tf32), target_fingerprint(fast));
    cr_assert_eq(target_fingerprint(exact), target_fingerprint(target_with_precision(cx, tf32, "exact")));
    refuses("cuda -arch=sm_75,sm_80 -precision=tf32", "only tensor cores of sm_80 or later have it");
    refuses("opencl -precision=tf32", "has no precision 'tf32'");
    refuses("llvm -mcpu=x86-64-v3 -precision=fast", "has no precision 'fast': only GPUs have it");
    refuses("cuda -precision=f16", "there is no precision 'f16': expected exact, tf32 or fast");
}
