/*
 * coroutine_server.cpp - a server of coroutines on loopback (epoll, C++20): a connection is a task in a phase, which goes on
 * on whatever thread its next event comes to; each of its requests is a scope inside of it.
 *
 * Claim: of 60 connections with 10 requests each every answer is right, each phase ends with what its connection kept, whatever
 * threads it ran on, and nothing is left. Beside it the same coroutines on new and delete.
 *
 *     c++ -O2 -std=c++20 coroutine_server.cpp $(pkg-config --cflags --libs temporal-slab) -pthread && ./a.out
 */
#include <tslab.hpp>

#include <arpa/inet.h>
#include <slab_stats.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory_resource>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr unsigned clients = 4, connections = 15, requests = 10, threads = 2; /* connections of each client */

void must(bool done) {
    if (!done) std::perror("coroutine_server"), std::abort();
}

/* Threads that wait for events, and resume what waits for them. */
class event_loop {
public:
    event_loop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
        must(epoll_ >= 0);
        for (unsigned i = 0; i < threads; i++) threads_.emplace_back([this] { work(); });
    }
    ~event_loop() {
        for (std::thread& t : threads_) t.join();
        close(epoll_);
    }
    void stop() { ends_ = true; }

    /* To be awaited; the coroutine is whatever thread's the event comes to. */
    auto readable(int fd) {
        struct awaiter {
            int epoll, fd;
            bool await_ready() const noexcept { return false; }
            void await_suspend(std::coroutine_handle<> h) const {
                epoll_event e{};
                e.events = EPOLLIN | EPOLLONESHOT;
                e.data.ptr = h.address();
                must(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &e) == 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) == 0);
            }
            void await_resume() const noexcept {}
        };
        return awaiter{epoll_, fd};
    }

private:
    void work() {
        while (!ends_) {
            epoll_event e{};
            if (epoll_wait(epoll_, &e, 1, 10) == 1) std::coroutine_handle<>::from_address(e.data.ptr).resume();
        }
    }
    int epoll_;
    std::atomic<bool> ends_{false};
    std::vector<std::thread> threads_;
};

struct server {
    tslab::allocator* slab; /* NULL: new and delete */
    event_loop loop;
    std::atomic<unsigned> open{0}, answered{0}, moved{0};
    std::atomic<std::uint64_t> ended{0};
};

/* Up to the end of a line, empty at the end of the connection. */
tslab::task<std::string> line(server& s, int fd) {
    std::string text;
    for (char c = 0; c != '\n';) {
        const ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);
        if (n == 1) text += c;
        else if (n < 0 && (errno == EAGAIN || errno == EINTR)) co_await s.loop.readable(fd);
        else co_return std::string();
    }
    co_return text;
}

/* What a request takes, of the scope that the thread is in, or of new. */
std::pmr::string answer(std::pmr::memory_resource& m, std::string_view request) {
    std::pmr::vector<std::pmr::string> words(&m);
    for (unsigned i = 0; i < 20; i++) words.emplace_back(request);
    return std::pmr::string(words[7], &m);
}

tslab::task<void> connection(server& s, int fd) {
    tslab::allocator_resource in_scope(s.slab != nullptr ? s.slab->get() : nullptr);
    std::pmr::memory_resource& m =
        s.slab != nullptr ? static_cast<std::pmr::memory_resource&>(in_scope) : *std::pmr::new_delete_resource();
    std::pmr::vector<std::pmr::string> history(&m); /* of the connection's phase */
    history.reserve(requests);
    std::thread::id last = std::this_thread::get_id();
    for (std::string request; !(request = co_await line(s, fd)).empty();) {
        s.moved += last != std::this_thread::get_id();
        last = std::this_thread::get_id();
        history.emplace_back(request);
        std::optional<tslab::scope> scope;
        if (s.slab != nullptr) scope.emplace(*s.slab, "request");
        const std::pmr::string text = answer(m, request);
        must(send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
        s.answered++;
    }
    close(fd);
}

/* A connection without a phase, for new and delete: a coroutine that nobody awaits. */
struct fire {
    struct promise_type {
        fire get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};
fire begin(server& s, int fd) {
    co_await connection(s, fd);
    s.open--;
}

void serve(server& s, int listener) {
    for (unsigned i = 0; i < clients * connections; i++) {
        const int fd = accept(listener, nullptr, nullptr);
        must(fd >= 0);
        s.open++;
        if (s.slab == nullptr) {
            begin(s, fd);
            continue;
        }
        tslab::spawn(tslab::domain(*s.slab, "connection"), connection(s, fd), [&s](const EpochReceipt& r) {
            s.ended += r.objects_allocated;
            s.open--;
        });
    }
    while (s.open != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    s.loop.stop();
}

void ask(const sockaddr_in& where, std::atomic<unsigned>& right) {
    for (unsigned c = 0; c < connections; c++) {
        const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        must(fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0);
        for (unsigned r = 0; r < requests; r++) {
            const std::string text = "a request that is longer than a small string, number " + std::to_string(r) + "\n";
            std::array<char, 200> back{};
            must(send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
            right += recv(fd, back.data(), text.size(), MSG_WAITALL) == static_cast<ssize_t>(text.size()) &&
                     text == std::string_view(back.data(), text.size());
        }
        close(fd);
    }
}

bool run(tslab::allocator* slab) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    must(listener >= 0 && bind(listener, reinterpret_cast<sockaddr*>(&where), size) == 0 && listen(listener, 64) == 0 &&
         getsockname(listener, reinterpret_cast<sockaddr*>(&where), &size) == 0);
    std::atomic<unsigned> right{0};
    std::uint64_t ended = 0, begun = slab_now_ns();
    unsigned moved = 0;
    {
        std::vector<std::thread> asking;
        server s{slab, {}};
        for (unsigned i = 0; i < clients; i++) asking.emplace_back([&] { ask(where, right); });
        serve(s, listener);
        for (std::thread& t : asking) t.join();
        ended = s.ended, moved = s.moved;
    }
    close(listener);
    std::printf("%s %u right answers, a connection went on on another thread %u times, %llu objects of connections, %.1f ms\n",
                slab != nullptr ? "phases " : "new    ", right.load(), moved, static_cast<unsigned long long>(ended),
                static_cast<double>(slab_now_ns() - begun) / 1e6);
    /* Of each connection: its history, and a string a request. */
    return right == clients * connections * requests && (slab == nullptr || ended == clients * connections * (requests + 1));
}

} // namespace

int main() {
    tslab::allocator slab;
    bool holds = run(nullptr);
    holds = run(&slab) && holds;
    SlabGlobalStats left;
    slab_stats_global(slab.get(), &left);
    holds = holds && left.live_objects == 0;
    std::puts(holds ? "claim holds: each connection ended with what it made" : "claim FAILS");
    return holds ? 0 : 1;
}
