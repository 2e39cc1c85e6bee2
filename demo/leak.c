/*
 * leak.c - see leak.h. The entries hang on a list, as those of a log that is written later would.
 */
#include "leak.h"

#include "backend.h"

#include <string.h>

_Static_assert(sizeof(LeakEntry) == 256, "one size class, on a mixed slab as well");

bool leak_chosen(Leak* leak, RouteId route) {
    if (!leak->on || route != LEAK_ROUTE) return false;
    return atomic_fetch_add_explicit(&leak->requests, 1, memory_order_relaxed) % LEAK_ONE_IN == 0;
}

bool leak_entry(Leak* leak, int status, const char* text, size_t len) {
    LeakEntry* entry = backend_malloc(sizeof *entry);
    if (!entry) return false;
    if (len > sizeof entry->line - 1) len = sizeof entry->line - 1;
    entry->status = status;
    memcpy(entry->line, text, len);
    entry->line[len] = '\0';
    entry->older = atomic_load(&leak->newest);
    while (!atomic_compare_exchange_weak(&leak->newest, &entry->older, entry)) {
    }
    return true;
}
