/* table.h - which rows this backend can do. Included twice, as the work_*.h that it includes. */
#include "worker/sizes.h"
#include "worker/work_general.h"
#include "worker/work_phases.h"
#include "worker/work_threads.h"
#include "worker/work_churn.h"
#include "worker/work_use.h"
#include "worker/work_loop.h"
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
    [ROW_THREAD_BURSTS] = ROW(thread_bursts),
    [ROW_SURVIVORS] = ROW(survivors),
    [ROW_LATE_FREES] = ROW(late_frees),
    [ROW_DRIFT] = ROW(drift),
    [ROW_SNAPSHOT] = ROW(snapshot),
#endif
#if BK_GENERAL
    [ROW_REQUEST] = ROW(request),
#endif
#if BK_PHASE_FREE
    [ROW_REQUEST_OWN] = ROW(request_own),
    [ROW_IN_DOMAIN] = ROW(in_domain),
#endif
#if BK_GENERAL || BK_BULK
    [ROW_REQUEST_BULK] = ROW(request_bulk),
    [ROW_CHURN_APART] = ROW(churn_apart),
    [ROW_CHURN_LEFT] = ROW(churn_left),
#endif
#if BK_PHASES
    [ROW_DOMAIN] = ROW(domain),
#endif
#if BK_HANDS_OVER
    [ROW_HANDED_ON] = ROW(handed_on),
#endif
#if BK_BY_POINTER && BK_GENERAL && !CHECKING
    [ROW_SHARED_ALLOCATOR] = row_shared_ours,
#else
    [ROW_SHARED_ALLOCATOR] = ROW(shared_allocator),
#endif
#if BK_REALLOC
    [ROW_GROW_LARGE] = ROW(grow_large),
#endif
    [ROW_PHASE10] = ROW(phase10),
    [ROW_LABELS] = ROW(labels),
    [ROW_EVENT_LOOP] = ROW(event_loop),
    [ROW_BIG_PHASE] = ROW(big_phase),
    [ROW_REALLOC_GROW] = ROW(realloc_grow),
    [ROW_LEFT_OVER] = ROW(left_over),
    [ROW_END_TAIL] = ROW(end_tail),
#if BK_GENERAL && BK_PHASE_FREE
    [ROW_REQUEST_TAIL] = ROW(request_tail),
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
