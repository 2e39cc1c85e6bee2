/*
 * dlopen.c - dlopen without RTLD_DEEPBIND.
 *
 * A library that is opened with that flag looks for malloc in what it depends on before it looks in the program: it
 * gets libc's, and so there are two heaps whose pointers cross. Without the flag there is one. Names that the program
 * and the library both define are the program's then; TSLAB_PRELOAD_DEEPBIND=keep leaves the flag.
 *
 * libc's dlopen takes the library that calls it from its return address: whose search path applies, and in which
 * namespace. So ours jumps there and leaves the stack as it is, which a compiler does not promise.
 */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>

typedef void* Dlopen(const char* name, int flags);

__attribute__((visibility("hidden"))) int tsp_dlopen_mask = ~RTLD_DEEPBIND;
__attribute__((visibility("hidden"))) Dlopen* tsp_dlopen_next;

/* libc's dlopen, also for the calls to come. */
__attribute__((used, visibility("hidden"))) Dlopen* tsp_dlopen_find(void) {
    Dlopen* found;
    (void)tsp_start(); /* the mask */
    *(void**)&found = dlsym(RTLD_NEXT, "dlopen");
    tsp_dlopen_next = found; /* a word: the same whoever stores it */
    return found;
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".globl dlopen\n"
        ".type dlopen, @function\n"
        ".p2align 4\n"
        "dlopen:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    movq tsp_dlopen_next(%rip), %rax\n"
        "    testq %rax, %rax\n"
        "    je 1f\n"
        "0:  andl tsp_dlopen_mask(%rip), %esi\n"
        "    jmp *%rax\n"
        "1:  pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call tsp_dlopen_find\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    jmp 0b\n"
        "    .cfi_endproc\n"
        ".size dlopen, .-dlopen\n"
        ".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".globl dlopen\n"
        ".type dlopen, %function\n"
        ".p2align 4\n"
        "dlopen:\n"
        "    .cfi_startproc\n"
        "    hint #34\n" /* bti c */
        "    adrp x16, tsp_dlopen_next\n"
        "    ldr x16, [x16, #:lo12:tsp_dlopen_next]\n"
        "    cbz x16, 1f\n"
        "0:  adrp x17, tsp_dlopen_mask\n"
        "    ldr w17, [x17, #:lo12:tsp_dlopen_mask]\n"
        "    and w1, w1, w17\n"
        "    br x16\n"
        "1:  stp x29, x30, [sp, #-32]!\n"
        "    .cfi_adjust_cfa_offset 32\n"
        "    .cfi_rel_offset x29, 0\n"
        "    .cfi_rel_offset x30, 8\n"
        "    stp x0, x1, [sp, #16]\n"
        "    bl tsp_dlopen_find\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    .cfi_adjust_cfa_offset -32\n"
        "    .cfi_restore x29\n"
        "    .cfi_restore x30\n"
        "    b 0b\n"
        "    .cfi_endproc\n"
        ".size dlopen, .-dlopen\n"
        ".popsection\n");
#else
/* A tail call where the compiler makes one. */
TSP_API void* dlopen(const char* name, int flags) {
    Dlopen* next = tsp_dlopen_next != NULL ? tsp_dlopen_next : tsp_dlopen_find();
    return next(name, flags & tsp_dlopen_mask);
}
#endif
