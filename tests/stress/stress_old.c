/*
 * stress_old.c - handles and pointers of phases that have ended, asked about and freed while phases end and begin.
 *
 * One thread has one phase after the other: a few objects, some pages, several MiB. Others free by old handles, and ask what old
 * handles and pointers name; signals stop them anywhere. Every such question is answered, however large the region was whose
 * bookkeeping has gone. Every handle was genuine, so none is told to be made up. Regions that ended their last life beside a stopped
 * freer come back: at rest nothing is retired or rests, and every chunk of a small reservation is free.
 */
#include "stress.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

enum { LOOKERS = 3, SIZE = 64, SHOWN = 8, PHASES = 10000 };

static SlabAllocator* a;
static _Atomic bool over;
static _Atomic SlabHandle handles[SHOWN];
static void* _Atomic pointers[SHOWN];

static void stop(int sig) {
    (void)sig;
    int saved = errno;
    struct timespec t = {0, 200000};
    nanosleep(&t, NULL);
    errno = saved;
}

static void* look(void* arg) {
    unsigned k = (unsigned)(uintptr_t)arg;
    while (!atomic_load(&over)) {
        k++;
        SlabHandle h = atomic_load(&handles[k % SHOWN]);
        const void* p = atomic_load(&pointers[k / 3 % SHOWN]);
        (void)free_obj(a, h);
        (void)slab_handle_ptr(a, h);
        (void)slab_usable_size(a, p);
        (void)slab_ptr_epoch(a, p, NULL, NULL);
    }
    return NULL;
}

static void phase(size_t bytes) {
    epoch_domain_t* d = epoch_domain_begin(a, "old");
    REQUIRE_OR(d != NULL, "no domain: %s", slab_last_error());
    for (size_t n = 0; n < bytes / SIZE; n++) {
        SlabHandle h;
        void* p = alloc_obj(a, SIZE, &h);
        REQUIRE_OR(p != NULL, "refused at %zu bytes: errno %d", n * SIZE, errno);
        atomic_store(&handles[n % SHOWN], h);
        atomic_store(&pointers[n % SHOWN], p);
    }
    epoch_domain_end(d);
}

int main(void) {
    struct dice d = {12};
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = stop;
    sa.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &sa, NULL);
    SlabOptions o = kit_options();
    o.reserve_bytes = 32 << 20;
    REQUIRE_OR((a = slab_allocator_create_with(&o)) != NULL, "no allocator");
    pthread_t threads[LOOKERS];
    for (unsigned n = 0; n < LOOKERS; n++)
        REQUIRE_OR(pthread_create(&threads[n], NULL, look, (void*)(uintptr_t)n) == 0, "no thread");
    uint64_t phases = check_count(PHASES);
    for (uint64_t n = 0; n < phases; n++) {
        phase(chance(&d, 100) ? 6 << 20 : chance(&d, 4) ? below(&d, 60000) + SIZE : 512);
        if (chance(&d, 4)) pthread_kill(threads[below(&d, LOOKERS)], SIGUSR1);
        if (chance(&d, 500)) slab_trim(a);
    }
    atomic_store(&over, true);
    for (unsigned n = 0; n < LOOKERS; n++) pthread_join(threads[n], NULL);

    slab_trim(a);
    SlabRefusals r = kit_refusals(a);
    const TsiSpace* s = &tsi_arena(a)->space;
    REQUIRE_EQ(r.bad_handle, 0);
    REQUIRE_EQ(r.retired_slabs, 0);
    REQUIRE_EQ(tsi_load_relaxed(&s->resting), 0);
    for (uint32_t chunk = 0; chunk < s->chunk_count; chunk++)
        REQUIRE_OR(!tsi_chunk_is_used(s, chunk), "chunk %u is used", chunk);
    char why[160] = "";
    REQUIRE_OR(tsi_check_allocator(a, why, sizeof why), "%s", why);
    slab_allocator_free(a);
    return 0;
}
