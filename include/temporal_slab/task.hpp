/*
 * task.hpp - coroutines that stay in their phase on every thread (C++20; empty in older versions). See tslab.hpp.
 *
 * A task is a coroutine that starts when it is awaited and returns its result to the awaiting coroutine. A chain
 * consists of a task, the task that it awaits, and so on. A chain has one phase, which is passed to spawn or run with
 * the outermost task. A thread that runs a part of the chain is inside this phase, so slab_malloc allocates there.
 *
 * A task may also await something other than a task. In that case, the thread leaves the phase before other code can
 * resume the coroutine, and the thread that resumes the coroutine enters the phase. Scopes and guards that are open in
 * the coroutine move with the phase. The class carrier (phases.hpp) implements these moves.
 *
 *   tslab::task<int> answer(connection& c) { co_await c.readable(); co_return parse(c); }       // any awaitable
 *   tslab::spawn(tslab::domain(slab, "GET /"), serve(c));                                       // runs until it waits
 *
 * A chain runs on only one thread at a time. When a chain moves to another thread, the executor that resumes the chain
 * must synchronize the two threads. This header creates no threads and no queues.
 */
#ifndef TEMPORAL_SLAB_TASK_HPP
#define TEMPORAL_SLAB_TASK_HPP

#include <temporal_slab/objects.hpp>

#if defined(__cpp_impl_coroutine) && __cplusplus >= 202002L

#include <condition_variable>
#include <coroutine>
#include <exception>
#include <mutex>
#include <optional>

namespace tslab {

template <class T = void> class task;

namespace detail {

/* Allocates coroutine frames. If the coroutine's parameters begin with std::allocator_arg and a source, the frame is
 * allocated from that source; otherwise, it is allocated with operator new. The pointer to the frame's allocator is
 * stored after the frame. */
class frames {
  public:
    /* Must not be inlined. Otherwise, gcc would warn that the operator delete below does not match the operator new
     * that allocated the block. */
    [[gnu::noinline]] static void* operator new(std::size_t size) {
        return keep(::operator new(whole(size)), size, nullptr);
    }
    /* Must be inlined. Otherwise, gcc without optimization treats this function as an operator new that has no matching
     * operator delete. */
    template <class From, class... Args>
    [[gnu::always_inline]] static void* operator new(std::size_t size, std::allocator_arg_t, const From& from,
                                                     const Args&...) {
        return take(size, source_of(from));
    }
    template <class This, class From, class... Args>
    [[gnu::always_inline]] static void* operator new(std::size_t size, const This&, std::allocator_arg_t,
                                                     const From& from, const Args&...) {
        return take(size, source_of(from));
    }
    static void operator delete(void* p, std::size_t size) noexcept {
        SlabAllocator* home = nullptr;
        std::memcpy(&home, static_cast<char*>(p) + whole(size) - sizeof home, sizeof home);
        if (home != nullptr) slab_free(home, p);
        else ::operator delete(p);
    }

  private:
    static std::size_t whole(std::size_t size) noexcept { return size + sizeof(SlabAllocator*); }
    static void* keep(void* p, std::size_t size, SlabAllocator* home) noexcept {
        std::memcpy(static_cast<char*>(p) + whole(size) - sizeof home, &home, sizeof home);
        return p;
    }
    template <class Source> static void* take(std::size_t size, const Source& source) {
        return keep(need(source.take(whole(size), alignment)), size, source.home());
    }
};

template <class A> decltype(auto) awaiter_of(A&& a) {
    if constexpr (requires { std::forward<A>(a).operator co_await(); }) return std::forward<A>(a).operator co_await();
    else if constexpr (requires { operator co_await(std::forward<A>(a)); })
        return operator co_await(std::forward<A>(a));
    else return std::forward<A>(a);
}

/* Awaits something other than a task. The thread that suspends the coroutine leaves the phase, and the thread that
 * resumes the coroutine enters the phase. */
template <class Awaiter> class carrying {
  public:
    template <class A> carrying(A&& a, carrier* c) : inner_(awaiter_of(std::forward<A>(a))), carrier_(c) {}
    bool await_ready() { return inner_.await_ready(); }
    /* Suspends the coroutine. Once inner_ has received h, another thread can resume the coroutine, so this function
     * does not access *this after that point. Must not be inlined, because compilers may keep inlined values in the
     * coroutine's frame, which may no longer exist. */
    template <class Promise> [[gnu::noinline]] auto await_suspend(std::coroutine_handle<Promise> h) {
        carrier* const c = carrier_;
        if (c == nullptr) return inner_.await_suspend(h);
        c->suspend();
        waited_ = true;
        struct undo {
            carrier* of;
            int thrown = std::uncaught_exceptions();
            ~undo() noexcept(false) {
                if (std::uncaught_exceptions() > thrown) of->resume();
            }
        } failed{c};
        return inner_.await_suspend(h);
    }
    decltype(auto) await_resume() {
        if (waited_) carrier_->resume();
        return inner_.await_resume();
    }

  private:
    Awaiter inner_;
    carrier* carrier_;
    bool waited_ = false;
};

/* Starts a task, and resumes the awaiting coroutine when the task is done. The caller reads the result from the
 * task. */
template <class Promise> class done_awaiter {
  public:
    done_awaiter(std::coroutine_handle<Promise> child, carrier* c) noexcept : child_(child), carrier_(c) {}
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> parent) noexcept {
        child_.promise().begin(parent, carrier_);
        return child_;
    }
    void await_resume() const noexcept {}

  protected:
    std::coroutine_handle<Promise> child_;
    carrier* carrier_;
};
template <class Promise> class task_awaiter : public done_awaiter<Promise> {
  public:
    using done_awaiter<Promise>::done_awaiter;
    decltype(auto) await_resume() { return this->child_.promise().result(); }
};

class task_promise : public frames {
  public:
    std::suspend_always initial_suspend() const noexcept { return {}; }
    struct to_parent {
        bool await_ready() const noexcept { return false; }
        template <class Promise> std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> h) noexcept {
            return h.promise().parent_;
        }
        void await_resume() const noexcept {}
    };
    to_parent final_suspend() const noexcept { return {}; }
    void begin(std::coroutine_handle<> parent, carrier* c) noexcept {
        parent_ = parent;
        carrier_ = c;
    }
    void unhandled_exception() noexcept { thrown_ = std::current_exception(); }
    const std::exception_ptr& thrown() const noexcept { return thrown_; }
    template <class T> auto await_transform(task<T>&& child) noexcept { return child.within(carrier_); }
    template <class T> auto await_transform(task<T>& child) noexcept { return child.within(carrier_); }
    template <class A> auto await_transform(A&& a) {
        return carrying<decltype(awaiter_of(std::forward<A>(a)))>(std::forward<A>(a), carrier_);
    }

  private:
    std::coroutine_handle<> parent_ = std::noop_coroutine();
    carrier* carrier_ = nullptr; /* carrier of the chain, or NULL if a coroutine of another kind awaits the chain */
    std::exception_ptr thrown_;
};

template <class T> class promise_of final : public task_promise {
  public:
    static_assert(!std::is_reference_v<T>,
                  "a task gives a value: std::reference_wrapper or a pointer for what is elsewhere");
    task<T> get_return_object() noexcept;
    template <class U> void return_value(U&& value) { value_.emplace(std::forward<U>(value)); }
    T result() {
        if (thrown()) std::rethrow_exception(thrown());
        return std::move(*value_);
    }

  private:
    std::optional<T> value_;
};
template <> class promise_of<void> final : public task_promise {
  public:
    task<void> get_return_object() noexcept;
    void return_void() const noexcept {}
    void result() const {
        if (thrown()) std::rethrow_exception(thrown());
    }
};

} // namespace detail

/* A coroutine that starts when it is awaited. A task can be awaited only once. A task owns its coroutine frame. The
 * destructor destroys a task that was never awaited, and must not run while the task is waiting. If the coroutine
 * throws an exception, the co_await expression rethrows it. The coroutine must not enter the phase of its chain again,
 * and must end its guards before it returns. */
template <class T> class [[nodiscard]] task {
  public:
    using promise_type = detail::promise_of<T>;
    explicit task(std::coroutine_handle<promise_type> h) noexcept : h_(h) {}
    task(task&& other) noexcept : h_(std::exchange(other.h_, nullptr)) {}
    task& operator=(task&& other) noexcept {
        task(std::move(other)).swap(*this);
        return *this;
    }
    ~task() {
        if (h_) h_.destroy();
    }
    void swap(task& other) noexcept { std::swap(h_, other.h_); }
    /* Returns an awaiter that runs the task. If another task awaits it, the task runs inside the phase of the chain. If
     * any other coroutine awaits it, the task has no phase. */
    auto operator co_await() noexcept { return within(nullptr); }
    /* Returns an awaiter that runs the task inside the phase of the carrier c, which this thread has resumed. */
    auto within(carrier* c) noexcept { return detail::task_awaiter<promise_type>(h_, c); }
    /* Returns an awaiter like within, but the co_await expression has no result. To read the result, call thrown() and
     * result() afterwards. */
    auto done_within(carrier* c) noexcept { return detail::done_awaiter<promise_type>(h_, c); }
    const std::exception_ptr& thrown() const noexcept { return h_.promise().thrown(); }
    T result() { return h_.promise().result(); }

  private:
    std::coroutine_handle<promise_type> h_;
};

namespace detail {

template <class T> task<T> promise_of<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<promise_of>::from_promise(*this));
}
inline task<void> promise_of<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<promise_of>::from_promise(*this));
}

/* A coroutine that no other coroutine awaits. */
struct driver {
    struct promise_type {
        driver get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        [[noreturn]] void unhandled_exception() const noexcept { std::terminate(); }
    };
};

template <class Done> driver drive(domain phase, std::unique_ptr<carrier> carried, task<void> body, Done done) {
    {
        task<void> mine = std::move(body); /* destroyed before the phase ends, because its frame may be in the phase */
        co_await mine.within(carried.get());
    }
    carried->finish();
    EpochReceipt receipt{};
    static_cast<void>(phase.try_end(receipt));
    done(receipt);
}

/* Outcome of a task, for which run() waits. */
class outcome {
  public:
    void tell() {
        const std::lock_guard<std::mutex> hold(lock_);
        told_ = true;
        changed_.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> hold(lock_);
        changed_.wait(hold, [this] { return told_; });
        if (thrown) std::rethrow_exception(thrown);
    }
    std::exception_ptr thrown;

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    bool told_ = false;
};

template <class T, class Put> driver drive_and_tell(carrier& carried, task<T> body, outcome& told, Put put) {
    {
        task<T> mine = std::move(body);
        co_await mine.done_within(&carried);
        told.thrown = mine.thrown();
        if (!told.thrown) put(mine);
    }
    carried.finish();
    told.tell();
}

} // namespace detail

/* Starts a task in the given phase on this thread, and returns when the task first waits or is done. When the task is
 * done, the thread that ran its last part ends the phase and then calls done(receipt). The receipt contains the counts
 * of the ended phase (see EpochReceipt). If the end is refused because another scope is inside, all fields of the
 * receipt are 0. If the task cannot be started, throws std::system_error or std::bad_alloc. If the task or `done`
 * throws an exception, std::terminate is called, as with std::thread. Makes two allocations with operator new, one for
 * a coroutine and one for a carrier. */
template <class Done> void spawn(domain phase, task<void> body, Done done) {
    auto carried = std::make_unique<carrier>(phase);
    carried->resume();
    detail::drive(std::move(phase), std::move(carried), std::move(body), std::move(done));
}
inline void spawn(domain phase, task<void> body) {
    spawn(std::move(phase), std::move(body), [](const EpochReceipt&) {});
}

/* Starts a task in the given phase on this thread, and waits until the task is done, even if it finishes on another
 * thread. Returns the result of the task, or rethrows its exception. The phase stays open. If `phase` is NULL or
 * omitted, the thread's scopes do not change. */
template <class T> T run(epoch_domain_t* phase, task<T> body) {
    carrier carried(phase);
    carried.resume();
    detail::outcome told;
    if constexpr (std::is_void_v<T>) {
        detail::drive_and_tell(carried, std::move(body), told, [](task<T>&) {});
        told.wait();
    } else {
        std::optional<T> result;
        detail::drive_and_tell(carried, std::move(body), told, [&result](task<T>& t) { result.emplace(t.result()); });
        told.wait();
        return std::move(*result);
    }
}
template <class T> T run(const domain& phase, task<T> body) { return run(phase.get(), std::move(body)); }
template <class T> T run(task<T> body) { return run(static_cast<epoch_domain_t*>(nullptr), std::move(body)); }

} // namespace tslab

#endif
#endif
