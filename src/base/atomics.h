/*
 * atomics.h - memory orders by name.
 *
 * Every shared word is a C11 atomic and is touched through these macros, so that the order of each access is in its
 * name. A non-relaxed access says at its place what it pairs with. There is no bare fence: ThreadSanitizer does not
 * model them. tsi_compiler_fence orders the compiler only; it stands where the other side issues a membarrier (see
 * state/bracket.h).
 */
#ifndef TSI_BASE_ATOMICS_H
#define TSI_BASE_ATOMICS_H

#include "base/sanitize.h"

#include <stdatomic.h>

#define tsi_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define tsi_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define tsi_load_seq(p) atomic_load_explicit((p), memory_order_seq_cst)
#define tsi_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define tsi_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define tsi_store_seq(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)
#define tsi_swap_seq(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)
#define tsi_swap_acquire(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define tsi_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define tsi_sub_relaxed(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)
#define tsi_add_release(p, v) atomic_fetch_add_explicit((p), (v), memory_order_release)
#define tsi_add_seq(p, v) atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)
#define tsi_and_seq(p, v) atomic_fetch_and_explicit((p), (v), memory_order_seq_cst)
#define tsi_or_seq(p, v) atomic_fetch_or_explicit((p), (v), memory_order_seq_cst)
/* Compares and exchanges, strong and sequentially consistent; *expected receives the value found. */
#define tsi_cas_seq(p, expected, v) \
    atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_seq_cst, memory_order_seq_cst)
#define tsi_compiler_fence() atomic_signal_fence(memory_order_seq_cst)

/*
 * Accesses of the fast paths to a word in memory, relaxed: one instruction on x86-64, where compilers load an atomic
 * into a register first. Volatile, so neither is moved over a fence of the compiler or an access of the same kind.
 */
#if defined(__x86_64__) && defined(__LP64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !TSI_WATCHED_THREADS
#define tsi_word_is(p, v)                                                          \
    __extension__({                                                                \
        bool tsi_same;                                                             \
        __asm__ volatile("cmpq %2, %1" : "=@cce"(tsi_same) : "m"(*(p)), "r"(v) :); \
        tsi_same;                                                                  \
    })
#define tsi_or_word(x, p)                                                  \
    __extension__({                                                        \
        uint64_t tsi_sum = (x);                                            \
        __asm__ volatile("orq %1, %0" : "+r"(tsi_sum) : "m"(*(p)) : "cc"); \
        tsi_sum;                                                           \
    })
/* Returns true if the 32 bits there are v or more. */
#define tsi_half_reaches(p, v)                                                        \
    __extension__({                                                                   \
        bool tsi_enough;                                                              \
        __asm__ volatile("cmpl %2, %1" : "=@ccae"(tsi_enough) : "m"(*(p)), "r"(v) :); \
        tsi_enough;                                                                   \
    })
/* Adds 1 to a word that has one writer. */
#define tsi_count_word(p) __asm__ volatile("addq $1, %0" : "+m"(*(p)) : : "cc")
/* Subtracts 1 from 32 bits that have one writer. Returns true if they become 0. */
#define tsi_count_down(p)                                                             \
    __extension__({                                                                   \
        bool tsi_none;                                                                \
        __asm__ volatile("subl $1, %1" : "=@ccz"(tsi_none), "+m"(*(p)) : : "memory"); \
        tsi_none;                                                                     \
    })
/* Adds 1 to 32 bits that have one writer, as a release: a thread that acquires them sees what was written before. */
#define tsi_count_half_release(p) __asm__ volatile("addl $1, %0" : "+m"(*(p)) : : "cc", "memory")
#else
#define tsi_half_reaches(p, v) (tsi_load_relaxed(p) >= (v))
#define tsi_count_half_release(p) tsi_store_release((p), tsi_load_relaxed(p) + 1)
#define tsi_count_word(p) tsi_store_relaxed((p), tsi_load_relaxed(p) + 1)
#define tsi_count_down(p)                            \
    __extension__({                                  \
        uint32_t tsi_left = tsi_load_relaxed(p) - 1; \
        tsi_store_relaxed((p), tsi_left);            \
        tsi_left == 0;                               \
    })
#define tsi_word_is(p, v) (tsi_load_relaxed(p) == (v))
#define tsi_or_word(x, p) ((x) | tsi_load_relaxed(p))
#endif

#endif
