/*
 * kernel.c - committed_bytes and metadata_bytes against what the kernel has.
 *
 * What is compared, within 2 %
 *
 *   committed_bytes   slabs and large objects, of phases and warm ones: whole slabs, touched or not. The kernel's
 *                     figure is the anonymous memory of the mappings that objects lie in. A slab's pages come with
 *                     the first touch, so the two agree where every page of every slab has been touched: each case
 *                     fills whole slabs with sizes that leave no page of a slab out.
 *   metadata_bytes    pages of the allocator's own tables that were written. The kernel's figure is what the
 *                     process's anonymous memory grew by, without the payload.
 *   the sum           is what docs/which-number.md compares with the resident size.
 *
 * By design different, and not compared: pages that were given back inside slabs that some object keeps
 * (committed_bytes counts the slab), and handle counts of objects that were not freed singly yet (their pages are
 * counted from the slab's first handle on, and touched by the first free).
 *
 * Readings are of /proc/self/smaps and smaps_rollup: the sums of statm lag behind, and the shared zero page that
 * untouched memory reads as is no anonymous memory. Each case runs in a process of its own, in which an allocator has
 * come and gone before the first reading, so that what the library keeps for the process is there.
 */
#include "kit/fixture.h"

#include <fcntl.h>

enum { PERCENT = 2 };

static char text[4 << 20];
static uintptr_t low, high; /* where objects have been */

/* ---- the kernel's figures --------------------------------------------------------------- */

static bool read_text(const char* path) {
    int fd = open(path, O_RDONLY);
    size_t n = 0;
    ssize_t got = -1;
    while (fd >= 0 && n < sizeof text - 1 && (got = read(fd, text + n, sizeof text - 1 - n)) > 0) n += (size_t)got;
    if (fd >= 0) close(fd);
    text[n] = 0;
    return got == 0 && n > 0;
}

/* "Anonymous:  123 kB" in bytes; the line is looked for from `at` on. */
static uint64_t anonymous_at(const char* at) {
    const char* line = strstr(at, "\nAnonymous:");
    return line ? strtoull(line + strlen("\nAnonymous:"), NULL, 10) * 1024 : 0;
}

static uint64_t process_bytes(void) { return read_text("/proc/self/smaps_rollup") ? anonymous_at(text) : 0; }

/* Of the mappings that reach into [low, high). */
static uint64_t payload_bytes(void) {
    uint64_t bytes = 0;
    if (!read_text("/proc/self/smaps")) return 0;
    for (const char* at = text; at && *at;) {
        char* end;
        uintptr_t from = strtoull(at, &end, 16), to = *end == '-' ? strtoull(end + 1, &end, 16) : 0;
        if (to && from < high && to > low) bytes += anonymous_at(at);
        at = strchr(at, '\n');
        while (at && at[1] && !((at[1] >= '0' && at[1] <= '9') || (at[1] >= 'a' && at[1] <= 'f')))
            at = strchr(at + 1, '\n');
        if (at) at++;
    }
    return bytes;
}

/* ---- comparing -------------------------------------------------------------------------- */

static uint64_t before;          /* of the process, without the allocator */
static unsigned slack_pages = 2; /* of the process's own memory: its stack, mostly */
static bool quiet;

static void within(const char* what, const char* when, uint64_t ours, uint64_t kernels, uint64_t slack) {
    uint64_t apart = ours > kernels ? ours - kernels : kernels - ours;
    if (quiet || apart * 100 <= kernels * PERCENT + slack * 100) return;
    fprintf(stderr, "  %s, %s: %" PRIu64 " KiB, the kernel has %" PRIu64 " KiB\n", what, when, ours >> 10,
            kernels >> 10);
    CHECK(!"within 2 % of the kernel");
}

/* kept_pages: which of the regions that ended phases leave stay is decided by the clock, and some have pages that nobody
 * has touched. */
static void compare_with(SlabAllocator* a, const char* when, uint64_t kept_pages) {
    uint64_t all = process_bytes() - before, payload = payload_bytes(), slack = slack_pages * slab_page_size();
    SlabGlobalStats g = kit_global(a);
    if (!quiet)
        NOTE("%-32s committed %7" PRIu64 " of %7" PRIu64 " KiB, metadata %6" PRIu64 " of %6" PRIu64 " KiB", when,
             g.committed_bytes >> 10, payload >> 10, g.metadata_bytes >> 10, (all - payload) >> 10);
    within("committed_bytes", when, g.committed_bytes, payload, kept_pages * slab_page_size());
    within("metadata_bytes", when, g.metadata_bytes, all - payload, slack);
    within("their sum", when, g.committed_bytes + g.metadata_bytes, all, slack + kept_pages * slab_page_size());
}
static void compare(SlabAllocator* a, const char* when) { compare_with(a, when, 0); }

static void* touched(void* p, size_t n) {
    if (p == NULL) {
        fprintf(stderr, "no object of %zu bytes\n", n);
        exit(3);
    }
    if ((uintptr_t)p < low) low = (uintptr_t)p;
    if ((uintptr_t)p + n > high) high = (uintptr_t)p + n;
    for (size_t i = 0; i < n; i += 256) ((volatile char*)p)[i] = 1;
    ((volatile char*)p)[n - 1] = 1;
    return p;
}

/* So that the stack, which the ways through the allocator use in different depths, has all its pages before the first
 * reading. */
__attribute__((noinline)) static void use_stack(void) {
    volatile char deep[128 << 10];
    for (size_t i = 0; i < sizeof deep; i += 256) deep[i] = 1;
}

/* The allocator of a case. What the case needs of the process has been used once by another, which is gone. */
static SlabAllocator* begin(void) {
    SlabAllocator* a = kit_create();
    memset(text, 1, sizeof text);
    use_stack();
    NOTE("the allocator's figures and the kernel's");
    quiet = true;
    touched(slab_malloc(a, 100), 100);
    compare(a, "rehearsal");
    slab_allocator_free(a);
    before = process_bytes();
    low = UINTPTR_MAX, high = 0;
    quiet = false;
    return kit_create();
}

/* ---- heaps ------------------------------------------------------------------------------ */

/* Sizes of which whole slabs have no page without a part of an object. Above 8 KiB some have. */
static const size_t sizes[] = {16,  32,  48,   64,   96,   128,  192,  256,  384,  512,
                               768, 896, 1024, 1280, 1792, 2048, 3072, 4096, 5120, 8192};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Whole slabs of each size, `bytes` in all. */
static void fill_small(SlabAllocator* a, EpochId id, size_t bytes) {
    for (size_t k = 0; k < SIZES; k++) {
        size_t at_once = slab_object_count((uint32_t)sizes[k]), n = bytes / SIZES / sizes[k];
        n = (n + at_once - 1) / at_once * at_once;
        while (n-- > 0) touched(slab_malloc_epoch(a, sizes[k], id), sizes[k]);
    }
}

static void fill_large(SlabAllocator* a, EpochId id, size_t bytes) {
    static const size_t large[] = {300 << 10, 1 << 20, (size_t)5 << 19, 270000};
    for (size_t k = 0, done = 0; done < bytes; done += large[k % 4], k++)
        touched(slab_malloc_epoch(a, large[k % 4], id), large[k % 4]);
}

static void a_heap(void* arg) {
    size_t bytes = *(const size_t*)arg;
    SlabAllocator* a = begin();
    enum { SMALL = 3, LARGE, MORE }; /* none of them is the current one, whose close opens the next id anew */
    fill_small(a, SMALL, bytes);
    compare(a, "small objects");
    fill_large(a, LARGE, bytes);
    compare(a, "and large objects");
    CHECK(epoch_close_ex(a, SMALL, EPOCH_RELEASE, NULL));
    compare(a, "small ones released");
    fill_small(a, MORE, bytes / 2);
    compare(a, "half as many again");
    CHECK(epoch_close_ex(a, LARGE, EPOCH_RELEASE, NULL));
    compare(a, "large ones released");
    CHECK(epoch_close_ex(a, MORE, EPOCH_RELEASE, NULL));
    compare(a, "all released");
    slab_trim(a);
    compare(a, "after a trim");
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

static void in_a_process(void (*run)(void*), size_t bytes) {
    if (CHECK_TSAN || CHECK_ASAN) SKIP("memory of an instrumented process is mostly the sanitizer's");
    if (process_bytes() == 0) SKIP("the system has no /proc/self/smaps_rollup");
    check_child(run, &bytes);
}

static void four_mebibytes(void) { in_a_process(a_heap, 4 * KIT_MIB); }
static void sixty_four_mebibytes(void) { in_a_process(a_heap, 64 * KIT_MIB); }
static void a_quarter_of_a_gibibyte(void) { in_a_process(a_heap, 256 * KIT_MIB); }

/* ---- bookkeeping ------------------------------------------------------------------------ */

enum { DOMAINS = 1000 };
static epoch_domain_t* domains[DOMAINS];

/* Domains have a record, an incarnation, a heap and a page each; some more labels than places. */
static void open_domains(void* arg) {
    char name[32];
    SlabAllocator* a = begin();
    (void)arg;
    for (size_t i = 0; i < DOMAINS; i++) {
        snprintf(name, sizeof name, "route %zu", i % 300);
        domains[i] = epoch_domain_create_labeled(a, name);
        REQUIRE(domains[i] != NULL);
        touched(epoch_domain_malloc(domains[i], 1 + i % 700), 1);
    }
    compare(a, "1000 domains");
    for (size_t i = 0; i < DOMAINS; i += 4)
        for (size_t n = 2 * slab_object_count(64); n > 0; n--) touched(epoch_domain_malloc(domains[i], 64), 64);
    compare(a, "a quarter with slabs of a class");
    for (size_t i = 0; i < DOMAINS; i++) epoch_domain_destroy(domains[i]);
    compare_with(a, "1000 domains ended", 8);
    slab_trim(a);
    compare(a, "after a trim");
    slab_allocator_free(a);
}

static void a_thousand_domains(void) { in_a_process(open_domains, 0); }

static void* worker(void* arg) {
    fill_small(arg, 0, KIT_MIB);
    return NULL;
}

static void after_threads(void* arg) {
    (void)arg;
    SlabAllocator* a = kit_create();
    kit_on_thread(worker, a); /* the C library keeps the stack of a thread that left */
    slab_allocator_free(a);
    a = begin();
    for (int round = 0; round < 8; round++) kit_on_thread(worker, a);
    compare(a, "eight threads, one by one");
    slab_allocator_free(a);
}

static void threads_that_left(void) { in_a_process(after_threads, 0); }

/* Counts of handles: touched by the first free of each slot. */
static void after_handles(void* arg) {
    size_t n = 64 * slab_object_count(64);
    SlabHandle* h = calloc(n, sizeof *h);
    (void)arg;
    REQUIRE(h != NULL);
    memset(h, 1, n * sizeof *h);
    SlabAllocator* a = begin();
    for (size_t i = 0; i < n; i++) touched(alloc_obj_epoch(a, 64, 0, &h[i]), 64);
    uint64_t issued = kit_global(a).metadata_bytes;
    /* Counts of slots that were handed out are touched at once in shared mode; the slack is that of compare. */
    CHECK_GE(issued + slack_pages * slab_page_size(), process_bytes() - before - payload_bytes());
    for (size_t i = 0; i < n; i += 2) CHECK(free_obj(a, h[i]));
    CHECK_EQ(kit_global(a).metadata_bytes, issued);
    compare(a, "handles, half of them freed");
    CHECK(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    slab_trim(a);
    compare(a, "after a trim");
    slab_allocator_free(a);
    free(h);
}

static void handle_counts(void) { in_a_process(after_handles, 0); }

static const CheckCase cases[] = {
    CHECK_CASE(four_mebibytes),     CHECK_CASE(sixty_four_mebibytes), CHECK_CASE(a_quarter_of_a_gibibyte),
    CHECK_CASE(a_thousand_domains), CHECK_CASE(threads_that_left),    CHECK_CASE(handle_counts),
};
CHECK_MAIN(cases)
