/* test_fault.c - the handler of faults is installed once for the process, by one thread at a time. */
#define _GNU_SOURCE
#include "kit/check.h"

#include "observe/sheets.h"
#include "slab_alloc.h"

#include <dlfcn.h>
#include <signal.h>

static int installed, beside;

/* In place of libc's: another thread may be about to install the handler unless the lock is held. */
int sigaction(int number, const struct sigaction* to, struct sigaction* was) {
    int (*real)(int, const struct sigaction*, struct sigaction*);
    *(void**)&real = dlsym(RTLD_NEXT, "sigaction");
    if (number == SIGSEGV && to != NULL) {
        installed++;
        beside += !tsi_lock_is_held(&tsi_stand_in_lock);
    }
    return real(number, to, was);
}

static void guards_are_made(SlabOptions options) {
    options.struct_size = sizeof options;
    options.by_malloc = 2;
    options.reserve_bytes = (uint64_t)16 << 20;
    SlabAllocator* a = slab_allocator_create_with(&options);
    REQUIRE(a != NULL);
    void* p = slab_malloc(a, 48);
    REQUIRE(p != NULL);
    CHECK(slab_free_checked(a, p));
    slab_allocator_free(a);
}

static void installed_once(void) {
    guards_are_made((SlabOptions){.guard_sampling = 16});
    guards_are_made((SlabOptions){.guard_period = 1});
    guards_are_made((SlabOptions){.late_access = 1});
    CHECK_EQ(installed, 1);
    CHECK_EQ(beside, 0);
}

static const CheckCase cases[] = {CHECK_CASE(installed_once)};
int main(int argc, char** argv) {
    if (CHECK_ASAN || CHECK_TSAN) {
        puts("skipped: the sanitizer has the handler");
        return 0;
    }
    if (dlsym(RTLD_NEXT, "sigaction") == NULL) {
        puts("skipped: linked statically, so no sigaction stands behind this one");
        return 0;
    }
    return CHECK_RUN(argc, argv, cases);
}
