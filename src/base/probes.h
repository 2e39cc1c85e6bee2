/*
 * probes.h - static tracepoints (USDT): every one of them, its arguments, and where it fires.
 *
 * A probe is a nop, and a note in the file that says where the nop and its arguments are. While no tool is attached
 * only the nop runs: arguments are values that the code has anyway, and no branch is made for them (clang stores them
 * on the stack first). There is none on a fast path.
 *
 * A probe has at most six arguments, because not every tool reads more. So the end of a phase reports in four probes,
 * one after the other on one thread. Arguments are registers, constants or memory that a register points to; a name (a
 * static or thread-local variable) would be more than tools can read.
 *
 * Probes of a phase's end have semaphores: they are reached only while a tool is attached, because normally they alone
 * need the clock to be read for the time that the end took (account/close_probes.h).
 *
 * Addresses: `allocator` is the program's SlabAllocator*, `label` 32 bytes that end with a 0. `class` is the index that
 * the statistics have. Numbers are 4 or 8 bytes. epoch_open, slow_path, purge and refusals of late double frees may
 * fire with a lock held or inside an owner's bracket: other threads may wait for the tool's work there.
 *
 * <sys/sdt.h> (Debian package systemtap-sdt-dev) makes the probes; it needs nothing at run time. Where it is missing,
 * and with TSI_NO_USDT (CMake: TSLAB_USDT=OFF), they compile to nothing. tests/probes compares this list with the
 * notes.
 */
#ifndef TSI_BASE_PROBES_H
#define TSI_BASE_PROBES_H

#include "base/bits.h"

#if defined(__has_include) && !defined(TSI_NO_USDT)
#if __has_include(<sys/sdt.h>)
#define TSI_USDT 1
#ifdef TSI_PROBE_SEMAPHORES /* defined by the only file whose probes have them: account/close_probes.c */
#define _SDT_HAS_SEMAPHORES 1
#endif
#include <sys/sdt.h>
#ifdef __clang__ /* needed by the macros of that header */
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#if __has_warning("-Wc23-extensions") /* its name since clang 19 */
#pragma clang diagnostic ignored "-Wc23-extensions"
#endif
#endif
#endif
#endif

#ifdef TSI_USDT
#define TSI_PROBE3(name, a, b, c) STAP_PROBE3(temporal_slab, name, a, b, c)
#define TSI_PROBE4(name, a, b, c, d) STAP_PROBE4(temporal_slab, name, a, b, c, d)
#define TSI_PROBE6(name, a, b, c, d, e, f) STAP_PROBE6(temporal_slab, name, a, b, c, d, e, f)
#else
#define TSI_PROBE3(name, a, b, c) ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c))
#define TSI_PROBE4(name, a, b, c, d) (TSI_PROBE3(name, a, b, c), (void)sizeof(d))
#define TSI_PROBE6(name, a, b, c, d, e, f) (TSI_PROBE4(name, a, b, c, d), (void)sizeof(e), (void)sizeof(f))
#endif

/* Fires when a phase begins: a domain's own, or the ring's next one; never for the ring that an allocator is born
 * with. */
#define tsi_probe_epoch_open(allocator, id, era, label) TSI_PROBE4(epoch_open, allocator, id, era, label)
/* Fires when the ring moved on, with the phase that was current, and the current one. Follows the epoch_open of
 * that. */
#define tsi_probe_epoch_advance(allocator, from_id, from_era, from_label, to_id, to_era) \
    TSI_PROBE6(epoch_advance, allocator, from_id, from_era, from_label, to_id, to_era)
/* Fires when a phase was closed, by its id, its era or its domain; once for each call that did. mode: 0 drain, 1
 * release. ns: how long the close took, 0 when the phase held nothing. */
#define tsi_probe_epoch_close(allocator, id, era, label, mode, ns) \
    TSI_PROBE6(epoch_close, allocator, id, era, label, mode, ns)
/* Fire after epoch_close, for phases that were ever used, with the figures of the receipt. */
#define tsi_probe_close_objects(allocator, era, label, freed, released, escaped) \
    TSI_PROBE6(close_objects, allocator, era, label, freed, released, escaped)
#define tsi_probe_close_bytes(allocator, era, label, freed, released, escaped) \
    TSI_PROBE6(close_bytes, allocator, era, label, freed, released, escaped)
#define tsi_probe_close_slabs(allocator, era, label, returned, bytes_returned, deferred) \
    TSI_PROBE6(close_slabs, allocator, era, label, returned, bytes_returned, deferred)
/* Fires when objects outlive their phase, at its first close that drains. */
#define tsi_probe_escape(allocator, id, era, label, objects, bytes) \
    TSI_PROBE6(escape, allocator, id, era, label, objects, bytes)
/* Fires for an allocation that left the fast path. size: of the class, 64 KiB for large objects. cause: TSI_SLOW_*. */
#define tsi_probe_slow_path(allocator, class, size, cause) TSI_PROBE4(slow_path, allocator, class, size, cause)
/* Fires when pages of objects were given back to the system, with their address and bytes. error: 0 or an errno value.
 * class: of the first slab. */
#define tsi_probe_purge(address, bytes, class, error) TSI_PROBE4(purge, address, bytes, class, error)
/* Fires when a call was refused. cause: SlabMisuse, then 13 late double free, 14 no memory, 15 over a budget. pointer:
 * the offending one, or 0. */
#define tsi_probe_refusal(allocator, cause, pointer) TSI_PROBE3(refusal, allocator, cause, pointer)

#endif
