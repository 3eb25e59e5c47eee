/* tests/cuda/emulator/stacks.h -- going from one stack to another, as fibers do.
 *
 *     stack_place here, there;
 *     begin_on(&there, memory, bytes, run);       // run() begins with the first switch, and never returns
 *     switch_stacks(&here, &there);               // returns when something switches back to `here`
 *
 * The C library's own functions for this ask the system at every switch, which takes longer than what most
 * threads of a kernel do; on x86-64 they are done without.
 */
#ifndef TESTS_CUDA_EMULATOR_STACKS_H
#define TESTS_CUDA_EMULATOR_STACKS_H

#include <stddef.h>
#include <string.h>

#ifdef __x86_64__

typedef struct {
    void *top; /* of the stack, where the registers that calls keep are */
} stack_place;

void tec_switch(void **from, void *to);
__asm__(".text\n"
        ".type tec_switch, @function\n"
        "tec_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size tec_switch, . - tec_switch\n");

static inline void switch_stacks(stack_place *from, const stack_place *to)
{
    tec_switch(&from->top, to->top);
}

/* Six registers, then the address that the first switch returns to. A function begins with its stack 8 bytes
 * off a multiple of 16. */
static inline void begin_on(stack_place *place, void *memory, size_t bytes, void (*run)(void))
{
    void **top = (void **)((char *)memory + bytes) - 1;

    memcpy(--top, &run, sizeof run);
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    place->top = top;
}

#else

#include <ucontext.h>

typedef ucontext_t stack_place;

static inline void switch_stacks(stack_place *from, const stack_place *to)
{
    swapcontext(from, to);
}

static inline void begin_on(stack_place *place, void *memory, size_t bytes, void (*run)(void))
{
    getcontext(place);
    place->uc_stack.ss_sp = memory;
    place->uc_stack.ss_size = bytes;
    place->uc_link = NULL;
    makecontext(place, run, 0);
}

#endif
#endif
