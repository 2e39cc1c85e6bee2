/*
 * phases.c - labelled phases with known allocations, for pprof: writes the profile to the file of its first argument and
 * prints "TAG NAME ALLOCATED IN-USE" in bytes for each, where the tag is "maker" for what is made outside. With "-" for the file it writes none: it comes by to publish until
 * its standard input ends.
 */
#include "epoch_domain.h"
#include "slab_diagnostics.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t allocated, in_use;

static void* took(SlabAllocator* a, void* p) {
    if (p == NULL) exit(1);
    allocated += slab_usable_size(a, p);
    in_use += slab_usable_size(a, p);
    return p;
}
static void freed(SlabAllocator* a, void* p) {
    in_use -= slab_usable_size(a, p);
    slab_free(a, p);
}

__attribute__((noinline)) void parse_headers(SlabAllocator* a) {
    for (unsigned n = 0; n < 60000; n++) (void)took(a, slab_malloc(a, 48 + n % 3 * 16));
}
__attribute__((noinline)) void render_page(SlabAllocator* a) {
    for (unsigned n = 0; n < 20000; n++) {
        void* p = took(a, slab_calloc(a, 1, 500));
        if (n % 2 == 0) freed(a, p);
    }
}
__attribute__((noinline)) void grow_index(SlabAllocator* a) {
    for (unsigned n = 0; n < 500; n++) {
        void* p = took(a, slab_malloc(a, 3000));
        in_use -= slab_usable_size(a, p);
        (void)took(a, slab_realloc(a, p, 30000));
    }
}
__attribute__((noinline)) void open_session(SlabAllocator* a) {
    for (unsigned n = 0; n < 20000; n++) (void)took(a, slab_malloc_outside(a, 200));
}

__attribute__((noinline)) void serve(SlabAllocator* a, const char* tag, const char* label,
                                     void (*work)(SlabAllocator*)) {
    allocated = in_use = 0;
    if (epoch_domain_begin(a, label) == NULL) exit(1);
    work(a);
    printf("%s %s %llu %llu\n", tag, label, (unsigned long long)allocated, (unsigned long long)in_use);
}

static bool put(void* ctx, const char* bytes, size_t n) { return fwrite(bytes, 1, n, ctx) == n; }

static int hold(SlabAllocator* a) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    (void)fflush(stdout);
    while (poll(&input, 1, 20) == 0) slab_trim(a);
    return 0;
}

int main(int argc, char** argv) {
    SlabOptions o = {.struct_size = sizeof o, .profile_bytes = 2048};
    SlabAllocator* a = slab_allocator_create_with(&o);
    bool stays = argc > 1 && strcmp(argv[1], "-") == 0;
    FILE* f = argc > 1 && !stays ? fopen(argv[1], "wb") : NULL;
    if (a == NULL || (f == NULL && !stays)) return 1;
    serve(a, "label", "headers", parse_headers);
    serve(a, "label", "page", render_page);
    serve(a, "label", "index", grow_index);
    serve(a, "maker", "login", open_session);
    if (stays) return hold(a);
    bool ok = slab_profile_write(a, put, f) != 0;
    return fclose(f) == 0 && ok ? 0 : 1;
}
