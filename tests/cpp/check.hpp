/*
 * check.hpp - assertions of the C++ tests, and the runner of their cases.
 *
 * CHECK says where and what when it does not hold, and goes on; any thread may. A case is an entry of the table that
 * check_main runs; the last line is always "N passed, M failed". By a case nothing may stay live in the allocator `slab`.
 */
#ifndef TESTS_CPP_CHECK_HPP
#define TESTS_CPP_CHECK_HPP

#include <atomic>
#include <cstdio>
#include <slab_stats.h>
#include <tslab.hpp>

inline std::atomic<unsigned> check_failures{0};

#define CHECK(...) check_that(static_cast<bool>(__VA_ARGS__), __FILE__, __LINE__, #__VA_ARGS__)
inline void check_that(bool holds, const char* file, int line, const char* what) {
    if (holds) return;
    check_failures++;
    std::fprintf(stderr, "FAILED %s:%d: %s\n", file, line, what);
}

/* The error of what throws E, -1 when nothing is thrown. */
template <class F> int error_of(F&& f) {
    try {
        f();
    } catch (const tslab::bad_alloc& e) {
        return e.error();
    } catch (const std::system_error& e) {
        return e.what()[0] != '\0' ? e.code().value() : -2;
    }
    return -1;
}

inline std::uint64_t live_objects(const tslab::allocator& a) {
    SlabGlobalStats stats;
    slab_stats_global(a.get(), &stats);
    return stats.live_objects;
}
inline std::uint64_t misuses(const tslab::allocator& a) {
    SlabRefusals r;
    slab_stats_refusals(a.get(), &r);
    return r.stale_handle + r.bad_handle + r.double_free + r.stale_free + r.interior_pointer + r.foreign_pointer +
           r.size_mismatch + r.bad_epoch + r.domain_order + r.domain_stale;
}
inline bool in_phase(const void* p, const tslab::allocator& a, std::uint64_t era) {
    std::uint64_t of = 0;
    return slab_ptr_epoch(a.get(), p, nullptr, &of) && of == era;
}

struct check_case {
    const char* name;
    void (*run)(tslab::allocator& slab);
    unsigned misuses = 0; /* that it makes on purpose */
};

template <std::size_t N> int check_main(const check_case (&cases)[N]) {
    unsigned failed = 0;
    for (const check_case& c : cases) {
        const unsigned before = check_failures;
        tslab::allocator slab;
        c.run(slab);
        CHECK(epoch_domain_current() == nullptr);
        CHECK(live_objects(slab) == 0);
        CHECK(misuses(slab) == c.misuses);
        if (check_failures == before) continue;
        failed++;
        std::fprintf(stderr, "FAILED: %s\n", c.name);
    }
    std::printf("%zu passed, %u failed\n", N - failed, failed);
    return failed != 0;
}

#endif
