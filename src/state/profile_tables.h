/*
 * profile_tables.h - the tables of a heap profile; profile.h says how they are filled.
 */
#ifndef TSI_STATE_PROFILE_TABLES_H
#define TSI_STATE_PROFILE_TABLES_H

#include "os/lock.h"

enum {
    TSI_PROFILE_FRAMES = 32,
    TSI_PROFILE_STACKS = 4096,
    TSI_PROFILE_INDEX = 2 * TSI_PROFILE_STACKS, /* a power of two */
    TSI_PROFILE_LIVE = 1 << 15,
    TSI_PROFILE_PATIENCE = 1 << 12 /* samples lost before a full table is searched again */
};
_Static_assert(TSI_PROFILE_STACKS <= UINT16_MAX, "the index holds every stack + 1");

/* All samples of one stack, label and maker. */
typedef struct TsiProfileStack {
    uint32_t label; /* record */
    uint16_t maker; /* of the scope that made it outside of its phases: label's record + 1; 0: none */
    uint16_t depth;
    uint64_t hash;
    double objects, bytes;                 /* weighted */
    double escaped_objects, escaped_bytes; /* of these, what outlived the end of its phase; weighted */
    uintptr_t frames[TSI_PROFILE_FRAMES];  /* return addresses, innermost first */
} TsiProfileStack;

typedef struct TsiProfileLive {
    uint64_t name; /* handle; of objects in regions and LARGE ones, the address */
    uint64_t era, bytes;
    uint32_t seq, life; /* of the slab; generation of the handles of the region's life */
    uint32_t stack;
    uint16_t cls;
    bool gain;    /* what an object has gained where it is: no object of its own */
    bool escaped; /* its phase was drained while it lived */
} TsiProfileLive;

typedef struct TsiProfile {
    uint64_t mean; /* 0: off, and no tables; 1: each allocation */
    bool escapes;  /* stacks of what outlives the end of its phase */
    TsiProfileStack* stacks;
    TsiProfileLive* live;
    uint16_t* index; /* of stacks, + 1, by hash; open addressing */
    size_t mapping_bytes;
    TsiLock lock; /* all below, and what the tables hold */
    uint32_t stack_count, live_count, live_high, lost_since;
    uint32_t index_pages; /* a bit for each page of the index that was written */
    uint64_t samples, lost_stacks, lost_live;
} TsiProfile;

/* The counts that go with a copy of the tables. */
typedef struct TsiProfileCounts {
    uint64_t mean, samples, lost_stacks, lost_live;
    uint32_t stack_count, live_count;
    bool escapes;
} TsiProfileCounts;

/* A call's origin: the return address into the program, and its frame pointer if it keeps one. */
typedef struct TsiCaller {
    uintptr_t pc, fp;
} TsiCaller;

#endif
