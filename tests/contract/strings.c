/*
 * strings.c - copies, formatted text, typed allocation and scopes by macro; receipts and kinds of misuse in words.
 */
#include "kit/fixture.h"

#include <locale.h>

static char long_text[5000];

static void copies(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* named = epoch_domain_create_labeled(a, "named");
    epoch_domain_t* inside = epoch_domain_begin(a, "inside");
    memset(long_text, 'x', sizeof long_text - 1);
    static const char* const texts[] = {"", "a", "fifteen letters", "sixteen letters!", long_text};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (int to = 0; to < 2; to++) {
            uint64_t era = to ? named->epoch_era : inside->epoch_era;
            size_t n = strlen(texts[i]);
            char* all = to ? epoch_domain_strdup(named, texts[i]) : slab_strdup(a, texts[i]);
            CHECK_STR(all, texts[i]);
            CHECK_EQ(kit_era_of(a, all), era);
            CHECK_GE(slab_usable_size(a, all), n + 1);
            char* half = to ? epoch_domain_strndup(named, texts[i], n / 2) : slab_strndup(a, texts[i], n / 2);
            CHECK_EQ(strlen(half), n / 2);
            CHECK_EQ(memcmp(half, texts[i], n / 2), 0);
            CHECK_EQ(kit_era_of(a, half), era);
            char* more = to ? epoch_domain_strndup(named, texts[i], n + 100) : slab_strndup(a, texts[i], n + 100);
            CHECK_STR(more, texts[i]);
            char* bytes = to ? epoch_domain_memdup(named, texts[i], n + 1) : slab_memdup(a, texts[i], n + 1);
            CHECK_EQ(memcmp(bytes, texts[i], n + 1), 0);
            CHECK_EQ(kit_era_of(a, bytes), era);
            char* text = to ? epoch_domain_asprintf(named, "<%s|%d>", texts[i], 7) : slab_asprintf(a, "<%s|%d>", texts[i], 7);
            CHECK_EQ(strlen(text), n + 4);
            CHECK_EQ(memcmp(text + 1, texts[i], n), 0);
            CHECK_STR(text + n + 1, "|7>");
            CHECK_EQ(kit_era_of(a, text), era);
        }
    }
    const char unended[3] = {'a', 'b', 'c'};
    CHECK_STR(slab_strndup(a, unended, 3), "abc");
    CHECK_STR(slab_asprintf(a, "%.*s", 255, long_text) + 250, "xxxxx"); /* as much as fits at first */
    CHECK_STR(slab_asprintf(a, "%.*s", 256, long_text) + 250, "xxxxxx");
    CHECK(epoch_domain_end(inside));
    CHECK(epoch_domain_end(named) == false); /* never entered, so it stays */
    CHECK(epoch_domain_destroy(named));
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void copies_of_nothing(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create(a);
    const char* volatile none = NULL;
    char* made[9];
    for (int gone = 0; gone < 2; gone++) {
        SlabRefusals before = kit_refusals(a);
        errno = 0;
        size_t n = 0;
        made[n++] = epoch_domain_strdup(d, gone ? "x" : none);
        CHECK_EQ(errno, gone ? ESTALE : EINVAL);
        made[n++] = epoch_domain_strndup(d, none, 5);
        made[n++] = epoch_domain_memdup(d, none, 5);
        made[n++] = epoch_domain_memdup(d, "x", kit_size(0));
        made[n++] = epoch_domain_asprintf(d, "%s", "x");
        for (size_t i = 0; i < n; i++) CHECK(made[i] == NULL || (!gone && i == 4));
        SlabRefusals now = kit_refusals(a);
        CHECK_EQ(now.bad_size - before.bad_size, gone ? 0 : 4);
        CHECK_EQ(now.closed_epoch - before.closed_epoch, gone ? 5 : 0);
        CHECK_EQ(epoch_domain_force_close(d), gone == 0);
    }
    errno = 0;
    CHECK_NULL(slab_strdup(a, none));
    CHECK_EQ(errno, EINVAL);
    CHECK_NULL(slab_strndup(a, none, 5));
    CHECK_NULL(slab_memdup(a, none, 5));
    CHECK_NULL(slab_memdup(a, "x", kit_size(0)));
    errno = 0;
    CHECK_NULL(slab_strdup(NULL, "x"));
    CHECK_EQ(errno, EINVAL);
    CHECK_NULL(slab_asprintf(NULL, "%d", 5));
    CHECK_NULL(epoch_domain_strdup(NULL, "x"));
    CHECK_NULL(epoch_domain_memdup(NULL, "x", 1));
    CHECK_NULL(epoch_domain_asprintf(NULL, "%d", 5));
    CHECK(epoch_domain_destroy(d));
    CHECK_NULL(epoch_domain_strdup(d, "x"));
    SlabOptions o = kit_options();
    o.max_bytes = 1 << 20;
    SlabAllocator* small = kit_create_with(&o);
    while (slab_strdup(small, long_text) != NULL) {}
    CHECK_EQ(errno, EDQUOT);
    slab_allocator_free(small);
    slab_allocator_free(a);
}

typedef struct Wide {
    _Alignas(128) char bytes[128];
} Wide;

static void typed(void) {
    SlabAllocator* a = kit_create();
    uint64_t* one = SLAB_NEW(a, uint64_t);
    REQUIRE(one != NULL);
    *one = 5;
    Wide* wide = SLAB_NEW_ARRAY(a, Wide, 3);
    CHECK_EQ((uintptr_t)kit_hide(wide) % 128, 0);
    CHECK_GE(slab_usable_size(a, wide), 3 * sizeof(Wide));
    int* many = SLAB_NEW_ARRAY(a, int, 1000);
    CHECK_GE(slab_usable_size(a, many), 4000);
    SlabRefusals before = kit_refusals(a);
    errno = 0;
    CHECK_NULL(SLAB_NEW_ARRAY(a, uint64_t, kit_size(SIZE_MAX / 8 + 2))); /* 8 bytes, if it were multiplied */
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_NULL(SLAB_NEW_ARRAY(a, Wide, kit_size(SIZE_MAX / 128 + 2)));
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_NULL(SLAB_NEW_ARRAY(a, uint64_t, kit_size(0)));
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(kit_refusals(a).bad_size, before.bad_size + 3);
    CHECK_NULL(SLAB_NEW(NULL, uint64_t));
    slab_allocator_free(a);
}

static uint64_t leaves_early(SlabAllocator* a, bool early) {
    SLAB_SCOPE(a, "function");
    uint64_t era = epoch_domain_current()->epoch_era;
    CHECK_EQ(kit_era_of(a, slab_malloc(a, 100)), era);
    if (early) return era;
    {
        SLAB_SCOPE(a, "block");
        CHECK(epoch_domain_current()->epoch_era != era);
        CHECK(slab_malloc(a, 100) != NULL);
    }
    CHECK_EQ(epoch_domain_current()->epoch_era, era);
    return 0;
}

static void scopes(void) {
    SlabAllocator* a = kit_create();
    CHECK_GT(leaves_early(a, true), 0);
    CHECK_EQ(leaves_early(a, false), 0);
    for (int i = 0; i < 10; i++) {
        SLAB_SCOPE(a, "turn");
        CHECK(slab_malloc(a, 100) != NULL);
        if (i % 2 == 0) continue;
        CHECK_STR(kit_epoch(a, 0, epoch_domain_current()->epoch_id).label, "turn");
    }
    {
        SLAB_SCOPE(NULL, "none");
        CHECK_NULL(epoch_domain_current());
        CHECK(slab_last_error()[0] != 0);
    }
    CHECK_NULL(epoch_domain_current());
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_refusals(a).domain_order, 0);
    slab_allocator_free(a);
}

/* The text on lines of that width: but for ends of lines in place of spaces it is the same. */
static void check_lines(const EpochReceipt* r, size_t width, const char* whole) {
    char text[1024], *line = text;
    CHECK_EQ(epoch_receipt_lines(r, width, text, sizeof text), strlen(whole));
    CHECK_EQ(strlen(text), strlen(whole));
    for (char* next; line != NULL; line = next) {
        next = strchr(line, '\n');
        size_t len = next != NULL ? (size_t)(next - line) : strlen(line);
        CHECK(len <= width || memchr(line, ' ', len) == NULL);
        CHECK(len > 0);
        if (next != NULL) *next++ = ' ';
    }
    CHECK_STR(text, whole);
    memset(text, 'Z', sizeof text);
    CHECK_EQ(epoch_receipt_lines(r, width, text, 9), strlen(whole));
    CHECK_EQ(strlen(text), 8);
    CHECK_EQ(text[9], 'Z');
    CHECK_EQ(epoch_receipt_lines(r, width, NULL, 0), strlen(whole));
}

static void receipts_as_text(void) {
    EpochReceipt r = {.version = 2, .epoch_id = 3, .epoch_era = 19, .label = "GET /\n", .objects_allocated = 10, .bytes_allocated = 640,
                      .objects_freed = 4, .bytes_freed = 256, .objects_released = 5, .bytes_released = 320, .objects_escaped = 1,
                      .bytes_escaped = 64, .slabs_returned = 2, .bytes_returned = 8192, .slabs_deferred = 1, .bytes_deferred = 4096,
                      .rss_before = 9000000, .rss_after = 8990000, .close_ns = 1234567, .interrupts = 1, .regions_returned = 2};
    static const char whole[] =
        "\"GET /?\", epoch 3 era 19: objects allocated 10 (640 bytes), freed 4 (256 bytes), released 5 (320 bytes), escaped 1 (64 bytes);"
        " slabs returned 2 (8192 bytes), 2 of them regions, deferred 1 (4096 bytes); interrupts 1; took 1234567 ns;"
        " resident bytes 9000000 before, 8990000 after";
    char text[600];
    (void)setlocale(LC_ALL, "");
    CHECK_EQ(epoch_receipt_text(&r, text, sizeof text), sizeof whole - 1);
    CHECK_STR(text, whole);
    CHECK_EQ(epoch_receipt_text(&r, NULL, 0), sizeof whole - 1);
    for (size_t room = 1; room <= sizeof whole; room++) {
        memset(text, 'Z', sizeof text);
        CHECK_EQ(epoch_receipt_text(&r, text, room), sizeof whole - 1);
        CHECK_EQ(strlen(text), room - 1);
        CHECK_EQ(memcmp(text, whole, room - 1), 0);
        CHECK_EQ(text[room], 'Z');
    }
    for (size_t width = 0; width <= sizeof whole; width++) check_lines(&r, width, whole);
    r.epoch_id = 0x80000123u;
    r.label[0] = 0;
    r.rss_before = 0;
    CHECK_GT(epoch_receipt_text(&r, text, sizeof text), 0);
    CHECK_EQ(strncmp(text, "epoch 0x80000123 era 19: objects", 32), 0);
    CHECK_NULL(strstr(text, "resident"));
    memset(r.label, 'y', sizeof r.label); /* not ended */
    CHECK_GT(epoch_receipt_text(&r, text, sizeof text), 31);
    CHECK_EQ(strspn(text + 1, "y"), 31);
    CHECK_EQ(epoch_receipt_lines(NULL, 80, text, sizeof text), 0);
    CHECK_STR(text, "");
    CHECK_EQ(epoch_receipt_text(NULL, text, sizeof text), 0);
    CHECK_STR(text, "");
}

static char shown[1 << 20];
static size_t shown_bytes;
static bool gather(void* ctx, const char* bytes, size_t n) {
    (void)ctx;
    if (shown_bytes + n >= sizeof shown) return false;
    memcpy(shown + shown_bytes, bytes, n);
    shown_bytes += n;
    return true;
}

static SlabMisuse told;
static void tell(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx) {
    (void)a, (void)where, (void)ctx;
    told = what;
}

static void names_of_misuse(void) {
    SlabOptions o = kit_options();
    o.misuse_fn = tell;
    SlabAllocator* a = kit_create_with(&o);
    CHECK(slab_stats_prometheus(a, gather, NULL));
    for (unsigned what = 0; what < SLAB_MISUSE_COUNT; what++) {
        char cause[64];
        (void)snprintf(cause, sizeof cause, "cause=\"%s\"", slab_misuse_name((SlabMisuse)what));
        CHECK_HAS(shown, cause); /* the word that outputs count it under */
        for (unsigned other = 0; other < what; other++)
            CHECK(strcmp(slab_misuse_name((SlabMisuse)what), slab_misuse_name((SlabMisuse)other)) != 0);
    }
    int local = 0;
    CHECK(!slab_free_checked(a, &local));
    CHECK_STR(slab_misuse_name(told), "foreign_pointer");
    CHECK_STR(slab_misuse_name(SLAB_MISUSE_COUNT), "unknown");
    CHECK_STR(slab_misuse_name((SlabMisuse)-1), "unknown");
    slab_allocator_free(a);
}

/* What compilers are told of a copy lets it hold pointers to anything. */
typedef struct Pointing {
    int* at;
} Pointing;
static __attribute__((noinline)) int written_through(SlabAllocator* a, epoch_domain_t* d) {
    int x = 1;
    Pointing p = {&x};
    Pointing* q = d != NULL ? epoch_domain_memdup(d, &p, sizeof p) : slab_memdup(a, &p, sizeof p);
    if (q == NULL) return 0;
    x = 2;
    *q->at = 5;
    return x;
}
static void copies_of_pointers(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create(a);
    CHECK_EQ(written_through(a, NULL), 5);
    CHECK_EQ(written_through(a, d), 5);
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(copies), CHECK_CASE(copies_of_nothing), CHECK_CASE(copies_of_pointers), CHECK_CASE(typed),           CHECK_CASE(scopes),
    CHECK_CASE(receipts_as_text), CHECK_CASE(names_of_misuse),
};
CHECK_MAIN(cases)
