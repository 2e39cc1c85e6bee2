/*
 * memory.hpp - memory for containers: resources of std::pmr, and allocators of a type of their own. See tslab.hpp.
 *
 * For each source of objects.hpp:
 *
 *   source    std::pmr::memory_resource    allocator of T            deallocate
 *   ambient   allocator_resource           ambient_allocator<T>      frees
 *   outside   outside_resource             outside_allocator<T>      frees
 *   phase     domain_resource              domain_allocator<T>       frees: memory that a container gives up is reused
 *   bulk      bulk_resource                bulk_allocator<T>         does nothing: for containers that are built and
 *             dropped
 *
 * Any of them is as shareable between threads as the C functions; a container is not. Objects in a phase may be left
 * without running destructors, if these would only give back memory of that phase (make_undestroyed).
 */
#ifndef TEMPORAL_SLAB_MEMORY_HPP
#define TEMPORAL_SLAB_MEMORY_HPP

#include <temporal_slab/objects.hpp>

#include <limits>
#include <memory_resource>

namespace tslab {

/* ---- std::pmr --------------------------------------------------------------------------- */

/* A memory resource over a source, which must outlive the resource and its containers. Any alignment up to 1 GiB;
 * throws tslab::bad_alloc. Equal to a resource of the same class over an equal source, and to no other: of two phases
 * one may end before the other, so a container that is moved from one to the other moves its elements. (Without RTTI:
 * equal to itself.) */
template <class Source> class basic_resource final : public std::pmr::memory_resource {
  public:
    template <class From, class = std::enable_if_t<std::is_convertible_v<const From&, Source> ||
                                                   std::is_constructible_v<Source, const From&>>>
    explicit basic_resource(const From& from) noexcept : source_(from) {}
    const Source& source() const noexcept { return source_; }

  private:
    void* do_allocate(std::size_t size, std::size_t aligned) override {
        return detail::need(source_.take(size, aligned));
    }
    void do_deallocate(void* p, std::size_t size, std::size_t) override { source_.give(p, size); }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        if (this == &other) return true;
#if defined(__cpp_rtti)
        const auto* same = dynamic_cast<const basic_resource*>(&other);
        return same != nullptr && same->source_ == source_;
#else
        return false;
#endif
    }

    Source source_;
};

using allocator_resource = basic_resource<ambient>;
using outside_resource = basic_resource<outside>;
using domain_resource = basic_resource<phase>;
using bulk_resource = basic_resource<bulk>;

/* A phase with a bulk resource over it: a std::pmr::monotonic_buffer_resource that threads may share. */
class phase_resource final : public std::pmr::memory_resource {
  public:
    /* Makes the phase like the constructor of domain. */
    explicit phase_resource(SlabAllocator* a, const char* label = nullptr) : phase_(a, label) {}
    explicit phase_resource(const allocator& a, const char* label = nullptr) : phase_(a, label) {}
    /* Releases all that was allocated, by domain::reset; the resource can be used on. */
    void release() { phase_.reset(); }
    const tslab::domain& domain() const noexcept { return phase_; }
    tslab::domain& domain() noexcept { return phase_; }

  private:
    void* do_allocate(std::size_t size, std::size_t aligned) override {
        return detail::need(phase(phase_).take(size, aligned));
    }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    tslab::domain phase_;
};

/* ---- containers with a type of their own ------------------------------------------------ */

/* An allocator for containers of std::. Copies, moves and swaps of a container do not take it along, like
 * std::pmr::polymorphic_allocator: a container stays in the phase that it was made in. Throws tslab::bad_alloc, and
 * std::bad_array_new_length for more elements than there can be. */
template <class T, class Source> class basic_allocator {
  public:
    using value_type = T;
    using is_always_equal = std::false_type;

    template <class From, class = std::enable_if_t<std::is_constructible_v<Source, const From&>>>
    basic_allocator(const From& from) noexcept : source_(from) {}
    template <class U> basic_allocator(const basic_allocator<U, Source>& other) noexcept : source_(other.source()) {}
    const Source& source() const noexcept { return source_; }

    [[nodiscard]] T* allocate(std::size_t n) {
        if (n > detail::most_of<T>) too_many();
        return static_cast<T*>(detail::need(source_.take(n * sizeof(T), alignof(T))));
    }
    void deallocate(T* p, std::size_t n) noexcept { source_.give(p, n * sizeof(T)); }
    template <class U> friend bool operator==(const basic_allocator& x, const basic_allocator<U, Source>& y) noexcept {
        return x.source() == y.source();
    }
    template <class U> friend bool operator!=(const basic_allocator& x, const basic_allocator<U, Source>& y) noexcept {
        return !(x.source() == y.source());
    }

  private:
    [[noreturn]] static void too_many() {
#if defined(__cpp_exceptions)
        throw std::bad_array_new_length();
#else
        std::abort();
#endif
    }
    Source source_;
};

template <class T> using ambient_allocator = basic_allocator<T, ambient>;
template <class T> using outside_allocator = basic_allocator<T, outside>;
template <class T> using domain_allocator = basic_allocator<T, phase>;
template <class T> using bulk_allocator = basic_allocator<T, bulk>;

} // namespace tslab
#endif
