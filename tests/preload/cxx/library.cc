// A library that a C program opens: objects, exceptions, thread_local, new handlers, and out of memory.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {
struct alignas(256) Wide {
    char text[300];
};
thread_local std::string of_thread = "each thread has one that is too long to be kept in place";
int handled;
[[noreturn]] void gives_up() {
    ++handled;
    throw std::bad_alloc();
}
const std::size_t too_much = static_cast<std::size_t>(-1) / 4;
} // namespace

extern "C" void* made_here() { return new char[100]; }
extern "C" void unmade_here(void* p) { delete[] static_cast<char*>(p); }

extern "C" const char* all_of_it() {
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < 2000; i++) m["key number " + std::to_string(i % 97) + " of many"].push_back(i);
    if (m.size() != 97) return "a map is wrong";
    auto wide = std::make_unique<Wide>();
    if (reinterpret_cast<std::size_t>(wide.get()) % 256 != 0) return "an aligned object is not";
    std::unique_ptr<Wide[]> wides(new Wide[5]);
    if (reinterpret_cast<std::size_t>(wides.get()) % 256 != 0) return "an aligned array is not";
    std::unique_ptr<Wide> quiet(new (std::nothrow) Wide);
    if (!quiet) return "no aligned object without throwing";
    for (int i = 0; i < 4; i++) {
        std::thread t([] {
            of_thread += of_thread;
            try {
                throw std::runtime_error(of_thread);
            } catch (const std::exception& e) {
                if (std::strlen(e.what()) < 100) std::abort();
            }
        });
        t.join();
    }
    if (new (std::nothrow) char[too_much] != nullptr || ::operator new(too_much, std::nothrow) != nullptr)
        return "too much memory without throwing";
    if (::operator new(too_much, std::align_val_t(64), std::nothrow) != nullptr) return "too much aligned memory";
    try {
        ::operator delete(::operator new(too_much));
        return "too much memory";
    } catch (const std::bad_alloc&) {
    }
    try {
        ::operator delete[](::operator new[](too_much, std::align_val_t(64)), std::align_val_t(64));
        return "too much aligned memory that throws";
    } catch (const std::bad_alloc&) {
    }
    handled = 0;
    std::set_new_handler(gives_up);
    try {
        ::operator delete[](::operator new[](too_much));
        return "too much memory with a handler";
    } catch (const std::bad_alloc&) {
    }
    std::set_new_handler(nullptr);
    return handled == 1 ? "" : "the handler was not called once";
}
