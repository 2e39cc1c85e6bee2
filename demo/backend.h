/*
 * backend.h - the one place where the demo knows which allocator it runs on.
 *
 * Two backends behind the same calls: `glibc` (malloc and free, every object freed singly) and
 * `tslab` (temporal-slab, a phase ends in one step). Lua and cJSON are unmodified; they come here
 * through lua_newstate and cJSON_InitHooks. The rest of the demo asks backend_ends_in_bulk() where
 * the two differ: whether a request has to free what it made.
 *
 *   Phase  one request: a domain made, entered, left and destroyed again. One that `drains` ends when the
 *          last object in it is freed; its domain is for whoever does that
 *   Store  long-lived memory: a domain of its own that is not ended until the program ends
 */
#ifndef DEMO_BACKEND_H
#define DEMO_BACKEND_H

#include <epoch_domain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum BackendKind { BACKEND_GLIBC, BACKEND_TSLAB, BACKEND_COUNT } BackendKind;

typedef struct Phase {
    epoch_domain_t* domain; /* NULL with glibc */
    bool drains;
} Phase;

typedef struct Store {
    epoch_domain_t* domain; /* NULL with glibc */
} Store;

const char* backend_name(BackendKind kind);
/* Chooses the backend of this process and hooks cJSON; once, before anything else is called. */
bool backend_start(BackendKind kind);
void backend_stop(void);
bool backend_ends_in_bulk(void);

/* In the innermost phase or store of the thread. */
void* backend_malloc(size_t size);
void backend_free(void* p);
/* A lua_Alloc. */
void* backend_lua_alloc(void* ud, void* p, size_t osize, size_t nsize);

bool phase_open(Phase* phase, const char* label, bool drains);
/* Ends the phase: with temporal-slab everything in it ends; when it drains, what was freed goes back. True when
 * *receipt was filled; glibc has none. */
bool phase_close(Phase* phase, EpochReceipt* receipt);

bool store_open(Store* store, const char* label);
void store_enter(Store* store);
void store_exit(Store* store);
/* From any thread, without entering. */
void* store_malloc(Store* store, size_t size);
void store_free(void* p);
void store_close(Store* store);

/* The allocator, for its statistics; NULL with glibc. */
SlabAllocator* backend_slab(void);
/* What the allocator itself counts as handed out now. */
uint64_t backend_live_bytes(void);
/* Frees and calls that the allocator refused; 0 in a correct program. */
uint64_t backend_refusals(void);

#endif
