/*
 * stress_segment_profile.c - the heap profile in shared memory, read while eight threads allocate, free, end phases and publish
 * without a pause. Whatever the reader accepts is whole: it is of one publication, its rows end where it says, and every
 * stack and object in it is one that can be.
 */
#include "kit/fixture.h"
#include "contract/shown_profile.h"

#include "os/os.h"

#include <sched.h>

enum { THREADS = 8, LABELS = 4, ROOM = 1 << 22 };

static const char* const labels[LABELS] = {"GET /users", "GET /search", "POST /orders", "sessions"};
static _Atomic int over;

static uint64_t always(void) { return UINT64_MAX / 2; } /* it is time */

static void* worker_main(void* arg) {
    SlabAllocator* a = arg;
    uint64_t rng = (uint64_t)(uintptr_t)&rng | 1;
    while (!atomic_load(&over)) {
        epoch_domain_t* d = epoch_domain_begin(a, labels[kit_rand(&rng) % LABELS]);
        for (int i = 0; i < 100; i++) {
            void* p = slab_malloc(a, kit_rand_size(&rng, 3000));
            if (i % 2 == 0) slab_free(a, p);
        }
        epoch_domain_end(d);
    }
    return NULL;
}

static Shown shown;

/* So long that the next publications come in between, now and then. */
static void doze(void) {
    static uint64_t rng = 4711;
    kit_sleep_us((unsigned)(kit_rand(&rng) % 8) * 50);
}

static bool is_known(const char* label) {
    for (unsigned n = 0; n < LABELS; n++)
        if (strcmp(label, labels[n]) == 0) return true;
    return false;
}

static void check_labels(const uint64_t* copy, size_t bytes) {
    const SlabProfileBuffer* head = (const SlabProfileBuffer*)(const void*)copy;
    const char* at = (const char*)(head + 1) + head->live * sizeof(SlabProfileLive);
    for (uint64_t n = 0; n < head->stacks && at < (const char*)copy + bytes; n++) {
        SlabProfileStack s;
        memcpy(&s, at, sizeof s);
        CHECK(is_known(s.label));
        at += sizeof s + s.depth * sizeof(uint64_t);
    }
}

static void read_while_threads_publish(void) {
    pthread_t t[THREADS];
    uint64_t* copy = malloc(ROOM);
    SlabOptions o = kit_options();
    o.segment = 1;
    o.profile_bytes = 4096;
    (void)slab_page_size(); /* the table is filled */
    tsi_os.coarse_ns = always;
    SlabAllocator* a = kit_create_with(&o);
    shown = shown_open();
    shown_pause = doze;
    CHECK(shown.base != NULL && copy != NULL);
    for (unsigned i = 0; i < THREADS; i++) t[i] = kit_thread(worker_main, a);
    size_t accepted = 0, most = check_count(40);
    uint64_t first = 0, last = 0;
    double total = 0;
    for (size_t tries = 0; accepted < most && tries < 100000 * most && check_failures() == 0; tries++) {
        double allocated, in_use;
        size_t n = shown_read(&shown, 0, copy, ROOM);
        bool old = n >= sizeof(SlabProfileBuffer) && n != SIZE_MAX && copy[0] == last && accepted != 0;
        if (n == 0 || old) {
            sched_yield();
            continue;
        }
        const char* wrong = shown_check(copy, n, NULL, &allocated, &in_use);
        if (wrong != NULL) fprintf(stderr, "an accepted profile is wrong: %s\n", wrong);
        CHECK(wrong == NULL);
        if (wrong != NULL) break;
        check_labels(copy, n);
        CHECK(copy[0] >= last && allocated >= total); /* publications, and what was ever allocated, only rise */
        last = copy[0];
        total = allocated;
        if (accepted++ == 0) first = last;
    }
    atomic_store(&over, 1);
    for (unsigned i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    NOTE("%zu readings accepted, publications %llu to %llu", accepted, (unsigned long long)first, (unsigned long long)last);
    CHECK(accepted == most && last >= first + most - 1);
    shown_close(&shown);
    slab_allocator_free(a);
    free(copy);
}

int main(int argc, char** argv) {
    static const CheckCase cases[] = {CHECK_CASE(read_while_threads_publish)};
    return check_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
