/* With misuse_fatal a stale handle ends the program. */
#include "fatal.h"

static void misuse(SlabAllocator* a) {
    SlabHandle h = 0;
    if (alloc_obj(a, 100, &h) != NULL && free_obj(a, h)) {
        will_say("no label", "stale_handle, handle 0x%" PRIx64, h);
        (void)free_obj(a, h);
    }
}
