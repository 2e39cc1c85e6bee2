/* With misuse_fatal leaving a scope nobody entered ends the program. */
#include "fatal.h"

static void misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_create(a);
    epoch_domain_exit(d);
}
