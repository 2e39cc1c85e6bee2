/*
 * operators.c - new and delete of C++, by their mangled names: they come before libstdc++'s, and save a call.
 *
 * A program may replace the operators, all or some. In the standard library it is enough to replace new(size) and
 * delete(p): the others end there. Here, too: operators call one another by names that the program may have taken over,
 * and an operator that does not checks whether the program has.
 *
 * Without memory they call the operator of the library behind us, which knows the program's new handler and how to
 * throw, and asks malloc again.
 */
#define _GNU_SOURCE
#include "preload.h"

#include <malloc.h>
#include <stdlib.h>

/* Functions that programs call by another name, under one that no program takes over. */
extern void* tsp_malloc(size_t size) __attribute__((visibility("hidden")));
#define OPERATOR(name, own, ...)                                         \
    TSP_API void* name(__VA_ARGS__);                                     \
    extern void* own(__VA_ARGS__) __attribute__((visibility("hidden"))); \
    __asm__(".globl " #own "\n.hidden " #own "\n.set " #own ", " #name "\n")
#define IS_OURS(name, own) ((name) == (own))

OPERATOR(_Znwm, tsp_new, size_t size);
OPERATOR(_Znam, tsp_new_array, size_t size);
OPERATOR(_ZnwmSt11align_val_t, tsp_new_aligned, size_t size, size_t align);
OPERATOR(_ZnamSt11align_val_t, tsp_new_array_aligned, size_t size, size_t align);

/* Returns the operator `name` behind ours that the library with the address `caller` in it would have without ours.
 * Aborts if there is none: then the program's C++ has none either. [any thread, no lock held] */
static TSI_COLD void* behind(const char* name, const void* caller) {
    void* found = tsp_next(name, caller);
    if (found == NULL) abort();
    return found;
}
#define BEHIND(type, name) ((type*)(uintptr_t)behind((name), __builtin_return_address(0)))
typedef void* New(size_t size);
typedef void* NewNothrow(size_t size, const void* tag);
typedef void* NewAligned(size_t size, size_t align);
typedef void* NewAlignedNothrow(size_t size, size_t align, const void* tag);

/* ---- new ---- */

/* Allocates `size` bytes where malloc's fast path does not, by tsp_malloc_more: b has its bracket open, which is
 * closed, or is NULL if none was opened. Returns the object; without memory what the operator behind ours returns, or
 * that throws. [own thread, no lock held; in bracket unless b is NULL] */
static TSI_NOINLINE void* new_more(size_t size, TsiBinding* b) {
    TSI_KEEP_FRAME();
    void* p = tsp_malloc_more(size, b);
    return TSI_LIKELY(p != NULL) ? p : BEHIND(New, "_Znwm")(size);
}

/* Allocates `size` bytes by the name malloc, because the program has a malloc of its own. Returns the object; without
 * memory what the operator behind ours returns, or that throws. [any thread, no lock held] */
static TSI_COLD void* new_by_name(size_t size) {
    TSI_KEEP_FRAME();
    void* p = malloc(size);
    return p != NULL ? p : BEHIND(New, "_Znwm")(size);
}

/* operator new: returns an object of `size` bytes (0: as for 1); without memory what the operator behind ours returns,
 * or that throws. [any thread, no lock held] */
void* _Znwm(size_t size) {
    if (TSI_UNLIKELY(!IS_OURS(malloc, tsp_malloc))) return new_by_name(size);
    return tsi_malloc_quick(&tsp_heap, size, new_more);
}

/* operator new[]: returns what operator new does for `size` bytes, ours or the program's. [any thread, no lock held] */
void* _Znam(size_t size) { return _Znwm(size); }

/* operator new(nothrow): returns an object of `size` bytes; if the program has replaced new, or without memory, what
 * the operator behind ours returns. tag: for that operator only. [any thread, no lock held] */
TSP_API void* _ZnwmRKSt9nothrow_t(size_t size, const void* tag) {
    TSI_KEEP_FRAME();
    void* p = IS_OURS(_Znwm, tsp_new) ? malloc(size) : NULL;
    return TSI_LIKELY(p != NULL) ? p : BEHIND(NewNothrow, "_ZnwmRKSt9nothrow_t")(size, tag);
}

/* operator new[](nothrow): returns an object of `size` bytes; if the program has replaced new or new[], or without
 * memory, what the operator behind ours returns. tag: for that operator only. [any thread, no lock held] */
TSP_API void* _ZnamRKSt9nothrow_t(size_t size, const void* tag) {
    TSI_KEEP_FRAME();
    void* p = IS_OURS(_Znwm, tsp_new) && IS_OURS(_Znam, tsp_new_array) ? malloc(size) : NULL;
    return TSI_LIKELY(p != NULL) ? p : BEHIND(NewNothrow, "_ZnamRKSt9nothrow_t")(size, tag);
}

/* operator new with an alignment in bytes: returns an object of `size` bytes aligned to `align`; without memory what
 * the operator behind ours returns, or that throws. [any thread, no lock held] */
void* _ZnwmSt11align_val_t(size_t size, size_t align) {
    TSI_KEEP_FRAME();
    void* p = memalign(align, size);
    return TSI_LIKELY(p != NULL) ? p : BEHIND(NewAligned, "_ZnwmSt11align_val_t")(size, align);
}

/* operator new[] with an alignment in bytes: returns what operator new with one does, ours or the program's.
 * [any thread, no lock held] */
void* _ZnamSt11align_val_t(size_t size, size_t align) { return _ZnwmSt11align_val_t(size, align); }

/* operator new(nothrow) with an alignment in bytes: returns an object of `size` bytes; if the program has replaced new
 * with an alignment, or without memory, what the operator behind ours returns. tag: for that operator only.
 * [any thread, no lock held] */
TSP_API void* _ZnwmSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void* tag) {
    TSI_KEEP_FRAME();
    void* p = IS_OURS(_ZnwmSt11align_val_t, tsp_new_aligned) ? memalign(align, size) : NULL;
    return TSI_LIKELY(p != NULL) ? p
                                 : BEHIND(NewAlignedNothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t")(size, align, tag);
}

/* operator new[](nothrow) with an alignment in bytes: returns an object of `size` bytes; if the program has replaced
 * new or new[] with an alignment, or without memory, what the operator behind ours returns. tag: for that operator
 * only. [any thread, no lock held] */
TSP_API void* _ZnamSt11align_val_tRKSt9nothrow_t(size_t size, size_t align, const void* tag) {
    TSI_KEEP_FRAME();
    bool ours = IS_OURS(_ZnwmSt11align_val_t, tsp_new_aligned) && IS_OURS(_ZnamSt11align_val_t, tsp_new_array_aligned);
    void* p = ours ? memalign(align, size) : NULL;
    return TSI_LIKELY(p != NULL) ? p
                                 : BEHIND(NewAlignedNothrow, "_ZnamSt11align_val_tRKSt9nothrow_t")(size, align, tag);
}

/* ---- delete: the first of each line may be the program's, and the others call it ---- */

/* operator delete: frees p, of ours or libc's; NULL does nothing. The five below free p by this operator or the
 * program's, and use neither size nor tag. [any thread, no lock held] */
TSP_API void _ZdlPv(void* p) { free(p); }
TSP_API void _ZdaPv(void* p) { _ZdlPv(p); }
TSP_API void _ZdlPvRKSt9nothrow_t(void* p, const void* tag) { (void)tag, _ZdlPv(p); }
TSP_API void _ZdaPvRKSt9nothrow_t(void* p, const void* tag) { (void)tag, _ZdaPv(p); }
TSP_API void _ZdlPvm(void* p, size_t size) { (void)size, _ZdlPv(p); }
TSP_API void _ZdaPvm(void* p, size_t size) { (void)size, _ZdaPv(p); }

/* operator delete of objects with an alignment in bytes: frees p, of ours or libc's; NULL does nothing. The five below
 * free p by this operator or the program's, and use neither size nor tag. [any thread, no lock held] */
TSP_API void _ZdlPvSt11align_val_t(void* p, size_t align) { (void)align, free(p); }
TSP_API void _ZdaPvSt11align_val_t(void* p, size_t align) { _ZdlPvSt11align_val_t(p, align); }
TSP_API void _ZdlPvSt11align_val_tRKSt9nothrow_t(void* p, size_t align, const void* tag) {
    (void)tag, _ZdlPvSt11align_val_t(p, align);
}
TSP_API void _ZdaPvSt11align_val_tRKSt9nothrow_t(void* p, size_t align, const void* tag) {
    (void)tag, _ZdaPvSt11align_val_t(p, align);
}
TSP_API void _ZdlPvmSt11align_val_t(void* p, size_t size, size_t align) { (void)size, _ZdlPvSt11align_val_t(p, align); }
TSP_API void _ZdaPvmSt11align_val_t(void* p, size_t size, size_t align) { (void)size, _ZdaPvSt11align_val_t(p, align); }
