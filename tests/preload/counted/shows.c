/* shows.c - the statistics of a process in its segment, as JSON. Usage: shows PID */
#include <slab_segment.h>

#include <stdio.h>
#include <stdlib.h>

static bool put(void* ctx, const char* bytes, size_t n) {
    (void)ctx;
    return fwrite(bytes, 1, n, stdout) == n;
}

int main(int argc, char** argv) {
    SlabSegment* s = argc > 1 ? slab_segment_open((uint32_t)atoi(argv[1])) : NULL;
    SlabSegmentView view;
    if (s == NULL || slab_segment_read(s, 0, &view) != SLAB_SEGMENT_OK) return 1;
    return slab_segment_json(s, put, NULL) && fflush(stdout) == 0 ? 0 : 1;
}
