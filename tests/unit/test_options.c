/* test_options.c - every option of options.def: default, limits, beyond them, and as a word of the environment. */
#include "kit/inside.h"

typedef struct Option {
    const char* name;
    size_t offset, size;
    uint64_t least, most, preset;
} Option;

static const Option table[] = {
#define OPTION(field, least, most, preset, unit, help) \
    {#field, offsetof(SlabOptions, field), sizeof(((SlabOptions*)0)->field), least, most, preset},
#include "api/options.def"
#undef OPTION
};
enum { OPTIONS = sizeof table / sizeof table[0] };

static uint64_t get(const SlabOptions* o, const Option* t) {
    uint64_t v = 0;
    memcpy(&v, (const char*)o + t->offset, t->size); /* the tests run on little-endian machines */
    return v;
}
static void set(SlabOptions* o, const Option* t, uint64_t v) { memcpy((char*)o + t->offset, &v, t->size); }
static bool is_warm(const Option* t) { return strcmp(t->name, "warm_bytes") == 0; }

static SlabOptions read_ok(const SlabOptions* in, uint32_t bad_words) {
    SlabOptions out;
    uint32_t bad = 77;
    REQUIRE(tsi_options_read(&out, in, &bad));
    REQUIRE_EQ(bad, bad_words);
    return out;
}

static void zero_means_the_default(void) {
    SlabOptions zero = {.struct_size = sizeof zero}, small = {.struct_size = offsetof(SlabOptions, purge_policy)};
    for (unsigned n = 0; n < 3; n++) {
        SlabOptions out = read_ok(n == 0 ? NULL : n == 1 ? &zero : &small, 0);
        for (unsigned i = 0; i < OPTIONS; i++) REQUIRE(get(&out, &table[i]) == table[i].preset);
    }
}

static void limits_are_accepted(void) {
    for (unsigned i = 0; i < OPTIONS; i++) {
        const Option* t = &table[i];
        uint64_t values[2] = {t->least, t->most};
        for (unsigned n = 0; n < 2; n++) {
            SlabOptions in = {.struct_size = sizeof in};
            set(&in, t, values[n]);
            SlabOptions out = read_ok(&in, 0);
            uint64_t want = values[n] == 0 ? t->preset : is_warm(t) && values[n] == UINT64_MAX ? 0 : values[n];
            REQUIRE(get(&out, t) == want);
        }
    }
}

static void beyond_the_limits_is_refused(void) {
    for (unsigned i = 0; i < OPTIONS; i++) {
        const Option* t = &table[i];
        uint64_t widest = t->size == 8 ? UINT64_MAX : (1ull << 8 * t->size) - 1;
        uint64_t values[3] = {t->least > 1 ? t->least - 1 : 0, t->most < widest ? t->most + 1 : 0,
                              t->most < widest ? widest : 0};
        for (unsigned n = 0; n < 3; n++) {
            SlabOptions in = {.struct_size = sizeof in}, out;
            SlabAllocator storage;
            uint32_t bad = 0;
            if (values[n] == 0) continue;
            set(&in, t, values[n]);
            REQUIRE(!tsi_options_read(&out, &in, &bad));
            REQUIRE_HAS(slab_last_error(), t->name);
            errno = 0;
            REQUIRE_NULL(slab_allocator_create_with(&in));
            REQUIRE_EQ(errno, EINVAL);
            REQUIRE(!allocator_init_with(&storage, &in));
            REQUIRE_NULL(slab_malloc(&storage, 10)); /* valid and inert */
            allocator_destroy(&storage);
        }
    }
    SlabOptions in = {.struct_size = sizeof in, .slab_bytes = 12288}, out;
    uint32_t bad;
    REQUIRE(!tsi_options_read(&out, &in, &bad)); /* no power of two */
}

static void struct_sizes(void) {
    static const size_t wrong[] = {0, 1, 8, 11, 4097, SIZE_MAX};
    SlabOptions out;
    uint32_t bad;
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        SlabOptions in = {.struct_size = wrong[i]};
        REQUIRE(!tsi_options_read(&out, &in, &bad));
        REQUIRE_HAS(slab_last_error(), "struct_size");
    }
    struct {
        SlabOptions o;
        uint64_t later[2];
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.o.struct_size = sizeof newer;
    newer.o.ring_size = 5;
    out = read_ok(&newer.o, 0); /* a later struct that uses nothing new */
    REQUIRE_EQ(out.ring_size, 5);
    newer.later[1] = 1;
    REQUIRE(!tsi_options_read(&out, &newer.o, &bad));
    SlabOptions reserved = {.struct_size = sizeof reserved, .reserved_ = {1}};
    REQUIRE(!tsi_options_read(&out, &reserved, &bad));
}

static void words(const char* text, uint32_t bad, SlabOptions* out) {
    setenv("TSLAB_OPTIONS", text, 1);
    *out = read_ok(NULL, bad);
    unsetenv("TSLAB_OPTIONS");
}

static void each_option_has_a_word(void) {
    char text[96];
    SlabOptions out;
    for (unsigned i = 0; i < OPTIONS; i++) {
        const Option* t = &table[i];
        uint64_t values[2] = {t->least, t->most};
        for (unsigned n = 0; n < 2; n++) {
            (void)snprintf(text, sizeof text, "%s=%llu", t->name, (unsigned long long)values[n]);
            words(text, 0, &out);
            REQUIRE(get(&out, t) == (is_warm(t) && values[n] == UINT64_MAX ? 0 : values[n]));
        }
        if (t->least > 1) {
            (void)snprintf(text, sizeof text, "%s=%llu", t->name, (unsigned long long)t->least - 1);
            words(text, 1, &out);
            REQUIRE(get(&out, t) == t->preset);
        }
        if (t->most < UINT64_MAX) {
            (void)snprintf(text, sizeof text, "%s=%llu", t->name, (unsigned long long)t->most + 1);
            words(text, 1, &out);
            REQUIRE(get(&out, t) == t->preset);
        }
    }
}

static void words_of_the_environment(void) {
    SlabOptions out;
    words("ring_size=64,warm_bytes=4m,reserve_bytes=1g,slab_bytes=16k", 0, &out);
    REQUIRE_EQ(out.ring_size, 64);
    REQUIRE_EQ(out.warm_bytes, 4 << 20);
    REQUIRE_EQ(out.reserve_bytes, 1 << 30);
    REQUIRE_EQ(out.slab_bytes, 16384);
    words(",,ring_size=9,", 0, &out);
    REQUIRE_EQ(out.ring_size, 9);
    words("ring_size=7,ring_size=8", 0, &out); /* the last one holds */
    REQUIRE_EQ(out.ring_size, 8);
    static const char* const wrong[] = {"nonsense",
                                        "ring_size",
                                        "ring_size=",
                                        "ring_size=x",
                                        "ring_size=-3",
                                        "ring_size=5x",
                                        "ring_size= 5",
                                        "RING_SIZE=5",
                                        "ring_siz=5",
                                        "ring_sizes=5",
                                        "=5",
                                        "ring_size=99999999999999999999999999",
                                        "ring_size=5kk",
                                        "slab_bytes=12288",
                                        "reserve_bytes=99999999999999g",
                                        "misuse_fn=5",
                                        "struct_size=8",
                                        "ring_size=18446744073709551615k"};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char text[128];
        (void)snprintf(text, sizeof text, "%s,purge_policy=2", wrong[i]);
        words(text, 1, &out);
        REQUIRE_EQ(out.purge_policy, 2);
        REQUIRE_EQ(out.ring_size, 16);
    }
    words("warm_bytes=0", 0, &out);
    REQUIRE_EQ(out.warm_bytes, 0);
}

/* An operator can take back what a program has set: 0 is the default, as in the struct. */
static void zero_takes_back(void) {
    char text[128];
    SlabOptions out;
    uint32_t bad = 99;
    for (unsigned i = 0; i < OPTIONS; i++) {
        const Option* t = &table[i];
        if (t->least == 0) continue;
        SlabOptions in = kit_options();
        set(&in, t, t->most);
        (void)snprintf(text, sizeof text, "%s=0", t->name);
        setenv("TSLAB_OPTIONS", text, 1);
        REQUIRE(tsi_options_read(&out, &in, &bad));
        REQUIRE_EQ(bad, 0);
        REQUIRE_EQ(get(&out, t), t->preset);
    }
    unsetenv("TSLAB_OPTIONS");
}

/* What the environment names, `hardened` leaves alone. */
static void parts_of_the_hardened_form(void) {
    SlabOptions out;
    words("hardened=1", 0, &out);
    REQUIRE(out.fill_freed == 1 && out.random_order == 1);
    REQUIRE(out.guard_sampling == 5000 && out.quarantine_bytes == 4 << 20);
    REQUIRE_EQ(out.bump, 2);
    words("quarantine_bytes=0,hardened=1,random_order=0", 0, &out);
    REQUIRE(out.fill_freed == 1 && out.random_order == 0);
    REQUIRE(out.guard_sampling == 5000 && out.quarantine_bytes == 0);
    REQUIRE_EQ(out.bump, 0);
    words("hardened=1,guard_sampling=0,fill_freed=0,quarantine_bytes=8m", 0, &out);
    REQUIRE(out.fill_freed == 0 && out.random_order == 1);
    REQUIRE(out.guard_sampling == 0 && out.quarantine_bytes == 8 << 20);
}

static void the_environment_overrides_and_is_counted(void) {
    SlabOptions in = kit_options();
    in.ring_size = 5;
    setenv("TSLAB_OPTIONS", "ring_size=6,what=1,ever", 1);
    errno = 77;
    SlabAllocator* a = slab_allocator_create_with(&in);
    unsetenv("TSLAB_OPTIONS");
    REQUIRE(a != NULL);
    REQUIRE_EQ(errno, 77);
    REQUIRE_EQ(tsi_arena(a)->options.ring_size, 6);
    REQUIRE_EQ(kit_refusals(a).bad_environment, 2);
    for (EpochId id = 1; id <= 6; id++) REQUIRE_EQ(epoch_advance_id(a), id % 6);
    slab_allocator_free(a);
}

/* Every limit makes an allocator that works. */
static void allocators_at_the_limits(void) {
    for (unsigned i = 0; i < OPTIONS; i++) {
        const Option* t = &table[i];
        uint64_t values[2] = {t->least, t->most};
        for (unsigned n = 0; n < 2; n++) {
            SlabOptions in = kit_options();
            set(&in, t, values[n]);
            SlabAllocator* a = kit_create_with(&in);
            for (size_t bytes = 1; bytes < 3u << 20; bytes = bytes * 3 + 1) {
                uint8_t* p = slab_malloc(a, bytes);
                if (p == NULL) { /* the one option that forbids it */
                    REQUIRE_STR(t->name, "max_bytes");
                    REQUIRE_EQ(errno, EDQUOT);
                    continue;
                }
                p[0] = p[bytes - 1] = 1;
                if (bytes % 2 == 0) REQUIRE(slab_free_checked(a, p));
            }
            REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
            (void)epoch_advance_id(a);
            REQUIRE(slab_malloc(a, 100) != NULL);
            kit_check(a);
            slab_allocator_free(a);
        }
    }
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(zero_means_the_default),
        CHECK_CASE(limits_are_accepted),
        CHECK_CASE(beyond_the_limits_is_refused),
        CHECK_CASE(struct_sizes),
        CHECK_CASE(each_option_has_a_word),
        CHECK_CASE(words_of_the_environment),
        CHECK_CASE(zero_takes_back),
        CHECK_CASE(parts_of_the_hardened_form),
        CHECK_CASE(the_environment_overrides_and_is_counted),
        CHECK_CASE(allocators_at_the_limits),
    };
    unsetenv("TSLAB_OPTIONS");
    return CHECK_RUN(argc, argv, tests);
}
