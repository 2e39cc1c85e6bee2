/*
 * memory.cpp - memory resources of std::pmr and allocators of containers, over each source.
 */
#include "check.hpp"

#include <list>
#include <map>
#include <memory_resource>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

/* A document of pmr containers, grown, changed and read. */
struct node {
    using allocator_type = std::pmr::polymorphic_allocator<char>;
    explicit node(allocator_type a) : name(a), children(a), words(a), count(a) {}
    node(const node& other, allocator_type a)
        : name(other.name, a), children(other.children, a), words(other.words, a), count(other.count, a) {}
    node(node&& other, allocator_type a)
        : name(std::move(other.name), a), children(std::move(other.children), a), words(std::move(other.words), a),
          count(std::move(other.count), a) {}
    std::pmr::string name;
    std::pmr::vector<node> children;
    std::pmr::map<std::pmr::string, double> words;
    std::pmr::unordered_map<int, std::pmr::string> count;
};

std::size_t fill(node& n, int depth) {
    std::size_t sum = 1;
    n.name = "a name that is too long for the string itself";
    for (int i = 0; i < 5; i++) {
        n.words.emplace(std::to_string(i) + " and so on and so on", i);
        n.count.emplace(i, "another text that is too long for the string itself");
    }
    n.words.erase(n.words.begin());
    if (depth == 0) return sum;
    for (int i = 0; i < 3; i++) {
        n.children.emplace_back();
        sum += fill(n.children.back(), depth - 1);
    }
    return sum;
}
std::size_t read(const node& n) {
    std::size_t sum = n.words.size() == 4 && n.count.at(3).size() > 40 ? 1 : 0;
    for (const node& child : n.children) sum += read(child);
    return sum;
}
void use(std::pmr::memory_resource& memory) {
    node document(&memory);
    const std::size_t n = fill(document, 4);
    CHECK(n == read(document));
    node copy(document, &memory);
    CHECK(read(copy) == n);
    void* const p = memory.allocate(100, 4096);
    CHECK(reinterpret_cast<std::uintptr_t>(p) % 4096 == 0);
    memory.deallocate(p, 100, 4096);
    void* const empty = memory.allocate(0, 1);
    CHECK(empty != nullptr);
    memory.deallocate(empty, 0, 1);
}

void resources(tslab::allocator& slab) {
    tslab::domain d(slab, "named");
    tslab::allocator_resource by_allocator(slab);
    tslab::outside_resource by_ring(slab);
    tslab::domain_resource by_domain(d);
    tslab::bulk_resource by_end(d);
    use(by_allocator);
    CHECK(live_objects(slab) == 0);
    use(by_domain);
    CHECK(live_objects(slab) == 0);
    {
        const tslab::scope around(slab, "around");
        use(by_ring);
        CHECK(live_objects(slab) == 0);
        use(by_allocator);
        node left(&by_allocator);
        CHECK(fill(left, 1) == 4);
        CHECK(in_phase(left.name.data(), slab, around.era()));
    }
    use(by_end);
    CHECK(live_objects(slab) > 100);
    d.reset();
    CHECK(live_objects(slab) == 0);
}

void a_phase_and_its_resource(tslab::allocator& slab) {
    tslab::phase_resource memory(slab, "request");
    for (int i = 0; i < 3; i++) {
        use(memory);
        CHECK(live_objects(slab) > 100);
        memory.release();
        CHECK(live_objects(slab) == 0);
    }
    /* Made in the phase, and left there. */
    node* const n = tslab::make_undestroyed<node>(memory.domain(), node::allocator_type(&memory));
    CHECK(fill(*n, 2) == read(*n));
    CHECK(memory.domain().end().objects_released > 50);
    memory.domain() = tslab::domain(slab, "the next");
    CHECK(memory.is_equal(memory) && !memory.is_equal(*std::pmr::new_delete_resource()));
}

void equality(tslab::allocator& slab) {
    const tslab::allocator other;
    const tslab::domain d(slab), e(slab);
    const tslab::allocator_resource a(slab), a2(slab), b(other);
    CHECK(a.is_equal(a) && a == a2 && a != b);
    const tslab::domain_resource x(d), x2(d), y(e);
    CHECK(x == x2 && x != y);
    CHECK(!a.is_equal(x) && !x.is_equal(a));
    CHECK(!x.is_equal(tslab::bulk_resource(d)));
    CHECK(tslab::bulk_resource(d).is_equal(tslab::bulk_resource(d)));
    CHECK(tslab::outside_resource(slab).is_equal(tslab::outside_resource(slab.get())));
    CHECK(!a.is_equal(*std::pmr::new_delete_resource()));
    CHECK(x.source().get() == d.get());
}

void moves_between_phases(tslab::allocator& slab) {
    const tslab::domain d(slab), e(slab);
    tslab::domain_resource in_d(d), in_e(e), again_in_d(d);
    std::pmr::vector<std::pmr::string> from(&in_d), to(&in_e), beside(&again_in_d);
    from.emplace_back("a text that is too long for the string itself");
    const char* const where = from[0].data();
    beside = std::move(from);
    CHECK(beside[0].data() == where); /* the same phase: nothing is copied */
    to = std::move(beside);
    CHECK(to[0].data() != where && in_phase(to[0].data(), slab, e.era()));
}

void errors(tslab::allocator& slab) {
    tslab::domain d(slab);
    tslab::domain_resource memory(d);
    const volatile std::size_t too_much = SIZE_MAX / 2 + 10, too_wide = std::size_t{1} << 31; /* compilers warn of these */
    CHECK(error_of([&] { static_cast<void>(memory.allocate(too_much)); }) == ENOMEM);
    CHECK(error_of([&] { static_cast<void>(memory.allocate(10, too_wide)); }) == EINVAL);
    CHECK(slab_epoch_set_budget(slab.get(), d.id(), 0, 64 * 1024, nullptr, nullptr));
    std::pmr::list<int> many(&memory);
    CHECK(error_of([&] {
              for (int i = 0; i < 1000000; i++) many.push_back(i);
          }) == EDQUOT);
    many.clear();
    CHECK(epoch_domain_force_close(d.get()));
    CHECK(error_of([&] { many.push_back(1); }) == ESTALE);
    bool thrown = false;
    try {
        tslab::domain_allocator<int> allocator(d);
        static_cast<void>(allocator.allocate(SIZE_MAX / 2));
    } catch (const std::bad_array_new_length&) {
        thrown = true;
    }
    CHECK(thrown);
}

template <class Allocator> using text = std::basic_string<char, std::char_traits<char>, Allocator>;

void containers(tslab::allocator& slab) {
    tslab::domain d(slab);
    {
        std::vector<int, tslab::ambient_allocator<int>> in_allocator(slab);
        std::vector<int, tslab::outside_allocator<int>> in_ring{tslab::outside_allocator<int>(slab)};
        std::map<int, double, std::less<>, tslab::domain_allocator<std::pair<const int, double>>> in_domain(d);
        text<tslab::domain_allocator<char>> of_letters("a text that is too long for the string itself", d);
        for (int i = 0; i < 1000; i++) {
            in_allocator.push_back(i);
            in_ring.push_back(i);
            in_domain.emplace(i, i);
            of_letters += 'x';
        }
        CHECK(in_domain.at(500) == 500 && in_phase(of_letters.data(), slab, d.era()));
        auto copy = in_domain;
        CHECK(copy.at(999) == 999 && copy.get_allocator() == in_domain.get_allocator());
        auto moved = std::move(of_letters);
        CHECK(moved.size() > 1000);
        const auto shared = std::allocate_shared<int>(tslab::domain_allocator<int>(d), 5);
        CHECK(*shared == 5);
    }
    CHECK(live_objects(slab) == 0);
    {
        std::vector<int, tslab::bulk_allocator<int>> dropped{tslab::bulk_allocator<int>(d)};
        for (int i = 0; i < 1000; i++) dropped.push_back(i);
    }
    CHECK(live_objects(slab) > 1);
    static_assert(!std::allocator_traits<tslab::domain_allocator<int>>::propagate_on_container_move_assignment::value);
    CHECK((tslab::domain_allocator<int>(d) != tslab::domain_allocator<long>(tslab::domain(slab))));
}

void threads_share_a_phase(tslab::allocator& slab) {
    tslab::phase_resource memory(slab, "shared");
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) {
        threads.emplace_back([&memory] {
            for (int k = 0; k < 20; k++) {
                node mine(&memory);
                CHECK(fill(mine, 2) == read(mine));
            }
        });
    }
    for (std::thread& t : threads) t.join();
    memory.release();
}

} // namespace

int main() {
    const check_case cases[] = {
        {"resources", resources},
        {"a_phase_and_its_resource", a_phase_and_its_resource},
        {"equality", equality},
        {"moves_between_phases", moves_between_phases},
        {"errors", errors},
        {"containers", containers},
        {"threads_share_a_phase", threads_share_a_phase},
    };
    return check_main(cases);
}
