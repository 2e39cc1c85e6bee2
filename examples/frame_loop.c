/*
 * frame_loop.c - a game's loop at 60 Hz: each frame is a phase that starts over, and a level that is left ends in a
 * quiet frame.
 *
 * Claim: what a frame allocates is gone when the frame is; and no level ends in a busy frame, but each does in the next
 * quiet one. Beside it the same with malloc, with the frees put off in the same way. The share of the frame (16.7 ms)
 * that memory took is printed; it depends on the machine and is not part of the claim.
 *
 *     cc -O2 frame_loop.c $(pkg-config --cflags --libs temporal-slab) && ./a.out
 */
#include <epoch_domain.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HZ = 60, FRAMES = 120, OBJECTS = 3000, LEVEL = 30000, LEVEL_FRAMES = 20, BUSY_FRAMES = 5 };
static const uint64_t frame_ns = 1000000000 / HZ;

static SlabAllocator* slab; /* NULL: malloc */

typedef struct Level {
    epoch_domain_t* phase;
    void* object[LEVEL];
} Level;

typedef struct Outcome {
    uint64_t took[FRAMES]; /* by memory, ns */
    uint64_t quiet_worst, busy_worst;
    unsigned ended_busy, ended_quiet, waited_most;
    bool frames_gone;
} Outcome;

static void* filled(void* p, size_t size) {
    if (p == NULL) exit(3);
    return memset(p, 1, size);
}

static void draw(epoch_domain_t* frame, bool* gone) {
    static void* object[OBJECTS];
    for (unsigned i = 0; i < OBJECTS; i++) {
        size_t size = 16 + i * 13 % 240;
        object[i] = filled(slab != NULL ? slab_malloc(slab, size) : malloc(size), size);
    }
    if (slab == NULL) {
        for (unsigned i = 0; i < OBJECTS; i++) free(object[i]);
        return;
    }
    EpochReceipt r;
    *gone = epoch_domain_reset(frame) && epoch_domain_receipt(frame, &r) && *gone;
    *gone = *gone && r.objects_released == OBJECTS && r.objects_escaped == 0;
}

static void load(Level* level) {
    if (slab != NULL && (level->phase = epoch_domain_create_labeled(slab, "level")) == NULL) exit(3);
    for (unsigned i = 0; i < LEVEL; i++) {
        size_t size = 64 + i * 29 % 400;
        level->object[i] = filled(slab != NULL ? epoch_domain_malloc(level->phase, size) : malloc(size), size);
    }
}

static void unload(Level* level) {
    if (slab != NULL && !epoch_domain_destroy(level->phase)) exit(3);
    for (unsigned i = 0; slab == NULL && i < LEVEL; i++) free(level->object[i]);
}

static void sleep_until(uint64_t ns) {
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Every twenty frames the player goes on to the next level: five frames are busy then, and the old level waits. */
static void run(Outcome* o) {
    static Level levels[2];
    unsigned at = 0, waits_since = 0;
    bool waits = false;
    epoch_domain_t* frame = slab != NULL ? epoch_domain_begin(slab, "frame") : NULL;
    if (slab != NULL && frame == NULL) exit(3);
    memset(o, 0, sizeof *o);
    o->frames_gone = true;
    load(&levels[0]);
    uint64_t next = slab_now_ns();
    for (unsigned n = 0; n < FRAMES; n++) {
        bool busy = n >= LEVEL_FRAMES && n % LEVEL_FRAMES < BUSY_FRAMES;
        uint64_t start = slab_now_ns();
        if (busy && n % LEVEL_FRAMES == 0) {
            load(&levels[at ^ 1]);
            at ^= 1, waits = true, waits_since = n;
        }
        draw(frame, &o->frames_gone);
        if (waits && !busy) {
            unload(&levels[at ^ 1]);
            waits = false, o->ended_quiet++;
            if (n - waits_since > o->waited_most) o->waited_most = n - waits_since;
        }
        o->ended_busy += busy && !waits; /* the level that was left is gone already */
        uint64_t took = o->took[n] = slab_now_ns() - start, *worst = busy ? &o->busy_worst : &o->quiet_worst;
        if (took > *worst) *worst = took;
        sleep_until(next += frame_ns);
    }
    unload(&levels[at]);
    if (frame != NULL && !epoch_domain_end(frame)) exit(3);
}

static int by_time(const void* x, const void* y) {
    const uint64_t *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static void show(const char* side, Outcome* o) {
    qsort(o->took, FRAMES, sizeof *o->took, by_time);
    printf("%s  memory took %.2f %% of a frame (median), at most %.1f %% of a quiet one and %.1f %% of a busy one\n", side,
           100.0 * (double)o->took[FRAMES / 2] / (double)frame_ns, 100.0 * (double)o->quiet_worst / (double)frame_ns,
           100.0 * (double)o->busy_worst / (double)frame_ns);
}

int main(void) {
    static Outcome with, without;
    run(&without);
    if ((slab = slab_allocator_create()) == NULL) return puts(slab_last_error()), 3;
    run(&with);
    SlabGlobalStats g;
    slab_stats_global(slab, &g);
    printf("%d frames at %d Hz of %d objects; %u levels of %d objects left, each ended %u frames later at most\n", FRAMES, HZ, OBJECTS,
           with.ended_quiet, LEVEL, with.waited_most);
    show("phases", &with);
    show("malloc", &without);
    bool holds = with.frames_gone && with.ended_busy == 0 && with.ended_quiet == FRAMES / LEVEL_FRAMES - 1 && g.live_objects == 0;
    holds = holds && with.waited_most <= BUSY_FRAMES;
    puts(holds ? "claim holds: frames leave nothing, and levels end in quiet frames" : "claim FAILS");
    slab_allocator_free(slab);
    return holds ? 0 : 1;
}
