/* refuse.c - see refuse.h. */
#include "heap/refuse.h"

#include "heap/registry.h"

#include <errno.h>
#include <stdlib.h>

void tsi_refuse_count(TsiArena* a, unsigned what) {
    if (tsi_tls.serial == a->serial) tsi_count(&tsi_tls.binding->refused[what]);
    else tsi_add_relaxed(&a->refused[what], 1);
}

void tsi_refuse(TsiArena* a, SlabMisuse what, const void* where) {
    int saved = errno;
    tsi_refuse_count(a, what);
    if (a->options.misuse_fn != NULL) a->options.misuse_fn(a->owner, what, where, a->options.misuse_ctx);
    if (a->options.misuse_fatal) abort();
    errno = saved;
}
