/*
 * tasks.cpp - coroutines: a phase goes with its chain of tasks from thread to thread, and ends with it (C++20).
 */
#include "check.hpp"

#if !defined(__cpp_impl_coroutine) || __cplusplus < 202002L
int main() {
    std::puts("skipped: this compiler, or this standard, has no coroutines");
    return 77;
}
#else

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

/* Threads that resume what is given to them; it ends when nothing is left of what was begun. */
class pool {
public:
    explicit pool(unsigned threads) {
        for (unsigned i = 0; i < threads; i++) threads_.emplace_back([this] { work(); });
    }
    ~pool() {
        {
            const std::lock_guard<std::mutex> hold(lock_);
            ends_ = true;
        }
        changed_.notify_all();
        for (std::thread& t : threads_) t.join();
    }
    void post(std::coroutine_handle<> h) {
        {
            const std::lock_guard<std::mutex> hold(lock_);
            ready_.push_back(h);
        }
        changed_.notify_one();
    }
    /* To wait for: goes on on a thread of the pool. */
    auto elsewhere() {
        struct awaiter {
            pool& to;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> h) { to.post(h); }
            void await_resume() const noexcept {}
        };
        return awaiter{*this};
    }

private:
    void work() {
        for (std::unique_lock<std::mutex> hold(lock_);;) {
            changed_.wait(hold, [this] { return ends_ || !ready_.empty(); });
            if (ready_.empty()) return;
            const std::coroutine_handle<> h = ready_.front();
            ready_.pop_front();
            hold.unlock();
            h.resume();
            CHECK(epoch_domain_current() == nullptr);
            hold.lock();
        }
    }
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<std::coroutine_handle<>> ready_;
    std::vector<std::thread> threads_;
    bool ends_ = false;
};

/* Other things to wait for: one that does not suspend after all, one that throws, one that says which coroutine goes on,
 * one with an operator co_await. */
struct refuses {
    bool await_ready() const noexcept { return false; }
    bool await_suspend(std::coroutine_handle<>) const noexcept {
        CHECK(epoch_domain_current() == nullptr);
        return false;
    }
    int await_resume() const noexcept { return 4; }
};
struct throws {
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<>) const { throw 5; }
    void await_resume() const noexcept {}
};
struct itself {
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) const noexcept { return h; }
    std::string await_resume() const { return std::string(100, 'i'); }
};
struct has_member {
    refuses operator co_await() const noexcept { return {}; }
};
struct has_function {};
itself operator co_await(const has_function&) noexcept { return {}; }
struct is_ready {
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept { CHECK(false); }
    std::unique_ptr<int> await_resume() const { return std::make_unique<int>(6); }
};

tslab::task<int> leaf(pool& threads, tslab::allocator& slab, epoch_domain_t* phase, int n) {
    for (int i = 0; i < n; i++) {
        CHECK(epoch_domain_current() == phase);
        CHECK(in_phase(slab_malloc(slab.get(), 64), slab, phase->epoch_era));
        co_await threads.elsewhere();
    }
    CHECK(epoch_domain_current() == phase);
    co_return n;
}

tslab::task<int> chain(pool& threads, tslab::allocator& slab, epoch_domain_t* phase, int depth) {
    if (depth == 0) co_return co_await leaf(threads, slab, phase, 5);
    const int below = co_await chain(threads, slab, phase, depth - 1);
    CHECK(epoch_domain_current() == phase);
    {
        const tslab::scope inner(slab, "inner");
        CHECK(in_phase(slab_malloc(slab.get(), 64), slab, inner.era()));
        co_await threads.elsewhere();
        CHECK(epoch_domain_current() == inner.get());
        CHECK(in_phase(slab_malloc(slab.get(), 64), slab, inner.era()));
    }
    CHECK(epoch_domain_current() == phase);
    co_return below + co_await leaf(threads, slab, phase, 2);
}

void a_chain_on_threads(tslab::allocator& slab) {
    pool threads(3);
    tslab::domain d(slab, "chain");
    CHECK(tslab::run(d, chain(threads, slab, d.get(), 4)) == 13);
    CHECK(epoch_domain_current() == nullptr);
    CHECK(d.end().objects_released == 13);
}

void run_inside_of_scopes(tslab::allocator& slab) {
    pool threads(2);
    const tslab::scope around(slab, "around");
    tslab::domain d(slab, "chain");
    CHECK(tslab::run(d, leaf(threads, slab, d.get(), 3)) == 3);
    CHECK(epoch_domain_current() == around.get());
    CHECK(tslab::run(around.get(), leaf(threads, slab, around.get(), 3)) == 3); /* the one that the thread is in */
    CHECK(epoch_domain_current() == around.get());
    d.end();
}

tslab::task<void> everything(tslab::allocator& slab, epoch_domain_t* phase) {
    const tslab::scope inner(slab, "inner");
    CHECK(co_await refuses() == 4);
    CHECK(epoch_domain_current() == inner.get());
    CHECK(co_await has_member() == 4);
    CHECK((co_await itself()).size() == 100);
    CHECK((co_await has_function()).size() == 100);
    CHECK(*co_await is_ready() == 6);
    const refuses named;
    CHECK(co_await named == 4);
    bool thrown = false;
    try {
        co_await throws();
    } catch (int n) {
        thrown = n == 5;
    }
    CHECK(thrown && epoch_domain_current() == inner.get());
    CHECK(phase != inner.get());
}

void what_can_be_awaited(tslab::allocator& slab) {
    const tslab::domain d(slab);
    tslab::run(d, everything(slab, d.get()));
}

tslab::task<std::unique_ptr<int>> moved_out() { co_return std::make_unique<int>(3); }
tslab::task<void> fails(pool& threads) {
    co_await threads.elsewhere();
    throw std::string("out of the task");
}
tslab::task<int> catches(pool& threads) {
    int n = *co_await moved_out();
    try {
        co_await fails(threads);
    } catch (const std::string& s) {
        n += s.size() > 5;
    }
    auto later = moved_out();
    n += *co_await later;
    const auto never = moved_out();
    co_return n;
}

void results_and_exceptions(tslab::allocator& slab) {
    pool threads(2);
    const tslab::domain d(slab);
    CHECK(tslab::run(d, catches(threads)) == 7);
    CHECK(tslab::run(catches(threads)) == 7); /* in no phase */
    bool thrown = false;
    try {
        tslab::run(d, fails(threads));
    } catch (const std::string&) {
        thrown = true;
    }
    CHECK(thrown && epoch_domain_current() == nullptr);
}

tslab::task<void> request(pool& threads, tslab::allocator& slab, int number) {
    epoch_domain_t* const phase = epoch_domain_current();
    CHECK(phase != nullptr);
    CHECK(co_await leaf(threads, slab, phase, number % 7 + 1) == number % 7 + 1);
    const tslab::scope part(slab, "part");
    CHECK(in_phase(slab_malloc(slab.get(), 100), slab, part.era()));
    co_await threads.elsewhere();
}

void many_at_once(tslab::allocator& slab) {
    constexpr unsigned requests = 500;
    std::atomic<unsigned> done{0};
    std::atomic<std::uint64_t> released{0};
    {
        pool threads(3);
        for (unsigned i = 0; i < requests; i++) {
            tslab::spawn(tslab::domain(slab, "request"), request(threads, slab, static_cast<int>(i)),
                         [&](const EpochReceipt& r) {
                             released += r.objects_released;
                             CHECK(epoch_domain_current() == nullptr);
                             done++;
                             done.notify_one();
                         });
            CHECK(epoch_domain_current() == nullptr);
        }
        for (unsigned n; (n = done) != requests;) done.wait(n);
    }
    std::uint64_t expected = 0;
    for (unsigned i = 0; i < requests; i++) expected += i % 7 + 1;
    CHECK(released == expected);
}

/* Not inlined: a compiler that sees where a frame ends need not allocate it. */
[[gnu::noinline]] tslab::task<int> framed(std::allocator_arg_t, const tslab::domain&, int n) { co_return n; }
struct server {
    int base;
    [[gnu::noinline]] tslab::task<int> framed(std::allocator_arg_t, epoch_domain_t*, int n) { co_return base + n; }
};

void frames_in_a_phase(tslab::allocator& slab) {
    const tslab::domain d(slab);
    {
        auto one = framed(std::allocator_arg, d, 5);
        CHECK(live_objects(slab) == 1);
        CHECK(tslab::run(d, std::move(one)) == 5);
        CHECK(live_objects(slab) == 0);
        server s{10};
        auto other = s.framed(std::allocator_arg, d.get(), 5);
        CHECK(live_objects(slab) == 1);
        CHECK(tslab::run(d, std::move(other)) == 15);
    }
    CHECK(live_objects(slab) == 0);
    CHECK(epoch_domain_force_close(d.get()));
    CHECK(error_of([&] { static_cast<void>(framed(std::allocator_arg, d, 5)); }) == ESTALE);
}

tslab::task<void> nothing() { co_return; }

void what_cannot_begin(tslab::allocator& slab) {
    epoch_domain_t* gone = epoch_domain_create(slab.get());
    epoch_domain_destroy(gone);
    CHECK(error_of([&] { tslab::run(gone, nothing()); }) == ESTALE);
    tslab::spawn(tslab::domain(slab), nothing());
    CHECK(epoch_domain_current() == nullptr);
}

void an_end_that_is_refused(tslab::allocator& slab) {
    tslab::domain d(slab);
    epoch_domain_t* const raw = d.get();
    const tslab::entered guard(raw);
    bool told = false;
    tslab::spawn(std::move(d), nothing(), [&told](const EpochReceipt& r) { told = r.version == 0; });
    CHECK(told);
}

tslab::task<int> one() { co_return 1; }
tslab::task<int> sum(int n) {
    int total = 0;
    for (int i = 0; i < n; i++) total += co_await one();
    co_return total;
}

void many_in_a_row(tslab::allocator& slab) {
    const tslab::domain d(slab);
    CHECK(tslab::run(d, sum(10000)) == 10000);
}

} // namespace

int main() {
    const check_case cases[] = {
        {"a_chain_on_threads", a_chain_on_threads},
        {"run_inside_of_scopes", run_inside_of_scopes},
        {"what_can_be_awaited", what_can_be_awaited},
        {"results_and_exceptions", results_and_exceptions},
        {"many_at_once", many_at_once},
        {"frames_in_a_phase", frames_in_a_phase},
        {"what_cannot_begin", what_cannot_begin, 1},
        {"an_end_that_is_refused", an_end_that_is_refused, 2},
        {"many_in_a_row", many_in_a_row},
    };
    return check_main(cases);
}
#endif
