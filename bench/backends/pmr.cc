// pmr.cc - std::pmr::monotonic_buffer_resource with its defaults, behind C functions. The type is known here, so the
// compiler calls it directly: an allocation is one call, as with everybody else.
#include <cstddef>
#include <cstdlib>
#include <memory_resource>
#include <new>

using resource = std::pmr::monotonic_buffer_resource;

extern "C" {

void pmr_open(void* room, std::size_t bytes) {
    if (bytes < sizeof(resource)) std::abort();
    new (room) resource();
}

void* pmr_take(void* room, std::size_t size) { return static_cast<resource*>(room)->allocate(size, 16); }

void pmr_end(void* room) { static_cast<resource*>(room)->~resource(); }
}
