/*
 * fuzz_calls.c - a fuzzer's bytes as a sequence of calls, good and bad, over every public function.
 *
 * The world is that of the random model test: two allocators, actors that take turns, a reference that knows
 * what is live, and the comparison of both after each call. Only the choices come from the input: its first
 * byte says how many threads take turns, the next ones open the two allocators, then each operation is one
 * byte of the table below and its arguments follow. An input that is used up ends the run. So that few bytes reach
 * states full of objects, one operation rolls dice, seeded by the input, for a stretch of many others.
 *
 *   model operations     what programs do, and the common misuses (tests/model)
 *   hostile operations   any size, alignment, pointer, handle, id, era, mode, label, dead domain; lanes and runs, too
 *   guests               allocators with any options that come and go
 *   a batch elsewhere    a thread is born, frees and allocates, and is joined
 *
 * Held after each call: counters of refusals, identity of what was touched. Now and then and at the end: every
 * object's contents, receipts, statistics, the allocator's own checker. After the end no mapping is left that
 * the library made. Every failure aborts, which is what the fuzzer looks for.
 */
#include "guests.h"
#include "hostile_texts.h"
#include "input.h"
#include "model/run.h"
#include "os/os.h"

/* ---- address space ---------------------------------------------------------------------- */

static TsiOs real_os;
static int64_t mapped_bytes; /* atomic: reserved and not unmapped */

static void* counted_reserve(size_t bytes) {
    void* p = real_os.reserve(bytes);
    if (p) __atomic_fetch_add(&mapped_bytes, (int64_t)bytes, __ATOMIC_RELAXED);
    return p;
}

static void counted_unmap(void* p, size_t bytes) {
    real_os.unmap(p, bytes);
    __atomic_fetch_sub(&mapped_bytes, (int64_t)bytes, __ATOMIC_RELAXED);
}

/* ---- operations ------------------------------------------------------------------------- */

static void* batch_main(void* arg) {
    struct world* w = arg;
    w->actor->thread = pthread_self();
    for (uint64_t n = 1 + below(w, 40); n > 0; n--) {
        if (chance(w, 75)) op_free(w);
        else op_alloc(w);
        settle(w);
    }
    return NULL;
}

/* A thread that lives for one batch. */
static void op_batch_elsewhere(struct world* w) {
    struct actor stranger = {.w = w, .slot = MAX_ACTORS, .alive = true};
    struct actor* here = w->actor;
    note(w, "a batch on a thread of its own");
    w->actor = &stranger;
    w->strangers = true;
    kit_on_thread(batch_main, w);
    actor_left(w, &stranger);
    w->actor = here;
}

static void op_check(struct world* w) { check_everything(w); }
static void op_stretch(struct world* w);

/* What happens often in programs is here more than once. */
static void (*const operations[])(struct world* w) = {
    op_alloc,
    op_alloc,
    op_alloc,
    op_alloc,
    op_alloc_many,
    op_free,
    op_free,
    op_free,
    op_free_many,
    op_realloc,
    op_realloc,
    op_realloc_null,
    op_ask,
    op_ask_dead,
    op_misuse,
    op_misuse,
    op_advance,
    op_advance,
    op_close,
    op_close,
    op_close_era,
    op_close_gone,
    op_label,
    op_refcount,
    op_on_end,
    op_upkeep,
    op_small_questions,
    op_domain_create,
    op_domain_create,
    op_domain_wrap,
    op_domain_enter,
    op_domain_enter,
    op_domain_exit,
    op_domain_exit,
    op_domain_end,
    op_domain_destroy,
    op_domain_force_close,
    op_domain_reset,
    op_domain_detach,
    op_domain_attach,
    op_domain_malloc,
    op_domain_close_ex,
    hostile_malloc,
    hostile_aligned,
    hostile_calloc,
    hostile_obj,
    hostile_realloc,
    hostile_pointer,
    hostile_pointer,
    hostile_handle,
    hostile_sized,
    hostile_sized_checked,
    hostile_text,
    hostile_document,
    hostile_close,
    hostile_close_era,
    hostile_label,
    hostile_counts,
    hostile_create,
    hostile_wrap,
    hostile_dead_domain,
    hostile_questions,
    op_guest,
    op_batch_elsewhere,
    op_check,
    op_lane,
    op_lane,
    op_run,
    op_run_on,
    op_run_on,
    hostile_lane,
    hostile_run,
    op_domain_create_ex,
    op_domain_end_ex,
    op_domain_drain,
    op_domain_destroy_ex,
    op_domain_switch,
    op_stretch,
};

static void pick_by_byte(struct world* w) { operations[below(w, sizeof operations / sizeof *operations)](w); }

/* Operations that dice choose, and all that they draw. */
static void op_stretch(struct world* w) {
    if (!w->fed) return;
    w->dice = kit_mix(take_input(w, 2) + 1);
    uint64_t n = 1 + below(w, 64);
    note(w, "a stretch of %llu operations by dice", (unsigned long long)n);
    w->fed = false;
    for (; n > 0; n--) {
        pick_by_byte(w);
        settle(w);
    }
    w->fed = true;
}

/* ---- one input -------------------------------------------------------------------------- */

const char* __asan_default_options(void);
/* Objects that are blocks of malloc may be larger than it has: then there is no memory, as without. Beyond 64 MB it has
 * none, because a larger block costs seconds, for its shadow; those that have to fit (sure_to_fit) do. */
const char* __asan_default_options(void) { return "allocator_may_return_null=1:max_allocation_size_mb=64"; }

int LLVMFuzzerInitialize(int* argc, char*** argv) {
    (void)argc, (void)argv;
    unsetenv("TSLAB_OPTIONS");
    slab_allocator_free(slab_allocator_create()); /* maps what belongs to the process and stays */
    real_os = tsi_os;
    tsi_os.reserve = counted_reserve;
    tsi_os.unmap = counted_unmap;
    return 0;
}

struct input {
    const uint8_t* data;
    size_t size;
};

/* On a thread of its own: what the library keeps for a thread goes when it ends. */
static void* run_input(void* arg) {
    const struct input* in = arg;
    struct world* w = world_new(1 + (in->size ? in->data[0] % 3 : 0));
    w->fed = true, w->input = in->data, w->input_left = in->size, w->ops = UINT64_MAX, w->pick = pick_by_byte;
    (void)below(w, 256);
    world_run(w);
    world_end(w);
    free(w);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    struct input in = {data, size};
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_input, &in) != 0) abort();
    pthread_join(thread, NULL);
    int64_t left = __atomic_load_n(&mapped_bytes, __ATOMIC_RELAXED);
    if (left != 0) {
        fprintf(stderr, "FAILED: %lld bytes of address space are left after the end\n", (long long)left);
        abort();
    }
    return 0;
}

/* Left alone, libFuzzer tries hardly anything but short inputs, which end before anything interesting is live: a
 * short one, and now and then any, goes on with random bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
    uint64_t dice = kit_mix(seed + 1);
    if (size == most || (size >= 256 && dice % 4 != 0)) return LLVMFuzzerMutate(data, size, most);
    size_t to = size + 1 + (dice >> 8) % (most - size);
    for (size_t i = size; i < to; i++) data[i] = (uint8_t)kit_mix(dice + i);
    return to;
}
