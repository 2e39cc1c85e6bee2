/* refuse.c - see refuse.h. */
#include "heap/refuse.h"

#include "base/probes.h"
#include "heap/charge.h"
#include "heap/free.h"
#include "heap/registry.h"

#include <errno.h>
#include <stdlib.h>

static void count(TsiArena* a, unsigned what) {
    if (tsi_tls.serial == a->serial) tsi_count(&tsi_tls.binding->refused[what]);
    else tsi_add_relaxed(&a->refused[what], 1);
}

void tsi_refuse_count(TsiArena* a, unsigned what) {
    count(a, what);
    tsi_probe_refusal(a->owner, what, NULL);
}

/* A refused pointer into a slab that is still in a phase counts for that phase's label. */
static void count_for_label(TsiArena* a, const void* where) {
    TsiPlace at;
    TsiRef ref;
    TsiPlaceResult place = where != NULL ? tsi_space_locate(&a->space, where, &at) : TSI_PLACE_FOREIGN;
    bool in_slab = place == TSI_PLACE_OK || (place == TSI_PLACE_INTERIOR && at.cls != TSI_CLASS_CONT);
    if (!in_slab || !tsi_slab_ref(a, &at, &ref)) return;
    tsi_add_relaxed(&tsi_label_of(a, tsi_inc(&a->phases, tsi_ref_index(ref)))->refusals, 1);
}

void tsi_refuse(TsiArena* a, SlabMisuse what, const void* where) {
    int saved = errno;
    count(a, what);
    tsi_probe_refusal(a->owner, what, where);
    count_for_label(a, where);
    if (a->options.misuse_fn != NULL) a->options.misuse_fn(a->owner, what, where, a->options.misuse_ctx);
    if (a->options.misuse_fatal) abort();
    errno = saved;
}
