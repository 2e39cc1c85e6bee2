/*
 * backend.c - temporal-slab and glibc malloc behind one set of calls. See backend.h.
 *
 * cJSON's hooks carry no context, so the allocator is a variable of this file. They reach the right
 * phase all the same: slab_malloc allocates in the innermost domain of the calling thread. cJSON
 * knows no realloc hook and uses realloc itself only while malloc and free are the C library's;
 * each backend gets what the unmodified library gives it.
 */
#include "backend.h"

#include <cJSON.h>
#include <malloc.h>
#include <slab_stats.h>
#include <stdio.h>
#include <stdlib.h>

static BackendKind current;
static SlabAllocator* slab;

const char* backend_name(BackendKind kind) { return kind == BACKEND_TSLAB ? "tslab" : "glibc"; }

static void* hook_malloc(size_t size) { return slab_malloc(slab, size); }

static void hook_free(void* p) { slab_free(slab, p); }

bool backend_start(BackendKind kind) {
    current = kind;
    if (kind == BACKEND_GLIBC) return true;
    slab = slab_allocator_create_with(&(SlabOptions){.struct_size = sizeof(SlabOptions), .sampling_period = 64});
    if (!slab) {
        fprintf(stderr, "tslab_demo: no allocator: %s\n", slab_last_error());
        return false;
    }
    cJSON_Hooks hooks = {hook_malloc, hook_free};
    cJSON_InitHooks(&hooks);
    return true;
}

void backend_stop(void) {
    cJSON_InitHooks(NULL);
    slab_allocator_free(slab);
    slab = NULL;
}

SlabAllocator* backend_slab(void) { return slab; }

bool backend_ends_in_bulk(void) { return current == BACKEND_TSLAB; }

void* backend_malloc(size_t size) { return slab ? slab_malloc(slab, size) : malloc(size); }

void backend_free(void* p) {
    if (slab)
        slab_free(slab, p);
    else
        free(p);
}

void* backend_lua_alloc(void* ud, void* p, size_t osize, size_t nsize) {
    (void)ud;
    if (nsize == 0) {
        backend_free(p);
        return NULL;
    }
    if (!slab) return realloc(p, nsize);
    if (!p) return slab_malloc(slab, nsize); /* osize is the kind of object here, not a size */
    void* moved = slab_realloc(slab, p, nsize);
    return moved || nsize > osize ? moved : p;
}

bool phase_open(Phase* phase, const char* label, bool drains) {
    phase->domain = NULL;
    phase->drains = drains;
    if (!slab) return true;
    phase->domain = epoch_domain_begin(slab, label);
    return phase->domain != NULL;
}

bool phase_close(Phase* phase, EpochReceipt* receipt) {
    epoch_domain_t* domain = phase->domain;
    phase->domain = NULL;
    if (!domain) return false;
    /* Everything in it ends here, unless it drains; the domain is gone either way. */
    return phase->drains ? epoch_domain_drain(domain, receipt) : epoch_domain_end_ex(domain, receipt);
}

bool store_open(Store* store, const char* label) {
    store->domain = NULL;
    if (!slab) return true;
    store->domain = epoch_domain_create_labeled(slab, label);
    if (!store->domain) return false;
    store->domain->auto_close = false; /* leaving it must not end it */
    return true;
}

void store_enter(Store* store) {
    if (store->domain) epoch_domain_enter(store->domain);
}

void store_exit(Store* store) {
    if (store->domain) epoch_domain_exit(store->domain);
}

void* store_malloc(Store* store, size_t size) {
    return store->domain ? epoch_domain_malloc(store->domain, size) : malloc(size);
}

void store_free(void* p) { backend_free(p); }

void store_close(Store* store) {
    if (store->domain) epoch_domain_destroy(store->domain);
    store->domain = NULL;
}

uint64_t backend_live_bytes(void) {
    if (slab) {
        SlabGlobalStats stats;
        slab_stats_global(slab, &stats);
        return stats.live_bytes;
    }
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();
    return (uint64_t)info.uordblks + (uint64_t)info.hblkhd;
#else
    return 0;
#endif
}

uint64_t backend_refusals(void) {
    if (!slab) return 0;
    SlabRefusals r;
    slab_stats_refusals(slab, &r);
    return r.stale_handle + r.bad_handle + r.double_free + r.stale_free + r.interior_pointer + r.foreign_pointer +
           r.size_mismatch + r.bad_epoch + r.closed_epoch + r.bad_size + r.domain_order + r.domain_stale +
           r.late_double_free + r.out_of_memory;
}
