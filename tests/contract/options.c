/*
 * options.c - the options struct: what is accepted, what is refused with a sentence, and what each
 * option does. environment.c has the same through TSLAB_OPTIONS.
 */
#include "kit/fixture.h"

#include <signal.h>
#include <sys/resource.h>

static void check_refused(const SlabOptions* o, const char* what) {
    static SlabAllocator storage;
    errno = 0;
    SlabAllocator* a = slab_allocator_create_with(o);
    if (!CHECK(a == NULL)) {
        fprintf(stderr, "  accepted: %s\n", what);
        slab_allocator_free(a);
    }
    CHECK_EQ(errno, EINVAL);
    CHECK_GT(strlen(slab_last_error()), 8);
    CHECK(!allocator_init_with(&storage, o));
    CHECK_NULL(slab_malloc(&storage, 10));
    allocator_destroy(&storage);
}

static void check_accepted(const SlabOptions* o, const char* what) {
    SlabAllocator* a = slab_allocator_create_with(o);
    if (!CHECK(a != NULL)) {
        fprintf(stderr, "  refused: %s: %s\n", what, slab_last_error());
        return;
    }
    void* p = slab_malloc(a, 100);
    CHECK(p != NULL);
    kit_fill(p, 100, 1);
    CHECK(kit_intact(p, 100, 1));
    CHECK(slab_free_checked(a, p));
    slab_allocator_free(a);
}

static void bad_structs(void) {
    SlabOptions o = kit_options();
    o.struct_size = 0;
    check_refused(&o, "struct_size 0");
    o.struct_size = 1;
    check_refused(&o, "struct_size 1");
    struct {
        SlabOptions o;
        uint64_t unknown[4];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.o.struct_size = sizeof newer;
    newer.unknown[1] = 1;
    check_refused(&newer.o, "an option of a later version");
    const struct {
        uint32_t ring, purge, slab;
        uint64_t reserve;
        const char* what;
    } bad[] = {
        {1, 0, 0, 0, "ring_size 1"},
        {1025, 0, 0, 0, "ring_size 1025"},
        {UINT32_MAX, 0, 0, 0, "ring_size 2^32-1"},
        {0, 3, 0, 0, "purge_policy 3"},
        {0, UINT32_MAX, 0, 0, "purge_policy 2^32-1"},
        {0, 0, 1, 0, "slab_bytes 1"},
        {0, 0, 2048, 0, "slab_bytes 2048"},
        {0, 0, 5000, 0, "slab_bytes 5000"},
        {0, 0, 12288, 0, "slab_bytes 12288"},
        {0, 0, 131072, 0, "slab_bytes 131072"},
        {0, 0, 0, 1, "reserve_bytes 1"},
        {0, 0, 0, 16 * KIT_MIB - 1, "reserve_bytes 16 MiB - 1"},
        {0, 0, 0, ((uint64_t)64 << 30) + 1, "reserve_bytes 64 GiB + 1"},
        {0, 0, 0, UINT64_MAX, "reserve_bytes 2^64-1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        o = kit_options();
        o.ring_size = bad[i].ring;
        o.purge_policy = bad[i].purge;
        o.slab_bytes = bad[i].slab;
        o.reserve_bytes = bad[i].reserve;
        check_refused(&o, bad[i].what);
    }
}

static void good_structs(void) {
    check_accepted(NULL, "no struct");
    SlabOptions o = kit_options();
    check_accepted(&o, "an empty struct");
    for (uint32_t bytes = 4096; bytes <= 65536; bytes *= 2) {
        o = kit_options();
        o.slab_bytes = bytes;
        check_accepted(&o, "slab_bytes");
        SlabAllocator* a = kit_create_with(&o);
        for (uint32_t c = 0; c < SLAB_FIXED_CLASSES; c++) {
            SlabClassStats s;
            slab_stats_class(a, c, &s);
            CHECK_GE(s.slab_bytes, bytes);
        }
        slab_allocator_free(a);
    }
    for (uint64_t bytes = 16 * KIT_MIB; bytes <= (uint64_t)1 << 30; bytes *= 2) {
        o = kit_options();
        o.reserve_bytes = bytes;
        check_accepted(&o, "reserve_bytes");
        o.reserve_bytes = bytes + 12345; /* no power of two, no whole page */
        check_accepted(&o, "odd reserve_bytes");
    }
    for (uint32_t policy = 0; policy <= SLAB_PURGE_NEVER; policy++) {
        o = kit_options();
        o.purge_policy = policy;
        check_accepted(&o, "purge_policy");
    }
    o = kit_options();
    o.prefault = 1;
    check_accepted(&o, "prefault");
    o.huge_pages = 1;
    check_accepted(&o, "huge_pages");
    o.numa_local = 1;
    check_accepted(&o, "numa_local");
    o.warm_bytes = UINT64_MAX;
    o.ring_size = 1024;
    check_accepted(&o, "several at once");
    CHECK_STR(slab_last_error(), "");
}

static void the_last_error_is_per_thread_and_current(void) {
    SlabOptions o = kit_options();
    o.ring_size = 1;
    CHECK_NULL(slab_allocator_create_with(&o));
    char ring[256];
    snprintf(ring, sizeof ring, "%s", slab_last_error());
    o.ring_size = 0;
    o.slab_bytes = 5;
    CHECK_NULL(slab_allocator_create_with(&o));
    CHECK(strcmp(ring, slab_last_error()) != 0);
}

static void warm_bytes_bound_what_is_kept(void) {
    static const uint64_t budgets[] = {UINT64_MAX, 64 * 1024, KIT_MIB, 4 * KIT_MIB};
    for (size_t i = 0; i < 4; i++) {
        SlabOptions o = kit_options();
        o.warm_bytes = budgets[i];
        SlabAllocator* a = kit_create_with(&o);
        for (size_t k = 0; k < check_count_whole(100000); k++) {
            REQUIRE(slab_malloc(a, 64 + k % 700) != NULL);
        }
        CHECK(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
        CHECK_LE(kit_committed(a), budgets[i] == UINT64_MAX ? 0 : budgets[i]);
        NOTE("warm budget %" PRId64 " KiB: %" PRIu64 " KiB kept",
             budgets[i] == UINT64_MAX ? 0 : (int64_t)budgets[i] / 1024, kit_committed(a) >> 10);
        slab_allocator_free(a);
    }
}

/* Under every policy a small reservation serves many phases, and callocs are zero. */
static void purge_policies_reuse_memory(void) {
    for (uint32_t policy = 0; policy <= SLAB_PURGE_NEVER; policy++) {
        SlabOptions o = kit_options();
        o.purge_policy = policy;
        o.reserve_bytes = 32 * KIT_MIB;
        SlabAllocator* a = kit_create_with(&o);
        for (size_t phase = 0; phase < check_count(30); phase++) {
            epoch_domain_t* d = epoch_domain_begin(a, NULL);
            for (size_t k = 0; k < 10000; k++) {
                void* p = slab_calloc(a, 1, 500 + phase % 3 * 300);
                REQUIRE(p != NULL);
                CHECK(kit_all_zero(p, 500));
                memset(p, 0xCC, 500);
            }
            epoch_domain_end(d);
        }
        SlabGlobalStats g = kit_global(a);
        CHECK(policy != SLAB_PURGE_NEVER || g.total_madvise_calls == 0);
        CHECK(policy == SLAB_PURGE_NEVER || g.total_madvise_bytes > 0);
        CHECK_EQ(g.total_madvise_failures, 0);
        CHECK_EQ(kit_live(a), 0);
        slab_allocator_free(a);
    }
}

/* ---- callbacks ---- */

typedef struct Told {
    SlabAllocator* a;
    unsigned times[SLAB_MISUSE_COUNT];
    const void* where;
    SlabMisuse what;
    pthread_t thread;
    bool nested;
} Told;

static void told(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx) {
    Told* t = ctx;
    CHECK_EQ(a, t->a);
    REQUIRE(what < SLAB_MISUSE_COUNT);
    t->times[what]++;
    t->where = where;
    t->what = what;
    CHECK(pthread_equal(t->thread, pthread_self()));
    if (!t->nested) { /* no lock is held: the allocator may be used */
        t->nested = true;
        epoch_advance(a);
        void* p = slab_malloc(a, 100);
        CHECK(p != NULL);
        CHECK(slab_free_checked(a, p));
        epoch_domain_t* d = epoch_domain_begin(a, NULL);
        epoch_domain_end(d);
        CHECK(kit_global(a).committed_bytes > 0);
        t->nested = false;
    }
}

static void expect(Told* t, SlabMisuse what, const void* where, const char* name) {
    if (!CHECK_EQ(t->what, what)) {
        fprintf(stderr, "  at %s\n", name);
    }
    CHECK(where == NULL || t->where == where);
    t->what = SLAB_MISUSE_COUNT;
}

static void the_callback_is_told_each_misuse(void) {
    Told t;
    SlabOptions o = kit_options();
    memset(&t, 0, sizeof t);
    t.what = SLAB_MISUSE_COUNT;
    t.thread = pthread_self();
    o.misuse_fn = told;
    o.misuse_ctx = &t;
    SlabAllocator* a = t.a = kit_create_with(&o);
    char* p = slab_malloc(a, 100);
    char* twin = slab_malloc(a, 100);
    SlabHandle h = 0;
    void* object = alloc_obj(a, 100, &h);
    slab_free(a, p);
    CHECK_EQ(t.what, SLAB_MISUSE_COUNT);
    slab_free(a, kit_hide(p));
    expect(&t, SLAB_MISUSE_DOUBLE_FREE, p, "double free");
    slab_free(a, twin + 16);
    expect(&t, SLAB_MISUSE_INTERIOR_POINTER, twin + 16, "interior pointer");
    slab_free(a, &t);
    expect(&t, SLAB_MISUSE_FOREIGN_POINTER, &t, "foreign pointer");
    slab_free_sized(a, twin, 1000);
    expect(&t, SLAB_MISUSE_SIZE_MISMATCH, twin, "size mismatch");
    CHECK(!free_obj(a, h ^ ((SlabHandle)1 << 35)));
    CHECK(t.what == SLAB_MISUSE_BAD_HANDLE || t.what == SLAB_MISUSE_STALE_HANDLE);
    CHECK(object != NULL && free_obj(a, h) && !free_obj(a, h));
    CHECK(t.what == SLAB_MISUSE_STALE_HANDLE || t.what == SLAB_MISUSE_DOUBLE_FREE);
    CHECK_NULL(slab_malloc_epoch(a, 100, 5000));
    expect(&t, SLAB_MISUSE_BAD_EPOCH, NULL, "bad epoch");
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    void* gone = slab_malloc(a, 100);
    epoch_domain_exit(d);
    slab_free(a, gone);
    expect(&t, SLAB_MISUSE_STALE_FREE, gone, "stale free");
    EpochId was = epoch_current(a);
    epoch_close(a, was);
    CHECK_NULL(slab_malloc_epoch(a, 100, was));
    expect(&t, SLAB_MISUSE_CLOSED_EPOCH, NULL, "closed epoch");
    CHECK_NULL(slab_malloc(a, 0));
    expect(&t, SLAB_MISUSE_BAD_SIZE, NULL, "size 0");
    epoch_domain_exit(d);
    expect(&t, SLAB_MISUSE_DOMAIN_ORDER, NULL, "exit without enter");
    epoch_domain_destroy(d);
    SlabRefusals r = kit_refusals(a);
    CHECK_EQ(r.double_free, t.times[SLAB_MISUSE_DOUBLE_FREE]);
    CHECK_EQ(r.stale_free, t.times[SLAB_MISUSE_STALE_FREE]);
    CHECK_EQ(r.interior_pointer, t.times[SLAB_MISUSE_INTERIOR_POINTER]);
    CHECK_EQ(r.foreign_pointer, t.times[SLAB_MISUSE_FOREIGN_POINTER]);
    CHECK_EQ(r.bad_epoch, t.times[SLAB_MISUSE_BAD_EPOCH]);
    CHECK_EQ(r.closed_epoch, t.times[SLAB_MISUSE_CLOSED_EPOCH]);
    CHECK_EQ(r.bad_size, t.times[SLAB_MISUSE_BAD_SIZE]);
    CHECK_EQ(r.domain_order, t.times[SLAB_MISUSE_DOMAIN_ORDER]);
    slab_allocator_free(a);
}

typedef struct Leaks {
    size_t calls;
    uint64_t objects, bytes;
    bool saw_request, saw_unlabelled;
} Leaks;

static void leaked(SlabAllocator* a, const char* label, uint64_t era, uint64_t objects, uint64_t bytes, void* ctx) {
    Leaks* l = ctx;
    CHECK(a != NULL);
    CHECK_GT(era, 0);
    CHECK_GT(objects, 0);
    l->calls++;
    l->objects += objects;
    l->bytes += bytes;
    if (label != NULL && strcmp(label, "request") == 0) {
        l->saw_request = true;
        CHECK_EQ(objects, 3);
        CHECK_EQ(bytes, 3 * 128);
    } else {
        l->saw_unlabelled = true;
    }
}

static void leaks_are_reported_at_destroy(void) {
    for (uint8_t asked = 0; asked < 2; asked++) {
        Leaks l;
        memset(&l, 0, sizeof l);
        SlabOptions o = kit_options();
        o.leak_report = asked;
        o.leak_fn = leaked;
        o.leak_ctx = &l;
        SlabAllocator* a = kit_create_with(&o);
        epoch_domain_t* d = epoch_domain_create_labeled(a, "request");
        for (int i = 0; i < 3; i++) {
            CHECK(epoch_domain_malloc(d, 128) != NULL);
        }
        CHECK(slab_malloc(a, 64) != NULL); /* epoch 0 */
        CHECK(slab_malloc_epoch(a, 64, 3) != NULL);
        epoch_close(a, 3); /* escaped from a closed one */
        slab_free(a, slab_malloc_epoch(a, 64, 5));
        CHECK_EQ(l.calls, 0);
        slab_allocator_free(a);
        CHECK_EQ(l.calls, asked ? 3 : 0);
        CHECK_EQ(l.objects, asked ? 5 : 0);
        CHECK_EQ(l.bytes, asked ? 3 * 128 + 2 * 64 : 0);
        CHECK_EQ(l.saw_request, asked);
    }
}

static void misuse_that_is_fatal(void* arg) {
    SlabOptions o = kit_options();
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    o.misuse_fatal = 1;
    SlabAllocator* a = kit_create_with(&o);
    void* p = slab_malloc(a, 100);
    slab_free(a, p);
    if (*(int*)arg) {
        slab_free(a, kit_hide(p));
    }
}

static void fatal_misuse_aborts(void) {
    for (int misuse = 0; misuse < 2; misuse++) {
        fflush(NULL);
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            alarm(300);
            misuse_that_is_fatal(&misuse);
            _exit(0);
        }
        int status = 0;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(misuse ? WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT : WIFEXITED(status) && !WEXITSTATUS(status));
    }
}

static const CheckCase cases[] = {
    CHECK_CASE(bad_structs),
    CHECK_CASE(good_structs),
    CHECK_CASE(the_last_error_is_per_thread_and_current),
    CHECK_CASE(warm_bytes_bound_what_is_kept),
    CHECK_CASE(purge_policies_reuse_memory),
    CHECK_CASE(the_callback_is_told_each_misuse),
    CHECK_CASE(leaks_are_reported_at_destroy),
    CHECK_CASE(fatal_misuse_aborts),
};
CHECK_MAIN(cases)
