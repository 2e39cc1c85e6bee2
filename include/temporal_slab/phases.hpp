/*
 * phases.hpp - owners and guards: allocator, domain, scope, entered, carrier, and cleanups by lambda. See tslab.hpp.
 *
 *   allocator   owns a SlabAllocator
 *   domain      owns a phase that lives as long as the object; leaving it never ends it
 *   entered     is inside of a domain, on this thread, until the closing brace
 *   scope       a phase of its own that this thread is inside of, until the closing brace: domain and entered in one
 *   carrier     takes a phase, and the scopes inside of it, from thread to thread
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

/* Exception of an allocation that failed. error() is ENOMEM, EINVAL, ESTALE (the phase accepts none any more) or EDQUOT
 * (a budget). */
class bad_alloc : public std::bad_alloc {
  public:
    explicit bad_alloc(int error) noexcept : error_(error) {}
    int error() const noexcept { return error_; }
    const char* what() const noexcept override {
        switch (error_) {
        case ESTALE:
            return "temporal-slab: the phase accepts no allocations any more";
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
/* Returns p, a result of create or begin; throws with errno and slab_last_error() if it is NULL. */
template <class T> T* made(T* p) {
    need(p != nullptr);
    return p;
}
/* Drains the phase, sets d to NULL and returns the receipt. */
inline EpochReceipt drained(epoch_domain_t*& d) {
    EpochReceipt receipt{};
    need(epoch_domain_drain(d, &receipt));
    d = nullptr;
    return receipt;
}

/* Function of a cleanup, for the C library to call. A lambda of the size of a pointer travels in the pointer, others in
 * an object of operator new: the phase has ended by then, and a drain would wait for an object in it. */
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

/* Registers f by add(function, argument), which throws if it failed. */
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

/* Returns options with all defaults, to change and pass to allocator. */
inline SlabOptions default_options() noexcept {
    SlabOptions options{};
    options.struct_size = sizeof options;
    return options;
}

/* Owns an allocator, alone or with others (share); the last owner ends it with all its objects. No thread may be inside
 * a call on it then. */
class allocator {
  public:
    /* Creates an allocator by slab_allocator_create_with. Throws std::system_error: EINVAL for a bad option, ENOMEM. */
    allocator() : a_(detail::made(slab_allocator_create())) {}
    explicit allocator(const SlabOptions& options) : a_(detail::made(slab_allocator_create_with(&options))) {}
    /* Takes over an allocator of slab_allocator_create*, or nothing for NULL. */
    static allocator adopt(SlabAllocator* a) noexcept { return allocator(a); }
    allocator(allocator&& other) noexcept : a_(other.release()) {}
    allocator& operator=(allocator&& other) noexcept {
        allocator(std::move(other)).swap(*this);
        return *this;
    }
    ~allocator() { slab_allocator_free(a_); }

    /* For the C functions; NULL after a move. */
    SlabAllocator* get() const noexcept { return a_; }
    explicit operator bool() const noexcept { return a_ != nullptr; }
    /* Returns a second owner of this allocator; the last owner ends it. Throws std::system_error (EINVAL) after a
     * move. */
    allocator share() const { return allocator(detail::made(slab_allocator_retain(a_))); }
    /* Gives the allocator up: the caller frees it. */
    [[nodiscard]] SlabAllocator* release() noexcept { return std::exchange(a_, nullptr); }
    void swap(allocator& other) noexcept { std::swap(a_, other.a_); }

  private:
    explicit allocator(SlabAllocator* a) noexcept : a_(a) {}
    SlabAllocator* a_;
};

/* ---- cleanups --------------------------------------------------------------------------- */

/* Registers f() to run once when the phase has been released or has drained, last registered first, on the thread that
 * ends it. f is noexcept, which is checked when it is compiled, and owns its captures. The objects of the phase are
 * gone by then: f needs its data by value (a file, a count), and may free but not allocate in that phase. Throws
 * std::system_error (ESTALE, ENOMEM), or what copying f throws; f is not called then. Allocates by operator new where f
 * is larger than a pointer. */
template <class F> void on_end(epoch_domain_t* d, F&& f) {
    detail::add_cleanup([d](void (*fn)(void*), void* arg) { detail::need(epoch_domain_on_end(d, fn, arg)); },
                        std::forward<F>(f));
}
/* Registers f() for an epoch of the ring. */
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

/* Returns options of a domain, to change and pass to domain; flags are SLAB_DOMAIN_*, such as SLAB_DOMAIN_OWNER_ONLY,
 * which tslab::owner_run needs. The label is copied as the domain is made, and must last until then. */
inline SlabDomainOptions domain_options(const char* label = nullptr, std::uint32_t flags = 0) noexcept {
    SlabDomainOptions options{};
    options.struct_size = sizeof options;
    options.label = label;
    options.flags = flags;
    return options;
}

/* Owns a phase: the objects made in it end with the owner, in one step, and not before. Entering and leaving the domain
 * do not end them (auto_close is false), so it can be passed from thread to thread and entered by several at once. */
class domain {
  public:
    /* Makes a domain by epoch_domain_create_labeled; the label is copied. Throws std::system_error (ENOMEM, EINVAL).
     * O(1). */
    explicit domain(SlabAllocator* a, const char* label = nullptr)
        : d_(detail::made(epoch_domain_create_labeled(a, label))) {
        d_->auto_close = false;
    }
    explicit domain(const allocator& a, const char* label = nullptr) : domain(a.get(), label) {}
    /* Makes a domain by epoch_domain_create_ex. With SLAB_DOMAIN_OWNER_ONLY the domain belongs to the calling thread
     * alone: others are refused, also when they end it by the destructor, and the phase is released when that thread
     * exits. Throws std::system_error (ENOMEM, EINVAL). O(1). */
    domain(SlabAllocator* a, const SlabDomainOptions& options) : d_(detail::made(epoch_domain_create_ex(a, &options))) {
        d_->auto_close = false;
    }
    domain(const allocator& a, const SlabDomainOptions& options) : domain(a.get(), options) {}
    /* Takes over a domain of epoch_domain_create* or _wrap, or nothing for NULL. */
    static domain adopt(epoch_domain_t* d) noexcept { return domain(d); }
    domain(domain&& other) noexcept : d_(other.release()) {}
    domain& operator=(domain&& other) noexcept {
        domain(std::move(other)).swap(*this);
        return *this;
    }
    /* Ends the domain by epoch_domain_destroy: refused, counted and left open if a thread is still inside. */
    ~domain() {
        if (d_ != nullptr) static_cast<void>(epoch_domain_destroy(d_));
    }

    /* For the C functions; NULL after a move, end or drain. */
    epoch_domain_t* get() const noexcept { return d_; }
    explicit operator bool() const noexcept { return d_ != nullptr; }
    /* Gives the domain up: the caller destroys it. */
    [[nodiscard]] epoch_domain_t* release() noexcept { return std::exchange(d_, nullptr); }
    void swap(domain& other) noexcept { std::swap(d_, other.d_); }
    SlabAllocator* home() const noexcept { return d_->alloc; }
    EpochId id() const noexcept { return d_->epoch_id; }
    std::uint64_t era() const noexcept { return epoch_domain_era(d_); }
    /* Returns the amounts that the domain holds now, by epoch_domain_stats. Throws std::system_error (ESTALE) if its
     * phase has ended. */
    SlabDomainStats held() const {
        SlabDomainStats stats{};
        stats.struct_size = sizeof stats;
        detail::need(epoch_domain_stats(d_, &stats));
        return stats;
    }

    /* Releases the domain's objects and goes on, empty, under the same label, by epoch_domain_reset. Throws
     * std::system_error (EBUSY) and does nothing while another thread is inside. */
    void reset() { detail::need(epoch_domain_reset(d_)); }
    /* Ends the domain now and returns the receipt. Throws std::system_error (EBUSY) and does nothing while a thread is
     * inside. */
    EpochReceipt end() {
        EpochReceipt receipt{};
        detail::need(try_end(receipt));
        return receipt;
    }
    /* Ends the domain like end. Returns false if refused; errno and slab_last_error() have the reason. */
    bool try_end(EpochReceipt& out) noexcept {
        if (!epoch_domain_destroy_ex(d_, &out)) return false;
        d_ = nullptr;
        return true;
    }
    /* Drains the phase by epoch_domain_drain: live objects stay valid until they are freed. Throws std::system_error
     * (EBUSY) and does nothing while another thread is inside. */
    EpochReceipt drain() { return detail::drained(d_); }
    template <class F> void on_end(F&& f) { tslab::on_end(d_, std::forward<F>(f)); }

  private:
    explicit domain(epoch_domain_t* d) noexcept : d_(d) {}
    epoch_domain_t* d_;
};

/* Guard that keeps this thread inside of a domain, as its innermost scope, until the closing brace: slab_malloc goes
 * there. Belongs to the thread that made it; guards of a thread end in reverse order. */
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

/* Guard with a phase of its own, which this thread is inside of until the closing brace, however that is left;
 * SLAB_SCOPE in C. Belongs to the thread that made it; guards of a thread end in reverse order. */
class [[nodiscard]] scope {
  public:
    /* Begins the phase by epoch_domain_begin. Throws std::system_error (ENOMEM, EINVAL). O(1). */
    explicit scope(SlabAllocator* a, const char* label = nullptr) : d_(detail::made(epoch_domain_begin(a, label))) {}
    explicit scope(const allocator& a, const char* label = nullptr) : scope(a.get(), label) {}
    ~scope() {
        if (d_ != nullptr) static_cast<void>(epoch_domain_end(d_));
    }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

    /* For the C functions; NULL after end or drain. */
    epoch_domain_t* get() const noexcept { return d_; }
    SlabAllocator* home() const noexcept { return d_->alloc; }
    std::uint64_t era() const noexcept { return epoch_domain_era(d_); }
    /* Ends the phase now by epoch_domain_end_ex and returns the receipt. Throws std::system_error and does nothing if
     * the phase is not the innermost scope of the thread (EINVAL) or another scope is inside (EBUSY). */
    EpochReceipt end() {
        EpochReceipt receipt{};
        detail::need(epoch_domain_end_ex(d_, &receipt));
        d_ = nullptr;
        return receipt;
    }
    /* Drains the phase like domain::drain. */
    EpochReceipt drain() { return detail::drained(d_); }
    template <class F> void on_end(F&& f) { tslab::on_end(d_, std::forward<F>(f)); }

  private:
    epoch_domain_t* d_;
};

/* Takes a phase from thread to thread, for work that goes on in pieces: tasks, callbacks of an event loop. resume()
 * puts the thread inside of the phase, suspend() takes it out without ending anything. Guards made between the two, on
 * one thread, that are still open are taken out and put back with the phase, in their order. Only one thread at a time
 * may use a carrier, and the executor that hands the work on must order them. The phase must outlive the carrier, and
 * must not be entered otherwise on that thread between resume and suspend. O(scopes that are inside). */
class carrier {
  public:
    /* Makes a carrier, which enters nothing before the first resume. NULL: one that carries nothing. */
    explicit carrier(epoch_domain_t* phase) noexcept : phase_(phase) {}
    explicit carrier(const domain& phase) noexcept : carrier(phase.get()) {}
    carrier(const carrier&) = delete;
    carrier& operator=(const carrier&) = delete;
    /* Leaves the phase, also if it is suspended: guards inside of it must be gone. */
    ~carrier() { finish(); }

    epoch_domain_t* phase() const noexcept { return phase_; }
    /* Puts the phase, and the guards that were taken out, on this thread. Throws std::system_error (ENOMEM, ESTALE):
     * the thread is not inside then, and the guards stay out. */
    void resume() {
        if (phase_ == nullptr || inside_) return;
        detail::need(known_ ? epoch_domain_attach(phase_) : epoch_domain_enter(phase_));
        known_ = inside_ = true;
        if (put_back()) return;
        const int error = errno;
        take_out();
        detail::refused(error, slab_last_error());
    }
    /* Takes the guards and the phase off the thread. Throws std::system_error (EINVAL) if the phase is not among the
     * thread's scopes, or std::bad_alloc for a list of the guards; nothing has changed then. */
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
    /* Leaves the phase for good, on this thread. */
    void finish() noexcept {
        if (!known_) return;
        if (!inside_) static_cast<void>(epoch_domain_attach(phase_));
        static_cast<void>(epoch_domain_exit(phase_));
        inside_ = known_ = false;
    }

  private:
    /* Puts the guards inside of the phase onto this thread. Returns false with errno at the first that finds no
     * memory. */
    bool put_back() noexcept {
        for (; !scopes_.empty(); scopes_.pop_back())
            if (!epoch_domain_attach(scopes_.back())) return false;
        return true;
    }
    /* Takes the guards inside of the phase, and the phase, off this thread. */
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
    std::vector<epoch_domain_t*> scopes_; /* guards that were taken out, the innermost first */
    bool known_ = false;                  /* entered, here or elsewhere */
    bool inside_ = false;                 /* on the thread that uses it */
};

} // namespace tslab
#endif
