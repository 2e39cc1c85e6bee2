/* With misuse_fatal leaving a scope nobody entered ends the program. */
#include "fatal.h"

static void misuse(SlabAllocator* a) {
    epoch_domain_t* d = epoch_domain_begin(a, "a request");
    epoch_domain_exit(d);
    will_say("label \"a request\"", "domain_order, pointer %p", (void*)d);
    epoch_domain_exit(d);
}
