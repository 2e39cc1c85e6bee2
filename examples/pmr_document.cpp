/*
 * pmr_document.cpp - documents in containers of std::pmr: each is parsed in a phase, read, and dropped with the phase.
 *
 * Claim: 2,000 documents are parsed, and none of their objects is freed singly: no destructor walks over a document, and
 * nothing is left. Beside it the same containers on new and delete, which free each object. Both read the same.
 *
 *     c++ -O2 -std=c++17 pmr_document.cpp $(pkg-config --cflags --libs temporal-slab) && ./a.out
 */
#include <tslab.hpp>

#include <slab_stats.h>

#include <cctype>
#include <cstdio>
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

/* A name with values, of which each may have values of its own: "order(lines(apple pear) paid)". */
struct element {
    using allocator_type = std::pmr::polymorphic_allocator<char>;
    explicit element(allocator_type a) : name(a), children(a) {}
    element(element&& other, allocator_type a) : name(std::move(other.name), a), children(std::move(other.children), a) {}
    element(element&&) = default;
    std::pmr::string name;
    std::pmr::vector<element> children;
};

static void parse(std::string_view& text, element& into) {
    while (!text.empty() && text[0] != ')') {
        if (text[0] == '(') {
            text.remove_prefix(1);
            parse(text, into.children.back());
            text.remove_prefix(1); /* ) */
        } else if (text[0] == ' ') {
            text.remove_prefix(1);
        } else {
            const std::size_t end = text.find_first_of(" ()");
            into.children.emplace_back();
            into.children.back().name = text.substr(0, end);
            text.remove_prefix(std::min(end, text.size()));
        }
    }
}

static std::size_t read(const element& e) {
    std::size_t sum = e.name.size();
    for (const element& child : e.children) sum += read(child);
    return sum;
}

static std::string written(unsigned n) {
    std::string text = "order(";
    for (unsigned i = 0; i < 20 + n % 7; i++)
        text += "line(article-" + std::to_string(n + i) + " a-description-that-is-longer-than-a-small-string tags(new reduced)) ";
    return text + "paid)";
}

/* new and delete, counted. */
class counted_new final : public std::pmr::memory_resource {
public:
    unsigned long frees = 0;

private:
    void* do_allocate(std::size_t size, std::size_t alignment) override {
        return std::pmr::new_delete_resource()->allocate(size, alignment);
    }
    void do_deallocate(void* p, std::size_t size, std::size_t alignment) override {
        frees++;
        std::pmr::new_delete_resource()->deallocate(p, size, alignment);
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

int main() {
    constexpr unsigned documents = 2000;
    std::size_t with = 0, without = 0;

    counted_new singly;
    std::uint64_t start = slab_now_ns();
    for (unsigned i = 0; i < documents; i++) {
        const std::string text = written(i);
        std::string_view rest = text;
        element root{&singly};
        parse(rest, root);
        without += read(root);
    }
    std::printf("new     %lu frees, %.1f ms\n", singly.frees, static_cast<double>(slab_now_ns() - start) / 1e6);

    tslab::allocator slab;
    std::uint64_t ended = 0;
    start = slab_now_ns();
    for (unsigned i = 0; i < documents; i++) {
        const std::string text = written(i);
        std::string_view rest = text;
        tslab::phase_resource memory(slab, "document");
        element* const root = tslab::make_undestroyed<element>(memory.domain(), element::allocator_type(&memory));
        parse(rest, *root);
        with += read(*root);
        ended += memory.domain().end().objects_released; /* without it the closing brace would end the phase */
    }
    SlabGlobalStats left;
    slab_stats_global(slab.get(), &left);
    std::printf("phases  0 frees, %llu objects ended with %u documents, %.1f ms\n", static_cast<unsigned long long>(ended),
                documents, static_cast<double>(slab_now_ns() - start) / 1e6);

    const bool holds = with == without && ended >= singly.frees && singly.frees > 100000 && left.live_objects == 0;
    std::puts(holds ? "claim holds: documents end without a walk over them" : "claim FAILS");
    return holds ? 0 : 1;
}
