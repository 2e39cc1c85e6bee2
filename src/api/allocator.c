/* allocator.c - create and destroy allocators, and calls about the process. */
#include "api/domain.h"

#include "heap/close.h"
#include "heap/decay.h"
#include "heap/records.h"
#include "observe/sample.h"
#include "observe/stand_in.h"

#include "observe/profile.h"
#include "heap/warm.h"
#include "mem/stock.h"
#include "os/clock.h"
#include "heap/trim.h"

#include <string.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

const char* slab_version(void) {
    return TEXT(TSLAB_VERSION_MAJOR) "." TEXT(TSLAB_VERSION_MINOR) "." TEXT(TSLAB_VERSION_PATCH);
}

size_t slab_page_size(void) {
    tsi_process_init();
    return tsi_os.page_bytes;
}

uint64_t slab_now_ns(void) { return tsi_clock_now(); }
uint64_t slab_rss_bytes(void) { return tsi_os.rss_bytes(); }

/* Returns the number of records of a table, at least `least`: most * reserve_bytes / TSI_RESERVE_MAX, cut, so that a
 * small reservation has small tables. most: the number for TSI_RESERVE_MAX bytes, the largest reservation.
 * [any thread, needs no lock] */
static uint32_t records(uint64_t reserve_bytes, uint32_t most, uint32_t least) {
    uint64_t n = most / (TSI_RESERVE_MAX / reserve_bytes);
    return n < least ? least : (uint32_t)n;
}

/* Sets table->learned_most, how many records more than `keep` a table may learn to keep, at most its capacity: as many
 * as fill an eighth of the bytes that the stock of pages may keep, 0 if the stock does not learn.
 * [before the allocator is shared] */
static void let_learn(const TsiSpace* s, TsiTable* table) {
    uint64_t most = tsi_stock_learns(s) ? s->stock.limit / 8 / table->stride : 0;
    table->learned_most = most < table->capacity ? (uint32_t)most : table->capacity;
}

enum { ROOM_STRIDE = (sizeof(TsiRoom) + 63) & ~(size_t)63 };

/* Makes the tables and the address space of an arena of zeros, with a payload of `bytes`, and lets its tables learn
 * which records keep their pages. options: filled by tsi_options_read. Returns true; false if the system refuses, and
 * arena_close gives the part back that was made. [before the allocator is shared] */
static bool arena_open(TsiArena* a, const SlabOptions* options, uint64_t bytes) {
    TsiSpaceConfig config = {.reserve_bytes = bytes,
                             .slab_min_bytes = options->slab_bytes,
                             .max_bytes = options->max_bytes,
                             .warm_bytes = options->warm_bytes,
                             .warm_limit_bytes = options->warm_limit_bytes,
                             .quarantine_bytes = options->quarantine_bytes,
                             .purge_policy = (int32_t)options->purge_policy,
                             .prefault = options->prefault != 0,
                             .huge_pages = options->huge_pages != 0,
                             .numa_local = options->numa_local != 0,
                             .fill = options->fill_freed != 0};

    tsi_lock_init(&a->closed_log.lock, TSI_LOCK_CLOSE_LOG);
    if (!tsi_space_init(&a->space, &config) ||
        !tsi_profile_init(&a->profile, options->profile_bytes, options->escape_stacks != 0))
        return false;

    uint32_t incs = records(bytes, TSI_INC_MAX, 8192), heaps = records(bytes, TSI_HEAPS_MAX, 16384),
             rooms = records(bytes, TSI_ROOMS_MAX, 2048), bindings = records(bytes, TSI_BINDINGS_MAX, 256);
    TsiGround* memory = &a->ground;
    size_t ground = tsi_phases_room(incs, options->max_labels) + tsi_table_room(sizeof(TsiHeap), heaps, false) +
                    tsi_table_room(ROOM_STRIDE, rooms, false) + tsi_table_room(TSI_DOMAIN_STRIDE, incs, false) +
                    tsi_bindings_room(bindings);
    if (!tsi_ground_reserve(memory, ground) ||
        !tsi_phases_init(&a->phases, memory, options->ring_size, incs, options->max_labels))
        return false;

    for (unsigned n = 0; n < TSI_SHARED_BANKS; n++) tsi_lock_init(&a->bank[n].lock, TSI_LOCK_BANK);
    uint32_t nobody; /* record 0 stands for no heap, see tsi_heap_at */
    tsi_table_init_in(&a->heaps, memory, sizeof(TsiHeap), heaps, false);
    if (!tsi_table_take(&a->heaps, &nobody, 0)) return false;
    tsi_table_init_in(&a->rooms, memory, ROOM_STRIDE, rooms, false);
    tsi_domain_table_init(&a->domains, memory, incs);
    tsi_bindings_init(&a->bindings, memory, bindings);

    let_learn(&a->space, &a->phases.incs);
    let_learn(&a->space, &a->heaps);
    let_learn(&a->space, &a->domains);
    return true;
}

/* Gives back what arena_open has made, all of it or a part: tables, address space and profile. *a itself stays mapped;
 * its tables are not to be used, and arena_open may make them anew. [no other thread in the allocator] */
static void arena_close(TsiArena* a) {
    tsi_table_destroy(&a->heaps);
    tsi_table_destroy(&a->rooms);
    tsi_table_destroy(&a->domains);
    tsi_table_destroy(&a->bindings);
    tsi_phases_destroy(&a->phases);
    tsi_ground_drop(&a->ground);
    tsi_space_destroy(&a->space);
    tsi_profile_destroy(&a->profile);
}

/* Gives back all of an arena: stand-ins, tables, address space and the record *a itself. The registry does not list
 * the arena, or no longer does; it may be opened in part only, or not at all.
 * [no other thread in the allocator, no lock held] */
static void arena_discard(TsiArena* a) {
    tsi_stand_ins_close(a);
    arena_close(a);
    tsi_os_drop(a, sizeof *a);
}

/* Creates an arena with the options, which tsi_options_read has filled, and lists it in the registry. Reserves
 * options->reserve_bytes, or the largest half, quarter and so on that the system grants, down to TSI_RESERVE_MIN.
 * bad_environment: ignored words of TSLAB_OPTIONS, to be reported. Returns it; NULL, with nothing left mapped, if the
 * system grants no memory or there are too many. Sets *why to a sentence for NULL, a literal, in any case.
 * [any thread, no lock held] */
static TsiArena* arena_create(const SlabOptions* options, uint32_t bad_environment, const char** why) {
    *why = "the system grants no memory for an allocator (RLIMIT_AS, overcommit or map count)";
    TsiArena* a = tsi_registry_open() ? tsi_os_map(sizeof *a) : NULL;
    if (a == NULL) return NULL;

    a->options = *options;
    a->bad_environment = bad_environment;
    if (options->sampling_period != 0) tsi_sample_calibrate();
    a->watched = options->sampling_period != 0 || options->profile_bytes != 0 || options->escape_stacks != 0;
    a->born_ns = tsi_os.now_ns();
    tsi_decay_begin(a);
    a->secret = tsi_os.random();

    /* Address space is asked for as configured and halved until the system grants it all. */
    bool open = false;
    uint64_t most = options->reserve_bytes;
    while (tsi_os.sparse && most / 2 >= tsi_os.space_limit && most / 2 >= TSI_RESERVE_MIN) most /= 2;
    for (uint64_t bytes = most; !open && bytes >= TSI_RESERVE_MIN; bytes /= 2) {
        open = arena_open(a, options, bytes) && tsi_stand_ins_open(a);
        if (open) break;
        tsi_stand_ins_close(a);
        arena_close(a);
    }

    bool all = a->stand_ins != NULL && !a->samples_guards; /* tools and late access see more */
    a->fill = options->fill_freed != 0 && !all;
    a->watched |= a->stand_ins != NULL || a->fill;
    bool hard = a->fill || options->quarantine_bytes != 0 || a->samples_guards || options->random_order != 0;
    a->none_at_hand = options->shared || a->stand_ins != NULL || hard;
    a->banks_at_hand = options->shared && a->stand_ins == NULL && !hard;
    a->hard_at_hand = hard && !all && !options->shared;

    if (open && tsi_registry_add(a)) return a;
    if (open) *why = "the process has as many allocators as it can have (65,536), or no memory for one more";
    arena_discard(a);
    return NULL;
}

bool allocator_init_with(SlabAllocator* allocator, const SlabOptions* options) {
    SlabOptions given;
    uint32_t bad = 0;
    tsi_process_init();
    tsi_scope_init();
    tsi_segment_init();
    if (allocator == NULL) return tsi_failed(EINVAL, "the allocator is NULL") != NULL;

    memset(allocator, 0, sizeof *allocator);
    if (!tsi_options_read(&given, options, &bad)) return tsi_error_set(EINVAL), false;

    const char* why;
    TsiArena* a = arena_create(&given, bad, &why);
    if (a == NULL) return tsi_failed(ENOMEM, why) != NULL;

    a->owner = allocator;
    *tsi_public(allocator) = (TsiPublic){a, a->serial, TSI_MAGIC, 0};
    tsi_segment_begin(a);
    if (bad != 0) tsi_options_complain(&given);
    return true;
}

void allocator_init(SlabAllocator* allocator) { (void)allocator_init_with(allocator, NULL); }

/* Drains each incarnation that is not free, the ring's epochs included, by tsi_epoch_end, and calls options.leak_fn,
 * which is not NULL, with its label, era, and the objects and bytes that escaped, if there are any.
 * [destroying thread, no lock held, no bracket open] */
static void report_leaks(TsiArena* a) {
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        TsiInc* inc = tsi_inc(&a->phases, n);
        uint64_t era = tsi_inc_era(inc);
        EpochReceipt receipt;
        char label[TSI_LABEL_BYTES];
        if (era == 0) continue;
        memcpy(label, inc->label, sizeof label);
        if (!tsi_epoch_end(a, tsi_ref(era, n), EPOCH_DRAIN, TSI_END_SCOPE, &receipt) || receipt.objects_escaped == 0)
            continue;
        a->options.leak_fn(a->owner, label, era, receipt.objects_escaped, receipt.bytes_escaped, a->options.leak_ctx);
    }
}

/* Releases each incarnation that has cleanups (inc->ends is not 0), with its objects, so that these run; the others
 * stay, and end with their allocator. [destroying thread, no lock held, no bracket open] */
static void run_cleanups(TsiArena* a) {
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        TsiInc* inc = tsi_inc(&a->phases, n);
        uint64_t era = tsi_inc_era(inc);
        if (era != 0 && inc->ends != 0) (void)tsi_epoch_end(a, tsi_ref(era, n), EPOCH_RELEASE, TSI_END_SCOPE, NULL);
    }
}

void allocator_destroy(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    if (a == NULL) return;
    if (a->options.leak_report && a->options.leak_fn != NULL) report_leaks(a);
    run_cleanups(a);
    tsi_registry_remove(a);
    tsi_segment_end(a);
    memset(allocator, 0, sizeof *allocator);
    arena_discard(a);
}

SlabAllocator* slab_allocator_create_with(const SlabOptions* options) {
    tsi_process_init();
    SlabAllocator* allocator = tsi_os_map(sizeof *allocator);
    if (allocator == NULL) return tsi_failed(ENOMEM, "the system grants no memory for an allocator");
    if (!allocator_init_with(allocator, options)) {
        int saved = errno;
        tsi_os_drop(allocator, sizeof *allocator);
        errno = saved;
        return NULL;
    }
    tsi_store_relaxed(&tsi_public(allocator)->holders, 1);
    return allocator;
}

SlabAllocator* slab_allocator_create(void) { return slab_allocator_create_with(NULL); }

SlabAllocator* slab_allocator_retain(SlabAllocator* allocator) {
    uint64_t n = allocator != NULL ? tsi_load_relaxed(&tsi_public(allocator)->holders) : 0;
    /* seq_cst: pairs with slab_allocator_free, which decides by the count which holder is the last */
    while (n != 0 && !tsi_cas_seq(&tsi_public(allocator)->holders, &n, n + 1)) {}
    return n != 0 ? allocator : tsi_failed(EINVAL, "the allocator was not made by slab_allocator_create");
}

void slab_allocator_free(SlabAllocator* allocator) {
    if (allocator == NULL) return;
    bool ours = tsi_load_relaxed(&tsi_public(allocator)->holders) != 0;
    /* seq_cst: pairs with itself, so that all acts of other holders come before the last one's destroy */
    if (ours && tsi_add_seq(&tsi_public(allocator)->holders, UINT64_MAX) != 1) return;
    allocator_destroy(allocator);
    if (ours) tsi_os_drop(allocator, sizeof *allocator);
}

void slab_trim(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    if (a == NULL) return;
    TsiBinding* b = tsi_binding_get(a, false);
    (void)tsi_trim_all(a, b);
    tsi_records_trim(a, b);
    tsi_segment_tick(a);
}

void slab_thread_flush(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    TsiBinding* b = a != NULL ? tsi_binding_get(a, false) : NULL;
    if (b == NULL) return;
    (void)tsi_trim(a, b, b);
    (void)tsi_warm_flush(a, b);
    (void)tsi_stock_give_back(&a->space, UINT64_MAX);
}
