/*
 * late_access.c - option late_access: who touches an object of a phase that has ended is told which phase, how long ago, and
 * where the object was made; nobody else is.
 */
#include "kit/said.h"
#include "kit/fixture.h"

#include <errno.h>

static SlabAllocator* a;

static void open_it(void) {
    SlabOptions o = kit_options();
    o.late_access = 1;
    a = kit_create_with(&o);
}
static void close_it(void) { slab_allocator_free(a); }

static char* made(size_t size) {
    char* p = slab_malloc(a, size);
    REQUIRE(p != NULL);
    memset(p, 7, size);
    return p;
}

static void read_it(void* p) { _exit(*(const volatile char*)p == 7 ? 7 : 8); }
static Said touch(const volatile char* p) { return kit_said(read_it, (void*)(uintptr_t)p); }
static bool is_told(const char* p) {
    Said s = touch(p);
    bool died = CHECK_ASAN || CHECK_TSAN ? s.status != 0 : WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGSEGV;
    return died && strstr(s.text, "temporal-slab: late access to phase \"") != NULL;
}
static bool is_there(const char* p) { return kit_was_quiet(touch(p), 7); }

static void a_released_phase(void) {
    char text[160];
    epoch_domain_t* d = epoch_domain_begin(a, "GET /page");
    char *p = made(100), *large = made(300000), *outside = slab_malloc_outside(a, 40);
    uint64_t era = epoch_domain_era(d);
    memset(outside, 7, 40);
    CHECK(is_there(p) && is_there(large + 299999));
    CHECK(epoch_domain_end(d));
    CHECK(is_told(p));
    CHECK(is_told(large) && is_told(large + 299999));
    CHECK(is_there(outside));
    Said s = touch(p + 33);
    snprintf(text, sizeof text, "late access to phase \"GET /page\" (era %llu), released ", (unsigned long long)era);
    CHECK_HAS(s.text, text);
    CHECK_HAS(s.text, " ago: 0x");
    CHECK_HAS(s.text, " is 33 bytes into an object of 100 bytes\n");
    CHECK_HAS(s.text, "  allocated at  ");
    CHECK_HAS(touch(large + 200000).text, " is 200000 bytes into an object of 300000 bytes\n");
    slab_free(a, outside);
}

/* A phase that was drained: what escapes is there, until it is freed. */
static void a_drained_phase(void) {
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    char *freed = made(50), *escapes = made(60);
    slab_free(a, freed);
    CHECK(epoch_domain_drain(d, NULL));
    CHECK(is_there(escapes));
    CHECK(slab_free_checked(a, escapes));
    CHECK(is_told(escapes) && is_told(freed));
    CHECK_HAS(touch(escapes).text, "phase \"(unlabeled)\" (era ");
    CHECK_HAS(touch(escapes).text, "), drained ");
    CHECK(!slab_free_checked(a, escapes)); /* refused as ever */
    CHECK(!slab_free_checked(a, freed));
    /* One that is over when it ends, and one that goes on. */
    d = epoch_domain_begin(a, "over");
    freed = made(50);
    slab_free(a, freed);
    CHECK(!is_told(freed));
    CHECK(epoch_domain_drain(d, NULL));
    CHECK(is_told(freed));
}

/* Thousands of phases, each with an address of its own, handles, blocks that grow. */
static void many_phases(void) {
    enum { N = 3000 };
    static char* first[N];
    SlabHandle h = 0;
    for (int n = 0; n < N; n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "many");
        first[n] = made(10);
        for (int k = 0; k < 40; k++) slab_free(a, made((size_t)k * 30 + 1));
        char* p = slab_realloc(a, made(20), 4000);
        REQUIRE(p != NULL && p[19] == 7);
        p = slab_aligned_alloc(a, 4096, 100);
        CHECK_EQ((uintptr_t)p % 4096, 0);
        p = alloc_obj(a, 64, &h);
        CHECK_EQ(slab_handle_ptr(a, h), p);
        CHECK_EQ(slab_usable_size(a, first[n]), 10);
        CHECK(epoch_domain_end(d));
        CHECK_NULL(slab_handle_ptr(a, h));
    }
    for (int n = 0; n < N; n += 299) CHECK(is_told(first[n]));
    CHECK_EQ(kit_live(a), 0);
}

static void epochs_of_the_ring(void) {
    EpochId id = epoch_current(a);
    char* p = made(100);
    slab_epoch_set_label(a, id, "named later");
    epoch_advance(a);
    CHECK(is_there(p));
    CHECK(epoch_close_ex(a, id, EPOCH_RELEASE, NULL));
    CHECK(is_told(p));
}

/* Threads that begin and end phases, and free each other's objects. */
static void* _Atomic boxes[32];
static void* works(void* arg) {
    uint64_t dice = (uintptr_t)arg;
    for (unsigned n = 0; n < check_count(400); n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "threads");
        for (unsigned k = 0; k < 20; k++) {
            size_t size = kit_rand_size(&dice, 5000);
            char* p = made(size);
            slab_free(a, atomic_exchange(&boxes[kit_rand(&dice) % 32], p));
        }
        CHECK(epoch_domain_drain(d, NULL));
    }
    return NULL;
}
static void threads(void) {
    pthread_t t[4];
    for (uintptr_t n = 0; n < 4; n++) REQUIRE_EQ(pthread_create(&t[n], NULL, works, (void*)(n + 1)), 0);
    for (int n = 0; n < 4; n++) pthread_join(t[n], NULL);
    for (int n = 0; n < 32; n++) slab_free(a, atomic_exchange(&boxes[n], NULL));
    CHECK_EQ(kit_live(a), 0);
}

/* Faults elsewhere are not ours: whoever handled them goes on to. */
static void handled(int number) { _exit(number == SIGSEGV ? 5 : 6); }
static void faults_elsewhere(void) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        static char* volatile nowhere;
        (void)signal(SIGSEGV, handled);
        SlabOptions o = kit_options();
        o.late_access = 1;
        SlabAllocator* other = slab_allocator_create_with(&o);
        if (other == NULL) _exit(1);
        _exit(*nowhere);
    }
    int status;
    REQUIRE_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 5);
}

/* A signal that somebody sends is no fault: it does what it would do without us. */
static void sends(void* ignored) {
    if (ignored != NULL) (void)signal(SIGSEGV, SIG_IGN);
    open_it();
    (void)kill(getpid(), SIGSEGV);
    if (ignored == NULL) _exit(9);
    epoch_domain_t* d = epoch_domain_begin(a, "GET /page");
    char* p = made(100);
    (void)epoch_domain_end(d);
    _exit(*(volatile char*)p == 7 ? 7 : 8);
}
static void sent_by_kill(void) {
    Said s = kit_said(sends, NULL);
    CHECK(WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGSEGV && s.text[0] == 0);
    s = kit_said(sends, (void*)(uintptr_t)1); /* and faults are told as before */
    CHECK(WIFSIGNALED(s.status) && WTERMSIG(s.status) == SIGSEGV);
    CHECK_HAS(s.text, "late access to phase \"GET /page\"");
}

#define LATE(fn) CHECK_CASE_WITH(fn, open_it, close_it)
static const CheckCase cases[] = {
    CHECK_CASE(faults_elsewhere),
    CHECK_CASE(sent_by_kill),
    LATE(a_released_phase),
    LATE(a_drained_phase),
    LATE(many_phases),
    LATE(epochs_of_the_ring),
    LATE(threads),
};
int main(int argc, char** argv) {
    if (CHECK_ASAN) { /* says what it saw of the fault before anybody else does */
        puts("skipped: AddressSanitizer handles faults itself");
        return 0;
    }
    return CHECK_RUN(argc, argv, cases);
}
