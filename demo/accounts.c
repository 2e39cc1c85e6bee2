/*
 * accounts.c - see accounts.h. What is kept of them is on the C library's heap: it outlives the allocator.
 */
#include "accounts.h"

#include "backend.h"
#include "run.h"

#include <errno.h>
#include <slab_diagnostics.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool to_memory(void* ctx, const char* bytes, size_t n) {
    Accounts* accounts = ctx;
    char* grown = realloc(accounts->doctor, accounts->doctor_len + n + 1);
    if (!grown) return false;
    memcpy(grown + accounts->doctor_len, bytes, n);
    accounts->doctor = grown;
    accounts->doctor_len += n;
    grown[accounts->doctor_len] = '\0';
    return true;
}

bool accounts_take(Accounts* accounts) {
    SlabAllocator* slab = backend_slab();
    memset(accounts, 0, sizeof *accounts);
    if (!slab) return true;
    SlabSamplingStats sampling;
    slab_stats_sampling(slab, &sampling);
    accounts->sampling_period = sampling.period;
    size_t room = slab_stats_labels(slab, NULL, 0);
    accounts->labels = calloc(room, sizeof *accounts->labels);
    if (!accounts->labels) return false;
    size_t count = slab_stats_labels(slab, accounts->labels, room);
    accounts->label_count = count < room ? count : room;
    return slab_doctor_ex(slab, 0, to_memory, accounts); /* nothing is under way any more */
}

void accounts_drop(Accounts* accounts) {
    free(accounts->labels);
    free(accounts->doctor);
}

static bool to_fd(void* ctx, const char* bytes, size_t n) {
    while (n) {
        ssize_t done = write(*(const int*)ctx, bytes, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return false;
        bytes += done;
        n -= (size_t)done;
    }
    return true;
}

bool accounts_write_json(int fd) { return slab_stats_json(backend_slab(), to_fd, &fd); }

static const SlabLabelStats* find(const Accounts* accounts, const char* label) {
    for (size_t i = 0; i < accounts->label_count; i++)
        if (strcmp(accounts->labels[i].label, label) == 0) return &accounts->labels[i];
    return NULL;
}

unsigned accounts_differ(const Accounts* accounts, const RouteFigures* figures, uint64_t* phases) {
    static const SlabLabelStats nothing;
    const SlabLabelStats* other = find(accounts, "(other)");
    unsigned differing = 0;
    *phases = 0;
    for (int r = 0; backend_slab() && r < ROUTE_COUNT; r++) {
        const RouteFigures* f = &figures[r];
        const SlabLabelStats* l = find(accounts, ROUTES[r].label);
        if (!l && other && other->swallowed) continue; /* max_labels leaves it no account */
        if (!l) l = &nothing;
        *phases += f->phases;
        const uint64_t pairs[][2] = {
            {l->phases_opened, f->phases},           {l->phases_ended, f->phases},
            {l->objects_allocated, f->objects},      {l->bytes_allocated, f->bytes},
            {l->objects_freed, f->objects_freed},    {l->bytes_freed, f->bytes_freed},
            {l->objects_released, f->objects_released}, {l->bytes_released, f->bytes_released},
            {l->objects_escaped, f->escaped},        {l->bytes_escaped, f->bytes_escaped},
            {l->live_objects, f->escaped},           {l->objects_escaped, f->leaked},
        };
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) differing += pairs[i][0] != pairs[i][1];
    }
    return differing;
}

bool accounts_find_leak(char label[32]) {
    EpochLeakReport report;
    if (slab_detect_epoch_leaks(backend_slab(), 1, 1, &report) == 0) return false;
    bool found = report.top_count != 0;
    if (found) memcpy(label, report.candidates[0].label, sizeof report.candidates[0].label);
    free(report.candidates);
    return found;
}
