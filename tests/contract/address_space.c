/*
 * address_space.c - a process that begins under a limit of address space (ulimit -v): an allocator takes of it what it
 * uses, not what it might, shares it with all else that the process maps, and gives it back when it is destroyed.
 *
 * The library asks for the limit as it begins, so each case runs this program again with its name and the limit.
 */
#include "kit/fixture.h"

#include <sys/mman.h>
#include <sys/resource.h>

typedef struct Link {
    struct Link* next;
} Link;
enum { SIZE = 4096 };

/* Bytes of objects until there is no room; they are freed afterwards. */
static size_t fill(SlabAllocator* a, size_t most) {
    Link* chain = NULL;
    size_t n = 0;
    for (Link* l; n < most && (l = slab_malloc(a, SIZE)) != NULL; n += SIZE) {
        memset(l, 7, SIZE);
        l->next = chain;
        chain = l;
    }
    if (n < most) CHECK_EQ(errno, ENOMEM);
    for (Link* l = chain; l != NULL; l = chain) {
        chain = l->next;
        CHECK_EQ(((unsigned char*)l)[SIZE - 1], 7);
        CHECK(slab_free_checked(a, l));
    }
    return n;
}

static size_t of_limit(void) {
    struct rlimit r;
    REQUIRE_EQ(getrlimit(RLIMIT_AS, &r), 0);
    return (size_t)r.rlim_cur;
}

/* More than half of the limit becomes objects, and an allocator that is destroyed leaves all of it to the next one. */
static void what_is_there_is_used(void) {
    for (unsigned n = 0; n < 3; n++) {
        SlabAllocator* a = kit_create();
        size_t got = fill(a, SIZE_MAX / 2);
        CHECK_GE(got, of_limit() / 2);
        CHECK_GE(fill(a, SIZE_MAX / 2), got / 2); /* as before, after it was full */
        slab_allocator_free(a);
    }
}

/* What the process maps has its room beside an allocator that is not full, and what it unmaps is the allocator's. */
static void the_rest_is_the_programs(void) {
    SlabAllocator* a = kit_create();
    REQUIRE_GE(fill(a, 16 * KIT_MIB), 16 * KIT_MIB);
    size_t bytes = of_limit() / 2;
    void* p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(p != MAP_FAILED);
    size_t beside = fill(a, SIZE_MAX / 2);
    CHECK_LE(beside, of_limit() / 2);
    REQUIRE_EQ(munmap(p, bytes), 0);
    CHECK_GT(fill(a, SIZE_MAX / 2), beside);
    slab_allocator_free(a);
}

static void there_may_be_many(void) {
    enum { MANY = 10 };
    SlabAllocator* a[MANY];
    for (unsigned n = 0; n < MANY; n++) {
        a[n] = kit_create();
        CHECK_EQ(fill(a[n], KIT_MIB), KIT_MIB);
    }
    for (unsigned n = 0; n < MANY; n++) slab_allocator_free(a[n]);
}

/* Phases, large objects and handles. */
static void all_of_it_works(void) {
    SlabAllocator* a = kit_create();
    for (unsigned n = 0; n < 100; n++) {
        SlabHandle h;
        epoch_domain_t* d = epoch_domain_create(a);
        void* large = epoch_domain_malloc(d, 2 * KIT_MIB);
        REQUIRE(large != NULL);
        kit_fill(large, 2 * KIT_MIB, n);
        REQUIRE(epoch_domain_malloc(d, 100) != NULL);
        REQUIRE(alloc_obj_epoch(a, 200, epoch_current(a), &h) != NULL);
        CHECK(kit_intact(large, 2 * KIT_MIB, n));
        CHECK(free_obj(a, h));
        CHECK(!free_obj(a, h));
        epoch_domain_destroy(d);
    }
    slab_allocator_free(a);
}

/* Addresses of ended phases are not used again for long, with late access and guards; that takes nothing of the limit. */
static void what_has_ended_costs_nothing(void) {
    enum { SHEET = 65536 };
    SlabOptions options[] = {{.late_access = 1}, {.guard_period = 1}, {.guard_sampling = 16}};
    for (size_t n = 0; n < sizeof options / sizeof *options; n++) {
        options[n].struct_size = sizeof options[n];
        options[n].by_malloc = 2;
        SlabAllocator* a = slab_allocator_create_with(&options[n]);
        REQUIRE(a != NULL);
        size_t objects = 2 * of_limit() / SHEET * (options[n].guard_sampling != 0 ? 16 : 1);
        for (size_t i = 0; i < objects; i++) {
            epoch_domain_t* d = epoch_domain_begin(a, "GET");
            REQUIRE(slab_malloc(a, 48) != NULL);
            REQUIRE(epoch_domain_end(d));
        }
        size_t bytes = of_limit() / 4;
        void* p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        REQUIRE(p != MAP_FAILED);
        REQUIRE_EQ(munmap(p, bytes), 0);
        slab_allocator_free(a);
    }
}

static const struct {
    const char* name;
    void (*fn)(void);
} inside[] = {{"used", what_is_there_is_used},
              {"beside", the_rest_is_the_programs},
              {"many", there_may_be_many},
              {"all", all_of_it_works},
              {"ended", what_has_ended_costs_nothing}};

static int again(const char* name, size_t limit) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit r = {limit, limit};
        if (setrlimit(RLIMIT_AS, &r) == 0) kit_exec_self((char*[]){"again", (char*)(uintptr_t)name, NULL});
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void under(size_t limit, const char* name) {
    if (CHECK_TSAN || CHECK_ASAN) SKIP("a sanitizer cannot live under a limit of address space");
    CHECK_EQ(again(name, limit), 0);
}
static void little_is_used(void) { under(200 * KIT_MIB, "used"); }
static void the_program_has_its_share(void) { under(200 * KIT_MIB, "beside"); }
static void many_of_little(void) { under(400 * KIT_MIB, "many"); }
static void many_of_much(void) { under(100000 * KIT_MIB, "many"); }
static void all_in_little(void) { under(100 * KIT_MIB, "all"); }
static void all_in_much(void) { under(100000 * KIT_MIB, "all"); }
static void ended_in_little(void) { under(200 * KIT_MIB, "ended"); }

/* A limit that the program sets later: guards and late access have their addresses beside a smaller reservation. */
static void set_limit(size_t more) {
    unsigned long pages = 0;
    FILE* f = fopen("/proc/self/statm", "r");
    REQUIRE(f != NULL && fscanf(f, "%lu", &pages) == 1);
    fclose(f);
    struct rlimit r = {pages * slab_page_size() + more, RLIM_INFINITY};
    REQUIRE_EQ(setrlimit(RLIMIT_AS, &r), 0);
}
static void set_later(void) {
    static const SlabOptions options[] = {
        {.quiet = 1}, {.late_access = 1}, {.guard_period = 1}, {.guard_sampling = 16}};
    if (CHECK_TSAN || CHECK_ASAN) SKIP("a sanitizer cannot live under a limit of address space");
    slab_allocator_free(kit_create()); /* the library has asked the system */
    pid_t child = fork();
    if (child == 0) {
        for (size_t more = 240; more <= 500; more += 20) {
            set_limit(more * KIT_MIB);
            for (size_t n = 0; n < sizeof options / sizeof *options; n++) {
                SlabOptions o = options[n];
                o.struct_size = sizeof o;
                o.by_malloc = 2;
                SlabAllocator* a = slab_allocator_create_with(&o);
                REQUIRE(a != NULL);
                CHECK_EQ(fill(a, KIT_MIB), KIT_MIB);
                slab_allocator_free(a);
            }
        }
        _exit(check_failures() != 0);
    }
    int status = 0;
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static const CheckCase cases[] = {
    CHECK_CASE(little_is_used),  CHECK_CASE(the_program_has_its_share),
    CHECK_CASE(many_of_little),  CHECK_CASE(many_of_much),
    CHECK_CASE(all_in_little),   CHECK_CASE(all_in_much),
    CHECK_CASE(ended_in_little), CHECK_CASE(set_later),
};

int main(int argc, char** argv) {
    for (size_t n = 0; argc == 2 && n < sizeof inside / sizeof *inside; n++) {
        if (strcmp(argv[1], inside[n].name) != 0) continue;
        const CheckCase one[] = {{.name = inside[n].name, .run = inside[n].fn}};
        return CHECK_RUN(1, argv, one);
    }
    return CHECK_RUN(argc, argv, cases);
}
