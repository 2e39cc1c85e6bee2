/*
 * profile.c - the heap profile: unbiased, by label and by maker, exact about what has ended, bounded.
 *
 * What the library takes for random is the same in every run, so one thread's samples are, too. Sums of weights are compared
 * with what was really allocated within 10 %: some thousand samples each, so that is five standard deviations and more.
 * The document is read by a reader of its own.
 */
#include "kit/fixture.h"

#include "os/os.h"

#include <slab_diagnostics.h>

enum { MEAN = 4096, NAMES = 16 };

static uint64_t same_random(void) { return 0x9e3779b97f4a7c15u; }

/* ---- reading ---- */

typedef struct Doc {
    unsigned char* bytes;
    size_t n, room;
} Doc;

typedef struct Field {
    unsigned number, kind;
    uint64_t v; /* kind 0; the length of kind 2 */
    const unsigned char* at;
} Field;

static bool collect(void* ctx, const char* bytes, size_t n) {
    Doc* d = ctx;
    if (d->n + n > d->room) {
        d->room = 2 * (d->n + n);
        d->bytes = realloc(d->bytes, d->room);
        if (d->bytes == NULL) abort();
    }
    memcpy(d->bytes + d->n, bytes, n);
    d->n += n;
    return true;
}

static uint64_t varint(const unsigned char** p, const unsigned char* end) {
    uint64_t v = 0;
    for (unsigned shift = 0; *p < end && shift < 64; shift += 7) {
        unsigned char b = *(*p)++;
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) return v;
    }
    CHECK(false);
    return v;
}

static bool next(const unsigned char** p, const unsigned char* end, Field* f) {
    if (*p >= end) return false;
    uint64_t key = varint(p, end);
    f->number = (unsigned)(key >> 3);
    f->kind = (unsigned)key & 7;
    f->v = varint(p, end);
    f->at = *p;
    CHECK(f->kind == 0 || (f->kind == 2 && f->v <= (uint64_t)(end - *p)));
    if (f->kind == 2) *p += f->v;
    return check_failures() == 0;
}

typedef struct Sums {
    char name[33];
    uint64_t v[6]; /* objects and bytes allocated, in use, and with escape_stacks escaped */
    uint64_t live_samples, ended, era, bytes, depth;
} Sums;

typedef struct Named {
    Sums of[NAMES];
    unsigned count;
} Named;

typedef struct Profile {
    Named labels, makers;
    unsigned locations;
    uint64_t period, size;
    char comments[256];
} Profile;

static Field strings[8192];
static uint64_t string_count;

static void read_strings(const Doc* d) {
    const unsigned char* p = d->bytes;
    Field f;
    string_count = 0;
    while (next(&p, d->bytes + d->n, &f))
        if (f.number == 6 && string_count < 8192) strings[string_count++] = f;
}

static const unsigned char* string_at(uint64_t wanted, size_t* length) {
    CHECK(wanted < string_count);
    *length = wanted < string_count ? (size_t)strings[wanted].v : 0;
    return wanted < string_count ? strings[wanted].at : NULL;
}

static bool string_is(uint64_t n, const char* text) {
    size_t length;
    const unsigned char* at = string_at(n, &length);
    return length == strlen(text) && memcmp(at, text, length) == 0;
}

static Sums* sums_of(Named* all, const char* name, size_t n) {
    for (unsigned k = 0; k < all->count; k++)
        if (strlen(all->of[k].name) == n && memcmp(all->of[k].name, name, n) == 0) return &all->of[k];
    Sums* s = &all->of[all->count < NAMES - 1 ? all->count++ : NAMES - 1];
    memset(s, 0, sizeof *s);
    memcpy(s->name, name, n < 32 ? n : 32);
    return s;
}

static void read_sample(Profile* out, const Field* sample) {
    const unsigned char *p = sample->at, *end = p + sample->v;
    uint64_t v[6] = {0, 0, 0, 0, 0, 0}, era = 0, bytes = 0, depth = 0;
    bool ended = false;
    const unsigned char *name = NULL, *maker = NULL;
    size_t length = 0, maker_length = 0;
    Field f;
    while (next(&p, end, &f)) {
        const unsigned char *q = f.at, *stop = q + f.v;
        if (f.number == 1)
            while (q < stop) depth += varint(&q, stop) != 0;
        if (f.number == 2)
            for (unsigned n = 0; q < stop && n < 6; n++) v[n] = varint(&q, stop);
        if (f.number != 3) continue;
        uint64_t key = 0, text = 0, number = 0;
        for (Field g; next(&q, stop, &g);) *(g.number == 1 ? &key : g.number == 2 ? &text : &number) = g.number == 4 ? number : g.v;
        if (string_is(key, "label")) name = string_at(text, &length);
        if (string_is(key, "maker")) maker = string_at(text, &maker_length);
        if (string_is(key, "phase")) ended = string_is(text, "ended");
        if (string_is(key, "era")) era = number;
        if (string_is(key, "bytes")) bytes = number;
    }
    CHECK(name != NULL && depth != 0);
    if (name == NULL) return;
    Sums* s = sums_of(&out->labels, (const char*)name, length);
    for (unsigned n = 0; n < 6; n++) s->v[n] += v[n];
    s->live_samples += bytes != 0;
    s->ended += ended;
    if (maker != NULL) {
        Sums* m = sums_of(&out->makers, (const char*)maker, maker_length);
        for (unsigned n = 0; n < 6; n++) m->v[n] += v[n];
        m->live_samples += bytes != 0;
    }
    if (bytes != 0) s->era = era, s->bytes = bytes;
    if (depth > s->depth) s->depth = depth;
}

static Profile profile_of(SlabAllocator* a) {
    static Doc d;
    Profile out;
    Field f;
    memset(&out, 0, sizeof out);
    d.n = 0;
    out.size = slab_profile_write(a, collect, &d);
    CHECK(out.size != 0 && out.size == d.n);
    read_strings(&d);
    const unsigned char* p = d.bytes;
    while (next(&p, d.bytes + d.n, &f)) {
        if (f.number == 2) read_sample(&out, &f);
        if (f.number == 4) out.locations++;
        if (f.number == 12) out.period = f.v;
        if (f.number == 13) {
            size_t length;
            const unsigned char* at = string_at(f.v, &length);
            strncat(out.comments, (const char*)at, length < 100 ? length : 100);
        }
    }
    return out;
}

static Sums label_of(Profile* p, const char* name) { return *sums_of(&p->labels, name, strlen(name)); }
static Sums maker_of(Profile* p, const char* name) { return *sums_of(&p->makers, name, strlen(name)); }

/* ---- what is expected ---- */

static SlabAllocator* profiled(uint64_t mean) {
    SlabOptions o = {.struct_size = sizeof o, .profile_bytes = mean};
    tsi_os.random = same_random;
    SlabAllocator* a = slab_allocator_create_with(&o);
    if (a == NULL) abort();
    return a;
}

#define NEAR(got, want) (CHECK_GE(10 * (uint64_t)(got), 9 * (uint64_t)(want)), CHECK_LE(10 * (uint64_t)(got), 11 * (uint64_t)(want)))
/* Of objects of very different sizes: the standard error of their number is 7 % there. */
#define ABOUT(got, want) (CHECK_GE(4 * (uint64_t)(got), 3 * (uint64_t)(want)), CHECK_LE(4 * (uint64_t)(got), 5 * (uint64_t)(want)))

typedef struct Truth {
    uint64_t objects, bytes;
} Truth;

/* Sizes of every kind: mixed slabs, classes of all widths, large objects. */
static Truth allocate(SlabAllocator* a, unsigned n, size_t most, void** keep) {
    static uint64_t dice = 88172645463325252u;
    Truth t = {0, 0};
    for (unsigned k = 0; k < n; k++) {
        void* p = slab_malloc(a, 1 + (size_t)(kit_rand(&dice) % most));
        if (p == NULL) abort();
        t.objects++;
        t.bytes += slab_usable_size(a, p);
        if (keep != NULL) keep[k] = p;
    }
    return t;
}

static void sums_are_unbiased_by_label(void) {
    static const char* const names[] = {"small", "middle", "wide"};
    static const size_t most[] = {200, 3000, 60000};
    static const unsigned count[] = {120000, 12000, 4000};
    SlabAllocator* a = profiled(MEAN);
    Truth t[3];
    epoch_domain_t* d[3];
    for (unsigned n = 0; n < 3; n++) {
        d[n] = epoch_domain_begin(a, names[n]);
        t[n] = allocate(a, count[n], most[n], NULL);
        epoch_domain_exit(d[n]); /* released */
        epoch_domain_destroy(d[n]);
        d[n] = epoch_domain_begin(a, names[n]);
        Truth more = allocate(a, count[n], most[n], NULL);
        t[n].objects += more.objects, t[n].bytes += more.bytes;
        (void)epoch_domain_detach(d[n]);
        Profile p = profile_of(a);
        Sums s = label_of(&p, names[n]);
        NEAR(s.v[0], t[n].objects);
        NEAR(s.v[1], t[n].bytes);
        NEAR(s.v[2], more.objects);
        NEAR(s.v[3], more.bytes);
        CHECK_EQ(s.era, d[n]->epoch_era);
        CHECK_EQ(p.period, MEAN);
    }
    slab_allocator_free(a);
}

/* Many phases of two objects each: everything is in mixed slabs, and no line of a class ever starts. Their memory, and that of large
 * objects, is used again without anybody having looked. */
static void short_phases_and_large_objects(void) {
    SlabAllocator* a = profiled(MEAN);
    uint64_t n = 100000;
    for (uint64_t k = 0; k < n; k++) {
        epoch_domain_t* d = epoch_domain_begin(a, "short");
        (void)slab_malloc(a, 64), (void)slab_malloc(a, 192);
        epoch_domain_end(d);
    }
    size_t ahead = 0; /* of what a region is not asked for comes first */
    for (unsigned k = 0; k < 4000; k++) {
        epoch_domain_t* d = epoch_domain_begin(a, "behind");
        (void)slab_malloc(a, 64);
        epoch_domain_end(d);
        d = epoch_domain_begin(a, "behind");
        ahead = slab_usable_size(a, slab_malloc(a, 5000));
        for (unsigned at = 0; at < 60; at++) (void)slab_malloc(a, 64);
        epoch_domain_end(d);
    }
    uint64_t large = 0;
    void* keep[50];
    epoch_domain_t* last = epoch_domain_begin(a, "short");
    (void)slab_malloc(a, 64), (void)slab_malloc(a, 192);
    epoch_domain_t* d = epoch_domain_begin(a, "large");
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned k = 0; k < 50; k++) large += slab_usable_size(a, keep[k] = slab_malloc(a, (300 << 10) + 5000 * k));
        for (unsigned k = 0; k < 50 && round < 2; k++) slab_free(a, keep[k]);
    }
    Profile p = profile_of(a);
    Sums s = label_of(&p, "short"), l = label_of(&p, "large");
    NEAR(s.v[0], 2 * n);
    NEAR(s.v[1], 256 * n);
    NEAR(label_of(&p, "behind").v[0], 62 * 4000);
    NEAR(label_of(&p, "behind").v[1], (ahead + 61 * 64) * 4000);
    CHECK_LE(s.live_samples, 2);
    CHECK_EQ(l.v[0], 150); /* so far above the mean that each is sampled, and counts for itself */
    CHECK_EQ(l.v[1], large);
    CHECK_EQ(l.v[2], 50);
    CHECK_EQ(l.v[3], large / 3);
    epoch_domain_end(d);
    p = profile_of(a);
    CHECK_EQ(label_of(&p, "large").live_samples, 0);
    epoch_domain_end(last);
    slab_allocator_free(a);
}

/* In regions: marks that lie behind the end of a phase, in gaps, in the next region and in the other one of two. Sizes of
 * which a mark hits each, hardly any, and both at once. */
static void regions_are_unbiased(void) {
    static const struct {
        const char* name;
        size_t least, most, align;
        unsigned objects, phases;
    } of[] = {{"tiny", 1, 40, 0, 7, 60000},      {"some", 100, 700, 0, 30, 1500},  {"large", 3000, 4096, 0, 3, 3000},
              {"any", 1, 4096, 0, 60, 200},      {"aligned", 1, 300, 512, 5, 8000}, {"long", 1, 90, 0, 3000, 60}};
    enum { KINDS = sizeof of / sizeof *of };
    for (unsigned timed = 0; timed < 2; timed++) {
        SlabOptions o = {.struct_size = sizeof o, .profile_bytes = MEAN, .sampling_period = timed != 0 ? 64 : 0};
        tsi_os.random = same_random;
        SlabAllocator* a = kit_create_with(&o);
        Truth t[KINDS] = {{0, 0}};
        uint64_t dice = 88172645463325252u;
        for (unsigned n = 0; n < KINDS; n++) {
            unsigned other = (n + 1) % KINDS;
            for (unsigned k = 0; k < of[n].phases; k++) {
                epoch_domain_t *d = epoch_domain_create_labeled(a, of[n].name), *e = epoch_domain_create_labeled(a, of[other].name);
                for (unsigned at = 0; at < of[n].objects; at++) {
                    unsigned kind = at % 4 == 3 ? other : n;
                    size_t size = of[kind].least + (size_t)(kit_rand(&dice) % (of[kind].most - of[kind].least + 1));
                    EpochId id = kind == n ? d->epoch_id : e->epoch_id;
                    void* p = of[kind].align != 0 ? slab_aligned_alloc_epoch(a, of[kind].align, size, id) : slab_malloc_epoch(a, size, id);
                    REQUIRE(p != NULL);
                    t[kind].objects++, t[kind].bytes += slab_usable_size(a, p);
                }
                epoch_domain_destroy(d);
                epoch_domain_destroy(e);
            }
        }
        Profile p = profile_of(a);
        for (unsigned n = 0; n < KINDS; n++) {
            Sums s = label_of(&p, of[n].name);
            NEAR(s.v[0], t[n].objects);
            NEAR(s.v[1], t[n].bytes);
            CHECK_EQ(s.live_samples, 0);
        }
        slab_allocator_free(a);
    }
}

/* Marks fall on what an object gains where it is, too, whatever the distance between them. */
static void what_grows_is_seen(void) {
    enum { OPEN = 3000, WIDE = 65536 };
    static epoch_domain_t* d[OPEN];
    SlabAllocator* a = profiled(WIDE);
    Truth few = {0, 0}, many = {0, 0};
    for (unsigned n = 0; n < OPEN; n++) {
        bool alone = n % 2 != 0;
        char *p, *beside = NULL;
        REQUIRE((d[n] = epoch_domain_create_labeled(a, alone ? "alone" : "last")) != NULL);
        REQUIRE((p = slab_malloc_epoch(a, 200, d[n]->epoch_id)) != NULL);
        if (alone) REQUIRE((p = slab_realloc(a, p, 4500)) != NULL);
        for (size_t size = alone ? 5000 : 400; size <= (alone ? 60000 : 3800); size += alone ? 500 : 200) {
            if (alone && size % 2000 == 0) REQUIRE((beside = slab_malloc_epoch(a, 16, d[n]->epoch_id)) != NULL);
            REQUIRE((p = slab_realloc(a, p, size)) != NULL);
        }
        Truth* t = alone ? &many : &few;
        t->objects++, t->bytes += slab_usable_size(a, p);
    }
    Profile p = profile_of(a);
    uint64_t last = label_of(&p, "last").v[3], alone = label_of(&p, "alone").v[3];
    CHECK(10 * last > 7 * few.bytes && 10 * last < 13 * few.bytes); /* some 90 samples: three standard deviations */
    NEAR(alone, many.bytes);
    for (unsigned n = 0; n < OPEN; n++) epoch_domain_destroy(d[n]);
    p = profile_of(a);
    CHECK_EQ(label_of(&p, "last").live_samples + label_of(&p, "alone").live_samples, 0);
    slab_allocator_free(a);
}

/* Slots of sampled objects go to objects that are not sampled, within one incarnation; granules of a region in its next life. */
static void used_again_in(bool in_regions) {
    enum { N = 20000 };
    static void* keep[N];
    SlabAllocator* a = profiled(MEAN);
    Truth t = {0, 0};
    slab_epoch_set_label(a, epoch_current(a), "churn");
    epoch_domain_t* d = in_regions ? epoch_domain_begin(a, "churn") : NULL;
    for (unsigned round = 0; round < 12; round++) {
        Truth now = allocate(a, N, 400, keep);
        t.objects += now.objects, t.bytes += now.bytes;
        bool look = round % 4 == 3; /* looking drops what has ended */
        Profile p;
        if (look) {
            p = profile_of(a);
            Sums s = label_of(&p, "churn");
            NEAR(s.v[0], t.objects);
            NEAR(s.v[2], now.objects);
            NEAR(s.v[3], now.bytes);
        }
        for (unsigned k = 0; k < N; k++) CHECK(slab_free_checked(a, keep[k]));
        if (!look) continue;
        p = profile_of(a);
        CHECK_EQ(label_of(&p, "churn").live_samples, 0);
    }
    if (d != NULL) epoch_domain_end(d);
    slab_allocator_free(a);
}
static void a_slot_used_again_is_another_object(void) { used_again_in(false); }
static void a_granule_used_again_is_another_object(void) { used_again_in(true); }

static void* free_all(void* arg) {
    void** keep = arg;
    SlabAllocator* a = keep[0];
    for (unsigned k = 1; k < 20001; k++) slab_free(a, keep[k]);
    return NULL;
}

/* By another thread, by handle, by the end of the phase; what escapes a drain stays. */
static void samples_end_with_their_objects(void) {
    enum { N = 20000 };
    static void* keep[N + 1];
    static SlabHandle handles[N];
    SlabAllocator* a = profiled(1024);
    pthread_t t;
    epoch_domain_t* d = epoch_domain_begin(a, "far");
    keep[0] = a;
    (void)allocate(a, N, 300, keep + 1);
    Profile p = profile_of(a);
    CHECK(label_of(&p, "far").live_samples > 1000);
    REQUIRE(pthread_create(&t, NULL, free_all, keep) == 0);
    (void)pthread_join(t, NULL);
    p = profile_of(a);
    CHECK_EQ(label_of(&p, "far").live_samples, 0);
    for (unsigned k = 0; k < N; k++) REQUIRE(alloc_obj(a, 100, &handles[k]) != NULL);
    p = profile_of(a);
    CHECK(label_of(&p, "far").live_samples > 1000);
    for (unsigned k = 0; k < N; k++) CHECK(free_obj(a, handles[k]));
    p = profile_of(a);
    CHECK_EQ(label_of(&p, "far").live_samples, 0);
    epoch_domain_end(d);

    EpochId id = epoch_current(a);
    slab_epoch_set_label(a, id, "escapes");
    Truth stay = allocate(a, N, 300, keep);
    epoch_advance(a);
    epoch_close(a, id);
    p = profile_of(a);
    NEAR(label_of(&p, "escapes").v[3], stay.bytes);
    CHECK(epoch_close_ex(a, id, EPOCH_RELEASE, NULL));
    p = profile_of(a);
    CHECK_EQ(label_of(&p, "escapes").live_samples, 0);
    slab_allocator_free(a);
}

/* calloc, realloc, aligned; beside samples of slow paths, to which the profile's marks add some. */
static void other_calls_and_timed_samples(void) {
    SlabOptions o = {.struct_size = sizeof o, .profile_bytes = MEAN, .sampling_period = 32};
    tsi_os.random = same_random;
    SlabAllocator* a = kit_create_with(&o);
    Truth t = {0, 0};
    slab_epoch_set_label(a, epoch_current(a), "calls");
    for (unsigned k = 0; k < 20000; k++) {
        void* p = slab_calloc(a, 1 + k % 7, 40);
        t.objects++, t.bytes += slab_usable_size(a, p);
        if (k % 3 != 0) continue;
        p = slab_realloc(a, p, 3000);
        t.objects++, t.bytes += slab_usable_size(a, p);
        p = slab_aligned_alloc(a, 256, 100);
        t.objects++, t.bytes += slab_usable_size(a, p);
    }
    Profile p = profile_of(a);
    Sums s = label_of(&p, "calls");
    NEAR(s.v[0], t.objects);
    NEAR(s.v[1], t.bytes);
    SlabSamplingStats sampling;
    slab_stats_sampling(a, &sampling);
    uint64_t timed = (sampling.sum.alloc_samples + sampling.dropped) * 32, slow = kit_global(a).total_slow_path_hits;
    CHECK_GE(21 * timed, 20 * slow);
    CHECK_LE(timed, t.objects / 2);
    slab_allocator_free(a);
}

/* ---- what is made outside ---- */

/* As a request does: most for itself, something for the session. From one place in the program, whoever makes it. */
static __attribute__((noinline)) Truth make_outside(SlabAllocator* a, unsigned n, size_t most, void** keep) {
    static uint64_t dice = 88172645463325252u;
    Truth t = {0, 0};
    for (unsigned k = 0; k < n; k++) {
        REQUIRE_OR(slab_malloc(a, 100) != NULL, "memory");
        REQUIRE_OR((keep[k] = slab_malloc_outside(a, 1 + (size_t)(kit_rand(&dice) % most))) != NULL, "memory");
        t.objects++, t.bytes += slab_usable_size(a, keep[k]);
    }
    return t;
}

static void by_maker_in(SlabOptions o) {
    enum { N = 15000 };
    static void *small[N], *wide[N / 10], *other[N], *plain[N];
    o.profile_bytes = MEAN;
    tsi_os.random = same_random;
    SlabAllocator* a = kit_create_with(&o);
    slab_epoch_set_label(a, epoch_current(a), "ring");
    epoch_domain_t* d = epoch_domain_begin(a, "checkout");
    Truth s = make_outside(a, N, 300, small), w = make_outside(a, N / 10, 60000, wide);
    epoch_domain_t* e = epoch_domain_begin(a, "inner");
    Truth i = make_outside(a, N, 300, other);
    CHECK(epoch_domain_end(e));
    Profile p = profile_of(a);
    NEAR(maker_of(&p, "checkout").v[3], s.bytes + w.bytes);
    ABOUT(maker_of(&p, "inner").v[2], i.objects);
    NEAR(maker_of(&p, "inner").v[3], i.bytes);
    NEAR(label_of(&p, "ring").v[3], s.bytes + w.bytes + i.bytes); /* where they live */
    CHECK(label_of(&p, "checkout").live_samples != 0);            /* its own have no maker */
    CHECK(epoch_domain_end(d));
    (void)make_outside(a, N, 300, plain); /* of no scope */
    p = profile_of(a);
    CHECK_EQ(p.makers.count, 2);
    NEAR(maker_of(&p, "checkout").v[3], s.bytes + w.bytes); /* the phase has ended, they live */
    for (unsigned k = 0; k < N; k++) slab_free(a, other[k]);
    p = profile_of(a);
    CHECK_EQ(maker_of(&p, "inner").live_samples, 0);
    NEAR(maker_of(&p, "inner").v[1], i.bytes);
    slab_allocator_free(a);
}

static void what_is_made_outside_has_a_maker(void) {
    by_maker_in(kit_options());
    SlabOptions o = kit_options();
    o.shared = 1;
    by_maker_in(o);
    o = kit_options();
    o.bump = 2;
    by_maker_in(o);
    o = kit_options();
    o.sampling_period = 32;
    by_maker_in(o);
}

/* A scope that borrows the ring's current epoch makes nothing outside of it, and one without a label is told apart from
 * none. */
static void makers_at_the_edges(void) {
    enum { N = 20000 };
    static void* keep[N];
    SlabAllocator* a = profiled(MEAN);
    epoch_domain_t* ring = epoch_domain_wrap(a, epoch_current(a), false);
    CHECK(epoch_domain_enter(ring));
    (void)make_outside(a, N, 300, keep);
    CHECK(epoch_domain_exit(ring));
    CHECK(epoch_domain_destroy(ring));
    Profile p = profile_of(a);
    CHECK_EQ(p.makers.count, 0);
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    Truth t = make_outside(a, N, 300, keep);
    CHECK(epoch_domain_end(d));
    p = profile_of(a);
    CHECK_EQ(p.makers.count, 1);
    NEAR(maker_of(&p, "(unlabeled)").v[3], t.bytes);
    slab_allocator_free(a);
}

static void tables_are_bounded(void) {
    enum { N = 400000 };
    SlabAllocator* a = profiled(512);
    epoch_domain_t* d = epoch_domain_begin(a, "many");
    for (unsigned k = 0; k < N; k++) REQUIRE(slab_malloc(a, 64) != NULL);
    Profile p = profile_of(a);
    Sums s = label_of(&p, "many");
    NEAR(s.v[0], N); /* of all that were taken */
    CHECK_EQ(s.live_samples, 1 << 15);
    CHECK_HAS(p.comments, "not followed");
    epoch_domain_end(d);
    d = epoch_domain_begin(a, "many"); /* the dead ones make room */
    for (unsigned k = 0; k < N / 8; k++) (void)slab_malloc(a, 64);
    p = profile_of(a);
    NEAR(label_of(&p, "many").v[2], N / 8);
    epoch_domain_end(d);
    slab_allocator_free(a);
}

static _Atomic bool stop;
static void* churn(void* arg) {
    SlabAllocator* a = arg;
    uint64_t dice = (uintptr_t)&dice;
    for (unsigned n = 0; n < 300 || !atomic_load(&stop); n++) {
        epoch_domain_t* d = epoch_domain_begin(a, n % 2 != 0 ? "one" : "two");
        for (unsigned k = 0; k < 50; k++) slab_free(a, k % 2 != 0 ? slab_malloc(a, 1 + kit_rand(&dice) % 900) : NULL), (void)slab_malloc(a, 64);
        epoch_domain_end(d);
    }
    return NULL;
}

static void threads_and_readers(void) {
    SlabAllocator* a = profiled(1024);
    pthread_t t[3];
    atomic_store(&stop, false);
    for (unsigned n = 0; n < 3; n++) REQUIRE(pthread_create(&t[n], NULL, churn, a) == 0);
    for (unsigned n = 0; n < 50; n++) (void)profile_of(a);
    atomic_store(&stop, true);
    for (unsigned n = 0; n < 3; n++) (void)pthread_join(t[n], NULL);
    Profile p = profile_of(a);
    CHECK(label_of(&p, "one").v[0] > 1000 && label_of(&p, "two").v[0] > 1000);
    CHECK_EQ(label_of(&p, "one").live_samples + label_of(&p, "two").live_samples, 0);
    slab_allocator_free(a);
}

static bool refuse(void* ctx, const char* bytes, size_t n) {
    (void)bytes, (void)n;
    ++*(unsigned*)ctx;
    return false;
}

static void off_and_refused(void) {
    Doc d = {NULL, 0, 0};
    unsigned calls = 0;
    SlabAllocator* a = slab_allocator_create();
    errno = 0;
    CHECK_EQ(slab_profile_write(a, collect, &d), 0);
    CHECK_EQ(errno, EINVAL);
    slab_allocator_free(a);
    errno = 0;
    CHECK_EQ(slab_profile_write(NULL, collect, &d), 0);
    CHECK_EQ(errno, EINVAL);
    a = profiled(MEAN);
    errno = 0;
    CHECK_EQ(slab_profile_write(a, NULL, NULL), 0);
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(slab_profile_write(a, refuse, &calls), 0);
    CHECK_EQ(calls, 1);
    CHECK(slab_profile_write(a, collect, &d) != 0); /* nothing was allocated: a document all the same */
    slab_allocator_free(a);
    free(d.bytes);
    SlabOptions o = {.struct_size = sizeof o, .profile_bytes = 511};
    CHECK(slab_allocator_create_with(&o) == NULL);
}

static SlabLabelStats escaped_of(SlabAllocator* a, const char* label) {
    SlabLabelStats rows[8];
    size_t count = slab_stats_labels(a, rows, 8);
    for (size_t n = 0; n < count && n < 8; n++)
        if (strcmp(rows[n].label, label) == 0) return rows[n];
    REQUIRE(false);
    return rows[0];
}

/* Each object that a drain leaves, and no other: small ones and large ones, in regions and by class, and those that grow where
 * they are. What of them lives is in use under an ended phase. */
static void what_escapes_is_counted_by_stack(void) {
    enum { ROUNDS = 60, EACH = 80 };
    static void* kept[ROUNDS * EACH];
    for (uint8_t bump = 0; bump < 3; bump += 2) {
        SlabOptions o = {.struct_size = sizeof o, .escape_stacks = 1, .bump = bump};
        SlabAllocator* a = kit_create_with(&o);
        uint64_t dice = 88172645463325252u, live = 0, live_bytes = 0;
        unsigned count = 0;
        REQUIRE(slab_malloc(a, 100) != NULL); /* in the ring */
        for (unsigned round = 0; round < ROUNDS; round++) {
            epoch_domain_t* d = epoch_domain_begin(a, "GET");
            for (unsigned n = 0; n < EACH; n++) {
                void* p = slab_malloc(a, 1 + (size_t)(kit_rand(&dice) % (n % 9 == 0 ? 70000 : 700)));
                if (n % 7 == 0) p = slab_realloc(a, p, slab_usable_size(a, p) + n); /* in a region some stay */
                REQUIRE(p != NULL);
                if (n % 5 == 3) kept[count++] = p;
                else slab_free(a, p);
            }
            REQUIRE(slab_malloc_outside(a, 30) != NULL);
            REQUIRE(epoch_domain_drain(d, NULL));
        }
        epoch_domain_t* released = epoch_domain_begin(a, "POST");
        REQUIRE(slab_malloc(a, 500) != NULL);
        epoch_domain_end(released);
        for (unsigned n = 0; n < count; n++)
            if (n % 2 == 0) slab_free(a, kept[n]);
            else live++, live_bytes += slab_usable_size(a, kept[n]);
        Profile p = profile_of(a);
        SlabLabelStats is = escaped_of(a, "GET");
        Sums s = label_of(&p, "GET");
        CHECK_EQ(is.objects_escaped, count);
        CHECK_EQ(s.v[4], is.objects_escaped);
        CHECK_EQ(s.v[5], is.bytes_escaped);
        CHECK_EQ(s.v[3], live_bytes);
        CHECK_GE(s.live_samples, live);
        CHECK_EQ(s.ended, s.live_samples);
        CHECK_EQ(label_of(&p, "POST").v[0], 1);
        CHECK_EQ(label_of(&p, "POST").v[4], 0);
        CHECK_EQ(label_of(&p, "(unlabeled)").v[0], 0);
        CHECK_EQ(p.period, 1);
        slab_allocator_free(a);
    }
}

/* With samples they are as right as those are; without the option a profile has none. */
static void escapes_are_sampled(void) {
    SlabOptions o = {.struct_size = sizeof o, .escape_stacks = 1, .profile_bytes = MEAN};
    for (unsigned without = 0; without < 2; without++, o.escape_stacks = 0) {
        tsi_os.random = same_random;
        SlabAllocator* a = kit_create_with(&o);
        for (unsigned round = 0; round < 2000; round++) {
            epoch_domain_t* d = epoch_domain_begin(a, "GET");
            for (unsigned n = 0; n < 20; n++) {
                void* p = slab_malloc(a, 200 + n);
                REQUIRE(p != NULL);
                if (n % 2 == 0) slab_free(a, p);
            }
            REQUIRE(epoch_domain_drain(d, NULL));
        }
        Profile p = profile_of(a);
        Sums s = label_of(&p, "GET");
        CHECK_EQ(s.v[0] != 0, true);
        if (without == 0) NEAR(s.v[4], 20000), NEAR(s.v[5], escaped_of(a, "GET").bytes_escaped);
        else CHECK_EQ(s.v[4] + s.v[5] + s.ended, 0);
        slab_allocator_free(a);
    }
}

typedef struct Inside {
    SlabAllocator* a;
    _Atomic uint64_t id;
    _Atomic unsigned objects;
    _Atomic bool over;
} Inside;

static void* allocate_inside(void* arg) {
    Inside* in = arg;
    for (uint64_t id, last = 0; !atomic_load(&in->over); last = id) {
        id = atomic_load(&in->id);
        if (id == last) (void)sched_yield();
        for (unsigned n = 0; id != last && n < 120 && slab_malloc_epoch(in->a, 48, (EpochId)id) != NULL; n++) atomic_fetch_add(&in->objects, 1);
    }
    return NULL;
}

/* A drain under threads that allocate: each object escapes, whether the drain has seen its sample, has left its slab to a thread that
 * was inside, or has come between the object and its sample. */
static void what_threads_allocate_meanwhile_escapes(void) {
    enum { PHASES = 120, THREADS = 2 };
    epoch_domain_t* d[PHASES];
    for (unsigned kind = 0; kind < 3; kind++) {
        SlabOptions o = {.struct_size = sizeof o, .escape_stacks = 1, .shared = kind == 1, .bump = kind == 2 ? 2 : 0};
        Inside in = {.a = kit_create_with(&o)};
        pthread_t t[THREADS];
        for (unsigned n = 0; n < THREADS; n++) REQUIRE(pthread_create(&t[n], NULL, allocate_inside, &in) == 0);
        for (unsigned n = 0; n < PHASES; n++) {
            REQUIRE((d[n] = epoch_domain_create_labeled(in.a, "shared")) != NULL);
            unsigned before = atomic_load(&in.objects);
            atomic_store(&in.id, d[n]->epoch_id);
            while (atomic_load(&in.objects) - before < 20) (void)sched_yield();
            CHECK(epoch_close_ex(in.a, d[n]->epoch_id, EPOCH_DRAIN, NULL));
        }
        atomic_store(&in.over, true);
        for (unsigned n = 0; n < THREADS; n++) (void)pthread_join(t[n], NULL);
        Profile p = profile_of(in.a);
        Sums s = label_of(&p, "shared");
        CHECK_EQ(s.v[0], atomic_load(&in.objects));
        CHECK_EQ(s.v[4], s.v[0]);
        CHECK_EQ(s.v[5], s.v[1]);
        CHECK_EQ(s.ended, s.live_samples);
        for (unsigned n = 0; n < PHASES; n++) epoch_domain_destroy(d[n]);
        slab_allocator_free(in.a);
    }
}

static const CheckCase cases[] = {
    CHECK_CASE(sums_are_unbiased_by_label),
    CHECK_CASE(short_phases_and_large_objects), CHECK_CASE(regions_are_unbiased), CHECK_CASE(what_grows_is_seen),
    CHECK_CASE(a_slot_used_again_is_another_object), CHECK_CASE(a_granule_used_again_is_another_object),
    CHECK_CASE(samples_end_with_their_objects),
    CHECK_CASE(other_calls_and_timed_samples),
    CHECK_CASE(what_is_made_outside_has_a_maker), CHECK_CASE(makers_at_the_edges),
    CHECK_CASE(what_escapes_is_counted_by_stack), CHECK_CASE(what_threads_allocate_meanwhile_escapes), CHECK_CASE(escapes_are_sampled),
    CHECK_CASE(tables_are_bounded),
    CHECK_CASE(threads_and_readers),
    CHECK_CASE(off_and_refused),
};

CHECK_MAIN(cases)
