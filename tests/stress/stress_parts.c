/*
 * stress_parts.c - many small phases open at once on every thread, whose regions share pages, while pages go back and forth.
 *
 * Each worker opens a few dozen phases of some objects, writes all of them, and ends them in no order; one in four is drained with an
 * object that lives on, which another thread frees later and which must hold what was written. So a page that goes back too early, or
 * is handed out while it goes, shows. One thread trims, one forks children that check the allocator and go on.
 */
#include "stress.h"

#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
enum { FORKS = 0 }; /* it does not know what a child of many threads may do */
#else
enum { FORKS = 1 };
#endif
enum { WORKERS = 4, OPEN = 48, MOST = 6, LEFT = 256 };

typedef struct Survivor {
    unsigned char* p;
    size_t size;
} Survivor;

static SlabAllocator* a;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Survivor left[LEFT];
static _Atomic int working;
static _Atomic uint64_t survived;

static void take_over(struct dice* d, Survivor s) {
    pthread_mutex_lock(&lock);
    Survivor* at = &left[below(d, LEFT)];
    Survivor old = *at;
    *at = s;
    pthread_mutex_unlock(&lock);
    if (old.p == NULL) return;
    cookie_check(old.p, old.size);
    REQUIRE_OR(slab_free_checked(a, old.p), "late free of live %p refused", (void*)old.p);
    atomic_fetch_add(&survived, 1);
}

typedef struct Phase {
    epoch_domain_t* domain;
    void* p[MOST];
    size_t size[MOST];
    unsigned n;
} Phase;

static void open_one(struct dice* d, Phase* ph) {
    ph->domain = epoch_domain_create_labeled(a, chance(d, 2) ? "one" : "other");
    REQUIRE_OR(ph->domain, "no domain");
    ph->n = 1 + (unsigned)below(d, MOST);
    for (unsigned k = 0; k < ph->n; k++) {
        ph->size[k] = 16 + 16 * below(d, 18); /* six of them fit into half a page */
        REQUIRE_OR((ph->p[k] = epoch_domain_malloc(ph->domain, ph->size[k])) != NULL, "no object");
        cookie_write(ph->p[k], ph->size[k], roll(d));
    }
}

static void end_one(struct dice* d, Phase* ph) {
    for (unsigned k = 0; k < ph->n; k++) cookie_check(ph->p[k], ph->size[k]);
    bool drains = chance(d, 4);
    for (unsigned k = drains; k < ph->n; k++)
        if (drains || chance(d, 3)) REQUIRE_OR(slab_free_checked(a, ph->p[k]), "free of live %p refused", ph->p[k]);
    if (drains) {
        EpochReceipt r;
        REQUIRE_OR(epoch_close_ex(a, ph->domain->epoch_id, EPOCH_DRAIN, &r), "no close");
        REQUIRE_OR(r.objects_escaped == 1, "%llu objects escaped", (unsigned long long)r.objects_escaped);
        /* Before the domain goes, which ends what is left of it. */
        cookie_check(ph->p[0], ph->size[0]);
        if (chance(d, 2)) REQUIRE_OR(slab_free_checked(a, ph->p[0]), "free of live %p refused", ph->p[0]);
    }
    epoch_domain_destroy(ph->domain);
}

/* The same of a phase that nobody ends: its survivor is another's, and the domain goes with the allocator. */
static void leave_one(struct dice* d, Phase* ph) {
    for (unsigned k = 1; k < ph->n; k++)
        REQUIRE_OR(slab_free_checked(a, ph->p[k]), "free of live %p refused", ph->p[k]);
    REQUIRE_OR(epoch_close_ex(a, ph->domain->epoch_id, EPOCH_DRAIN, NULL), "no close");
    take_over(d, (Survivor){ph->p[0], ph->size[0]});
}

static void phases(struct slot* self) {
    struct dice* d = &self->dice;
    Phase ph[OPEN];
    unsigned n = 1 + (unsigned)below(d, OPEN);
    for (unsigned k = 0; k < n; k++) open_one(d, &ph[k]);
    while (n != 0) {
        unsigned k = (unsigned)below(d, n);
        if (chance(d, 200)) leave_one(d, &ph[k]);
        else end_one(d, &ph[k]);
        ph[k] = ph[--n];
    }
}

static void child(void) {
    struct dice d = {.state = 7};
    Phase ph[OPEN];
    for (unsigned k = 0; k < OPEN; k++) open_one(&d, &ph[k]);
    for (unsigned k = 0; k < OPEN; k++) end_one(&d, &ph[k]);
    kit_check(a);
    _exit(0);
}

static void live(struct slot* self) {
    if (self->index < WORKERS) {
        for (uint64_t k = 0; k < self->ops_per_life; k++) phases(self);
        atomic_fetch_sub(&working, 1);
    } else if (self->index == WORKERS) {
        while (atomic_load(&working) > 0) slab_trim(a);
    } else if (FORKS) {
        for (unsigned n = 0; n < 8 && atomic_load(&working) > 0; n++) {
            int status = 0;
            pid_t pid = fork();
            if (pid == 0) child();
            REQUIRE_OR(pid > 0 && waitpid(pid, &status, 0) == pid, "no child");
            REQUIRE_OR(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %d", status);
        }
    }
}

int main(void) {
    a = kit_create();
    for (unsigned life = 0; life < 3; life++) {
        atomic_store(&working, WORKERS);
        run_slots(WORKERS + 2, 1, check_count(1200) / 3 + 1, life, live, NULL);
        kit_check(a);
    }
    for (unsigned k = 0; k < LEFT; k++) {
        if (left[k].p == NULL) continue;
        cookie_check(left[k].p, left[k].size);
        REQUIRE_OR(slab_free_checked(a, left[k].p), "late free refused");
    }
    slab_trim(a);
    kit_check(a);
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    REQUIRE_OR(g.live_objects == 0 && g.committed_bytes == 0, "%llu objects, %llu bytes are left",
               (unsigned long long)g.live_objects, (unsigned long long)g.committed_bytes);
    slab_allocator_free(a);
    puts("stress_parts: ok");
    return 0;
}
