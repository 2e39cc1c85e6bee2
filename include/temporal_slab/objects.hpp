/*
 * objects.hpp - sources of memory, and typed objects: make, unique, handle. See tslab.hpp.
 *
 * A source decides where an object is allocated. Functions that create objects take a source, or an object from which a
 * source is made. The sources are:
 *
 *   ambient   the innermost scope of this thread, or the ring if the thread is in no scope, as for slab_malloc. Made
 *             from an allocator
 *   outside   the current epoch of the ring, regardless of the thread's scopes
 *   phase     one given domain, regardless of the thread's scopes. Made from a domain, a scope or an epoch_domain_t*
 *   bulk      like phase, but frees nothing before the phase ends
 *   lane      a phase in which one thread allocates; the fast path is inlined in the caller (see slab_lane.h)
 *   owner_run a phase that belongs to one thread (SLAB_DOMAIN_OWNER_ONLY). The fastest source; it lasts until the
 *             closing brace (see slab_lane.h)
 */
#ifndef TEMPORAL_SLAB_OBJECTS_HPP
#define TEMPORAL_SLAB_OBJECTS_HPP

#include <slab_lane.h>
#include <temporal_slab/phases.hpp>

#include <cstddef>
#include <functional>
#include <type_traits>

namespace tslab {

/* Minimum alignment of objects. A type with a larger alignment gets that alignment. */
inline constexpr std::size_t alignment = 16;

namespace detail {

/* Calls `make` with the id of the ring's current epoch, and repeats the call if the ring advances during it. Returns
 * the result of the last call. */
template <class Make> void* in_the_ring(SlabAllocator* a, Make make) noexcept {
    for (;;) {
        const EpochId epoch = epoch_current(a);
        void* const p = make(epoch);
        if (p != nullptr || errno != ESTALE || epoch == epoch_current(a)) return p;
    }
}

} // namespace detail

/* ---- sources ---------------------------------------------------------------------------- */

/* Every source has two main members. The member take(size, aligned) allocates memory, or returns NULL and sets errno
 * like the C functions; a size of 0 is treated as 1. The member give(p, size) frees memory that take returned for the
 * same size. Objects from one source can be freed with any equal source. Equal sources have the same lifetime. */
class ambient {
  public:
    ambient(SlabAllocator* a) noexcept : a_(a) {}
    ambient(const allocator& a) noexcept : a_(a.get()) {}
    SlabAllocator* home() const noexcept { return a_; }
    void* take(std::size_t size, std::size_t aligned) const noexcept {
        size += size == 0;
        return aligned <= alignment ? slab_malloc(a_, size) : slab_aligned_alloc(a_, aligned, size);
    }
    void give(void* p, std::size_t size) const noexcept { slab_free_sized(a_, p, size + (size == 0)); }
    static constexpr std::size_t named_alignment = alignment;
    void* take_named(std::size_t size, std::size_t, SlabHandle* h) const noexcept {
        return alloc_obj(a_, static_cast<std::uint32_t>(size), h);
    }
    void* move_here(void* p) const noexcept = delete; /* a move needs a named target */
    friend bool operator==(const ambient& x, const ambient& y) noexcept { return x.a_ == y.a_; }
    friend bool operator!=(const ambient& x, const ambient& y) noexcept { return x.a_ != y.a_; }

  private:
    SlabAllocator* a_;
};

class outside {
  public:
    explicit outside(SlabAllocator* a) noexcept : a_(a) {}
    explicit outside(const allocator& a) noexcept : a_(a.get()) {}
    SlabAllocator* home() const noexcept { return a_; }
    void* take(std::size_t size, std::size_t aligned) const noexcept {
        size += size == 0;
        if (aligned <= alignment) return slab_malloc_outside(a_, size);
        return detail::in_the_ring(a_, [&](EpochId to) { return slab_aligned_alloc_epoch(a_, aligned, size, to); });
    }
    void give(void* p, std::size_t size) const noexcept { slab_free_sized(a_, p, size + (size == 0)); }
    static constexpr std::size_t named_alignment = alignment;
    void* take_named(std::size_t size, std::size_t, SlabHandle* h) const noexcept {
        const auto bytes = static_cast<std::uint32_t>(size);
        return detail::in_the_ring(a_, [&](EpochId to) { return alloc_obj_epoch(a_, bytes, to, h); });
    }
    void* move_here(void* p) const noexcept { return slab_move_outside(a_, p); }
    friend bool operator==(const outside& x, const outside& y) noexcept { return x.a_ == y.a_; }
    friend bool operator!=(const outside& x, const outside& y) noexcept { return x.a_ != y.a_; }

  private:
    SlabAllocator* a_;
};

class phase {
  public:
    phase(epoch_domain_t* d) noexcept : d_(d) {}
    phase(const domain& d) noexcept : d_(d.get()) {}
    phase(const scope& s) noexcept : d_(s.get()) {}
    SlabAllocator* home() const noexcept { return d_->alloc; }
    epoch_domain_t* get() const noexcept { return d_; }
    void* take(std::size_t size, std::size_t aligned) const noexcept {
        size += size == 0;
        return aligned <= alignment ? epoch_domain_malloc(d_, size) : epoch_domain_aligned_alloc(d_, aligned, size);
    }
    void give(void* p, std::size_t size) const noexcept { slab_free_sized(d_->alloc, p, size + (size == 0)); }
    static constexpr std::size_t named_alignment = std::size_t{1} << 30;
    void* take_named(std::size_t size, std::size_t aligned, SlabHandle* h) const noexcept {
        return epoch_domain_alloc_obj(d_, size, aligned, h);
    }
    void* move_here(void* p) const noexcept { return epoch_domain_move(d_, p); }
    friend bool operator==(const phase& x, const phase& y) noexcept { return x.d_ == y.d_; }
    friend bool operator!=(const phase& x, const phase& y) noexcept { return x.d_ != y.d_; }

  private:
    epoch_domain_t* d_;
};

class bulk : public phase {
  public:
    using phase::phase;
    explicit bulk(const phase& p) noexcept : phase(p) {}
    void give(void*, std::size_t) const noexcept {}
};

/* A source for a loop on one thread; slab_lane.h describes when a lane is faster. Allocations are inlined on the thread
 * that created the lane. Other threads can use the lane too, one at a time, but without inlining. After the domain has
 * opened another incarnation (see epoch_domain.h), allocations fail with ESTALE; create a new lane. Allocations with a
 * handle, or with an alignment above 16 bytes, call the library instead of the inlined code. */
class lane {
  public:
    /* Opens a lane in the phase p. Throws std::system_error (ESTALE, EINVAL). O(1). */
    explicit lane(const phase& p) { detail::need(slab_lane_open(&lane_, p.get())); }
    SlabAllocator* home() const noexcept { return lane_.domain->alloc; }
    epoch_domain_t* get() const noexcept { return lane_.domain; }
    void* take(std::size_t size, std::size_t aligned) const noexcept {
        size += size == 0;
        return aligned <= alignment ? slab_lane_malloc(&lane_, size) : phase(lane_.domain).take(size, aligned);
    }
    void give(void* p, std::size_t size) const noexcept { phase(lane_.domain).give(p, size); }
    static constexpr std::size_t named_alignment = phase::named_alignment;
    void* take_named(std::size_t size, std::size_t aligned, SlabHandle* h) const noexcept {
        return phase(lane_.domain).take_named(size, aligned, h);
    }
    void* move_here(void* p) const noexcept { return phase(lane_.domain).move_here(p); }
    friend bool operator==(const lane& x, const lane& y) noexcept { return x.get() == y.get(); }
    friend bool operator!=(const lane& x, const lane& y) noexcept { return x.get() != y.get(); }

  private:
    mutable SlabLane lane_; /* mutable: allocation updates the lane's cached state, which is not part of its value */
};

/* A source that lasts until the closing brace: a run (see slab_lane.h) in a domain with SLAB_DOMAIN_OWNER_ONLY. Only
 * the thread that created the run may use it. If NDEBUG is defined, this rule is not checked, and an allocation on
 * another thread can return memory that is already in use. While the run is open, the domain cannot be ended, reset or
 * entered (EBUSY), so declare the run after the domain. Allocations with a handle, or with an alignment above 16 bytes,
 * call the library instead of the inlined code. */
class [[nodiscard]] owner_run {
  public:
    /* Begins a run in the phase p. Throws std::system_error on failure. Fails with EINVAL if the domain lacks
     * SLAB_DOMAIN_OWNER_ONLY, and with ESTALE if the domain has ended. Fails with EBUSY if the domain belongs to
     * another thread or already has a run. O(1). */
    explicit owner_run(const phase& p) { detail::need(slab_run_begin(&run_, p.get())); }
    ~owner_run() { static_cast<void>(slab_run_end(&run_)); }
    owner_run(const owner_run&) = delete;
    owner_run& operator=(const owner_run&) = delete;

    SlabAllocator* home() const noexcept { return run_.domain->alloc; }
    epoch_domain_t* get() const noexcept { return run_.domain; }
    void* take(std::size_t size, std::size_t aligned) const noexcept {
        size += size == 0;
        return aligned <= alignment ? slab_run_malloc(&run_, size) : phase(run_.domain).take(size, aligned);
    }
    void give(void* p, std::size_t size) const noexcept { phase(run_.domain).give(p, size); }
    static constexpr std::size_t named_alignment = phase::named_alignment;
    void* take_named(std::size_t size, std::size_t aligned, SlabHandle* h) const noexcept {
        return phase(run_.domain).take_named(size, aligned, h);
    }
    void* move_here(void* p) const noexcept { return phase(run_.domain).move_here(p); }

  private:
    mutable SlabRun run_; /* mutable: allocation advances the run's position, which is not part of its value */
};

namespace detail {

inline ambient source_of(SlabAllocator* a) noexcept { return a; }
inline ambient source_of(const allocator& a) noexcept { return a; }
inline phase source_of(epoch_domain_t* d) noexcept { return d; }
inline phase source_of(const domain& d) noexcept { return d; }
inline phase source_of(const scope& s) noexcept { return s; }
inline const ambient& source_of(const ambient& s) noexcept { return s; }
inline const outside& source_of(const outside& s) noexcept { return s; }
inline const phase& source_of(const phase& s) noexcept { return s; }
inline const bulk& source_of(const bulk& s) noexcept { return s; }
inline const lane& source_of(const lane& s) noexcept { return s; }
inline const owner_run& source_of(const owner_run& s) noexcept { return s; }

template <class T> constexpr std::size_t most_of = static_cast<std::size_t>(PTRDIFF_MAX) / sizeof(T);

/* Returns the number of bytes in n objects of type T. Throws tslab::bad_alloc (ENOMEM) if the number is too large. */
template <class T> std::size_t bytes_of(std::size_t n) {
    if (n > most_of<T>) no_memory(ENOMEM);
    return n * sizeof(T);
}

/* Memory for an object that is being constructed. The destructor frees the memory unless keep() was called. The memory
 * is therefore freed if the constructor of the object throws. */
template <class Source> struct taken {
    const Source& source;
    void* p;
    std::size_t size;
    taken(const Source& from, std::size_t bytes, std::size_t aligned)
        : source(from), p(need(from.take(bytes, aligned))), size(bytes) {}
    taken(const taken&) = delete;
    taken& operator=(const taken&) = delete;
    ~taken() {
        if (p != nullptr) source.give(p, size);
    }
    void keep() noexcept { p = nullptr; }
};

template <class T, class Source, class... Args> T* construct(const Source& source, Args&&... args) {
    taken<Source> room(source, sizeof(T), alignof(T));
    T* const made_there = ::new (room.p) T(std::forward<Args>(args)...);
    room.keep();
    return made_there;
}

} // namespace detail

/* ---- objects that end with their phase -------------------------------------------------- */

/* Creates a T in `from`. The T ends with its phase, and its destructor never runs, so T must be trivially destructible.
 * Returns a pointer to the T. Throws tslab::bad_alloc, and any exception that the constructor throws. */
template <class T, class From, class... Args> T* make(const From& from, Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>,
                  "the end of a phase runs no destructor: use make_unique, or make_undestroyed to skip the destructor");
    return detail::construct<T>(detail::source_of(from), std::forward<Args>(args)...);
}
/* Creates a T whose destructor is never run. Use make_undestroyed for types whose destructor would only free memory of
 * the same phase, such as a struct with std::pmr containers. */
template <class T, class From, class... Args> T* make_undestroyed(const From& from, Args&&... args) {
    return detail::construct<T>(detail::source_of(from), std::forward<Args>(args)...);
}
/* Creates an array of n value-initialized objects of type T. For n = 0, returns a unique address. */
template <class T, class From> T* make_array(const From& from, std::size_t n) {
    static_assert(std::is_trivially_destructible_v<T> && std::is_nothrow_default_constructible_v<T>,
                  "an array in a phase: the end runs no destructor, and constructors must not throw");
    T* const first = static_cast<T*>(detail::need(detail::source_of(from).take(detail::bytes_of<T>(n), alignof(T))));
    std::uninitialized_value_construct_n(first, n);
    return first;
}

/* Moves a T to another phase, or to the ring if `to` is an `outside` source, so that the T survives its phase. T must
 * be trivially copyable. Copies the bytes, frees the old object, and returns the new one; p is then invalid. On
 * failure, throws tslab::bad_alloc and leaves the old object unchanged. O(size). */
template <class T, class To> T* move_to(const To& to, T* p) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= alignment, "bytes are copied, to 16-byte alignment");
    return static_cast<T*>(detail::need(detail::source_of(to).move_here(p)));
}

/* ---- objects with one owner ------------------------------------------------------------- */

/* Destroys and frees an object. A deleter for a derived class converts to a deleter for its base class if the base
 * class has a virtual destructor. A `unique` must not outlive the phase of its object, because the end of the phase
 * frees the object. */
template <class T> class deleter {
  public:
    deleter() noexcept : a_(nullptr) {}
    explicit deleter(SlabAllocator* a) noexcept : a_(a) {}
    template <class U, class = std::enable_if_t<std::is_convertible_v<U*, T*> && std::has_virtual_destructor_v<T>>>
    deleter(const deleter<U>& other) noexcept : a_(other.home()) {}
    SlabAllocator* home() const noexcept { return a_; }
    void operator()(T* p) const noexcept {
        static_assert(!std::is_polymorphic_v<T> || std::has_virtual_destructor_v<T> || std::is_final_v<T>,
                      "a base class needs a virtual destructor");
        void* start = nullptr;
        if constexpr (std::is_polymorphic_v<T>) start = dynamic_cast<void*>(p);
        else start = p;
        p->~T();
        slab_free(a_, start);
    }

  private:
    SlabAllocator* a_;
};
template <class T> class deleter<T[]> {
  public:
    deleter() noexcept : a_(nullptr), n_(0) {}
    deleter(SlabAllocator* a, std::size_t n) noexcept : a_(a), n_(n) {}
    std::size_t size() const noexcept { return n_; }
    void operator()(T* p) const noexcept {
        std::destroy_n(p, n_);
        slab_free(a_, p);
    }

  private:
    SlabAllocator* a_;
    std::size_t n_;
};

template <class T> using unique = std::unique_ptr<T, deleter<T>>;

/* Creates an object with one owner, like std::make_unique. The form make_unique<T> creates a single object, and the
 * form make_unique<T[]> creates an array of n value-initialized objects. If a constructor throws, frees the memory and
 * rethrows the exception. Throws tslab::bad_alloc if memory runs out. Does not compile for the source bulk, which frees
 * no objects. */
template <class T, class From, class... Args>
std::enable_if_t<!std::is_array_v<T>, unique<T>> make_unique(const From& from, Args&&... args) {
    const auto& source = detail::source_of(from);
    static_assert(!std::is_base_of_v<bulk, std::decay_t<decltype(source)>>, "of bulk nothing is freed singly");
    return unique<T>(detail::construct<T>(source, std::forward<Args>(args)...), deleter<T>(source.home()));
}
template <class T, class From>
std::enable_if_t<std::is_array_v<T>, unique<T>> make_unique(const From& from, std::size_t n) {
    using Element = std::remove_extent_t<T>;
    const auto& source = detail::source_of(from);
    static_assert(!std::is_base_of_v<bulk, std::decay_t<decltype(source)>>, "of bulk nothing is freed singly");
    detail::taken<std::decay_t<decltype(source)>> room(source, detail::bytes_of<Element>(n), alignof(Element));
    Element* const first = static_cast<Element*>(room.p);
    std::uninitialized_value_construct_n(first, n);
    room.keep();
    return unique<T>(first, deleter<T>(source.home(), n));
}

/* ---- handles ---------------------------------------------------------------------------- */

/* A checked reference to a T. After the T has ended, its handle never refers to another object. A handle is a plain
 * number, and is valid as long as its allocator exists. */
template <class T> class handle {
  public:
    static_assert(std::is_trivially_destructible_v<T>,
                  "two threads may free by handle at once, and a destructor runs once");
    constexpr handle() noexcept : h_(0) {}
    constexpr explicit handle(SlabHandle h) noexcept : h_(h) {}
    constexpr SlabHandle value() const noexcept { return h_; }
    constexpr explicit operator bool() const noexcept { return h_ != 0; }
    /* Returns the object, or NULL if it has ended. Another thread may free the object before the caller uses the
     * result. */
    T* get(SlabAllocator* a) const noexcept { return static_cast<T*>(slab_handle_ptr(a, h_)); }
    T* get(const allocator& a) const noexcept { return get(a.get()); }
    /* Frees the object. Returns true for exactly one call, even if several threads try to free the object. */
    bool free(SlabAllocator* a) const noexcept { return free_obj(a, h_); }
    bool free(const allocator& a) const noexcept { return free(a.get()); }
    friend constexpr bool operator==(handle x, handle y) noexcept { return x.h_ == y.h_; }
    friend constexpr bool operator!=(handle x, handle y) noexcept { return x.h_ != y.h_; }
    friend constexpr bool operator<(handle x, handle y) noexcept { return x.h_ < y.h_; }

  private:
    SlabHandle h_;
};

/* Creates a T in `from` and returns its handle. Throws tslab::bad_alloc if memory runs out. If the constructor throws,
 * frees the memory and rethrows the exception. */
template <class T, class From, class... Args> handle<T> make_handle(const From& from, Args&&... args) {
    const auto& source = detail::source_of(from);
    static_assert(sizeof(T) <= UINT32_MAX && alignof(T) <= std::decay_t<decltype(source)>::named_alignment,
                  "of this size there are no handles, of this alignment only in a domain");
    struct named {
        SlabAllocator* a;
        SlabHandle h;
        ~named() { static_cast<void>(h != 0 && free_obj(a, h)); }
    } room{source.home(), 0};
    void* const p = detail::need(source.take_named(sizeof(T), alignof(T), &room.h));
    ::new (p) T(std::forward<Args>(args)...);
    return handle<T>(std::exchange(room.h, SlabHandle{0}));
}

} // namespace tslab

template <class T> struct std::hash<tslab::handle<T>> {
    std::size_t operator()(tslab::handle<T> h) const noexcept { return std::hash<SlabHandle>()(h.value()); }
};
#endif
