/*
 * system.c - what the library asks of the system: address space that is there if any is, mappings that do not
 * grow with the objects, and no trace of a call that fails inside a free.
 */
#include "kit/fixture.h"

#include <sys/mman.h>
#include <sys/resource.h>

/* ---- address space ---- */

static size_t status_mib(const char* key) {
    char line[256];
    size_t kib = 0;
    FILE* f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = strtoul(line + strlen(key), NULL, 10);
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return (kib + 1023) / 1024;
}

/* In a child with so much address space left: 0 it works, 1 it does not, 2 such a limit cannot be set. */
static int create_under_limit(size_t mib) {
    struct rlimit r;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        alarm(300);
        getrlimit(RLIMIT_AS, &r);
        r.rlim_cur = (status_mib("VmSize:") + mib) * KIT_MIB;
        if (setrlimit(RLIMIT_AS, &r) != 0 ||
            mmap(NULL, (mib + 1) * KIT_MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED) {
            _exit(2);
        }
        SlabAllocator* a = slab_allocator_create();
        bool works = a != NULL && kit_global(a).reserved_bytes >= 16 * KIT_MIB && slab_malloc(a, 100) != NULL;
        slab_allocator_free(a);
        _exit(works ? 0 : 1);
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* In a process that has had no allocator yet, so that what all allocators share is asked for as well: it must leave
 * room for one. */
static void an_allocator_at_every_limit(void) {
    enum { LEAST = 64, MOST = 460 };
    if (CHECK_TSAN || CHECK_ASAN) {
        SKIP("a sanitizer cannot live under a limit of address space");
    }
    for (size_t mib = LEAST; mib <= MOST; mib++) {
        int result = create_under_limit(mib);
        if (result == 2) {
            SKIP("RLIMIT_AS is not enforced here");
        }
        if (!CHECK_EQ(result, 0)) {
            fprintf(stderr, "  no allocator in %zu MiB\n", mib);
        }
    }
}

/* ---- mappings ---- */

static size_t count_mappings(void) {
    size_t n = 0;
    FILE* f = fopen("/proc/self/maps", "r");
    for (int c; f != NULL && (c = getc(f)) != EOF;) {
        n += c == '\n';
    }
    if (f != NULL) {
        fclose(f);
    }
    return n;
}

static bool commits_are_charged(void) {
    FILE* f = fopen("/proc/sys/vm/overcommit_memory", "r");
    int c = f != NULL ? getc(f) : EOF;
    if (f != NULL) {
        fclose(f);
    }
    return c == '2';
}

/* The kernel counts mappings, and tens of thousands of objects are allowed: neighbours have to be one. */
static void large_objects_are_few_mappings(void) {
    enum { MOST = 4000, FEW = 100 };
    static const size_t sizes[] = {300000, 700000, 1500000};
    static void* p[MOST];
    size_t count = check_count_whole(1000);
    if (commits_are_charged()) {
        SKIP("memory that is charged when it is mapped is mapped no further than it is used");
    }
    if (count_mappings() == 0) {
        SKIP("/proc/self/maps cannot be read");
    }
    count = count < MOST ? count : MOST;
    SlabAllocator* a = kit_create_cold();
    size_t before = count_mappings();
    for (size_t i = 0; i < count; i++) {
        p[i] = slab_malloc(a, sizes[i % 3]);
        REQUIRE(p[i] != NULL);
        *(size_t*)p[i] = i;
    }
    CHECK_LE(count_mappings(), before + FEW);
    for (size_t i = 0; i < count; i++) { /* every other one first */
        size_t k = (2 * i) % count + (count % 2 == 0 && 2 * i >= count ? 1 : 0);
        CHECK_EQ(*(size_t*)p[k], k);
        CHECK(slab_free_checked(a, p[k]));
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_LE(count_mappings(), before + FEW);
    epoch_close(a, 0);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

/* ---- calls that fail ---- */

/* Locked pages cannot be given back. The program asked for nothing that could fail: its errno is its own. */
static void frees_of_locked_pages_leave_errno_alone(void) {
    CHECK_NEEDS_OVERCOMMIT();
    SlabAllocator* a = kit_create_cold();
    if (CHECK_TSAN || CHECK_ASAN) {
        SKIP("sanitizers turn mlock into nothing");
    }
    void* p = slab_malloc(a, 300000);
    epoch_domain_t* d = epoch_domain_begin(a, "locked");
    void* q = slab_malloc(a, 5000);
    REQUIRE(p != NULL && q != NULL);
    void* page = (void*)((uintptr_t)q & ~(uintptr_t)(slab_page_size() - 1));
    if (mlock(p, slab_page_size()) != 0 || mlock(page, slab_page_size()) != 0) {
        slab_allocator_free(a);
        SKIP("cannot lock a page: %s", strerror(errno));
    }
    errno = 77;
    slab_free(a, p);
    CHECK_EQ(errno, 77);
    CHECK(kit_global(a).total_madvise_failures == 1);
    slab_free(a, q);
    epoch_domain_end(d);
    CHECK_EQ(errno, 77);
    CHECK(kit_global(a).total_madvise_failures == 2);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(an_allocator_at_every_limit), /* first: in a process that has had none */
    CHECK_CASE(large_objects_are_few_mappings),
    CHECK_CASE(frees_of_locked_pages_leave_errno_alone),
};
CHECK_MAIN(cases)
