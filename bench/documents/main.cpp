/*
 * main.cpp - a document like JSON in containers of std::pmr, built and dropped, by memory resource.
 *
 * Each repetition goes through all ways one after the other, and a ratio is of two times of the same repetition, so a machine
 * that becomes slower does so for all. Times are the thread's processor time. The document has the same bytes everywhere, which is checked. A way is timed with what
 * it takes to make its resource and to end it; "kept" ones have one resource for all documents.
 *
 *     tslab_documents [--reps N] [--documents N] [--json FILE]
 */
#include <tslab.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace {

struct value;
using text = std::pmr::string;
using list = std::pmr::vector<value>;
using object = std::pmr::map<text, value, std::less<>>;
struct value {
    std::variant<std::nullptr_t, bool, double, text, list, object> is = nullptr;
};

/* An order with eight lines, built where it lies, as a parser does. */
void build(object& order, std::pmr::memory_resource* m) {
    const auto string = [m](object& in, const char* name, const char* s) { in[text(name, m)].is.emplace<text>(s, m); };
    order[text("id", m)].is = 4711.0;
    string(order, "customer_reference", "C-2024-000123-berlin-mitte");
    order[text("paid", m)].is = true;
    order[text("remarks", m)];
    object& address = order[text("delivery_address", m)].is.emplace<object>(m);
    string(address, "street", "a street with a name of some length 17");
    string(address, "city", "Berlin");
    string(address, "postal_code_or_district", "10115");
    list& lines = order[text("lines", m)].is.emplace<list>(m);
    for (int i = 0; i < 8; i++) {
        object& line = lines.emplace_back().is.emplace<object>(m);
        line[text("article", m)].is = static_cast<double>(i);
        string(line, "description", "an article that is described in a sentence");
        line[text("quantity_on_stock", m)].is = 3.5;
        line[text("price", m)].is = 19.99;
        list& tags = line[text("tags_of_the_article", m)].is.emplace<list>(m);
        for (const char* tag : {"new", "reduced-for-one-week", "a-tag-beyond-the-small-string"})
            tags.emplace_back().is.emplace<text>(tag, m);
    }
}

std::size_t weigh(const value& v) {
    std::size_t sum = v.is.index();
    if (const auto* s = std::get_if<text>(&v.is)) sum += s->size();
    if (const auto* l = std::get_if<list>(&v.is))
        for (const value& each : *l) sum += weigh(each);
    if (const auto* o = std::get_if<object>(&v.is))
        for (const auto& [name, each] : *o) sum += name.size() + weigh(each);
    return sum;
}

std::size_t built_and_destroyed(std::pmr::memory_resource* m) {
    object order(m);
    build(order, m);
    return order.size();
}
/* Left where it is, which std::pmr allows for memory that goes as a whole. */
std::size_t built_and_left(std::pmr::memory_resource* m) {
    std::pmr::polymorphic_allocator<object> a(m);
    object& order = *::new (a.allocate(1)) object(m);
    build(order, m);
    return order.size();
}

tslab::allocator* slab;

std::size_t by_new() { return built_and_destroyed(std::pmr::new_delete_resource()); }
std::size_t by_monotonic() {
    std::pmr::monotonic_buffer_resource m;
    return built_and_destroyed(&m);
}
std::size_t by_monotonic_left() {
    std::pmr::monotonic_buffer_resource m;
    return built_and_left(&m);
}
std::size_t by_pool() {
    std::pmr::unsynchronized_pool_resource m;
    return built_and_destroyed(&m);
}
std::size_t by_pool_kept() {
    static std::pmr::unsynchronized_pool_resource m;
    const std::size_t n = built_and_destroyed(&m);
    return n;
}
std::size_t by_phase() {
    tslab::phase_resource m(*slab, "document");
    return built_and_destroyed(&m);
}
std::size_t by_phase_left() {
    tslab::phase_resource m(*slab, "document");
    return built_and_left(&m);
}
std::size_t by_phase_kept() {
    static tslab::phase_resource m(*slab, "document");
    const std::size_t n = built_and_destroyed(&m);
    m.release();
    return n;
}
std::size_t by_scope() {
    const tslab::scope around(*slab, "document");
    tslab::bulk_resource m(around);
    return built_and_destroyed(&m);
}
std::size_t by_domain_singly() {
    const tslab::domain d(*slab, "document");
    tslab::domain_resource m(d);
    return built_and_destroyed(&m);
}
std::size_t by_allocator() {
    static tslab::allocator_resource m(*slab);
    return built_and_destroyed(&m);
}

struct way {
    const char* name;
    std::size_t (*once)();
    std::vector<double> ns{}; /* a document, by repetition */
};

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

double processor_ns() {
    std::timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}
double time_of(const way& w, unsigned documents) {
    const double start = processor_ns();
    std::size_t sum = 0;
    for (unsigned i = 0; i < documents; i++) sum += w.once();
    const double took = processor_ns() - start;
    if (sum != documents * 6u) std::abort();
    return took / documents;
}

/* Counts what a document asks for. */
class counting final : public std::pmr::memory_resource {
  public:
    std::size_t count = 0, bytes = 0, least = SIZE_MAX, most = 0;

  private:
    void* do_allocate(std::size_t size, std::size_t alignment) override {
        count++, bytes += size;
        least = std::min(least, size), most = std::max(most, size);
        return std::pmr::new_delete_resource()->allocate(size, alignment);
    }
    void do_deallocate(void* p, std::size_t size, std::size_t alignment) override {
        std::pmr::new_delete_resource()->deallocate(p, size, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

void describe() {
    counting counted;
    tslab::phase_resource in_phase(*slab, "checked");
    {
        value order, same;
        build(order.is.emplace<object>(&counted), &counted);
        build(same.is.emplace<object>(&in_phase), &in_phase);
        if (weigh(order) != weigh(same)) std::abort();
    }
    std::printf("a document: %zu allocations of %zu to %zu bytes, %zu bytes in all\n", counted.count, counted.least,
                counted.most, counted.bytes);
}

bool number(const char* s, unsigned& out) {
    const char* const end = s + std::strlen(s);
    return std::from_chars(s, end, out).ptr == end && out != 0;
}

} // namespace

int main(int argc, char** argv) {
    unsigned reps = 201, documents = 100;
    const char* json = nullptr;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view option = argv[i];
        const bool known = i + 1 < argc && ((option == "--reps" && number(argv[i + 1], reps)) ||
                                            (option == "--documents" && number(argv[i + 1], documents)) ||
                                            (option == "--json" && (json = argv[i + 1]) != nullptr));
        if (!known) return std::fputs("usage: tslab_documents [--reps N] [--documents N] [--json FILE]\n", stderr), 2;
    }
    static tslab::allocator mine; /* destroyed after the resources that are kept */
    slab = &mine;
    describe();
    way ways[] = {{"new", by_new},
                  {"monotonic", by_monotonic},
                  {"monotonic, left", by_monotonic_left},
                  {"pool", by_pool},
                  {"pool, kept", by_pool_kept},
                  {"phase", by_phase},
                  {"phase, left", by_phase_left},
                  {"phase, kept", by_phase_kept},
                  {"scope", by_scope},
                  {"domain, freed singly", by_domain_singly},
                  {"allocator, freed singly", by_allocator}};
    for (way& w : ways) time_of(w, documents / 10 + 1); /* as warm as they get */
    for (unsigned r = 0; r < reps; r++)
        for (way& w : ways) w.ns.push_back(time_of(w, documents));

    std::FILE* const out = json != nullptr ? std::fopen(json, "w") : nullptr;
    if (json != nullptr && out == nullptr) return std::perror(json), 1;
    std::printf("%-24s %9s %9s   %s\n", "way", "ns", "to new", "least and most of the repetitions");
    for (const way& w : ways) {
        std::vector<double> ratios;
        for (unsigned r = 0; r < reps; r++) ratios.push_back(w.ns[r] / ways[0].ns[r]);
        const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
        std::printf("%-24s %9.0f %9.2f   %.2f %.2f\n", w.name, median(w.ns), median(ratios), *least, *most);
        if (out == nullptr) continue;
        std::fprintf(out, "%s{\"way\": \"%s\", \"ns\": [", &w == ways ? "[" : ",\n ", w.name);
        for (unsigned r = 0; r < reps; r++) std::fprintf(out, "%s%.1f", r != 0 ? ", " : "", w.ns[r]);
        std::fputs("]}", out);
    }
    if (out != nullptr && (std::fputs("]\n", out) < 0 || std::fclose(out) != 0)) return std::perror(json), 1;
    return 0;
}
