/*
 * shown_profile.h - a reader of the heap profile that this process shows in shared memory, after docs/segment.md, with checks of
 * whatever can be wrong in one. It shares the layout with the library and nothing else.
 */
#ifndef TESTS_CONTRACT_SHOWN_PROFILE_H
#define TESTS_CONTRACT_SHOWN_PROFILE_H

#include <slab_segment.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Shown {
    uint8_t* base; /* NULL: there is none */
    size_t bytes;
    int fd; /* the library's own */
} Shown;

static Shown shown_open(void) {
    char path[64], text[512];
    for (int fd = 0; fd < 64; fd++) {
        struct stat st;
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, text, sizeof text - 1);
        text[n > 0 ? n : 0] = 0;
        if (strncmp(text, "/memfd:tslab-profile", 20) != 0 && strstr(text, "/profile.") == NULL) continue;
        if (fstat(fd, &st) != 0) continue;
        void* p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (p != MAP_FAILED) return (Shown){p, (size_t)st.st_size, fd};
    }
    return (Shown){NULL, 0, -1};
}
static void shown_close(Shown* s) {
    if (s->base != NULL) (void)munmap(s->base, s->bytes);
}

static void shown_copy(const Shown* s, uint64_t at, void* to, size_t bytes) {
    for (size_t n = 0; n < bytes; n += sizeof(uint64_t)) {
        uint64_t v = atomic_load_explicit((_Atomic uint64_t*)(void*)(s->base + at + n), memory_order_acquire);
        memcpy((char*)to + n, &v, sizeof v);
    }
}

static SlabSegmentSlot shown_slot(const Shown* s, unsigned slot) {
    SlabSegmentHeader h;
    SlabSegmentSlot row;
    shown_copy(s, 0, &h, sizeof h);
    shown_copy(s, h.slots.offset + slot * h.slots.stride, &row, sizeof row);
    return row;
}

/* Called in the midst of a copy, when set. */
static void (*shown_pause)(void);

/* Bytes of the latest publication in `to`, or 0: nothing there, or overwritten while it was copied. */
static size_t shown_read(const Shown* s, unsigned slot, void* to, size_t room) {
    SlabProfileBuffer head;
    SlabSegmentSlot row = shown_slot(s, slot);
    uint64_t n = row.sequence / 2;
    if (row.state == SLAB_SEGMENT_FREE || n == 0) return 0;
    shown_copy(s, row.buffer[n & 1], &head, sizeof head);
    if (head.bytes > row.buffer_bytes || head.bytes > room || head.bytes % 8 != 0) head.bytes = 0; /* torn, or a fault */
    size_t half = head.bytes / 16 * 8;
    shown_copy(s, row.buffer[n & 1], to, half);
    if (shown_pause != NULL) shown_pause();
    shown_copy(s, row.buffer[n & 1] + half, (char*)to + half, head.bytes - half);
    if (shown_slot(s, slot).sequence > 2 * n + 2 || head.number != n || head.serial != row.serial) return 0;
    return head.bytes != 0 ? head.bytes : SIZE_MAX; /* SIZE_MAX: accepted and wrong */
}

/* What is wrong with a copy; NULL: nothing. Sums, by a label (NULL: any): what was ever allocated and what is in use. */
static const char* shown_check(const void* copy, size_t bytes, const char* label, double* allocated, double* in_use) {
    const SlabProfileBuffer* head = copy;
    const SlabProfileLive* live = (const SlabProfileLive*)(const void*)(head + 1);
    const char *at = (const char*)(live + head->live), *end = (const char*)copy + bytes;
    static _Thread_local char labels[4096][32];
    *allocated = *in_use = 0;
    if (bytes == SIZE_MAX || head->bytes != bytes) return "length";
    if (head->stacks > 4096 || head->live > 32768 || head->samples < head->stacks) return "counts";
    for (uint64_t n = 0; n < head->stacks; n++) {
        SlabProfileStack s;
        if (at + sizeof s > end) return "stacks beyond the end";
        memcpy(&s, at, sizeof s);
        at += sizeof s + s.depth * sizeof(uint64_t);
        if (s.depth == 0 || s.depth > 32 || at > end) return "depth";
        if (memchr(s.label, 0, sizeof s.label) == NULL || s.label[0] == 0) return "label";
        if (!(s.objects >= 1 && s.bytes >= s.objects)) return "sums";
        memcpy(labels[n], s.label, sizeof s.label);
        if (label == NULL || strcmp(label, s.label) == 0) *allocated += s.bytes;
    }
    if ((size_t)(end - at) != head->makers * sizeof(SlabProfileMaker)) return "not only makers behind the stacks";
    for (uint64_t n = 0; n < head->makers; n++) {
        SlabProfileMaker m;
        memcpy(&m, at + n * sizeof m, sizeof m);
        if (m.stack >= head->stacks) return "stack of a maker";
        if (memchr(m.label, 0, sizeof m.label) == NULL || m.label[0] == 0) return "label of a maker";
    }
    for (uint64_t n = 0; n < head->live; n++) {
        if (live[n].stack >= head->stacks || live[n].bytes == 0 || live[n].era == 0) return "live sample";
        double x = (double)live[n].bytes / (double)head->period, weight = 1 / (1 - __builtin_exp(-x));
        if (label == NULL || strcmp(label, labels[live[n].stack]) == 0) *in_use += weight * (double)live[n].bytes;
    }
    return NULL;
}

#endif
