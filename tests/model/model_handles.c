/*
 * model_handles.c - a handle is a name for ever: no two objects of an allocator's life share one.
 *
 * Phases of random classes follow each other through the same few pages: slabs and whole chunks pass
 * from class to class, which is where names are most easily used twice. Every handle issued goes into
 * a set; one that is there already is a failure. Of the dead ones a sample is tried after every phase:
 * it must lead nowhere and free nothing, also while its slot, its slab or its chunk serves again.
 *
 * Usage: model_handles [--seed N]; TSLAB_TEST_SCALE multiplies the phases.
 */
#include "kit/inside.h"

enum { SET_BITS = 23, SET_SIZE = 1 << SET_BITS, SET_MOST = SET_SIZE / 4 * 3, PHASE_MOST = 6000, SAMPLE = 3000 };

static uint64_t seed = 1, dice, phase;
static SlabHandle* set;  /* open addressing; 0 = free */
static SlabHandle* dead; /* in the order of death */
static size_t n_issued, n_dead;

static uint64_t below(uint64_t n) { return kit_rand(&dice) % n; }

static void tell_of_run(void) {
    fprintf(stderr, "  seed %llu, phase %llu\n", (unsigned long long)seed, (unsigned long long)phase);
}

static void issued(SlabHandle h) {
    size_t at = (size_t)((h * 0x9e3779b97f4a7c15u) >> (64 - SET_BITS));
    while (set[at]) {
        REQUIRE_OR(set[at] != h, "handle %#llx was issued before", (unsigned long long)h);
        at = (at + 1) % SET_SIZE;
    }
    set[at] = h;
    n_issued++;
}

/* The newest dead and some of any age. */
static void try_the_dead(SlabAllocator* a) {
    for (size_t i = 0; i < SAMPLE && i < n_dead; i++) {
        SlabHandle h = dead[i < SAMPLE / 2 ? n_dead - 1 - i : below(n_dead)];
        REQUIRE_OR(!slab_handle_ptr(a, h), "the dead handle %#llx leads to an object", (unsigned long long)h);
        REQUIRE_OR(!free_obj(a, h), "the dead handle %#llx was freed", (unsigned long long)h);
    }
}

static size_t any_size(void) {
    static const uint32_t sizes[] = {1,   16,  32,  48,   64,   96,   128,  192,   256,
                                     384, 512, 768, 1024, 1500, 4000, 9000, 60000, 300000};
    return sizes[below(sizeof sizes / sizeof *sizes)];
}

struct thing {
    void* p;
    SlabHandle h;
};

static void die_of(struct thing* t) { dead[n_dead++] = t->h; }

/* One epoch: objects come, some go singly by handle or pointer and their slots serve again, the rest end in bulk. */
static void run_phase(SlabAllocator* a, struct thing* things) {
    epoch_domain_t* d = below(3) ? epoch_domain_create(a) : NULL;
    EpochId id = d ? d->epoch_id : epoch_current(a);
    size_t size = any_size(), n = 0, steps = 1 + below(size > 20000 ? 60 : PHASE_MOST);
    for (size_t i = 0; i < steps; i++) {
        if (n > 0 && below(3) == 0) {
            size_t at = below(n);
            bool ok = below(2) ? free_obj(a, things[at].h) : slab_free_checked(a, things[at].p);
            REQUIRE_OR(ok, "free of the live handle %#llx was refused", (unsigned long long)things[at].h);
            die_of(&things[at]);
            things[at] = things[--n];
            continue;
        }
        struct thing* t = &things[n];
        t->p = alloc_obj_epoch(a, (uint32_t)size, id, &t->h);
        REQUIRE_OR(t->p && t->h, "no object of %zu bytes", size);
        issued(t->h);
        n++;
    }
    for (size_t i = 0; i < n; i++) {
        REQUIRE_OR(slab_handle_ptr(a, things[i].h) == things[i].p, "handle %#llx leads elsewhere",
                   (unsigned long long)things[i].h);
        REQUIRE_OR(slab_ptr_handle(a, things[i].p) == things[i].h, "the object at %p has another handle", things[i].p);
    }
    if (d) {
        epoch_domain_destroy(d);
    } else {
        epoch_advance(a);
        REQUIRE_OR(epoch_close_ex(a, id, EPOCH_RELEASE, NULL), "release refused");
    }
    for (size_t i = 0; i < n; i++) die_of(&things[i]);
    if (below(2)) slab_trim(a);
    try_the_dead(a);
}

static void check_counts(SlabAllocator* a) {
    kit_check(a);
    REQUIRE_EQ(kit_live(a), 0);
    REQUIRE_EQ(kit_refusals(a).bad_handle, 0); /* all were issued once */
}

int main(int argc, char** argv) {
    if (argc == 3 && strcmp(argv[1], "--seed") == 0) {
        seed = strtoull(argv[2], NULL, 0);
    } else if (argc != 1) {
        fprintf(stderr, "usage: model_handles [--seed N]\n");
        return 2;
    }
    uint64_t phases = (uint64_t)(600 * check_scale());
    check_state.last_words = tell_of_run;
    dice = seed * 77;
    set = calloc(SET_SIZE, sizeof *set);
    dead = malloc((SET_MOST + PHASE_MOST) * sizeof *dead);
    struct thing* things = malloc(PHASE_MOST * sizeof *things);
    /* A small reservation: the same chunks serve again and again. */
    SlabOptions o = {.struct_size = sizeof o, .reserve_bytes = (uint64_t)128 << 20};
    SlabAllocator* a = kit_create_with(&o);
    REQUIRE_OR(set && dead && things, "no memory");
    for (phase = 0; phase < phases && n_issued < SET_MOST; phase++) {
        run_phase(a, things);
        if (phase % 50 == 0) check_counts(a);
    }
    check_counts(a);
    slab_allocator_free(a);
    printf("model_handles: ok, %zu handles\n", n_issued);
    free(set);
    free(dead);
    free(things);
    return 0;
}
