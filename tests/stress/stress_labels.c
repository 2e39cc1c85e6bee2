/*
 * stress_labels.c - labels are made while others read them.
 *
 * Writers label the phases of a ring with names nobody has used; a reader lists all labels meanwhile. Every label in the
 * list must be whole: each name says its number twice, and is as long as a name can be, so that a part of one shows.
 */
#include "stress.h"

enum { WRITERS = 2, LABELS = 4096, ROUNDS = 4 };

static SlabAllocator* a;
static _Atomic unsigned next_name;
static _Atomic int writing;
static SlabLabelStats rows[LABELS];

static void name_of(char out[32], unsigned n) { (void)snprintf(out, 32, "label-%010u-is-%010u", n, n); }

static void write_labels(struct slot* self) {
    char name[32];
    for (unsigned n; (n = atomic_fetch_add(&next_name, 1)) < self->ops_per_life;) {
        name_of(name, n);
        slab_epoch_set_label(a, (EpochId)(1 + self->index), name);
    }
    atomic_fetch_sub(&writing, 1);
}

static void read_labels(void) {
    char name[32];
    size_t count = slab_stats_labels(a, rows, LABELS);
    for (size_t n = 0; n < count; n++) {
        unsigned number = 0;
        if (strcmp(rows[n].label, "(unlabeled)") == 0 || strcmp(rows[n].label, "(other)") == 0) continue;
        (void)sscanf(rows[n].label, "label-%u", &number);
        name_of(name, number);
        REQUIRE_OR(strcmp(rows[n].label, name) == 0, "row %zu of %zu: '%.31s' is no label anybody set", n, count,
                   rows[n].label);
    }
}

static void live(struct slot* self) {
    if (self->index < WRITERS)
        write_labels(self);
    else
        while (atomic_load(&writing) != 0) read_labels();
}

int main(void) {
    for (uint64_t lap = 0; lap < check_count(ROUNDS * 16) / 4 + 1; lap++) {
        SlabOptions o = {.struct_size = sizeof o, .max_labels = LABELS};
        a = kit_create_with(&o);
        atomic_store(&next_name, 0);
        atomic_store(&writing, WRITERS);
        run_slots(WRITERS + 1, 1, LABELS - 2, lap, live, NULL);
        REQUIRE_OR(slab_stats_labels(a, NULL, 0) == LABELS, "labels are missing");
        slab_allocator_free(a);
    }
    puts("stress_labels: ok");
    return 0;
}
