/*
 * request_handler.cpp - a handler of requests: a request is a scope, what it opens is closed by a cleanup, what a session
 * keeps is made outside, and a job that others know by name is cancelled by its handle.
 *
 * Claim: of 5,000 requests, some of which throw, each ends with all it made: its file is closed once, its objects are gone,
 * and what is live is the sessions and nothing else. Beside it the same with new and delete, where each object has an owner.
 *
 *     c++ -O2 -std=c++17 request_handler.cpp $(pkg-config --cflags --libs temporal-slab) && ./a.out
 */
#include <tslab.hpp>

#include <fcntl.h>
#include <slab_stats.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

constexpr unsigned requests = 5000, users = 50;
unsigned opened, closed, failed;

int open_log() {
    const int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (fd < 0) std::abort();
    opened++;
    return fd;
}
void close_log(int fd) noexcept { closed += close(fd) == 0; }

struct session {
    unsigned user = 0, requests = 0;
};
struct job {
    unsigned number = 0;
    char parameters[200] = {};
};

/* ---- with phases ---- */

using sessions = std::map<unsigned, tslab::unique<session>>;

/* Gives the objects that ended with it. */
std::uint64_t handle(const tslab::allocator& slab, sessions& all, unsigned n) {
    tslab::scope request(slab, "request");
    const int log = open_log();
    request.on_end([log]() noexcept { close_log(log); });

    auto& mine = all[n % users];
    if (!mine) mine = tslab::make_unique<session>(tslab::outside(slab)); /* lives on */
    mine->requests++;

    const auto waiting = tslab::make_handle<job>(request); /* a name that may be handed to a timer, say */
    int* const numbers = tslab::make_array<int>(request, 50 + n % 100);
    numbers[49] = static_cast<int>(n);
    if (n % 10 == 3) throw std::runtime_error("a bad request");
    if (n % 10 == 4) waiting.free(slab); /* cancelled: the name is dead from here on */
    if ((waiting.get(slab) == nullptr) != (n % 10 == 4)) std::abort();
    return request.end().objects_released;
}

/* ---- with new and delete ---- */

struct log_owner {
    int fd = open_log();
    log_owner() = default;
    log_owner(const log_owner&) = delete;
    log_owner& operator=(const log_owner&) = delete;
    ~log_owner() { close_log(fd); }
};

void handle_by_new(std::map<unsigned, std::unique_ptr<session>>& all, unsigned n) {
    const log_owner log;
    auto& mine = all[n % users];
    if (!mine) mine = std::make_unique<session>();
    mine->requests++;
    auto waiting = std::make_unique<job>();
    const auto numbers = std::make_unique<int[]>(50 + n % 100);
    numbers[49] = static_cast<int>(n);
    if (n % 10 == 3) throw std::runtime_error("a bad request");
    if (n % 10 == 4) waiting.reset();
}

template <class Handle> double serve(Handle handle_one) {
    opened = closed = failed = 0;
    const std::uint64_t start = slab_now_ns();
    for (unsigned n = 0; n < requests; n++) {
        try {
            handle_one(n);
        } catch (const std::runtime_error&) {
            failed++;
        }
    }
    return static_cast<double>(slab_now_ns() - start) / 1e6;
}

} // namespace

int main() {
    std::map<unsigned, std::unique_ptr<session>> by_new;
    double took = serve([&](unsigned n) { handle_by_new(by_new, n); });
    std::printf("new     %u requests, %u threw, %u logs closed, %zu sessions, %.1f ms\n", requests, failed, closed, by_new.size(), took);

    const tslab::allocator slab;
    bool holds = closed == requests;
    {
        sessions all;
        std::uint64_t ended = 0;
        took = serve([&](unsigned n) { ended += handle(slab, all, n); });
        SlabGlobalStats live;
        slab_stats_global(slab.get(), &live);
        std::printf("phases  %u requests, %u threw, %u logs closed, %llu objects live for %zu sessions, %.1f ms\n", requests, failed,
                    closed, static_cast<unsigned long long>(live.live_objects), all.size(), took);
        holds = holds && closed == requests && opened == requests && failed == requests / 10 && live.live_objects == users;
        holds = holds && ended == requests / 10 * 8 * 2 + requests / 10; /* two each; one where the job was cancelled */
        holds = holds && all.at(7)->requests == requests / users;
    }
    SlabGlobalStats left;
    slab_stats_global(slab.get(), &left);
    holds = holds && left.live_objects == 0;
    std::puts(holds ? "claim holds: requests end with all they made, also those that throw" : "claim FAILS");
    return holds ? 0 : 1;
}
