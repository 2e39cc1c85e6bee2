// Words of a request counted in containers of std::pmr, on a monotonic buffer.
#include <cstdio>
#include <map>
#include <memory_resource>
#include <sstream>
#include <string>

static void serve(std::pmr::memory_resource* memory, const char* line) {
    std::pmr::map<std::pmr::string, int> counts(memory);
    std::istringstream words(line);
    for (std::string word; words >> word;) counts[std::pmr::string(word, memory)]++;
    std::printf("words");
    for (const auto& [word, n] : counts) std::printf(" %s:%d", word.c_str(), n);
    std::printf("\n");
}

int main() {
    const char* lines[] = {"to be or not to be", "a rose is a rose is a rose that is longer-than-a-small-string"};
    for (const char* line : lines) {
        std::pmr::monotonic_buffer_resource request;
        serve(&request, line);
    }
}
