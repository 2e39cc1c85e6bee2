/*
 * dlopen.c - dlopen without RTLD_DEEPBIND.
 *
 * A library that is opened with that flag looks for malloc in its dependencies before the program: it gets libc's, and
 * so there are two heaps whose pointers cross. Without the flag there is one. Names that the program and the library
 * both define then mean the program's; TSLAB_PRELOAD_DEEPBIND=keep leaves the flag.
 *
 * libc's dlopen takes the library that calls it from its return address: whose search path applies, and in which
 * namespace. So ours jumps there without changing the stack, which a compiler does not promise.
 *
 * In a phase ours must go back into it afterwards: objects of the loader and the library's constructors are made
 * outside of it (outside.c). So there it calls, wherever libc would find the same for us as for the caller: by a path,
 * or by a name that no search path of a library leads to. Otherwise it jumps, and the objects are made in the phase.
 */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

typedef void* Dlopen(const char* name, int flags);

__attribute__((visibility("hidden"))) int tsp_dlopen_mask = ~RTLD_DEEPBIND;
static Dlopen* next;

typedef struct Asks {
    uintptr_t caller;
    bool differs;
} Asks;

/* Sets differs in *arg, an Asks, if the library *info brings a search path for others, or is the one with arg->caller
 * in it and brings one for itself; otherwise leaves *arg alone. The program's own path applies to all. Returns 0: go
 * on. [dl_iterate_phdr] */
static int brings_path(struct dl_phdr_info* info, size_t size, void* arg) {
    Asks* asks = arg;
    (void)size;
    const ElfW(Dyn)* dynamic = NULL;
    bool calls = false, program = info->dlpi_name[0] == 0;
    for (int n = 0; n < info->dlpi_phnum; n++) {
        const ElfW(Phdr)* p = &info->dlpi_phdr[n];
        uintptr_t at = info->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_DYNAMIC) dynamic = (const ElfW(Dyn)*)at;
        calls |= p->p_type == PT_LOAD && asks->caller - at < p->p_memsz;
    }
    for (const ElfW(Dyn)* d = dynamic; d != NULL && d->d_tag != DT_NULL; d++)
        asks->differs |= (d->d_tag == DT_RUNPATH && calls) || (d->d_tag == DT_RPATH && !program);
    return 0;
}

/* Returns true if dlopen of `name` (NULL: the program) may find another library for `caller`, an address in the calling
 * library, than for us. [any thread, no lock held] */
static bool depends_on_caller(const char* name, const void* caller) {
    if (name == NULL) return false;
    if (strchr(name, '/') != NULL) return strchr(name, '$') != NULL;
    Asks asks = {(uintptr_t)caller, false};
    (void)dl_iterate_phdr(brings_path, &asks);
    return asks.differs;
}

/* Opens the library `name` (NULL: the program) with these flags by libc's dlopen, which `next` is, outside of all
 * phases. Returns it, or NULL as libc's dlopen does. [own thread, no lock held] */
static void* outside(const char* name, int flags) {
    bool in = tsp_outside_enter();
    void* library = next(name, flags);
    tsp_outside_leave(in);
    return library;
}

/* Returns the function at which a call of dlopen for `name`, from the return address `caller`, goes on: libc's, or one
 * that calls libc's outside of all phases. [own thread, no lock held] */
Dlopen* tsp_dlopen_way(const char* name, const void* caller);

/* Returns the function at which a call of dlopen for `name` (may be NULL) goes on: libc's, or `outside` if the thread
 * is in a phase and `outside` finds the same library. caller: the return address of the call. The first call looks
 * libc's function up and sets `next`. [own thread, no lock held] */
__attribute__((used, visibility("hidden"))) Dlopen* tsp_dlopen_way(const char* name, const void* caller) {
    if (next == NULL) {
        Dlopen* found;
        (void)tsp_start(); /* the mask */
        *(void**)&found = dlsym(RTLD_NEXT, "dlopen");
        next = found; /* a word: every thread stores the same */
    }
    bool in = tsp_outside_enter();
    tsp_outside_leave(in);
    return in && !depends_on_caller(name, caller) ? outside : next;
}

#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".globl dlopen\n"
        ".type dlopen, @function\n"
        ".p2align 4\n"
        "dlopen:\n"
        "    .cfi_startproc\n"
        "    endbr64\n"
        "    pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    pushq %rsi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    movq 24(%rsp), %rsi\n" /* the return address */
        "    call tsp_dlopen_way\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rsi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    andl tsp_dlopen_mask(%rip), %esi\n"
        "    jmp *%rax\n"
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
        "    stp x29, x30, [sp, #-32]!\n"
        "    .cfi_adjust_cfa_offset 32\n"
        "    .cfi_rel_offset x29, 0\n"
        "    .cfi_rel_offset x30, 8\n"
        "    stp x0, x1, [sp, #16]\n"
        "    mov x1, x30\n"
        "    bl tsp_dlopen_way\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x29, x30, [sp], #32\n"
        "    .cfi_adjust_cfa_offset -32\n"
        "    .cfi_restore x29\n"
        "    .cfi_restore x30\n"
        "    adrp x17, tsp_dlopen_mask\n"
        "    ldr w17, [x17, #:lo12:tsp_dlopen_mask]\n"
        "    and w1, w1, w17\n"
        "    br x16\n"
        "    .cfi_endproc\n"
        ".size dlopen, .-dlopen\n"
        ".popsection\n");
#else
/* Opens the library `name` (NULL: the program) with these flags, but without RTLD_DEEPBIND, by a tail call, where the
 * compiler makes one. Returns it, or NULL as libc's dlopen does. [any thread, no lock held] */
TSP_API void* dlopen(const char* name, int flags) {
    return tsp_dlopen_way(name, __builtin_return_address(0))(name, flags & tsp_dlopen_mask);
}
#endif
