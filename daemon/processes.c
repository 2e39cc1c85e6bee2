/*
 * processes.c - the statistics segments of this user's processes, through the reader of slab_segment.h.
 *
 * The reader trusts nothing of a segment; what it costs to read one is bounded here, for there is one thread to answer
 * everybody. A segment over SEGMENT_MOST, or a publication with more rows than any has, is refused before it is
 * copied or written out. The list looks at PROCESSES_MOST processes and ALLOCATORS_MOST places of each, stops when
 * SCAN_NS are over, counts what it has left out, and is kept for LIST_NS.
 *
 * Only processes of the very user of this server are read. Root could read any, but who asks over HTTP need not be
 * root.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <slab_alloc.h>
#include <slab_segment.h>

#include "common/json.h"
#include "measure.h"
#include "processes.h"

enum { PROCESSES_MOST = 4096, ALLOCATORS_MOST = 64, ROWS_MOST = 65536, SEGMENT_MOST = 64 << 20 };
#define LATEST_S 3.0 /* whoever works publishes sooner */
#define SCAN_NS 500000000u
#define LIST_NS 1000000000u
#define LIST_LIMIT ((size_t)8 << 20)

/* ---- one process ---- */

static unsigned fail(unsigned code, char* why, size_t size, const char* sentence) {
    (void)snprintf(why, size, "%s", sentence);
    return code;
}

/* 0: a process of our user. 404, 403 else. */
static unsigned look(uint32_t pid) {
    char path[32];
    struct stat st;
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32, pid);
    if (stat(path, &st) != 0) return 404;
    return st.st_uid == geteuid() ? 0 : 403;
}

static unsigned status_of(int error) {
    switch (error) {
    case ESRCH:
    case ENOENT:
        return 404;
    case EACCES:
    case EPERM:
        return 403;
    case EPROTO:
    case EPROTONOSUPPORT:
        return 502;
    default:
        return 503;
    }
}

/* The segment, or NULL with a status and a sentence. */
static SlabSegment* open_segment(uint32_t pid, unsigned* code, char* why, size_t size) {
    SlabSegmentHeader h;
    *code = look(pid);
    if (*code == 403) fail(403, why, size, "the process is another user's, or hides from its own (not dumpable)");
    if (*code == 404) fail(404, why, size, "there is no such process");
    if (*code != 0) return NULL;
    SlabSegment* s = slab_segment_open(pid);
    if (s == NULL) {
        *code = fail(status_of(errno), why, size, slab_last_error());
    } else if (look(pid) != 0 || !slab_segment_alive(s)) { /* the id may have been given anew in between */
        *code = fail(404, why, size, "the process has just ended");
    } else if (!slab_segment_header(s, &h) || h.total_bytes > SEGMENT_MOST) {
        *code = fail(502, why, size, "the segment is larger than any should be");
    }
    if (*code == 0) return s;
    slab_segment_close(s);
    return NULL;
}

static bool rows_are_few(const SlabSegment* s) {
    const SlabSegmentScope* scopes;
    for (uint32_t n = slab_segment_scopes(s, &scopes); n-- > 0;)
        if (slab_segment_rows(s, n).count > ROWS_MOST) return false;
    return true;
}

/* Copies the publication that was asked for. */
static unsigned read_one(SlabSegment* s, int allocator, SlabSegmentView* v, char* why, size_t size) {
    uint32_t places = slab_segment_slots(s);
    bool any = allocator < 0, damaged = false;
    int ended = -1, from = any ? 0 : allocator;
    if (places > ALLOCATORS_MOST) places = ALLOCATORS_MOST;
    for (int n = from; n < (int)places && (any || n == from); n++) {
        SlabSegmentResult r = slab_segment_read(s, (uint32_t)n, v);
        if (r == SLAB_SEGMENT_NO_MEMORY) return fail(503, why, size, "there is no memory to read the segment");
        damaged |= r == SLAB_SEGMENT_INCONSISTENT;
        if (r != SLAB_SEGMENT_OK) continue;
        if (!any || v->state == SLAB_SEGMENT_LIVE) return 200;
        if (ended < 0) ended = n;
    }
    if (damaged)
        return fail(503, why, size, "the numbers are inconsistent: they changed during each of several readings");
    if (ended >= 0 && slab_segment_read(s, (uint32_t)ended, v) == SLAB_SEGMENT_OK) return 200;
    if (!any) return fail(404, why, size, "the process has no such allocator, or it has published nothing yet");
    return fail(503, why, size, "no allocator of the process has published anything yet");
}

/* As the documents say it. */
static const char* state_word(const SlabSegment* s, const SlabSegmentView* v) {
    static const char* const words[] = {"running", "stopped", "ended"};
    return words[v->state == SLAB_SEGMENT_ENDED ? SLAB_PROCESS_ENDED : slab_segment_process(s)];
}

static double age_of(const SlabSegmentView* v) {
    uint64_t now = now_ns();
    return now > v->begun_ns ? (double)(now - v->begun_ns) / 1e9 : 0;
}

/* Looks at the allocators that live besides the one that was read: the process is as fresh as the latest of them, and
 * shows old numbers as soon as one of them has changed and published nothing for LATEST_S. */
static void look_at_others(SlabSegment* s, const SlabSegmentView* v, double* age_s, bool* changed) {
    for (uint32_t n = 0; n < slab_segment_slots(s) && n < ALLOCATORS_MOST; n++) {
        SlabSegmentView other;
        if (n == v->slot || slab_segment_read(s, n, &other) != SLAB_SEGMENT_OK || other.state != SLAB_SEGMENT_LIVE)
            continue;
        double age = age_of(&other);
        *changed |= other.changed && age >= LATEST_S;
        if (age < *age_s) *age_s = age;
    }
}

static unsigned put_health(SlabSegment* s, const SlabSegmentView* v, const struct process_question* q, struct text* out,
                           char* why, size_t size) {
    const char* state = state_word(s, v);
    double age_s = age_of(v);
    bool runs = strcmp(state, "running") == 0, changed = v->changed && age_s >= LATEST_S;
    if (q->allocator < 0 && runs) look_at_others(s, v, &age_s, &changed);
    if (runs && (q->stale_after_s == 0 || (age_s < q->stale_after_s && !changed))) {
        text_format(out, "ok, running, figures of %.1f s ago\n", age_s);
        return 200;
    }
    (void)snprintf(why, size, "the numbers stand still, %s, figures of %.1f s ago%s", state, age_s,
                   changed ? ", changed since" : "");
    return 503;
}

/* More than one allocator that lives. */
static bool are_several(SlabSegment* s) {
    unsigned live = 0;
    for (uint32_t n = 0; n < slab_segment_slots(s) && n < ALLOCATORS_MOST; n++) {
        SlabSegmentView v;
        live += slab_segment_read(s, n, &v) == SLAB_SEGMENT_OK && v.state == SLAB_SEGMENT_LIVE;
    }
    return live > 1;
}

/* The copy is the allocator's that was asked for, until others are looked at. */
static bool put_text(SlabSegment* s, const struct process_question* q, const SlabSegmentView* v, struct text* out) {
    bool stats = q->what == PROCESS_STATS;
    if (q->allocator < 0 && are_several(s)) {
        if (!stats) return slab_segment_prometheus_all(s, text_write, out);
        return slab_segment_json_all(s, text_write, out) && text_write(out, "\n", 1);
    }
    if (q->allocator < 0 && slab_segment_read(s, v->slot, NULL) != SLAB_SEGMENT_OK) return false;
    if (!stats) return slab_segment_prometheus(s, text_write, out);
    return slab_segment_json(s, text_write, out) && text_write(out, "\n", 1);
}

unsigned process_text(const struct process_question* q, struct text* out, char* why, size_t why_size) {
    unsigned code;
    SlabSegmentView v;
    SlabSegment* s = open_segment(q->pid, &code, why, why_size);
    if (s == NULL) return code;
    code = read_one(s, q->allocator, &v, why, why_size);
    if (code == 200 && !rows_are_few(s)) code = fail(502, why, why_size, "the segment has more rows than any should");
    if (code == 200 && q->what == PROCESS_HEALTH) {
        code = put_health(s, &v, q, out, why, why_size);
    } else if (code == 200) {
        if (!put_text(s, q, &v, out))
            code = fail(503, why, why_size, "there is no memory for this answer, or it has more than 64 MiB");
    }
    slab_segment_close(s);
    return code;
}

/* ---- the list ---- */

static void put_command(uint32_t pid, struct json* j) {
    char path[40], name[64];
    (void)snprintf(path, sizeof path, "/proc/%" PRIu32 "/comm", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, name, sizeof name - 1) : 0;
    if (fd >= 0) (void)close(fd);
    if (n > 0 && name[n - 1] == '\n') n--;
    name[n > 0 ? n : 0] = 0;
    json_text(j, "command", name);
}

static void put_age(struct json* j, uint64_t age) {
    if (age == UINT64_MAX) json_text(j, "age_ns", NULL);
    else json_count(j, "age_ns", age);
}

/* A row each for allocators that have published; returns the age of the latest, UINT64_MAX when there is none. */
static uint64_t put_allocators(SlabSegment* s, uint64_t until, struct json* j) {
    uint32_t places = slab_segment_slots(s);
    uint64_t least = UINT64_MAX;
    json_array(j, "allocators");
    for (uint32_t n = 0; n < places && n < ALLOCATORS_MOST && now_ns() < until; n++) {
        SlabSegmentView v;
        SlabSegmentResult r = slab_segment_read(s, n, &v);
        if (r == SLAB_SEGMENT_NOTHING) continue;
        bool whole = r == SLAB_SEGMENT_OK;
        uint64_t now = now_ns(), age = whole && v.published_ns <= now ? now - v.published_ns : UINT64_MAX;
        json_object(j, NULL);
        json_count(j, "allocator", n);
        json_text(j, "state", whole ? state_word(s, &v) : "inconsistent");
        put_age(j, age);
        if (whole) json_bool(j, "changed_since", v.state == SLAB_SEGMENT_LIVE && v.changed);
        json_close(j);
        if (age < least) least = age;
    }
    json_close(j);
    return least;
}

/* A row, if the process has a segment, or something that should be one. */
static void put_process(uint32_t pid, uint64_t until, struct json* j) {
    char why[256];
    unsigned code;
    SlabSegment* s = open_segment(pid, &code, why, sizeof why);
    if (s == NULL && code != 502) return;
    json_line(j, 0);
    json_object(j, NULL);
    json_count(j, "pid", pid);
    put_command(pid, j);
    if (s != NULL) put_age(j, put_allocators(s, until, j));
    else json_text(j, "error", why);
    json_close(j);
    slab_segment_close(s);
}

static bool make_list(struct text* t) {
    unsigned seen = 0, left_out = 0;
    struct json j = {.write = text_write, .ctx = t, .tight = true};
    uint64_t until = now_ns() + SCAN_NS;
    DIR* all = opendir("/proc");
    if (all == NULL) return false;
    json_object(&j, NULL);
    json_array(&j, "processes");
    for (struct dirent* e; (e = readdir(all)) != NULL;) {
        if (!isdigit((unsigned char)e->d_name[0])) continue;
        uint32_t pid = (uint32_t)strtoul(e->d_name, NULL, 10);
        if (look(pid) != 0) continue;
        if (seen++ < PROCESSES_MOST && now_ns() < until) put_process(pid, until, &j);
        left_out += now_ns() >= until || seen > PROCESSES_MOST;
    }
    (void)closedir(all);
    json_close(&j);
    json_line(&j, 0);
    json_count(&j, "left_out", left_out);
    json_close(&j);
    text_put(t, "\n");
    return !t->failed;
}

bool processes_list(struct processes* p, struct text* out) {
    uint64_t now = now_ns();
    if (p->list.bytes == NULL || now - p->made_ns >= LIST_NS) {
        struct text fresh = {.limit = LIST_LIMIT};
        if (!make_list(&fresh)) {
            free(fresh.bytes);
            return false;
        }
        free(p->list.bytes);
        p->list = fresh;
        p->made_ns = now_ns();
    }
    return text_write(out, p->list.bytes, p->list.size);
}
