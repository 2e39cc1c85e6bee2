/* closelog.c - see closelog.h. */
#include "state/closelog.h"

uint32_t tsi_closelog_copy(TsiCloseLog* log, EpochReclamation out[TSI_CLOSELOG_ROWS]) {
    tsi_lock_take(&log->lock);
    uint64_t n = log->added < TSI_CLOSELOG_ROWS ? log->added : TSI_CLOSELOG_ROWS;
    for (uint64_t k = 0; k < n; k++) out[k] = log->rows[(log->added - n + k) % TSI_CLOSELOG_ROWS];
    tsi_lock_give(&log->lock);
    return (uint32_t)n;
}

void tsi_closelog_note(TsiCloseLog* log, EpochReclamation row, const TsiCloseTally* tally) {
    tsi_lock_take(&log->lock); /* once: the rows of a close stay together */
    for (unsigned cls = 1; cls <= TSI_CLASS_LARGE; cls++) {
        if (tally->c[cls].scanned == 0 && tally->c[cls].returned == 0 && tally->c[cls].bytes == 0) continue;
        row.class_index = cls - 1;
        row.slabs_recycled = tally->c[cls].returned;
        row.bytes_madvised = tally->c[cls].bytes;
        log->rows[log->added++ % TSI_CLOSELOG_ROWS] = row;
    }
    tsi_lock_give(&log->lock);
}

void tsi_closelog_end(TsiCloseLog* log, const TsiCloseRow* row) {
    tsi_lock_take(&log->lock);
    log->closes[log->closed++ % TSI_CLOSES] = *row;
    tsi_lock_give(&log->lock);
}

uint32_t tsi_closelog_ends(TsiCloseLog* log, TsiCloseRow out[TSI_CLOSES]) {
    tsi_lock_take(&log->lock);
    uint64_t n = log->closed < TSI_CLOSES ? log->closed : TSI_CLOSES;
    for (uint64_t k = 0; k < n; k++) out[k] = log->closes[(log->closed - 1 - k) % TSI_CLOSES];
    tsi_lock_give(&log->lock);
    return (uint32_t)n;
}
