/* run_tslab_sampled.c - temporal-slab while it samples: what observing costs. */
#define BK_SAMPLING_PERIOD 1024

#include "measure.h"

#include "backend_tslab.h"

#include "phases.h"

const struct backend BACKEND = {
    .name = BACKEND_NAME,
    .version = bk_version,
    .work = {[ROW_PAIR] = work_pair,
             [ROW_BATCH] = work_batch,
             [ROW_BATCH_TAIL] = work_batch_tail,
             [ROW_MIXED] = work_mixed,
             [ROW_REQUEST] = work_request,
             [ROW_REQUEST_BULK] = work_request_bulk,
             [ROW_THREADS] = work_threads,
             [ROW_XTHREAD] = work_xthread,
             [ROW_RSS_POINTER] = work_rss_pointer,
             [ROW_OPEN_PHASES] = work_open_phases},
};
