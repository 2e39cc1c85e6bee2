/* With misuse_fatal a double free ends the program. The object's slab is still in its phase: the label is told. */
#include "fatal.h"

static void misuse(SlabAllocator* a) {
    slab_epoch_set_label(a, epoch_current(a), "orders\n");
    void* p = slab_malloc(a, 100);
    will_say("label \"orders?\"", "double_free, pointer %p", p);
    slab_free(a, p);
    slab_free(a, kit_hide(p));
}
