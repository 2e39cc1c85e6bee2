/*
 * tslab.hpp - the C headers for C++17 and later: owners, memory for containers, typed objects, and coroutines from
 * C++20 on.
 *
 * Everything is in namespace tslab and inline over the C functions; there is nothing to link with but the library. Each
 * class has a get() for calls that it does not wrap, and every C function may be used beside it.
 *
 *   temporal_slab/phases.hpp    allocator, domain, scope, entered: owners and guards; cleanups; carrier
 *   temporal_slab/objects.hpp   where objects come from; make, unique, handle
 *   temporal_slab/memory.hpp    memory resources of std::pmr, allocators for other containers
 *   temporal_slab/task.hpp      tasks, which take their phase from thread to thread (C++20, empty before)
 *
 * Conventions for all of it, unless a comment says otherwise
 *   ownership      a class whose copies are deleted owns one thing and ends it in its destructor; all others are
 *                  pointers in disguise: cheap to copy, and dead with what they point to
 *   order          an allocator outlives its domains; a domain outlives its objects and the guards inside of it
 *   thread safety  of the C functions for what an object points to; an object itself is like an int: one writer, or
 *                  many readers
 *   errors         an allocation that fails throws tslab::bad_alloc, a std::bad_alloc that has errno's value; a call
 *                  that is refused throws std::system_error with errno and the sentence of slab_last_error().
 *                  Destructors, frees and noexcept functions throw nothing: refusals there are counted
 *                  (slab_stats_refusals). Without exceptions (-fno-exceptions) calls that would throw call std::abort
 *   destructors    the end of a phase runs none: it takes memory back. See make, unique and on_end for types that need
 *                  one
 *   complexity     of the C function of that name; nothing here allocates besides it, unless its comment says so
 */
#ifndef TSLAB_HPP
#define TSLAB_HPP

#include <temporal_slab/memory.hpp>
#include <temporal_slab/objects.hpp>
#include <temporal_slab/phases.hpp>
#include <temporal_slab/task.hpp>

#endif
