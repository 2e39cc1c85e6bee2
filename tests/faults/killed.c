/*
 * killed.c - processes that are killed (SIGKILL) while others read their segment: no reader crashes, hangs or is given
 * anything that is not whole, and nothing of the process is left behind.
 *
 * The process publishes without a pause, so a kill often comes in the middle of a publication. Three readers read it
 * meanwhile, and again when it is dead. Likewise where the kernel has no memfd and the segment is a file.
 */
#include "kit/inside.h"

#include "slab_segment.h"
#include "slab_stats.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

enum { READERS = 3, READS = 20, KILLS = 25, WORKERS = 3, SECONDS = 300 };

/* ---- the process ---- */

static uint64_t always(void) { return UINT64_MAX / 2; }
static int no_memfd(const char* name) {
    (void)name;
    errno = ENOSYS;
    return -1;
}

static void* publishes(void* arg) {
    SlabAllocator* a = arg;
    uint64_t dice = (uint64_t)(uintptr_t)&dice;
    for (;;) {
        epoch_domain_t* d = epoch_domain_begin(a, "doomed");
        for (unsigned n = 0; n < 200; n++) {
            void* p = slab_malloc(a, kit_rand_size(&dice, 3000));
            if (n % 3 == 0) slab_free(a, p);
        }
        epoch_domain_end(d);
        (void)slab_stats_publish(a);
    }
    return NULL;
}

static bool as_file;
static void doomed(int ready) {
    SlabOptions o = kit_options();
    char c = 0;
    alarm(SECONDS);
    o.segment = 1;
    o.profile_bytes = 4096;
    (void)slab_page_size(); /* the table is filled */
    tsi_os.coarse_ns = always;
    if (as_file) tsi_os.memfd = no_memfd;
    SlabAllocator* a = kit_create_with(&o);
    REQUIRE_STR(slab_last_error(), "");
    REQUIRE(slab_stats_publish(a));
    for (unsigned n = 1; n < WORKERS; n++) (void)kit_thread(publishes, a);
    REQUIRE_EQ(write(ready, &c, 1), 1);
    publishes(a);
}

/* ---- readers ---- */

typedef struct Reader {
    pid_t pid;
    uint64_t number; /* of the publication read last */
    _Atomic uint64_t read, whole;
    uint64_t after, bytes;
} Reader;

static bool swallow(void* ctx, const char* text, size_t n) {
    *(uint64_t*)ctx += n + (text[0] == 0);
    return true;
}

/* Reads one publication; it is whole, or there is none. */
static void read_one(Reader* r, SlabSegment* s) {
    SlabSegmentView view;
    SlabSegmentResult got = slab_segment_read(s, 0, &view);
    REQUIRE(got == SLAB_SEGMENT_OK || got == SLAB_SEGMENT_INCONSISTENT || got == SLAB_SEGMENT_NOTHING);
    atomic_fetch_add(&r->read, 1);
    if (got != SLAB_SEGMENT_OK) return;
    REQUIRE_GE(view.number, r->number);
    r->number = view.number;
    if (view.number % 4 == 0) REQUIRE(slab_segment_json(s, swallow, &r->bytes));
    if (view.number % 4 == 1) REQUIRE(slab_segment_prometheus(s, swallow, &r->bytes));
    if (view.number % 4 == 2) (void)slab_segment_json_all(s, swallow, &r->bytes);
    atomic_fetch_add(&r->whole, 1);
}

static void* reads(void* arg) {
    Reader* r = arg;
    SlabSegment* s = slab_segment_open((uint32_t)r->pid);
    REQUIRE_OR(s != NULL, "%s", slab_last_error());
    while (slab_segment_alive(s)) {
        SlabSegment* again = NULL;
        read_one(r, s);
        if (r->number % 8 == 0) again = slab_segment_open((uint32_t)r->pid); /* NULL once it is dead */
        if (again != NULL) read_one(r, again);
        slab_segment_close(again);
    }
    /* What it had published last is there, or was being overwritten: the same for each try. */
    for (unsigned n = 0; n < 3; n++) {
        uint64_t whole = atomic_load(&r->whole);
        read_one(r, s);
        r->after += atomic_load(&r->whole) - whole;
    }
    REQUIRE(r->after == 0 || r->after == 3);
    REQUIRE_EQ(slab_segment_process(s), SLAB_PROCESS_ENDED);
    slab_segment_close(s);
    return NULL;
}

/* ---- kills ---- */

static unsigned descriptors(void) {
    unsigned n = 0;
    DIR* dir = opendir("/proc/self/fd");
    REQUIRE(dir != NULL);
    while (readdir(dir) != NULL) n++;
    closedir(dir);
    return n;
}

static void kills(void) {
    uint64_t in_the_middle = 0, total = 0;
    unsigned before = descriptors();
    size_t count = check_count(KILLS);
    for (size_t n = 0; n < count; n++) {
        int ready[2], status = 0;
        char c;
        Reader readers[READERS];
        pthread_t t[READERS];
        REQUIRE_EQ(pipe(ready), 0);
        fflush(NULL);
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            doomed(ready[1]);
            _exit(1);
        }
        close(ready[1]);
        REQUIRE_EQ(read(ready[0], &c, 1), 1);
        close(ready[0]);
        for (unsigned i = 0; i < READERS; i++) {
            memset(&readers[i], 0, sizeof readers[i]);
            readers[i].pid = pid;
            t[i] = kit_thread(reads, &readers[i]);
        }
        for (unsigned i = 0; i < READERS; i++)
            while (atomic_load(&readers[i].read) < READS) kit_sleep_us(100);
        REQUIRE_EQ(kill(pid, SIGKILL), 0);
        for (unsigned i = 0; i < READERS; i++) {
            pthread_join(t[i], NULL); /* before it is reaped: a reader knows a dead process for what it is */
            total += atomic_load(&readers[i].whole);
            in_the_middle += readers[i].after == 0;
        }
        REQUIRE_EQ(waitpid(pid, &status, 0), pid);
        REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        errno = 0;
        REQUIRE_NULL(slab_segment_open((uint32_t)pid));
        REQUIRE(errno == ESRCH || errno == ENOENT);
    }
    REQUIRE_EQ(descriptors(), before);
    printf("  %zu kills; %" PRIu64 " publications were read, and %" PRIu64 " readers of %zu found the last one cut\n",
           count, total, in_the_middle, count * READERS);
}

static void killed_while_it_is_read(void) {
    as_file = false;
    kills();
}

/* The folder of the segment's file is empty afterwards. */
static void killed_with_a_file(void) {
    char folder[] = "/tmp/tslab-killed-XXXXXX", path[64];
    REQUIRE(mkdtemp(folder) != NULL);
    REQUIRE_EQ(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
    as_file = true;
    kills();
    (void)snprintf(path, sizeof path, "%s/temporal-slab", folder);
    REQUIRE_EQ(rmdir(path), 0); /* fails unless it is empty */
    REQUIRE_EQ(rmdir(folder), 0);
}

static const CheckCase cases[] = {
    CHECK_CASE(killed_while_it_is_read),
    CHECK_CASE(killed_with_a_file),
};
CHECK_MAIN(cases)
