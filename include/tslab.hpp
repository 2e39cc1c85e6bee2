/*
 * tslab.hpp - the C++ interface, for C++17 and later: owners, memory for containers, and typed objects. C++20 adds
 * coroutines.
 *
 * Everything is in namespace tslab and is defined inline on top of the C functions, so a program needs to link only
 * with the temporal-slab library. Classes that own a C object have a member function get(), which returns the C object.
 * A program may mix both interfaces.
 *
 *   temporal_slab/phases.hpp    owners and guards: allocator, domain, scope, entered, carrier; cleanups
 *   temporal_slab/objects.hpp   sources of memory, and typed objects: make, unique, handle
 *   temporal_slab/memory.hpp    memory resources for std::pmr, and allocators for other containers
 *   temporal_slab/task.hpp      coroutine tasks that stay in their phase on every thread (C++20; otherwise empty)
 *
 * Conventions, unless a comment says otherwise
 *   ownership      a class that cannot be copied owns one object, such as a phase, and its destructor ends that object.
 *                  Instances of other classes are like pointers: they are cheap to copy, and must not be used after
 *                  the object they refer to has ended
 *   lifetime       an allocator must outlive its domains. A domain must outlive its objects and the guards inside it
 *   thread safety  calls are as thread-safe as the C functions they use. Like an int, a C++ object of this interface
 *                  must not be changed while another thread uses it
 *   errors         a failed allocation throws tslab::bad_alloc, a std::bad_alloc that contains the errno value. Other
 *                  failed calls throw std::system_error with errno and the text of slab_last_error(). Destructors,
 *                  frees and other noexcept functions do not throw; their failures are counted (slab_stats_refusals).
 *                  With -fno-exceptions, functions call std::abort instead of throwing
 *   destructors    the end of a phase frees memory without running destructors. For types that need a destructor, see
 *                  make, unique and on_end
 *   complexity     a function has the complexity of the C function with the same name, and allocates no additional
 *                  memory
 */
#ifndef TSLAB_HPP
#define TSLAB_HPP

#include <temporal_slab/memory.hpp>
#include <temporal_slab/objects.hpp>
#include <temporal_slab/phases.hpp>
#include <temporal_slab/task.hpp>

#endif
