//! A slot's count, which decides among frees by handle and by pointer (`src/heap/handles.h`,
//! `src/heap/free.c` count_moves, `src/heap/line.c` tsi_counts_even): odd from a free until the
//! owner hands the slot out again, under the next even number.

use crate::{explore, mutant};
use loom::sync::atomic::{AtomicU64, Ordering::*};
use loom::sync::Arc;
use loom::thread;

/// Makes the count odd if it is the handle's. True for the thread that has the right to free.
fn free(count: &AtomicU64, handle: u64) -> bool {
    let now = count.load(Relaxed);
    if now != handle {
        return false;
    }
    if mutant("MOVE_BY_STORE") {
        count.store(now + 1, SeqCst);
        return true;
    }
    count.compare_exchange(now, now + 1, SeqCst, Relaxed).is_ok()
}

/// Two threads free by one handle; the owner, once told, hands the slot out again.
pub fn check() {
    explore(Some(3), || {
        let count = Arc::new(AtomicU64::new(0));
        let told = Arc::new(AtomicU64::new(0));
        let freer = || {
            let (count, told) = (count.clone(), told.clone());
            thread::spawn(move || {
                let freed = free(&count, 0);
                if freed {
                    told.fetch_add(1, SeqCst); // the slot's bit in the remote word
                }
                freed as u64
            })
        };
        let freers = [freer(), freer()];
        let owner = {
            let (count, told) = (count.clone(), told.clone());
            thread::spawn(move || {
                if told.load(Acquire) == 0 {
                    return 0;
                }
                let now = count.load(Relaxed);
                let live = if mutant("NEW_COUNT_MISSING") { now & !1 } else { (now | 1) + 1 };
                count.store(live, Release);
                live
            })
        };
        let live = owner.join().unwrap();
        let freed: u64 = freers.map(|freer| freer.join().unwrap()).iter().sum();
        assert_eq!(freed, 1, "one object, freed by both or by nobody");
        if live != 0 || told.load(Relaxed) == 0 {
            assert_eq!(count.load(Relaxed), live, "an old handle has freed the next object");
        }
    });
}
