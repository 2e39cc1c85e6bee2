/*
 * strings.c - copies of strings and formatted text: where slab_malloc would put them, outside of every scope, or in a
 * named domain.
 *
 * A copy of nothing (NULL) is an allocation of no bytes: refused and counted like that.
 */
#include "api/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct Where {
    SlabAllocator* a;
    epoch_domain_t* d;
    bool named; /* d, which may be NULL */
    bool outside;
} Where;

/* Allocates `bytes` bytes, any number, where `where` says. Returns the object, or NULL with errno.
 * [own thread, no lock held, no bracket open] */
static void* tsi_text_take(Where where, size_t bytes) {
    TSI_KEEP_FRAME();
    if (where.named) return epoch_domain_malloc(where.d, bytes);
    return where.outside ? slab_malloc_outside(where.a, bytes) : slab_malloc(where.a, bytes);
}

/* Copies `bytes` bytes at `from` to an object where `where` says; from NULL is refused as an allocation of no bytes.
 * Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
static void* tsi_text_of(Where where, const void* from, size_t bytes) {
    TSI_KEEP_FRAME();
    void* p = tsi_text_take(where, from != NULL ? bytes : 0);
    return p != NULL ? memcpy(p, from, bytes) : NULL;
}

/* Copies a text, cut to `most` bytes, to an object where `where` says, and ends it with 0; text NULL is refused as an
 * allocation of no bytes. Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
static char* tsi_text_copy(Where where, const char* text, size_t most) {
    TSI_KEEP_FRAME();
    size_t n = text != NULL ? strnlen(text, most) : 0;
    char* p = tsi_text_take(where, text != NULL ? n + 1 : 0);
    if (p == NULL) return NULL;
    memcpy(p, text, n);
    p[n] = 0;
    return p;
}

/* Formats a text into an object of its length and the 0, where `where` says; format NULL is refused as an allocation
 * of no bytes, and an error of vsnprintf gives NULL with its errno. Most texts are short: they are formatted once, on
 * the stack, and copied. `args` is used up. Returns the object, or NULL with errno.
 * [own thread, no lock held, no bracket open] */
static char* tsi_text_print(Where where, const char* format, va_list args) {
    TSI_KEEP_FRAME();
    char text[256];
    va_list again;
    if (format == NULL) return tsi_text_take(where, 0);
    va_copy(again, args);
    int n = vsnprintf(text, sizeof text, format, args);
    char* p = n >= 0 ? tsi_text_take(where, (size_t)n + 1) : NULL; /* errno is vsnprintf's */
    if (p != NULL && (size_t)n < sizeof text) memcpy(p, text, (size_t)n + 1);
    else if (p != NULL) (void)vsnprintf(p, (size_t)n + 1, format, again);
    va_end(again);
    return p;
}

#define HERE ((Where){.a = a})
#define OUTSIDE ((Where){.a = a, .outside = true})
#define THERE ((Where){.d = d, .named = true})

/* The body of a function whose last parameters are `format` and what it formats. */
#define PRINT(where, format)                          \
    TSI_KEEP_FRAME();                                 \
    va_list args;                                     \
    va_start(args, format);                           \
    char* text = tsi_text_print(where, format, args); \
    va_end(args);                                     \
    return text

char* slab_strdup(SlabAllocator* a, const char* text) { return tsi_text_copy(HERE, text, PTRDIFF_MAX); }
char* slab_strndup(SlabAllocator* a, const char* text, size_t n) { return tsi_text_copy(HERE, text, n); }
void* slab_memdup(SlabAllocator* a, const void* p, size_t n) { return tsi_text_of(HERE, p, n); }

char* slab_asprintf(SlabAllocator* a, const char* format, ...) { PRINT(HERE, format); }

char* slab_strdup_outside(SlabAllocator* a, const char* text) { return tsi_text_copy(OUTSIDE, text, PTRDIFF_MAX); }

char* slab_asprintf_outside(SlabAllocator* a, const char* format, ...) { PRINT(OUTSIDE, format); }

char* epoch_domain_strdup(epoch_domain_t* d, const char* text) { return tsi_text_copy(THERE, text, PTRDIFF_MAX); }
char* epoch_domain_strndup(epoch_domain_t* d, const char* text, size_t n) { return tsi_text_copy(THERE, text, n); }
void* epoch_domain_memdup(epoch_domain_t* d, const void* p, size_t n) { return tsi_text_of(THERE, p, n); }

char* epoch_domain_asprintf(epoch_domain_t* d, const char* format, ...) { PRINT(THERE, format); }
