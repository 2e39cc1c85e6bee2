/* report.c - see report.h. */
#include "stats/report.h"

#include "os/os.h"

#include <string.h>

void tsi_report_keep(const TsiReport* r, TsiKept* out) {
    memcpy(out->settled, r->settled, r->class_count * sizeof *r->settled);
    out->metadata_bytes = r->global.metadata_bytes;
    out->phases_ns = r->phases_ns;
    out->phases_left_out = r->phases_left_out;
    out->epochs_left_out = r->epochs_left_out;
    out->phase_count = r->phase_count;
    out->epoch_rows = r->epoch_rows;
    memcpy(out->phases, r->phases, r->phase_count * sizeof *r->phases);
    memcpy(out->epochs, r->epochs, r->epoch_rows * sizeof *r->epochs);
}

void tsi_report_drop(TsiReport* r) {
    if (r->mapping != NULL) tsi_os.unmap(r->mapping, r->mapping_bytes);
    r->mapping = NULL;
}
