/* targets/llvm/helpers.c -- what 32-bit Arm has no instruction for: LLVM calls functions of the Arm
 * run-time ABI ("RTABI"), which modules bring with them, since they may import nothing of a compiler's
 * library.
 *
 * They are LLVM's text, compiled for the target of the code that needs them into one object. A function of
 * the ABI takes and gives floats in integer registers (arm_aapcscc), whatever the module's own convention
 * is; a pair of 64-bit results lies in r0 to r3.
 *
 *     udiv: long division, one bit of the quotient a step, begun where the divisor's highest bit meets the
 *           dividend's; where both fit in 32 bits, one division (an instruction, or the same in 32 bits).
 *     An integer to float32 by way of float64: the low 11 bits become one sticky bit, so that float64 holds
 *           the integer exactly and the one rounding is to float32.
 *     A float to 64 bits: the high word is the value / 2^32 cut off, the low word what is left; both are
 *           exact.
 * Division by zero gives 0, and the dividend as the rest.
 */
#include <string.h>

#include "targets/llvm/gen.h"

#include <llvm-c/IRReader.h>

/* $W is the width; iteration k goes from `top` down to 0. */
static const char division[] = "define internal {iW, iW} @divideW(iW %n, iW %d) {\n"
                               "  %none = icmp ult iW %n, %d\n"
                               "  %zero = icmp eq iW %d, 0\n"
                               "  %small = or i1 %none, %zero\n"
                               "  br i1 %small, label %done, label %begin\n"
                               "begin:\n"
                               "  %zn = call iW @llvm.ctlz.iW(iW %n, i1 true)\n"
                               "  %zd = call iW @llvm.ctlz.iW(iW %d, i1 true)\n"
                               "  %top = sub iW %zd, %zn\n"
                               "  %aligned = shl iW %d, %top\n"
                               "  br label %loop\n"
                               "loop:\n"
                               "  %k = phi iW [%top, %begin], [%k1, %loop]\n"
                               "  %by = phi iW [%aligned, %begin], [%by1, %loop]\n"
                               "  %r = phi iW [%n, %begin], [%r1, %loop]\n"
                               "  %q = phi iW [0, %begin], [%q1, %loop]\n"
                               "  %fits = icmp uge iW %r, %by\n"
                               "  %less = select i1 %fits, iW %by, iW 0\n"
                               "  %r1 = sub iW %r, %less\n"
                               "  %bit = zext i1 %fits to iW\n"
                               "  %q2 = shl iW %q, 1\n"
                               "  %q1 = or iW %q2, %bit\n"
                               "  %by1 = lshr iW %by, 1\n"
                               "  %k1 = sub iW %k, 1\n"
                               "  %last = icmp eq iW %k, 0\n"
                               "  br i1 %last, label %done, label %loop\n"
                               "done:\n"
                               "  %quotient = phi iW [0, %0], [%q1, %loop]\n"
                               "  %rest = phi iW [%n, %0], [%r1, %loop]\n"
                               "  %a = insertvalue {iW, iW} poison, iW %quotient, 0\n"
                               "  %b = insertvalue {iW, iW} %a, iW %rest, 1\n"
                               "  ret {iW, iW} %b\n"
                               "}\n"
                               "declare iW @llvm.ctlz.iW(iW, i1)\n"
                               "define internal {iW, iW} @sdivideW(iW %n, iW %d) {\n"
                               "  %sn = ashr iW %n, TOP\n"
                               "  %sd = ashr iW %d, TOP\n"
                               "  %xn = xor iW %n, %sn\n"
                               "  %an = sub iW %xn, %sn\n"
                               "  %xd = xor iW %d, %sd\n"
                               "  %ad = sub iW %xd, %sd\n"
                               "  %p = call {iW, iW} @divideW(iW %an, iW %ad)\n"
                               "  %q = extractvalue {iW, iW} %p, 0\n"
                               "  %r = extractvalue {iW, iW} %p, 1\n"
                               "  %sq = xor iW %sn, %sd\n"
                               "  %xq = xor iW %q, %sq\n"
                               "  %q1 = sub iW %xq, %sq\n"
                               "  %xr = xor iW %r, %sn\n"
                               "  %r1 = sub iW %xr, %sn\n"
                               "  %a = insertvalue {iW, iW} poison, iW %q1, 0\n"
                               "  %b = insertvalue {iW, iW} %a, iW %r1, 1\n"
                               "  ret {iW, iW} %b\n"
                               "}\n";

static const char pairs[] = "define hidden arm_aapcscc {i32, i32} @__aeabi_uidivmod(i32 %n, i32 %d) {\n"
                            "  %p = call {i32, i32} @divide32(i32 %n, i32 %d)\n"
                            "  ret {i32, i32} %p\n"
                            "}\n"
                            "define hidden arm_aapcscc {i32, i32} @__aeabi_idivmod(i32 %n, i32 %d) {\n"
                            "  %p = call {i32, i32} @sdivide32(i32 %n, i32 %d)\n"
                            "  ret {i32, i32} %p\n"
                            "}\n"
                            "define hidden arm_aapcscc i32 @__aeabi_uidiv(i32 %n, i32 %d) {\n"
                            "  %p = call {i32, i32} @divide32(i32 %n, i32 %d)\n"
                            "  %q = extractvalue {i32, i32} %p, 0\n"
                            "  ret i32 %q\n"
                            "}\n"
                            "define hidden arm_aapcscc i32 @__aeabi_idiv(i32 %n, i32 %d) {\n"
                            "  %p = call {i32, i32} @sdivide32(i32 %n, i32 %d)\n"
                            "  %q = extractvalue {i32, i32} %p, 0\n"
                            "  ret i32 %q\n"
                            "}\n"
                            "define hidden arm_aapcscc {i64, i64} @__aeabi_uldivmod(i64 %n, i64 %d) {\n"
                            "  %both = or i64 %n, %d\n"
                            "  %narrow = icmp ult i64 %both, 4294967296\n"
                            "  br i1 %narrow, label %short, label %long\n"
                            "short:\n"
                            "  %n32 = trunc i64 %n to i32\n"
                            "  %d32 = trunc i64 %d to i32\n"
                            "  %p32 = call {i32, i32} @divide32(i32 %n32, i32 %d32)\n"
                            "  %q32 = extractvalue {i32, i32} %p32, 0\n"
                            "  %r32 = extractvalue {i32, i32} %p32, 1\n"
                            "  %q = zext i32 %q32 to i64\n"
                            "  %r = zext i32 %r32 to i64\n"
                            "  %a = insertvalue {i64, i64} poison, i64 %q, 0\n"
                            "  %b = insertvalue {i64, i64} %a, i64 %r, 1\n"
                            "  ret {i64, i64} %b\n"
                            "long:\n"
                            "  %p = call {i64, i64} @divide64(i64 %n, i64 %d)\n"
                            "  ret {i64, i64} %p\n"
                            "}\n"
                            "define hidden arm_aapcscc {i64, i64} @__aeabi_ldivmod(i64 %n, i64 %d) {\n"
                            "  %p = call {i64, i64} @sdivide64(i64 %n, i64 %d)\n"
                            "  ret {i64, i64} %p\n"
                            "}\n";

static const char conversions[] = "define hidden arm_aapcscc double @__aeabi_ul2d(i64 %x) {\n"
                                  "  %high = lshr i64 %x, 32\n"
                                  "  %h32 = trunc i64 %high to i32\n"
                                  "  %l32 = trunc i64 %x to i32\n"
                                  "  %h = uitofp i32 %h32 to double\n"
                                  "  %l = uitofp i32 %l32 to double\n"
                                  "  %scaled = fmul double %h, 0x41F0000000000000\n"
                                  "  %v = fadd double %scaled, %l\n"
                                  "  ret double %v\n"
                                  "}\n"
                                  "define hidden arm_aapcscc double @__aeabi_l2d(i64 %x) {\n"
                                  "  %high = lshr i64 %x, 32\n"
                                  "  %h32 = trunc i64 %high to i32\n"
                                  "  %l32 = trunc i64 %x to i32\n"
                                  "  %h = sitofp i32 %h32 to double\n"
                                  "  %l = uitofp i32 %l32 to double\n"
                                  "  %scaled = fmul double %h, 0x41F0000000000000\n"
                                  "  %v = fadd double %scaled, %l\n"
                                  "  ret double %v\n"
                                  "}\n"
                                  "define internal i64 @sticky(i64 %x) {\n"
                                  "  %low = and i64 %x, 2047\n"
                                  "  %carry = add i64 %low, 2047\n"
                                  "  %or = or i64 %carry, %x\n"
                                  "  %kept = and i64 %or, -2048\n"
                                  "  %large = icmp uge i64 %x, 9007199254740992\n"
                                  "  %v = select i1 %large, i64 %kept, i64 %x\n"
                                  "  ret i64 %v\n"
                                  "}\n"
                                  "define hidden arm_aapcscc float @__aeabi_ul2f(i64 %x) {\n"
                                  "  %s = call i64 @sticky(i64 %x)\n"
                                  "  %d = call arm_aapcscc double @__aeabi_ul2d(i64 %s)\n"
                                  "  %f = fptrunc double %d to float\n"
                                  "  ret float %f\n"
                                  "}\n"
                                  "define hidden arm_aapcscc float @__aeabi_l2f(i64 %x) {\n"
                                  "  %sign = ashr i64 %x, 63\n"
                                  "  %flipped = xor i64 %x, %sign\n"
                                  "  %size = sub i64 %flipped, %sign\n"
                                  "  %s = call i64 @sticky(i64 %size)\n"
                                  "  %d = call arm_aapcscc double @__aeabi_ul2d(i64 %s)\n"
                                  "  %f = fptrunc double %d to float\n"
                                  "  %less = fneg float %f\n"
                                  "  %negative = icmp slt i64 %x, 0\n"
                                  "  %v = select i1 %negative, float %less, float %f\n"
                                  "  ret float %v\n"
                                  "}\n"
                                  "define hidden arm_aapcscc i64 @__aeabi_d2ulz(double %x) {\n"
                                  "  %scaled = fmul double %x, 0x3DF0000000000000\n"
                                  "  %h32 = call i32 @llvm.fptoui.sat.i32.f64(double %scaled)\n"
                                  "  %h = uitofp i32 %h32 to double\n"
                                  "  %taken = fmul double %h, 0x41F0000000000000\n"
                                  "  %left = fsub double %x, %taken\n"
                                  "  %l32 = call i32 @llvm.fptoui.sat.i32.f64(double %left)\n"
                                  "  %high = zext i32 %h32 to i64\n"
                                  "  %low = zext i32 %l32 to i64\n"
                                  "  %shifted = shl i64 %high, 32\n"
                                  "  %v = or i64 %shifted, %low\n"
                                  "  ret i64 %v\n"
                                  "}\n"
                                  "declare i32 @llvm.fptoui.sat.i32.f64(double)\n"
                                  "define hidden arm_aapcscc i64 @__aeabi_d2lz(double %x) {\n"
                                  "  %negative = fcmp olt double %x, 0.0\n"
                                  "  %less = fneg double %x\n"
                                  "  %size = select i1 %negative, double %less, double %x\n"
                                  "  %u = call arm_aapcscc i64 @__aeabi_d2ulz(double %size)\n"
                                  "  %minus = sub i64 0, %u\n"
                                  "  %v = select i1 %negative, i64 %minus, i64 %u\n"
                                  "  ret i64 %v\n"
                                  "}\n"
                                  "define hidden arm_aapcscc i64 @__aeabi_f2ulz(float %x) {\n"
                                  "  %d = fpext float %x to double\n"
                                  "  %v = call arm_aapcscc i64 @__aeabi_d2ulz(double %d)\n"
                                  "  ret i64 %v\n"
                                  "}\n"
                                  "define hidden arm_aapcscc i64 @__aeabi_f2lz(float %x) {\n"
                                  "  %d = fpext float %x to double\n"
                                  "  %v = call arm_aapcscc i64 @__aeabi_d2lz(double %d)\n"
                                  "  ret i64 %v\n"
                                  "}\n";

/* The template of a division with the width in the place of W, and its highest bit in that of TOP. */
static void add_division(tec_context *cx, base_text *to, int width)
{
    for (const char *at = division; *at; at++) {
        if (strncmp(at, "TOP", 3) == 0) {
            base_addf(cx, to, "%d", width - 1);
            at += 2;
        } else if (*at == 'W')
            base_addf(cx, to, "%d", width);
        else
            base_addn(cx, to, at, 1);
    }
}

static LLVMModuleRef parse(tec_context *cx, LLVMContextRef c, const char *text)
{
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(text, strlen(text), "helpers");
    LLVMModuleRef m = NULL;
    char *message = NULL;

    if (!LLVMParseIRInContext(c, buffer, &m, &message)) /* which takes the buffer */
        return m;
    BASE_BUG(cx, "LLVM cannot read the helpers: %s", llvm_take_message(cx, message));
    return NULL;
}

static void set_attributes(llvm_gen *gen)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(gen->m); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            llvm_set_attributes(gen, f);
}

static void close_module(void *gen)
{
    llvm_gen *g = gen;

    LLVMDisposeModule(g->m);
    LLVMContextDispose(g->c);
    LLVMDisposeTargetData(g->layout);
    LLVMDisposeTargetMachine(g->machine);
}

/* An object with all helpers of the target's architecture; NULL with an error. */
const target_code *llvm_helpers(tec_context *cx, const target *machine)
{
    llvm_gen g = {.cx = cx, .t = machine, .machine = llvm_target_machine(cx, machine)};
    target_code *code = base_new(cx, target_code);
    base_text text = {0};
    base_held held;

    *code = (target_code){.target = machine, .format = "elf"};
    add_division(cx, &text, 32);
    add_division(cx, &text, 64);
    base_addf(cx, &text, "%s%s", pairs, conversions);
    if (!g.machine)
        return NULL;
    g.c = LLVMContextCreate();
    base_hold(cx, &held, close_module, &g);
    g.layout = LLVMCreateTargetDataLayout(g.machine);
    g.m = parse(cx, g.c, base_text_str(cx, &text));
    bool good = g.m != NULL;
    if (good) {
        LLVMSetTarget(g.m, llvm_triple(cx, machine));
        LLVMSetModuleDataLayout(g.m, g.layout);
        set_attributes(&g);
        good = llvm_optimise(&g) && llvm_emit(&g, false, &code->bytes, &code->size);
    }
    base_drop(&held);
    return good ? code : NULL;
}
