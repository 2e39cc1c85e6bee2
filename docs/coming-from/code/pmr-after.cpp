// The same containers, on a phase.
#include <slab_stats.h>
#include <tslab.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>

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
    tslab::allocator slab;
    const char* lines[] = {"to be or not to be", "a rose is a rose is a rose that is longer-than-a-small-string"};
    for (const char* line : lines) {
        tslab::phase_resource request(slab, "request");
        serve(&request, line);
    }
    SlabGlobalStats left;
    slab_stats_global(slab.get(), &left);
    return left.live_objects != 0;
}
