/* table.h - which rows this backend can do. Included twice, as the work_*.h that it includes. */
#include "worker/sizes.h"
#include "worker/work_general.h"
#include "worker/work_phases.h"
#include "worker/work_threads.h"
#include "worker/work_churn.h"
#include "worker/work_snapshot.h"
#if BK_OURS && BK_GENERAL
#include "worker/work_ours.h"
#endif

static const work_fn ROW(table)[ROW_COUNT] = {
#if BK_GENERAL
    [ROW_PAIR] = ROW(pair),
    [ROW_BATCH] = ROW(batch),
    [ROW_BATCH_TAIL] = ROW(batch_tail),
    [ROW_MIXED] = ROW(mixed),
    [ROW_LIVE] = ROW(live),
    [ROW_THREADS] = ROW(threads),
    [ROW_XTHREAD] = ROW(xthread),
    [ROW_FEW_OBJECTS] = ROW(few_objects),
    [ROW_LATE_FREES] = ROW(late_frees),
    [ROW_DRIFT] = ROW(drift),
    [ROW_SNAPSHOT] = ROW(snapshot),
#endif
#if BK_GENERAL || BK_PHASE_FREE
    [ROW_REQUEST] = ROW(request),
#endif
#if BK_GENERAL || BK_BULK
    [ROW_REQUEST_BULK] = ROW(request_bulk),
    [ROW_CHURN_APART] = ROW(churn_apart),
    [ROW_CHURN_LEFT] = ROW(churn_left),
#endif
#if BK_PHASES
    [ROW_DOMAIN] = ROW(domain),
#endif
    [ROW_PHASE100] = ROW(phase100),
    [ROW_OPEN_PHASES] = ROW(open_phases),
    [ROW_BIG_PHASES] = ROW(big_phases),
    [ROW_RSS] = ROW(rss),
#if BK_OURS && BK_GENERAL
    [ROW_CLOSE_EMPTY] = row_close_empty,
    [ROW_CLOSE_SLABS] = row_close_slabs,
    [ROW_CLOSE_COST] = row_close_cost,
    [ROW_DOMAIN_SHARED] = row_domain_shared,
#endif
};
