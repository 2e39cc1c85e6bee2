/*
 * objects.cpp - make, unique and handle: where objects lie, what constructors that throw leave, what is freed once.
 */
#include "check.hpp"

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

namespace {

struct point {
    int x = 1, y = 2;
};
struct alignas(128) wide {
    double value = 3;
};
struct counted {
    static inline std::atomic<int> live{0};
    static inline int throw_at = -1;
    int number;
    explicit counted(int n = 0) : number(n) {
        if (throw_at == live) throw n;
        ++live;
    }
    counted(const counted&) = delete;
    virtual ~counted() { --live; }
};
struct other_base {
    virtual ~other_base() = default;
    long padding = 4;
};
struct derived : other_base, counted {
    std::string text = std::string(200, 'd');
    using counted::counted;
};

bool aligned(const void* p, std::size_t to) { return reinterpret_cast<std::uintptr_t>(p) % to == 0; }

void made_in_phases(tslab::allocator& slab) {
    tslab::domain d(slab, "made");
    const tslab::scope around(slab, "around");
    CHECK(in_phase(tslab::make<point>(d), slab, d.era()));
    CHECK(in_phase(tslab::make<point>(slab), slab, around.era()));
    CHECK(in_phase(tslab::make<point>(slab.get()), slab, around.era()));
    CHECK(in_phase(tslab::make<point>(around), slab, around.era()));
    CHECK(in_phase(tslab::make<point>(d.get()), slab, d.era()));
    CHECK(in_phase(tslab::make<point>(tslab::bulk(d)), slab, d.era()));
    wide* const w = tslab::make<wide>(d);
    CHECK(aligned(w, 128) && w->value == 3 && in_phase(w, slab, d.era()));
    CHECK(aligned(tslab::make<wide>(slab), 128));
    point* const p = tslab::make_array<point>(d, 1000);
    CHECK(p[999].y == 2 && in_phase(p, slab, d.era()));
    CHECK(tslab::make_array<point>(d, 0) != nullptr);
    CHECK(error_of([&] { tslab::make_array<point>(d, SIZE_MAX / 4); }) == ENOMEM);
    std::string* const s = tslab::make_undestroyed<std::string>(d, "short enough for itself");
    s->~basic_string();
}

/* The same objects by the inlined path; and where that is not it. */
void made_in_lanes(tslab::allocator& slab) {
    tslab::domain d(slab, "lane");
    const tslab::lane lane(d);
    CHECK(lane == tslab::lane(d) && lane.get() == d.get() && lane.home() == slab.get());
    for (int i = 0; i < 1000; i++) CHECK(in_phase(tslab::make<point>(lane), slab, d.era()));
    wide* const w = tslab::make<wide>(lane);
    CHECK(aligned(w, 128) && w->value == 3 && in_phase(w, slab, d.era()));
    point* const p = tslab::make_array<point>(lane, 1000);
    CHECK(p[999].y == 2 && in_phase(p, slab, d.era()));
    CHECK(tslab::make_array<point>(lane, 0) != nullptr);
    CHECK(error_of([&] { tslab::make_array<point>(lane, SIZE_MAX / 4); }) == ENOMEM);
    {
        const auto owned = tslab::make_unique<std::string>(lane, std::string(100, 'l'));
        CHECK(owned->size() == 100 && in_phase(owned.get(), slab, d.era()));
    }
    CHECK(tslab::make_handle<point>(lane).free(slab));
    std::thread([&] { CHECK(in_phase(tslab::make<point>(lane), slab, d.era())); }).join();
    d.reset();
    CHECK(error_of([&] { tslab::make<point>(lane); }) == ESTALE);
    CHECK(in_phase(tslab::make<point>(tslab::lane(d)), slab, d.era()));
    CHECK(d.end().objects_released == 1);
}

void made_in_runs(tslab::allocator& slab) {
    tslab::domain d(slab, tslab::domain_options("run", SLAB_DOMAIN_OWNER_ONLY));
    {
        const tslab::owner_run run(d);
        static_assert(!std::is_copy_constructible_v<tslab::owner_run> &&
                      !std::is_move_constructible_v<tslab::owner_run>);
        CHECK(run.get() == d.get() && run.home() == slab.get());
        for (int i = 0; i < 5000; i++) CHECK(in_phase(tslab::make<point>(run), slab, d.era()));
        wide* const w = tslab::make<wide>(run);
        CHECK(aligned(w, 128) && w->value == 3 && in_phase(w, slab, d.era()));
        point* const p = tslab::make_array<point>(run, 1000);
        CHECK(p[999].y == 2 && in_phase(p, slab, d.era()));
        CHECK(tslab::make_array<point>(run, 0) != nullptr);
        CHECK(error_of([&] { tslab::make_array<point>(run, SIZE_MAX / 4); }) == ENOMEM);
        {
            const auto owned = tslab::make_unique<std::string>(run, std::string(100, 'r'));
            CHECK(owned->size() == 100 && in_phase(owned.get(), slab, d.era()));
            CHECK(tslab::make_unique<std::string[]>(run, 3)[2].empty());
        }
        CHECK(tslab::make_handle<point>(run).free(slab));
        CHECK(in_phase(tslab::move_to(run, tslab::make<point>(slab)), slab, d.era()));
    }
    const tslab::owner_run again(d); /* the first has ended */
    CHECK(in_phase(tslab::make<point>(again), slab, d.era()));
}

/* What a run is refused, and what is refused while there is one. */
void refused_to_runs(tslab::allocator& slab) {
    tslab::domain d(slab, tslab::domain_options("run", SLAB_DOMAIN_OWNER_ONLY));
    const tslab::domain anybodys(slab, "anybody's");
    CHECK(error_of([&] { const tslab::owner_run none(anybodys); }) == EINVAL);
    std::thread([&] { CHECK(error_of([&] { const tslab::owner_run none(d); }) == EBUSY); }).join();
    {
        const tslab::owner_run run(d);
        CHECK(error_of([&] { const tslab::owner_run second(d); }) == EBUSY);
        CHECK(error_of([&] { d.reset(); }) == EBUSY);
        CHECK(error_of([&] { d.end(); }) == EBUSY);
        CHECK(error_of([&] { const tslab::entered inside(d); }) == EBUSY);
        CHECK(in_phase(tslab::make<point>(run), slab, d.era()));
    }
    d.reset();
    int thrown = 0;
    try { /* the guard ends the run as an exception leaves */
        const tslab::owner_run run(d);
        counted::throw_at = counted::live;
        tslab::make_undestroyed<counted>(run, 7);
    } catch (int n) {
        thrown = n;
    }
    counted::throw_at = -1;
    CHECK(thrown == 7);
    CHECK(d.end().objects_released == 0);
    CHECK(error_of([&] { const tslab::domain bad(slab, tslab::domain_options(nullptr, 1u << 31)); }) == EINVAL);
}

void outside_of_scopes(tslab::allocator& slab) {
    const tslab::scope around(slab, "around");
    const tslab::outside ring(slab);
    point* const p = tslab::make<point>(ring);
    wide* const w = tslab::make<wide>(ring);
    const std::uint64_t era = epoch_era(slab.get(), epoch_current(slab.get()));
    CHECK(in_phase(p, slab, era) && in_phase(w, slab, era) && aligned(w, 128));
    slab_free(slab.get(), p);
    slab_free(slab.get(), w);
    CHECK(tslab::make_handle<point>(ring).free(slab));
}

void moved(tslab::allocator& slab) {
    tslab::domain d(slab, "transaction");
    point* kept = nullptr;
    point* in_ring = nullptr;
    {
        const tslab::scope query(slab, "query");
        kept = tslab::move_to(d, tslab::make<point>(slab));
        in_ring = tslab::move_to(tslab::outside(slab), tslab::make<point>(query));
        CHECK(live_objects(slab) == 2);
    }
    CHECK(in_phase(kept, slab, d.era()) && kept->y == 2 && in_ring->x == 1);
    CHECK(tslab::move_to(d, kept) == kept);
    d.end();
    slab_free(slab.get(), in_ring);
    CHECK(error_of([&] { tslab::move_to(tslab::outside(slab), static_cast<point*>(nullptr)); }) == EINVAL);
}

void an_ended_phase(tslab::allocator& slab) {
    tslab::domain d(slab);
    CHECK(epoch_domain_force_close(d.get()));
    CHECK(error_of([&] { tslab::make<point>(d); }) == ESTALE);
    CHECK(error_of([&] { tslab::make<wide>(d); }) == ESTALE);
    CHECK(error_of([&] { tslab::make_handle<point>(d); }) == ESTALE);
    CHECK(error_of([&] { tslab::make<point>(static_cast<SlabAllocator*>(nullptr)); }) == EINVAL);
}

void constructors_that_throw(tslab::allocator& slab) {
    tslab::domain d(slab);
    counted::throw_at = 0;
    for (int i = 0; i < 3; i++) {
        bool thrown = false;
        try {
            if (i == 0) tslab::make_undestroyed<counted>(d, 5);
            if (i == 1) tslab::make_unique<counted>(d, 5);
            if (i == 2) {
                counted::throw_at = 3;
                tslab::make_unique<counted[]>(d, 5);
            }
        } catch (int) {
            thrown = true;
        }
        CHECK(thrown && counted::live == 0 && live_objects(slab) == 0);
    }
    counted::throw_at = -1;
}

void one_owner(tslab::allocator& slab) {
    tslab::domain d(slab);
    {
        tslab::unique<counted> one = tslab::make_unique<counted>(d, 7);
        CHECK(one->number == 7 && counted::live == 1 && in_phase(one.get(), slab, d.era()));
        tslab::unique<counted> moved = std::move(one);
        CHECK(one == nullptr && moved->number == 7);
        moved = tslab::make_unique<derived>(slab, 8); /* whose address is not that of its base */
        CHECK(counted::live == 1 && moved->number == 8);
        tslab::unique<other_base> base = tslab::make_unique<derived>(d, 9);
        CHECK(counted::live == 2 && base->padding == 4);
        auto many = tslab::make_unique<counted[]>(d, 10);
        CHECK(many[9].number == 0 && counted::live == 12 && many.get_deleter().size() == 10);
        auto none = tslab::make_unique<int[]>(slab, 0);
        CHECK(none != nullptr);
        auto w = tslab::make_unique<wide>(d);
        CHECK(aligned(w.get(), 128));
        tslab::unique<counted> empty;
        CHECK(empty == nullptr);
    }
    CHECK(counted::live == 0);
}

void owners_on_other_threads(tslab::allocator& slab) {
    std::vector<tslab::unique<counted>> owners;
    for (int i = 0; i < 1000; i++) owners.push_back(tslab::make_unique<counted>(slab, i));
    std::thread([mine = std::move(owners)]() mutable { mine.clear(); }).join();
    CHECK(counted::live == 0);
}

void handles(tslab::allocator& slab) {
    tslab::domain d(slab);
    const auto h = tslab::make_handle<point>(d);
    const auto in_ring = tslab::make_handle<std::array<char, 100>>(slab);
    CHECK(h && h.get(slab) != nullptr && h.get(slab)->y == 2 && in_phase(h.get(slab), slab, d.era()));
    CHECK(in_ring.get(slab)->at(99) == 0 && in_ring.free(slab) && in_ring.get(slab) == nullptr);
    std::unordered_set<tslab::handle<point>> set{h, tslab::handle<point>(), tslab::handle<point>(h.value())};
    CHECK(set.size() == 2 && set.count(h) == 1);
    CHECK(h == tslab::handle<point>(h.value()) && h != tslab::handle<point>() && tslab::handle<point>() < h);
    CHECK(!tslab::handle<point>().free(slab));
    const auto aligned_one = tslab::make_handle<wide>(d);
    CHECK(aligned(aligned_one.get(slab), 128) && aligned_one.free(slab));
    d.reset();
    CHECK(h.get(slab) == nullptr && !h.free(slab)); /* two misuses */
}

void a_handle_is_freed_once(tslab::allocator& slab) {
    const tslab::domain d(slab); /* which keeps the stale names apart from others */
    for (int i = 0; i < 200; i++) {
        const auto h = tslab::make_handle<point>(slab);
        std::atomic<int> freed{0};
        std::thread other([&] { freed += h.free(slab); });
        freed += h.free(slab);
        other.join();
        CHECK(freed == 1);
    }
}

} // namespace

int main() {
    const check_case cases[] = {
        {"made_in_phases", made_in_phases},
        {"made_in_lanes", made_in_lanes},
        {"made_in_runs", made_in_runs},
        {"refused_to_runs", refused_to_runs, 5},
        {"outside_of_scopes", outside_of_scopes},
        {"moved", moved, 1},
        {"an_ended_phase", an_ended_phase},
        {"constructors_that_throw", constructors_that_throw},
        {"one_owner", one_owner},
        {"owners_on_other_threads", owners_on_other_threads},
        {"handles", handles, 1},
        {"a_handle_is_freed_once", a_handle_is_freed_once, 200},
    };
    return check_main(cases);
}
