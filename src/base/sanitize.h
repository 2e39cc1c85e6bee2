/*
 * sanitize.h - facts that sanitizers cannot know. Empty in other builds.
 */
#ifndef TSI_BASE_SANITIZE_H
#define TSI_BASE_SANITIZE_H

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define TSI_DEFINED(p, bytes) __msan_unpoison((p), (bytes))
#define TSI_WATCHED_VALUES 1
#endif
#if __has_feature(thread_sanitizer)
#define TSI_WATCHED_THREADS 1
#endif
#endif
#if !defined(TSI_WATCHED_THREADS) && defined(__SANITIZE_THREAD__)
#define TSI_WATCHED_THREADS 1
#endif
/* 1 if ThreadSanitizer checks every access. */
#ifndef TSI_WATCHED_THREADS
#define TSI_WATCHED_THREADS 0
#endif

/* 1 if MemorySanitizer is on; its shadow limits what may be mapped where. */
#ifndef TSI_WATCHED_VALUES
#define TSI_WATCHED_VALUES 0
#endif

/* Tells MemorySanitizer that the bytes at p have values from a place that it does not see: the system, or the
 * compiler. */
#ifndef TSI_DEFINED
#define TSI_DEFINED(p, bytes) ((void)(p), (void)(bytes))
#endif

/* Marks a function that reads memory of others, whatever it holds. */
#ifdef __clang__
#define TSI_UNWATCHED __attribute__((no_sanitize("address", "thread", "undefined", "memory")))
#else
#define TSI_UNWATCHED __attribute__((no_sanitize("address", "thread", "undefined")))
#endif

#endif
