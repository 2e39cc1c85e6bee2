/*
 * test_segment_reader.c - the reader and files that are not what they should be.
 *
 * The process has no segment of its own: each case makes an image with one publication, spoils it, and holds it open as
 * a process with a segment does. Reading ends, in an error or in numbers, and never in a signal or a wait.
 */
#define _GNU_SOURCE
#include "kit/inside.h"

#include "slab_segment.h"

#include "api/segment.h"
#include "stats/metrics.h"
#include "stats/report.h"
#include "stats/segment_rows.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

enum { NUMBER = 7, SERIAL = 42, SPOILT = 800 };

typedef struct Image {
    uint8_t* at;
    size_t bytes;
    TsiPlan plan;
    int fd;
} Image;

static SlabSegmentHeader* header_in(Image* m) { return (SlabSegmentHeader*)(void*)m->at; }
static SlabSegmentScope* scope_in(Image* m, unsigned n) {
    return (SlabSegmentScope*)(void*)(m->at + m->plan.scopes) + n;
}
static SlabSegmentMetric* metric_in(Image* m, unsigned n) {
    return (SlabSegmentMetric*)(void*)(m->at + m->plan.metrics) + n;
}
static SlabSegmentSlot* slot_in(Image* m) { return (SlabSegmentSlot*)(void*)(m->at + m->plan.slots); }
static uint8_t* buffer_in(Image* m) { return m->at + tsi_plan_buffer(&m->plan, 0, NUMBER & 1); }
static SlabSegmentRows* rows_in(Image* m, unsigned n) {
    return (SlabSegmentRows*)(void*)(buffer_in(m) + sizeof(SlabSegmentBuffer)) + n;
}

static uint64_t start_time(void) {
    char text[1024];
    FILE* f = fopen("/proc/self/stat", "r");
    REQUIRE(f != NULL);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    char* at = strrchr(text, ')') + 2; /* field 3 */
    for (int field = 3; field < 22; field++) at = strchr(at, ' ') + 1;
    return strtoull(at, NULL, 10);
}

static void image_make(Image* m) {
    static TsiReport r;
    tsi_process_init();
    tsi_plan_make(&m->plan, 4096);
    m->bytes = m->plan.total_bytes;
    m->at = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(m->at != MAP_FAILED);
    SlabSegmentHeader* h = header_in(m);
    memcpy(h->magic, SLAB_SEGMENT_MAGIC, 8);
    h->endian = SLAB_SEGMENT_ENDIAN;
    h->major = SLAB_SEGMENT_MAJOR;
    h->header_bytes = sizeof *h;
    h->total_bytes = m->bytes;
    h->pid = (uint64_t)getpid();
    h->start_time = start_time();
    h->scopes = (SlabSegmentTable){m->plan.scopes, TSI_SECTIONS, sizeof(SlabSegmentScope)};
    h->metrics = (SlabSegmentTable){m->plan.metrics, TSI_METRICS, sizeof(SlabSegmentMetric)};
    h->slots = (SlabSegmentTable){m->plan.slots, 1, sizeof(SlabSegmentSlot)};
    tsi_plan_tables(&m->plan, m->at);
    *slot_in(m) = (SlabSegmentSlot){
        .state = SLAB_SEGMENT_LIVE, .serial = SERIAL, .sequence = 2 * NUMBER, .buffer_bytes = m->plan.buffer_bytes};
    slot_in(m)->buffer[0] = tsi_plan_buffer(&m->plan, 0, 0);
    slot_in(m)->buffer[1] = tsi_plan_buffer(&m->plan, 0, 1);
    SlabAllocator* a = kit_create();
    REQUIRE(slab_malloc(a, 100) != NULL);
    REQUIRE(tsi_report_take(tsi_arena(a), &r));
    tsi_plan_rows(&m->plan, &r, buffer_in(m));
    tsi_report_drop(&r);
    slab_allocator_free(a);
    SlabSegmentBuffer* b = (SlabSegmentBuffer*)(void*)buffer_in(m);
    b->number = NUMBER;
    b->serial = SERIAL;
}

/* An open memfd with the first `bytes` of the image. */
static void image_show(Image* m, size_t bytes, bool sealed, mode_t mode) {
    size_t used = tsi_plan_buffer(&m->plan, 1, 0);
    m->fd = memfd_create("temporal-slab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(m->fd >= 0);
    REQUIRE_EQ(fchmod(m->fd, mode), 0);
    REQUIRE_EQ(ftruncate(m->fd, (off_t)bytes), 0);
    if (used > bytes) used = bytes;
    REQUIRE_EQ(pwrite(m->fd, m->at, used, 0), used);
    if (sealed) REQUIRE_EQ(fcntl(m->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
}

static void image_drop(Image* m) {
    if (m->fd >= 0) close(m->fd);
    munmap(m->at, m->bytes);
}

static SlabSegment* open_own(void) { return slab_segment_open((uint32_t)getpid()); }

static bool swallow(void* ctx, const char* bytes, size_t n) {
    (void)bytes;
    *(size_t*)ctx += n;
    return true;
}

/* Everything a reader can ask. */
static SlabSegmentResult read_all(SlabSegment* s) {
    const SlabSegmentScope* scopes;
    const SlabSegmentMetric* metrics;
    SlabSegmentView view;
    SlabSegmentValue v;
    size_t text = 0;
    SlabSegmentResult result = slab_segment_read(s, 0, &view);
    uint32_t scope_count = slab_segment_scopes(s, &scopes), metric_count = slab_segment_metrics(s, &metrics);
    for (uint32_t n = 0; n < metric_count; n++) {
        uint64_t rows = slab_segment_rows(s, metrics[n].scope).count;
        REQUIRE(metrics[n].scope < scope_count && rows <= scopes[metrics[n].scope].capacity);
        for (uint32_t row = 0; row < rows; row++) {
            REQUIRE(slab_segment_value(s, n, row, &v));
            if (v.text != NULL) text += strlen(v.text);
            for (uint32_t k = 0; k < v.entries; k++) text += v.counts[k] & 1;
        }
    }
    bool json = slab_segment_json(s, swallow, &text), prometheus = slab_segment_prometheus(s, swallow, &text);
    if (result == SLAB_SEGMENT_OK)
        REQUIRE((json && prometheus) || errno == ENOMEM);
    else
        REQUIRE(!(json || prometheus));
    return result;
}

/* ---- images ---- */

static void good(Image* m) { (void)m; }
static void newer_minor(Image* m) { header_in(m)->minor = 9; }
static void newer_major(Image* m) { header_in(m)->major = 2; }
static void other_endian(Image* m) { header_in(m)->endian = 0x04030201; }
static void no_magic(Image* m) { header_in(m)->magic[7] = 0; }
static void other_length(Image* m) { header_in(m)->total_bytes -= 4096; }
static void short_header(Image* m) { header_in(m)->header_bytes = 100; }
static void other_pid(Image* m) { header_in(m)->pid++; }
static void earlier_process(Image* m) { header_in(m)->start_time--; }
static void other_boot(Image* m) { memset(header_in(m)->boot_id, 'x', 36); }
static void table_overflows(Image* m) { header_in(m)->metrics.offset = UINT64_MAX - 7; }
static void table_beyond(Image* m) { header_in(m)->slots.offset = m->bytes - 8; }
static void table_odd(Image* m) { header_in(m)->scopes.offset += 4; }
static void table_count(Image* m) { header_in(m)->metrics.count = UINT32_MAX; }
static void table_empty(Image* m) { header_in(m)->scopes.count = 0; }
static void stride_short(Image* m) { header_in(m)->slots.stride = 64; }
static void stride_wraps(Image* m) { header_in(m)->scopes.stride = UINT32_MAX - 7; }
static void scope_overflows(Image* m) { scope_in(m, 3)->offset = UINT64_MAX - 7; }
static void scope_in_head(Image* m) { scope_in(m, 1)->offset = 0; }
static void scope_capacity(Image* m) { scope_in(m, 3)->capacity = UINT32_MAX; }
/* Any number of them would fit. */
static void scope_rows_of_nothing(Image* m) {
    for (unsigned n = 0; n < TSI_METRICS; n++)
        if (metric_in(m, n)->scope == TSI_SECTION_REGISTRY) *metric_in(m, n) = *metric_in(m, 0);
    scope_in(m, TSI_SECTION_REGISTRY)->row_bytes = 0;
    scope_in(m, TSI_SECTION_REGISTRY)->capacity = UINT32_MAX;
}
static void scope_name(Image* m) { memset(scope_in(m, 2)->name, 'x', 32); }
static void scope_form(Image* m) { scope_in(m, 2)->form = 3; }
static void metric_beyond_row(Image* m) { metric_in(m, 9)->offset = UINT32_MAX - 7; }
static void metric_too_long(Image* m) { metric_in(m, 9)->bytes = UINT32_MAX - 7; }
static void metric_of_no_scope(Image* m) { metric_in(m, 9)->scope = TSI_SECTIONS; }
static void metric_odd(Image* m) { metric_in(m, 9)->offset += 1; }
static void metric_name(Image* m) { memset(metric_in(m, 9)->name, 'x', 64); }
static void metric_of_many_bytes(Image* m) { metric_in(m, 9)->bytes = 16; }

static const struct {
    void (*spoil)(Image*);
    int error;
    const char* sentence; /* a part of it */
} openings[] = {
    {good, 0, ""},
    {newer_minor, 0, ""},
    {newer_major, EPROTONOSUPPORT, "another kind (major version 2"},
    {other_endian, EPROTONOSUPPORT, "another kind"},
    {no_magic, EPROTO, "begin like one"},
    {other_length, EPROTO, "length"},
    {short_header, EPROTO, "length"},
    {other_pid, ENOENT, "shows no statistics"},
    {earlier_process, ENOENT, "shows no statistics"},
    {other_boot, EPROTO, "another boot"},
    {table_overflows, EPROTO, "a table is not within"},
    {table_beyond, EPROTO, "a table is not within"},
    {table_odd, EPROTO, "a table is not within"},
    {table_count, EPROTO, "a table is not within"},
    {table_empty, EPROTO, "a table is not within"},
    {stride_short, EPROTO, "a table is not within"},
    {stride_wraps, EPROTO, "a table is not within"},
    {scope_overflows, EPROTO, "a row of its tables"},
    {scope_in_head, EPROTO, "a row of its tables"},
    {scope_capacity, EPROTO, "a row of its tables"},
    {scope_rows_of_nothing, EPROTO, "a row of its tables"},
    {scope_name, EPROTO, "a row of its tables"},
    {scope_form, EPROTO, "a row of its tables"},
    {metric_beyond_row, EPROTO, "a row of its tables"},
    {metric_too_long, EPROTO, "a row of its tables"},
    {metric_of_no_scope, EPROTO, "a row of its tables"},
    {metric_odd, EPROTO, "a row of its tables"},
    {metric_name, EPROTO, "a row of its tables"},
    {metric_of_many_bytes, EPROTO, "a row of its tables"},
};

static void headers_and_tables(void) {
    for (unsigned n = 0; n < sizeof openings / sizeof *openings; n++) {
        for (unsigned sealed = 0; sealed < 2; sealed++) {
            Image m;
            image_make(&m);
            openings[n].spoil(&m);
            image_show(&m, m.bytes, sealed, 0600);
            errno = 0;
            SlabSegment* s = open_own();
            if ((s == NULL) != (openings[n].error != 0) || (s == NULL && errno != openings[n].error))
                FAIL("case %u: errno %d, '%s'", n, errno, slab_last_error());
            if (strstr(slab_last_error(), openings[n].sentence) == NULL)
                FAIL("case %u says '%s'", n, slab_last_error());
            if (s != NULL) REQUIRE_EQ(read_all(s), SLAB_SEGMENT_OK);
            slab_segment_close(s);
            image_drop(&m);
        }
    }
}

static void buffer_overflows(Image* m) { slot_in(m)->buffer[NUMBER & 1] = UINT64_MAX - 7; }
static void buffer_beyond(Image* m) { slot_in(m)->buffer[NUMBER & 1] = m->bytes - 4096; }
static void buffer_odd(Image* m) { slot_in(m)->buffer[NUMBER & 1] += 4; }
static void buffer_short(Image* m) { slot_in(m)->buffer_bytes = 4096; }
static void slot_state(Image* m) { slot_in(m)->state = 77; }
static void free_slot(Image* m) { slot_in(m)->state = SLAB_SEGMENT_FREE; }
static void ended_slot(Image* m) { slot_in(m)->state = SLAB_SEGMENT_ENDED; }
static void nothing_yet(Image* m) { slot_in(m)->sequence = 1; }
static void stopped_writer(Image* m) { slot_in(m)->sequence = 2 * NUMBER + 1; } /* for ever */
static void other_number(Image* m) { slot_in(m)->sequence = 2 * NUMBER + 4; }
static void last_sequence(Image* m) { slot_in(m)->sequence = UINT64_MAX; }
static void taken_anew(Image* m) { slot_in(m)->serial = SERIAL + 1; }
static void many_rows(Image* m) { rows_in(m, 3)->count = scope_in(m, 3)->capacity + 1; }
static void most_rows(Image* m) { rows_in(m, 7)->count = UINT64_MAX; }
static void no_global(Image* m) { rows_in(m, 1)->count = 0; }
static void wild_values(Image* m) {
    memset(buffer_in(m) + m->plan.rows[0], 0xff, m->plan.buffer_bytes - m->plan.rows[0]);
}

/* More rows of what there is one of: in the file they fit. */
static void many_globals(Image* m) {
    for (unsigned n = 0; n < TSI_SECTIONS; n++) {
        if (scope_in(m, n)->form == SLAB_SEGMENT_ARRAY) continue;
        scope_in(m, n)->form = SLAB_SEGMENT_ARRAY;
        scope_in(m, n)->capacity = 4096;
        rows_in(m, n)->count = 4096;
    }
    slot_in(m)->buffer_bytes = m->bytes - slot_in(m)->buffer[NUMBER & 1];
}

static const struct {
    void (*spoil)(Image*);
    SlabSegmentResult result;
} readings[] = {
    {good, SLAB_SEGMENT_OK},
    {many_globals, SLAB_SEGMENT_OK},
    {ended_slot, SLAB_SEGMENT_OK},
    {stopped_writer, SLAB_SEGMENT_OK},
    {wild_values, SLAB_SEGMENT_OK},
    {free_slot, SLAB_SEGMENT_NOTHING},
    {nothing_yet, SLAB_SEGMENT_NOTHING},
    {taken_anew, SLAB_SEGMENT_NOTHING},
    {buffer_overflows, SLAB_SEGMENT_INCONSISTENT},
    {buffer_beyond, SLAB_SEGMENT_INCONSISTENT},
    {buffer_odd, SLAB_SEGMENT_INCONSISTENT},
    {buffer_short, SLAB_SEGMENT_INCONSISTENT},
    {slot_state, SLAB_SEGMENT_INCONSISTENT},
    {other_number, SLAB_SEGMENT_INCONSISTENT},
    {last_sequence, SLAB_SEGMENT_INCONSISTENT},
    {many_rows, SLAB_SEGMENT_INCONSISTENT},
    {most_rows, SLAB_SEGMENT_INCONSISTENT},
    {no_global, SLAB_SEGMENT_INCONSISTENT},
};

static void slots_and_buffers(void) {
    for (unsigned n = 0; n < sizeof readings / sizeof *readings; n++) {
        for (unsigned sealed = 0; sealed < 2; sealed++) {
            Image m;
            image_make(&m);
            readings[n].spoil(&m);
            image_show(&m, m.bytes, sealed, 0600);
            SlabSegment* s = open_own();
            if (s == NULL) FAIL("case %u: '%s'", n, slab_last_error());
            SlabSegmentResult result = read_all(s);
            if (result != readings[n].result) FAIL("case %u: %d instead of %d", n, result, readings[n].result);
            REQUIRE_EQ(slab_segment_read(s, 1, NULL), SLAB_SEGMENT_NOTHING);
            slab_segment_close(s);
            image_drop(&m);
        }
    }
}

/* ---- files ---- */

static void refused(int error, const char* part) {
    errno = 0;
    SlabSegment* s = open_own();
    REQUIRE_NULL(s);
    if (errno != error || strstr(slab_last_error(), part) == NULL) FAIL("errno %d, '%s'", errno, slab_last_error());
}

static void short_and_open_files(void) {
    Image m;
    image_make(&m);
    const size_t lengths[] = {0, 8, 255, 256, 4096};
    for (unsigned n = 0; n < sizeof lengths / sizeof *lengths; n++) {
        image_show(&m, lengths[n], n % 2 != 0, 0600);
        refused(EPROTO, "length");
        close(m.fd);
    }
    image_show(&m, m.bytes, true, 0640);
    refused(EPROTO, "open to other users");
    close(m.fd);
    image_show(&m, m.bytes, true, 0600); /* a bad one beside a good one does not matter */
    Image bad;
    image_make(&bad);
    no_magic(&bad);
    image_show(&bad, bad.bytes, true, 0600);
    SlabSegment* s = open_own();
    REQUIRE(s != NULL);
    REQUIRE(slab_segment_alive(s));
    slab_segment_close(s);
    image_drop(&bad);
    image_drop(&m);
}

static void shrunk_after_opening(void) {
    Image m;
    SlabSegmentHeader h;
    image_make(&m);
    image_show(&m, m.bytes, false, 0600);
    SlabSegment* s = open_own();
    REQUIRE(s != NULL);
    REQUIRE_EQ(read_all(s), SLAB_SEGMENT_OK);
    REQUIRE_EQ(ftruncate(m.fd, 4096), 0);
    REQUIRE_EQ(read_all(s), SLAB_SEGMENT_INCONSISTENT);
    REQUIRE_EQ(ftruncate(m.fd, 0), 0);
    REQUIRE(!slab_segment_header(s, &h));
    slab_segment_close(s);
    image_drop(&m);
}

static void what_is_no_file(void) {
    char folder[] = "/tmp/temporal-slab-test-XXXXXX", path[64], link[64];
    REQUIRE(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof path, "%s/segment.fifo", folder);
    REQUIRE_EQ(mkfifo(path, 0600), 0);
    int fifo = open(path, O_RDWR | O_CLOEXEC); /* opening it for reading alone would wait for a writer */
    REQUIRE(fifo >= 0);
    refused(ENOENT, "shows no statistics");
    close(fifo);
    REQUIRE_EQ(unlink(path), 0);
    REQUIRE_EQ(mkdir(path, 0700), 0);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    refused(ENOENT, "shows no statistics");
    close(dir);
    REQUIRE_EQ(rmdir(path), 0);
    (void)snprintf(link, sizeof link, "%s/segment.link", folder);
    REQUIRE_EQ(symlink("/dev/null", link), 0);
    int opened = open(link, O_PATH | O_NOFOLLOW | O_CLOEXEC); /* the descriptor of a link itself */
    REQUIRE(opened >= 0);
    refused(ENOENT, "shows no statistics");
    close(opened);
    REQUIRE_EQ(unlink(link), 0);
    REQUIRE_EQ(rmdir(folder), 0);
}

/* What lies where a look may never end is known by its mount. */
static void far_file_systems(void) {
    static const char list[] = "24 1 0:22 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
                               "31 24 0:40 / /run/user/7 rw - tmpfs tmpfs rw\n"
                               "77 24 0:51 / /home rw,noatime shared:3 master:1 - nfs4 server:/home rw\n"
                               "78 24 0:52 / /mnt/s rw - fuse.sshfs me@there: rw\n"
                               "79 24 0:53 / /a\n";
    char path[] = "/tmp/temporal-slab-test-XXXXXX";
    int fd = mkstemp(path);
    REQUIRE(fd >= 0 && write(fd, list, sizeof list - 1) == sizeof list - 1);
    const struct {
        long mount;
        bool far, far_without_memory;
    } cases[] = {{24, false, false}, {31, false, false}, {77, true, true}, {78, true, true},
                 {79, true, false},  {5, false, false},  {7, true, false}, {-1, true, false}};
    for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
        if (tsi_segment_is_far(cases[n].mount, 5, path) != cases[n].far) FAIL("mount %ld", cases[n].mount);
        if (tsi_segment_is_far(cases[n].mount, -1, path) != cases[n].far_without_memory)
            FAIL("mount %ld, memory unknown", cases[n].mount);
    }
    REQUIRE_EQ(unlink(path), 0);
    REQUIRE(tsi_segment_is_far(24, 5, path) && !tsi_segment_is_far(24, -1, path)); /* no list */
    close(fd);
}

/* 0: it is not looked at. Of a mount that no list has any more. */
static int open_on_lost_mount(const char* folder, const char* name) {
    char path[96];
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 77;
    if (mount("none", folder, "tmpfs", 0, "mode=700") != 0) return 77;
    (void)snprintf(path, sizeof path, "%s/temporal-slab", folder);
    if (mkdir(path, 0700) != 0) return 1;
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    if (open(path, O_RDWR | O_CREAT, 0600) < 0 || umount2(folder, MNT_DETACH) != 0) return 2;
    if (slab_segment_open((uint32_t)getpid()) != NULL || errno != EPROTO) return 3;
    return strstr(slab_last_error(), "may not answer") != NULL ? 0 : 4;
}

static void a_mount_that_is_gone(void) {
    static const char* const names[] = {"temporal-slab/segment.1", "memfd:temporal-slab"};
    char folder[] = "/tmp/temporal-slab-test-XXXXXX";
    REQUIRE(mkdtemp(folder) != NULL);
    for (unsigned n = 0; n < 2; n++) {
        int status;
        pid_t child = fork();
        if (child == 0) _exit(open_on_lost_mount(folder, names[n]));
        REQUIRE_EQ(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
            REQUIRE_EQ(rmdir(folder), 0);
            SKIP("only root can mount");
        }
        if (status != 0) FAIL("%s: status %#x", names[n], (unsigned)status);
    }
    REQUIRE_EQ(rmdir(folder), 0);
}

/* ---- processes ---- */

static void processes_that_are_not_there(void) {
    int status;
    const uint32_t none[] = {0, 0x7fffffff, UINT32_MAX};
    for (unsigned n = 0; n < 3; n++) {
        REQUIRE_NULL(slab_segment_open(none[n]));
        REQUIRE_EQ(errno, ESRCH);
    }
    pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t info;
    REQUIRE_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    REQUIRE_NULL(slab_segment_open((uint32_t)child)); /* a zombie */
    REQUIRE_EQ(errno, ESRCH);
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE_NULL(slab_segment_open((uint32_t)child));
    REQUIRE_EQ(errno, ESRCH);
    REQUIRE(!slab_segment_alive(NULL));
    REQUIRE_EQ(slab_segment_read(NULL, 0, NULL), SLAB_SEGMENT_NOTHING);
    slab_segment_close(NULL);
}

static void another_users_process(void) {
    int status;
    if (geteuid() != 0) {
        SKIP("only root can become another user");
    }
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        bool ok = setgid(65534) == 0 && setuid(65534) == 0;
        ok = ok && slab_segment_open((uint32_t)parent) == NULL && errno == EACCES &&
             strstr(slab_last_error(), "another user") != NULL;
        _exit(ok ? 0 : 1);
    }
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE_EQ(status, 0);
}

/* ---- a writer that is faster than the reader ---- */

enum { GAP = 4096 }; /* bytes between the words it writes */

typedef struct Writer {
    Image m;
    uint8_t* at; /* a mapping of its own */
    _Atomic bool stop;
} Writer;

/* By the protocol, but only one word of a page each time, so that a copy takes longer than several publications. */
static void* write_fast(void* arg) {
    Writer* w = arg;
    TsiShareWord* sequence = (TsiShareWord*)(void*)(w->at + w->m.plan.slots + offsetof(SlabSegmentSlot, sequence));
    for (uint64_t n = NUMBER + 1; !tsi_load_relaxed(&w->stop); n++) {
        uint8_t* buffer = w->at + tsi_plan_buffer(&w->m.plan, 0, n & 1);
        tsi_store_release(sequence, 2 * n - 1);
        tsi_store_release((TsiShareWord*)(void*)buffer, n);
        for (size_t at = GAP; at + GAP <= w->m.plan.buffer_bytes; at += GAP)
            tsi_store_release((TsiShareWord*)(void*)(buffer + at), n);
        tsi_store_release(sequence, 2 * n);
        if (n % 64 == 0) usleep(300);
    }
    return NULL;
}

static void written_while_it_is_read(void) {
    static Writer w;
    pthread_t t;
    unsigned accepted = 0, newer = 0;
    image_make(&w.m);
    memcpy(w.m.at + tsi_plan_buffer(&w.m.plan, 0, 0), buffer_in(&w.m),
           w.m.plan.buffer_bytes); /* counts are right in both */
    image_show(&w.m, w.m.bytes, true, 0600);
    w.at = mmap(NULL, w.m.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, w.m.fd, 0);
    REQUIRE(w.at != MAP_FAILED);
    SlabSegment* s = open_own();
    REQUIRE(s != NULL);
    REQUIRE_EQ(pthread_create(&t, NULL, write_fast, &w), 0);
    /* Readings cost less than the writer's turn may be away: time bounds them, not their number. */
    for (time_t end = time(NULL) + 120; newer < 500 && time(NULL) < end;) {
        SlabSegmentView v;
        if (slab_segment_read(s, 0, &v) != SLAB_SEGMENT_OK) continue;
        accepted++;
        newer += v.number > NUMBER + 1;
        for (size_t at = GAP; v.number > NUMBER && at + GAP <= s->copy_bytes; at += GAP)
            if (s->copy[at / 8] != v.number)
                FAIL("publication %u has a word of %u", (unsigned)v.number, (unsigned)s->copy[at / 8]);
    }
    tsi_store_relaxed(&w.stop, true);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    REQUIRE(newer == 500 && accepted >= newer);
    slab_segment_close(s);
    munmap(w.at, w.m.bytes);
    image_drop(&w.m);
}

/* ---- at random ---- */

static void spoilt_at_random(void) {
    Image m;
    uint64_t rng = 88172645463325252ull;
    unsigned opened = 0, accepted = 0;
    image_make(&m);
    image_show(&m, m.bytes, false, 0600);
    const size_t places[][2] = {{24, 232},
                                {m.plan.scopes, m.plan.metrics - m.plan.scopes},
                                {m.plan.metrics, m.plan.slots - m.plan.metrics},
                                {m.plan.slots, 128},
                                {tsi_plan_buffer(&m.plan, 0, 1), m.plan.buffer_bytes}};
    for (unsigned n = 0; n < SPOILT; n++) {
        rng ^= rng << 13, rng ^= rng >> 7, rng ^= rng << 17;
        const size_t* place = places[n % 5];
        size_t at = place[0] + (rng >> 8) % (place[1] / 4) * 4;
        uint64_t values[] = {0,  1, UINT32_MAX, UINT64_MAX, UINT64_MAX - 7, m.bytes, (uint64_t)1 << (rng >> 56) % 64,
                             rng},
                 was;
        REQUIRE_EQ(pread(m.fd, &was, 8, (off_t)at), 8);
        REQUIRE_EQ(pwrite(m.fd, &values[rng & 7], 8, (off_t)at), 8);
        SlabSegment* s = open_own();
        opened += s != NULL;
        accepted += s != NULL && read_all(s) == SLAB_SEGMENT_OK;
        slab_segment_close(s);
        REQUIRE_EQ(pwrite(m.fd, &was, 8, (off_t)at), 8);
    }
    printf("of %u spoilt segments %u were opened and %u read\n", SPOILT, opened, accepted);
    REQUIRE(opened > SPOILT / 4 && opened < SPOILT && accepted > SPOILT / 4 && accepted < opened);
    image_drop(&m);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(headers_and_tables),    CHECK_CASE(slots_and_buffers),    CHECK_CASE(short_and_open_files),
        CHECK_CASE(shrunk_after_opening),  CHECK_CASE(what_is_no_file),      CHECK_CASE(processes_that_are_not_there),
        CHECK_CASE(another_users_process), CHECK_CASE(spoilt_at_random),     CHECK_CASE(written_while_it_is_read),
        CHECK_CASE(far_file_systems),      CHECK_CASE(a_mount_that_is_gone),
    };
    return CHECK_RUN(argc, argv, tests);
}
