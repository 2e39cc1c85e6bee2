/*
 * memory.hpp - memory for containers: resources for std::pmr, and allocators for other containers. See tslab.hpp.
 *
 * Each source of memory (see objects.hpp) has a std::pmr resource and an allocator. The last column describes what
 * deallocate does:
 *
 *   source    std::pmr::memory_resource    allocator of T            deallocate
 *   ambient   allocator_resource           ambient_allocator<T>      frees
 *   outside   outside_resource             outside_allocator<T>      frees
 *   phase     domain_resource              domain_allocator<T>       frees, so the phase can reuse the memory
 *   bulk      bulk_resource                bulk_allocator<T>         does nothing; for containers that are filled once
 *
 * Several threads may use a resource or an allocator at the same time. A container that several threads use still needs
 * its own lock. Objects in a phase need not be destroyed if their destructors would only free memory of the same phase
 * (see make_undestroyed).
 */
#ifndef TEMPORAL_SLAB_MEMORY_HPP
#define TEMPORAL_SLAB_MEMORY_HPP

#include <temporal_slab/objects.hpp>

#include <limits>
#include <memory_resource>

namespace tslab {

/* ---- std::pmr --------------------------------------------------------------------------- */

/* A memory resource that allocates from a source. The source must outlive the resource and the containers that use it.
 * Supports alignments up to 1 GiB. Throws tslab::bad_alloc if an allocation fails. Two resources are equal if they have
 * the same class and equal sources. Resources of different phases are unequal, because one phase can end before the
 * other. Moving a container from one phase to another therefore moves each element. Without RTTI, a resource is equal
 * only to itself. */
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

/* A memory resource that owns a phase and frees nothing before the phase ends. Works like a
 * std::pmr::monotonic_buffer_resource, but several threads can share it. */
class phase_resource final : public std::pmr::memory_resource {
  public:
    /* Begins the phase. The constructor of domain describes the parameters and exceptions. */
    explicit phase_resource(SlabAllocator* a, const char* label = nullptr) : phase_(a, label) {}
    explicit phase_resource(const allocator& a, const char* label = nullptr) : phase_(a, label) {}
    /* Releases all memory allocated from the resource, like domain::reset. The resource remains usable. */
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

/* ---- allocators for other containers ---------------------------------------------------- */

/* An allocator for standard containers. Assignments and swaps do not change a container's allocator, as with
 * std::pmr::polymorphic_allocator, so a container stays in the phase in which it was created. Throws tslab::bad_alloc
 * if an allocation fails, or std::bad_array_new_length if the number of elements is too large. */
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
