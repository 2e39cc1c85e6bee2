/*
 * owners.cpp - allocator, domain, scope, entered, carrier and cleanups: who owns what, when it ends, what is refused.
 */
#include "check.hpp"

#include <string>
#include <thread>

static_assert(!std::is_copy_constructible_v<tslab::allocator> && std::is_nothrow_move_constructible_v<tslab::allocator>);
static_assert(!std::is_copy_constructible_v<tslab::domain> && std::is_nothrow_move_assignable_v<tslab::domain>);
static_assert(!std::is_move_constructible_v<tslab::scope> && !std::is_move_constructible_v<tslab::entered>);

static void allocators(tslab::allocator&) {
    tslab::allocator a;
    CHECK(a && a.get() != nullptr);
    SlabAllocator* const raw = a.get();
    tslab::allocator b = std::move(a);
    CHECK(!a && b.get() == raw);
    a = std::move(b);
    CHECK(!b && a.get() == raw);
    a = tslab::allocator::adopt(slab_allocator_create());
    CHECK(a.get() != nullptr);
    tslab::allocator second = a.share();
    CHECK(second.get() == a.get());
    slab_allocator_free(a.release());
    CHECK(!a && slab_malloc(second.get(), 10) != nullptr);
    CHECK(error_of([&] { a.share(); }) == EINVAL);

    SlabOptions options = tslab::default_options();
    options.ring_size = 4;
    CHECK(tslab::allocator(options).get() != nullptr);
    options.ring_size = 1;
    CHECK(error_of([&] { tslab::allocator refused(options); }) == EINVAL);
}

static void scopes(tslab::allocator& slab) {
    {
        tslab::scope outer(slab, "outer");
        CHECK(epoch_domain_current() == outer.get());
        void* const p = slab_malloc(slab.get(), 100);
        CHECK(in_phase(p, slab, outer.era()));
        {
            tslab::scope inner(slab);
            CHECK(in_phase(slab_malloc(slab.get(), 100), slab, inner.era()));
        }
        CHECK(live_objects(slab) == 1);
        const EpochReceipt r = outer.end();
        CHECK(r.objects_released == 1 && std::string(r.label) == "outer" && outer.get() == nullptr);
    }
    void* survivor = nullptr;
    {
        tslab::scope s(slab, "drained");
        survivor = slab_malloc(slab.get(), 50);
        CHECK(s.drain().objects_escaped == 1);
    }
    CHECK(slab_free_checked(slab.get(), survivor));
    CHECK(error_of([] { tslab::scope none(static_cast<SlabAllocator*>(nullptr)); }) == EINVAL);
}

static void scopes_out_of_order(tslab::allocator& slab) {
    tslab::scope outer(slab, "outer");
    tslab::scope inner(slab, "inner");
    CHECK(error_of([&] { outer.end(); }) == EINVAL);
    CHECK(outer.get() != nullptr && epoch_domain_current() == inner.get());
}

static void an_exception_ends_scopes(tslab::allocator& slab) {
    try {
        tslab::scope s(slab, "thrown through");
        CHECK(slab_malloc(slab.get(), 1000) != nullptr);
        throw 5;
    } catch (int) {
        CHECK(epoch_domain_current() == nullptr && live_objects(slab) == 0);
    }
}

static void domains(tslab::allocator& slab) {
    tslab::domain d(slab, "kept");
    {
        const tslab::entered guard(d);
        CHECK(epoch_domain_current() == d.get());
        CHECK(in_phase(slab_malloc(slab.get(), 30), slab, d.era()));
    }
    CHECK(live_objects(slab) == 1); /* leaving ends nothing */
    CHECK(epoch_domain_malloc(d.get(), 30) != nullptr && live_objects(slab) == 2);
    CHECK(d.held().live_objects == 2 && d.held().epoch_era == d.era());
    const std::uint64_t before = d.era();
    d.reset();
    CHECK(live_objects(slab) == 0 && d.era() != before);
    tslab::domain e = std::move(d);
    CHECK(!d && e);
    CHECK(epoch_domain_malloc(e.get(), 30) != nullptr);
    const EpochReceipt r = e.end();
    CHECK(r.objects_allocated == 1 && r.objects_released == 1 && std::string(r.label) == "kept" && !e);
    e = tslab::domain(slab);
    void* const p = epoch_domain_malloc(e.get(), 30);
    CHECK(e.drain().objects_escaped == 1 && !e);
    CHECK(slab_free_checked(slab.get(), p));
    e = tslab::domain(slab, "assigned over");
    CHECK(epoch_domain_malloc(e.get(), 30) != nullptr);
    e = tslab::domain(slab, "another");
    CHECK(live_objects(slab) == 0);
    tslab::domain taken = tslab::domain::adopt(e.release());
    CHECK(!e && taken && taken.home() == slab.get());
}

static void an_end_with_somebody_inside_is_refused(tslab::allocator& slab) {
    tslab::domain d(slab, "busy");
    {
        const tslab::entered one(d);
        const tslab::entered again(d);
        CHECK(error_of([&] { d.end(); }) == EBUSY);
        std::thread([&d] { CHECK(error_of([&d] { d.reset(); }) == EBUSY); }).join();
        CHECK(d);
    }
    d.end();
}

struct throws_when_copied {
    throws_when_copied() = default;
    throws_when_copied(const throws_when_copied&) { throw 7; }
    void operator()() const noexcept {}
};

static void cleanups(tslab::allocator& slab) {
    std::string order;
    unsigned long long far_away[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    {
        tslab::scope s(slab, "cleanups");
        s.on_end([&order]() noexcept { order += 'a'; });
        const std::string text(100, 'x');
        s.on_end([&order, far_away, text, owned = std::make_unique<int>(9)]() noexcept {
            order += far_away[7] == 8 && text.size() == 100 && *owned == 9 ? 'b' : '?';
        });
        s.on_end([]() noexcept {});
        auto named = [&order]() noexcept { order += 'c'; };
        s.on_end(named);
        CHECK(order.empty());
    }
    CHECK(order == "cba");

    tslab::domain d(slab);
    const auto counted = std::make_shared<int>(0);
    d.on_end([counted]() noexcept { ++*counted; });
    CHECK(counted.use_count() == 2);
    d.reset();
    CHECK(*counted == 1 && counted.use_count() == 1);

    const EpochId ring = epoch_current(slab.get());
    tslab::on_end(slab.get(), ring, [counted]() noexcept { ++*counted; });
    epoch_close_ex(slab.get(), ring, EPOCH_RELEASE, nullptr);
    CHECK(*counted == 2);

    const throws_when_copied bad;
    bool thrown = false;
    try {
        d.on_end(bad);
    } catch (int) {
        thrown = true;
    }
    CHECK(thrown);
}

static void a_cleanup_that_is_refused_is_dropped(tslab::allocator& slab) {
    const auto counted = std::make_shared<int>(0);
    const EpochId ring = epoch_current(slab.get());
    epoch_close_ex(slab.get(), ring, EPOCH_RELEASE, nullptr);
    CHECK(error_of([&] { tslab::on_end(slab.get(), ring, [counted]() noexcept { ++*counted; }); }) == ESTALE);
    tslab::domain d(slab);
    epoch_domain_force_close(d.get());
    CHECK(error_of([&] { d.on_end([counted]() noexcept { ++*counted; }); }) == ESTALE);
    CHECK(*counted == 0 && counted.use_count() == 1);
}

static void carriers(tslab::allocator& slab) {
    tslab::domain d(slab, "carried");
    tslab::carrier c(d);
    CHECK(epoch_domain_current() == nullptr);
    c.resume();
    c.resume(); /* does nothing */
    CHECK(epoch_domain_current() == d.get());
    auto* inner = new tslab::scope(slab, "inner");
    auto* innermost = new tslab::scope(slab, "innermost");
    epoch_domain_t* const top = innermost->get();
    c.suspend();
    CHECK(epoch_domain_current() == nullptr);
    std::thread([&] {
        const tslab::scope outer(slab, "of the other thread");
        c.resume();
        CHECK(epoch_domain_current() == top);
        delete innermost;
        CHECK(epoch_domain_current() == inner->get());
        c.suspend();
        CHECK(epoch_domain_current() == outer.get());
    }).join();
    c.resume();
    delete inner;
    CHECK(epoch_domain_current() == d.get());
    CHECK(slab_malloc(slab.get(), 10) != nullptr);
    c.suspend();
    c.finish(); /* of one that is suspended */
    CHECK(epoch_domain_current() == nullptr);
    CHECK(d.end().objects_released == 1);

    tslab::carrier nothing(static_cast<epoch_domain_t*>(nullptr));
    nothing.resume();
    nothing.suspend();
    CHECK(nothing.phase() == nullptr);
}

static void a_carrier_beside_scopes_of_the_thread(tslab::allocator& slab) {
    const tslab::scope below(slab, "below");
    tslab::domain d(slab, "carried");
    {
        tslab::carrier c(d);
        c.resume();
        {
            const tslab::scope inside(slab, "inside");
            c.suspend();
            CHECK(epoch_domain_current() == below.get());
            c.resume();
            CHECK(epoch_domain_current() == inside.get());
        }
        c.suspend();
        tslab::carrier other(below.get()); /* the phase that the thread is in: entered once more */
        other.resume();
        other.suspend();
        CHECK(epoch_domain_current() == below.get());
    }
    CHECK(epoch_domain_current() == below.get());
    d.end();
}

static void a_phase_that_is_lost(tslab::allocator& slab) {
    tslab::domain d(slab);
    tslab::carrier c(d);
    c.resume();
    CHECK(epoch_domain_detach(d.get())); /* behind its back */
    CHECK(error_of([&] { c.suspend(); }) == EINVAL);
    CHECK(epoch_domain_attach(d.get()));
    c.suspend();
}

static void errors(tslab::allocator&) {
    CHECK(tslab::bad_alloc(EDQUOT).error() == EDQUOT);
    CHECK(std::string(tslab::bad_alloc(ESTALE).what()).find("phase") != std::string::npos);
    CHECK(std::string(tslab::bad_alloc(ENOMEM).what()).find("memory") != std::string::npos);
    CHECK(std::string(tslab::bad_alloc(EINVAL).what()) != tslab::bad_alloc(EDQUOT).what());
    try {
        throw tslab::bad_alloc(ENOMEM);
    } catch (const std::bad_alloc& e) {
        CHECK(e.what() != nullptr);
    }
}

int main() {
    const check_case cases[] = {
        {"allocators", allocators},
        {"scopes", scopes},
        {"scopes_out_of_order", scopes_out_of_order, 1},
        {"an_exception_ends_scopes", an_exception_ends_scopes},
        {"domains", domains},
        {"an_end_with_somebody_inside_is_refused", an_end_with_somebody_inside_is_refused, 2},
        {"cleanups", cleanups},
        {"a_cleanup_that_is_refused_is_dropped", a_cleanup_that_is_refused_is_dropped},
        {"carriers", carriers},
        {"a_carrier_beside_scopes_of_the_thread", a_carrier_beside_scopes_of_the_thread},
        {"a_phase_that_is_lost", a_phase_that_is_lost},
        {"errors", errors},
    };
    return check_main(cases);
}
