// Replaces two operators, as programs do with pools of their own: every other operator has to end in these.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

static char pool[1 << 20];
static std::size_t used;
static long made, freed;

void* operator new(std::size_t n) {
    void* p = pool + used;
    used += (n + 15) & ~static_cast<std::size_t>(15);
    if (used > sizeof pool) std::abort();
    ++made;
    return p;
}
void operator delete(void* p) noexcept {
    if (p != nullptr && (p < pool || p >= pool + sizeof pool)) std::abort();
    if (p != nullptr) ++freed;
}

struct Thing {
    std::string text = "longer than what a string has room for by itself";
    int numbers[10];
};

int main() {
    for (int i = 0; i < 20; i++) {
        delete new Thing;             // a sized delete
        delete[] new Thing[3];        // a sized one of an array
        delete new (std::nothrow) Thing;
        delete[] new (std::nothrow) Thing[2];
        std::vector<Thing>(4).clear(); // in the standard library
    }
    if (made != freed || made < 20 * 5) return std::fprintf(stderr, "%ld made, %ld freed\n", made, freed), 1;
    std::puts("done");
}
