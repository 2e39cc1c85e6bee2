/*
 * phases.hpp - owners and guards: allocator, domain, scope, entered, carrier; and lambdas as cleanups. See tslab.hpp.
 *
 *   allocator   owns a SlabAllocator
 *   domain      owns a phase, which lasts as long as the C++ object. Leaving the domain does not end the phase
 *   entered     keeps this thread inside a domain until the closing brace
 *   scope       owns a phase and keeps this thread inside it until the closing brace; combines domain and entered
 *   carrier     moves a phase, and the scopes inside it, from thread to thread
 */
#ifndef TEMPORAL_SLAB_PHASES_HPP
#define TEMPORAL_SLAB_PHASES_HPP

#if defined(__cplusplus) && __cplusplus < 201703L
#error "tslab.hpp needs C++17"
#endif

#include <epoch_domain.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace tslab {

/* Exception that a failed allocation throws. The member error() returns ENOMEM, EINVAL, ESTALE (the phase no longer
 * accepts allocations), EBUSY (the phase belongs to another thread) or EDQUOT (a budget would be exceeded). */
class bad_alloc : public std::bad_alloc {
  public:
    explicit bad_alloc(int error) noexcept : error_(error) {}
    int error() const noexcept { return error_; }
    const char* what() const noexcept override {
        switch (error_) {
        case ESTALE:
            return "temporal-slab: the phase accepts no allocations any more";
        case EBUSY:
            return "temporal-slab: the phase belongs to another thread";
        case EDQUOT:
            return "temporal-slab: over a budget";
        case EINVAL:
            return "temporal-slab: bad size, alignment, phase or allocator";
        default:
            return "temporal-slab: out of memory";
        }
    }

  private:
    int error_;
};

namespace detail {

#if defined(__cpp_exceptions)
[[noreturn]] inline void no_memory(int error) { throw bad_alloc(error); }
[[noreturn]] inline void refused(int error, const char* why) {
    throw std::system_error(error, std::generic_category(), why);
}
#else
[[noreturn]] inline void no_memory(int) { std::abort(); }
[[noreturn]] inline void refused(int, const char*) { std::abort(); }
#endif

template <class T> T* need(T* p) {
    if (p == nullptr) no_memory(errno);
    return p;
}
inline void need(bool done) {
    if (!done) refused(errno, slab_last_error());
}
/* Returns p, the result of a C function that creates something. If p is NULL, throws std::system_error with errno and
 * the text of slab_last_error(). */
template <class T> T* made(T* p) {
    need(p != nullptr);
    return p;
}
/* Drains the phase of d, sets d to NULL, and returns the receipt. Throws std::system_error on failure. */
inline EpochReceipt drained(epoch_domain_t*& d) {
    EpochReceipt receipt{};
    need(epoch_domain_drain(d, &receipt));
    d = nullptr;
    return receipt;
}

/* The C function that runs a cleanup, and the argument for it. A trivially copyable lambda that is no larger than a
 * pointer is stored in the argument itself. Any other lambda is stored in an object that operator new allocates. The
 * phase cannot contain this object, because the phase has ended when the cleanup runs, and because the object would
 * delay a drain. */
template <class F> struct closure {
    static_assert(std::is_nothrow_invocable_v<F&>, "a cleanup is noexcept: it runs inside of a C function");
    static constexpr bool in_pointer =
        sizeof(F) <= sizeof(void*) && alignof(F) <= alignof(void*) && std::is_trivially_copyable_v<F>;

    static void call(void* arg) noexcept {
        if constexpr (in_pointer) {
            alignas(F) unsigned char room[sizeof(void*)];
            std::memcpy(room, &arg, sizeof room);
            (*std::launder(reinterpret_cast<F*>(room)))();
        } else {
            const std::unique_ptr<F> f(static_cast<F*>(arg));
            (*f)();
        }
    }
};

/* Registers f with add(function, argument). Propagates the exception that `add` throws if the registration fails. */
template <class Add, class F> void add_cleanup(Add add, F&& f) {
    using Kept = std::decay_t<F>;
    if constexpr (closure<Kept>::in_pointer) {
        void* arg = nullptr;
        const Kept kept(std::forward<F>(f));
        std::memcpy(&arg, &kept, sizeof kept);
        add(&closure<Kept>::call, arg);
    } else {
        auto kept = std::make_unique<Kept>(std::forward<F>(f));
        add(&closure<Kept>::call, kept.get());
        static_cast<void>(kept.release());
    }
}

} // namespace detail

/* ---- allocators ------------------------------------------------------------------------- */

/* Returns default options. Change them as needed, and pass them to the constructor of allocator. */
inline SlabOptions default_options() noexcept {
    SlabOptions options{};
    options.struct_size = sizeof options;
    return options;
}

/* Owns an allocator, possibly together with other owners (see share). The last owner destroys the allocator and frees
 * all its objects. No thread may be inside a call on the allocator when it is destroyed. */
class allocator {
  public:
    /* Creates an allocator like slab_allocator_create_with. Throws std::system_error (EINVAL for a bad option, ENOMEM
     * if memory runs out). */
    allocator() : a_(detail::made(slab_allocator_create())) {}
    explicit allocator(const SlabOptions& options) : a_(detail::made(slab_allocator_create_with(&options))) {}
    /* Returns an owner for an allocator that slab_allocator_create* returned. For NULL, returns an empty owner. */
    static allocator adopt(SlabAllocator* a) noexcept { return allocator(a); }
    allocator(allocator&& other) noexcept : a_(other.release()) {}
    allocator& operator=(allocator&& other) noexcept {
        allocator(std::move(other)).swap(*this);
        return *this;
    }
    ~allocator() { slab_allocator_free(a_); }

    /* Returns the allocator for use with the C functions, or NULL after a move. */
    SlabAllocator* get() const noexcept { return a_; }
    explicit operator bool() const noexcept { return a_ != nullptr; }
    /* Returns another owner of this allocator. The last owner destroys the allocator. Throws std::system_error (EINVAL)
     * after a move. */
    allocator share() const { return allocator(detail::made(slab_allocator_retain(a_))); }
    /* Releases ownership of the allocator and returns it; the caller must free it. */
    [[nodiscard]] SlabAllocator* release() noexcept { return std::exchange(a_, nullptr); }
    void swap(allocator& other) noexcept { std::swap(a_, other.a_); }

  private:
    explicit allocator(SlabAllocator* a) noexcept : a_(a) {}
    SlabAllocator* a_;
};

/* ---- cleanups --------------------------------------------------------------------------- */

/* Registers the cleanup f(), which runs once, when the phase has been released or has drained. Cleanups run in reverse
 * order of registration, on the thread that releases the phase, frees its last slab or destroys the allocator. The
 * function must be noexcept, which is checked at compile time. The objects of the phase no longer exist when the
 * cleanup runs, so the cleanup must own its data, such as a file descriptor or a count. The cleanup may free objects,
 * but must not allocate in the phase that is ending. If the registration fails, throws std::system_error (ESTALE,
 * ENOMEM) or the exception from copying f, and never calls f. Allocates with operator new if f is larger than a pointer
 * or is not trivially copyable. */
template <class F> void on_end(epoch_domain_t* d, F&& f) {
    detail::add_cleanup([d](void (*fn)(void*), void* arg) { detail::need(epoch_domain_on_end(d, fn, arg)); },
                        std::forward<F>(f));
}
/* Registers the cleanup f() like the function above, but for an epoch of the ring. */
template <class F> void on_end(SlabAllocator* a, EpochId epoch, F&& f) {
    detail::add_cleanup(
        [a, epoch](void (*fn)(void*), void* arg) {
            if (slab_epoch_on_end(a, epoch, fn, arg)) return;
            if (epoch_state(a, epoch) == EPOCH_ACTIVE) detail::refused(ENOMEM, "no memory for a cleanup");
            detail::refused(ESTALE, "the epoch has ended");
        },
        std::forward<F>(f));
}

/* ---- phases ----------------------------------------------------------------------------- */

/* Returns default options for a domain. Change them as needed, and pass them to the constructor of domain. The
 * parameter `flags` contains SLAB_DOMAIN_ flags; for example, tslab::owner_run needs SLAB_DOMAIN_OWNER_ONLY. The string
 * `label` is copied when the domain is created, and must exist until then. */
inline SlabDomainOptions domain_options(const char* label = nullptr, std::uint32_t flags = 0) noexcept {
    SlabDomainOptions options{};
    options.struct_size = sizeof options;
    options.label = label;
    options.flags = flags;
    return options;
}

/* Owns a phase. The objects of the phase end when the owner is destroyed. Entering and leaving the domain does not end
 * the phase, because auto_close is false. A domain can thus be passed from thread to thread, and several threads can be
 * inside it at the same time. */
class domain {
  public:
    /* Creates a domain like epoch_domain_create_labeled, which copies the label. Throws std::system_error (ENOMEM,
     * EINVAL). O(1). */
    explicit domain(SlabAllocator* a, const char* label = nullptr)
        : d_(detail::made(epoch_domain_create_labeled(a, label))) {
        d_->auto_close = false;
    }
    explicit domain(const allocator& a, const char* label = nullptr) : domain(a.get(), label) {}
    /* Creates a domain like epoch_domain_create_ex. With SLAB_DOMAIN_OWNER_ONLY, the domain belongs to the calling
     * thread. Calls on other threads, including calls to the destructor, are refused. When the calling thread exits,
     * the phase is released. Throws std::system_error (ENOMEM, EINVAL). O(1). */
    domain(SlabAllocator* a, const SlabDomainOptions& options) : d_(detail::made(epoch_domain_create_ex(a, &options))) {
        d_->auto_close = false;
    }
    domain(const allocator& a, const SlabDomainOptions& options) : domain(a.get(), options) {}
    /* Returns an owner for a domain that epoch_domain_create* or epoch_domain_wrap returned. For NULL, returns an empty
     * owner. */
    static domain adopt(epoch_domain_t* d) noexcept { return domain(d); }
    domain(domain&& other) noexcept : d_(other.release()) {}
    domain& operator=(domain&& other) noexcept {
        domain(std::move(other)).swap(*this);
        return *this;
    }
    /* Destroys the domain like epoch_domain_destroy. If a thread is still inside, the call is refused and counted as
     * misuse, and the domain stays open. */
    ~domain() {
        if (d_ != nullptr) static_cast<void>(epoch_domain_destroy(d_));
    }

    /* Returns the domain for use with the C functions, or NULL after a move, end or drain. */
    epoch_domain_t* get() const noexcept { return d_; }
    explicit operator bool() const noexcept { return d_ != nullptr; }
    /* Releases ownership of the domain and returns it; the caller must destroy it. */
    [[nodiscard]] epoch_domain_t* release() noexcept { return std::exchange(d_, nullptr); }
    void swap(domain& other) noexcept { std::swap(d_, other.d_); }
    SlabAllocator* home() const noexcept { return d_->alloc; }
    EpochId id() const noexcept { return d_->epoch_id; }
    std::uint64_t era() const noexcept { return epoch_domain_era(d_); }
    /* Returns the amounts of memory that the domain holds, like epoch_domain_stats. Throws std::system_error (ESTALE)
     * if the domain's phase has ended. */
    SlabDomainStats held() const {
        SlabDomainStats stats{};
        stats.struct_size = sizeof stats;
        detail::need(epoch_domain_stats(d_, &stats));
        return stats;
    }

    /* Releases the domain's objects and opens a fresh incarnation with the same label, like epoch_domain_reset. If
     * another thread is inside, throws std::system_error (EBUSY) and changes nothing. */
    void reset() { detail::need(epoch_domain_reset(d_)); }
    /* Destroys the domain and returns the receipt (see EpochReceipt). If a thread is inside, throws std::system_error
     * (EBUSY) and changes nothing. */
    EpochReceipt end() {
        EpochReceipt receipt{};
        detail::need(try_end(receipt));
        return receipt;
    }
    /* Destroys the domain like end(), but writes the receipt to `out` and does not throw. Returns false if the call is
     * refused; errno and slab_last_error() give the reason. */
    bool try_end(EpochReceipt& out) noexcept {
        if (!epoch_domain_destroy_ex(d_, &out)) return false;
        d_ = nullptr;
        return true;
    }
    /* Drains the phase like epoch_domain_drain, so live objects stay valid until they are freed. Returns the receipt.
     * If another thread is inside, throws std::system_error (EBUSY) and changes nothing. */
    EpochReceipt drain() { return detail::drained(d_); }
    template <class F> void on_end(F&& f) { tslab::on_end(d_, std::forward<F>(f)); }

  private:
    explicit domain(epoch_domain_t* d) noexcept : d_(d) {}
    epoch_domain_t* d_;
};

/* A guard that keeps this thread inside a domain until the closing brace. The guard's scope is the thread's innermost
 * scope, so slab_malloc allocates in the domain. The guard belongs to the thread that created it. The guards of a
 * thread must end in reverse order. */
class [[nodiscard]] entered {
  public:
    /* Enters the domain. Throws std::system_error (ESTALE, ENOMEM). */
    explicit entered(epoch_domain_t* d) : d_(d) { detail::need(epoch_domain_enter(d)); }
    explicit entered(const domain& d) : entered(d.get()) {}
    ~entered() { static_cast<void>(epoch_domain_exit(d_)); }
    entered(const entered&) = delete;
    entered& operator=(const entered&) = delete;

  private:
    epoch_domain_t* d_;
};

/* A guard that owns a phase and keeps this thread inside it until the closing brace, however control leaves the block.
 * In C, SLAB_SCOPE has the same effect. The guard belongs to the thread that created it. The guards of a thread must
 * end in reverse order. */
class [[nodiscard]] scope {
  public:
    /* Begins the phase like epoch_domain_begin. Throws std::system_error (ENOMEM, EINVAL). O(1). */
    explicit scope(SlabAllocator* a, const char* label = nullptr) : d_(detail::made(epoch_domain_begin(a, label))) {}
    explicit scope(const allocator& a, const char* label = nullptr) : scope(a.get(), label) {}
    ~scope() {
        if (d_ != nullptr) static_cast<void>(epoch_domain_end(d_));
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

    /* Returns the domain for use with the C functions, or NULL after end or drain. */
    epoch_domain_t* get() const noexcept { return d_; }
    SlabAllocator* home() const noexcept { return d_->alloc; }
    std::uint64_t era() const noexcept { return epoch_domain_era(d_); }
    /* Ends the phase like epoch_domain_end_ex and returns the receipt. On failure, throws std::system_error and changes
     * nothing. Fails with EINVAL if the phase is not the thread's innermost scope, and with EBUSY if another scope is
     * inside. */
    EpochReceipt end() {
        EpochReceipt receipt{};
        detail::need(epoch_domain_end_ex(d_, &receipt));
        d_ = nullptr;
        return receipt;
    }
    /* Drains the phase like domain::drain. Returns the receipt. */
    EpochReceipt drain() { return detail::drained(d_); }
    template <class F> void on_end(F&& f) { tslab::on_end(d_, std::forward<F>(f)); }

  private:
    epoch_domain_t* d_;
};

/* Moves a phase from thread to thread, for work that runs in pieces, such as tasks or the callbacks of an event loop.
 * The function resume() puts the thread inside the phase, and suspend() takes the thread out without ending anything.
 * Guards that were created on the thread between resume and suspend, and are still open, move with the phase in the
 * same order. Only one thread at a time may use a carrier; the executor must synchronize the threads. The phase must
 * outlive the carrier. Between resume and suspend, the thread must not enter the phase by other means. O(scopes inside
 * the phase). */
class carrier {
  public:
    /* Creates a carrier. The thread enters the phase only when it calls resume. If `phase` is NULL, the carrier does
     * nothing. */
    explicit carrier(epoch_domain_t* phase) noexcept : phase_(phase) {}
    explicit carrier(const domain& phase) noexcept : carrier(phase.get()) {}
    carrier(const carrier&) = delete;
    carrier& operator=(const carrier&) = delete;
    /* Leaves the phase, even if the carrier is suspended. All guards inside the phase must have ended. */
    ~carrier() { finish(); }

    epoch_domain_t* phase() const noexcept { return phase_; }
    /* Puts this thread inside the phase, and restores the guards that suspend took out. On failure, throws
     * std::system_error (ENOMEM, ESTALE) and leaves the thread outside the phase and the guards. */
    void resume() {
        if (phase_ == nullptr || inside_) return;
        detail::need(known_ ? epoch_domain_attach(phase_) : epoch_domain_enter(phase_));
        known_ = inside_ = true;
        if (put_back()) return;
        const int error = errno;
        take_out();
        detail::refused(error, slab_last_error());
    }
    /* Takes this thread out of the phase and out of the guards inside the phase. Throws std::system_error (EINVAL) if
     * the phase is not among the thread's scopes, or std::bad_alloc if there is no memory for the list of guards. In
     * both cases, changes nothing. */
    void suspend() {
        if (!inside_) return;
        struct undo {
            carrier* of;
            ~undo() {
                if (of != nullptr) static_cast<void>(of->put_back());
            }
        } failed{this};
        take_out();
        failed.of = nullptr;
    }
    /* Leaves the phase on this thread, and ends the carrier's scope. */
    void finish() noexcept {
        if (!known_) return;
        if (!inside_) static_cast<void>(epoch_domain_attach(phase_));
        static_cast<void>(epoch_domain_exit(phase_));
        inside_ = known_ = false;
    }

  private:
    /* Restores the guards that take_out removed from this thread. If there is no memory for a guard, stops, returns
     * false, and sets errno. */
    bool put_back() noexcept {
        for (; !scopes_.empty(); scopes_.pop_back())
            if (!epoch_domain_attach(scopes_.back())) return false;
        return true;
    }
    /* Takes this thread out of the guards inside the phase, and then out of the phase. */
    void take_out() {
        struct lost {
            epoch_domain_t* scope = nullptr;
            ~lost() {
                if (scope != nullptr) static_cast<void>(epoch_domain_attach(scope));
            }
        } top;
        while (epoch_domain_switch(nullptr, &top.scope) && top.scope != phase_) {
            if (top.scope == nullptr)
                detail::refused(EINVAL, "the carried phase is not among the scopes of this thread");
            scopes_.push_back(top.scope);
        }
        top.scope = nullptr;
        inside_ = false;
    }

    epoch_domain_t* phase_;
    std::vector<epoch_domain_t*> scopes_; /* guards that were taken out, innermost first */
    bool known_ = false;                  /* true from the first call to resume until finish */
    bool inside_ = false;                 /* true while the thread that uses the carrier is inside the phase */
};

} // namespace tslab
#endif
