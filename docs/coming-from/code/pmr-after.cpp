// The same containers, on a resource over a phase.
#include <epoch_domain.h>
#include <slab_stats.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory_resource>
#include <new>
#include <string>
#include <string_view>

class phase_resource final : public std::pmr::memory_resource {
public:
    phase_resource(SlabAllocator* a, const char* label) : phase_(epoch_domain_create_labeled(a, label)) {
        if (phase_ == nullptr) throw std::bad_alloc();
    }
    ~phase_resource() override { epoch_domain_destroy(phase_); }
    phase_resource(const phase_resource&) = delete;
    phase_resource& operator=(const phase_resource&) = delete;
    void release() noexcept { epoch_domain_reset(phase_); }

private:
    void* do_allocate(std::size_t size, std::size_t alignment) override {
        if (size == 0) size = 1;
        void* p = alignment <= 16 ? epoch_domain_malloc(phase_, size)
                                  : slab_aligned_alloc_epoch(phase_->alloc, alignment, size, phase_->epoch_id);
        if (p == nullptr) throw std::bad_alloc();
        return p;
    }
    void do_deallocate(void* p, std::size_t, std::size_t) override { slab_free(phase_->alloc, p); }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    epoch_domain_t* phase_;
};

static void serve(std::pmr::memory_resource* memory, std::string_view line) {
    std::pmr::map<std::pmr::string, int> counts(memory);
    while (!line.empty()) {
        const auto end = std::min(line.find(' '), line.size());
        counts[std::pmr::string(line.substr(0, end), memory)]++;
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    std::printf("words");
    for (const auto& [word, n] : counts) std::printf(" %s:%d", word.c_str(), n);
    std::printf("\n");
}

int main() {
    SlabAllocator* slab = slab_allocator_create();
    const char* lines[] = {"to be or not to be", "a rose is a rose is a rose that is longer-than-a-small-string"};
    for (const char* line : lines) {
        phase_resource request(slab, "request");
        serve(&request, line);
    }
    SlabGlobalStats left;
    slab_stats_global(slab, &left);
    slab_allocator_free(slab);
    return left.live_objects != 0;
}
