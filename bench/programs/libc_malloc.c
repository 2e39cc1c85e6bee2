/*
 * libc_malloc.c - malloc of libc, for programs that are linked with another one: preloaded where run.py measures glibc.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t n, size_t size);
extern void* __libc_realloc(void* p, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void* p);

void* malloc(size_t size) { return __libc_malloc(size); }
void* calloc(size_t n, size_t size) { return __libc_calloc(n, size); }
void* realloc(void* p, size_t size) { return __libc_realloc(p, size); }
void free(void* p) { __libc_free(p); }
void* memalign(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
void* aligned_alloc(size_t alignment, size_t size) { return __libc_memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
    *out = __libc_memalign(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}
/* A block of glibc's has its size in front of it, with three flags. */
size_t malloc_usable_size(void* p) { return p == NULL ? 0 : (((size_t*)p)[-1] & ~(size_t)7) - sizeof(size_t); }
