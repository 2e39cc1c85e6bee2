//! Readers without a lock that read again, after the rest, what shows a change (`src/stats/snapshot.c`
//! view_slab, `src/mem/region.c` tsi_region_sum, `src/os/ticks.c` tsi_ticks_draw,
//! `src/stats/report_labels.c` pending_add). The second look comes last only if each load before it
//! acquires, and what it loads was released.

use crate::{explore, mutant, unless};
use loom::sync::atomic::{AtomicU64, Ordering::*};
use loom::sync::Arc;
use loom::thread;

fn words<const N: usize>(values: [u64; N]) -> Arc<[AtomicU64; N]> {
    Arc::new(values.map(AtomicU64::new))
}

/// A slab leaves heap record 1 of phase 1; the record, and then the slab, come to phase 2. A snapshot
/// does not count the slab of one phase for the other.
pub fn view() {
    const TAG: usize = 0; // the slab's: 1 in phase 1, 2 in none, 3 in phase 2
    const REF: usize = 1; // the heap record's phase
    explore(None, || {
        let words = words([1, 1]);
        let owner = {
            let words = words.clone();
            thread::spawn(move || {
                words[TAG].store(2, Release);
                words[REF].store(2, unless("REF_RELAXED", Release));
                words[TAG].store(3, Release);
            })
        };
        let tag = words[TAG].load(SeqCst);
        let phase = words[REF].load(unless("REF_READ_RELAXED", Acquire));
        if tag != 2 && words[TAG].load(SeqCst) == tag {
            assert_eq!(phase, if tag == 1 { 1 } else { 2 }, "the slab is counted for another phase");
        }
        owner.join().unwrap();
    });
}

/// The owner of a region has freed its only object, and begins the next life of the region.
pub fn renewal() {
    const WORD: usize = 0;
    const ISSUED: usize = 1;
    const FREED: usize = 2;
    explore(None, || {
        let words = words([1, 1, 1]);
        let owner = {
            let words = words.clone();
            thread::spawn(move || {
                words[ISSUED].store(0, Release);
                words[FREED].store(0, unless("FREED_RELAXED", Release));
                words[WORD].swap(2, SeqCst);
            })
        };
        let word = words[WORD].load(SeqCst);
        let freed = words[FREED].load(unless("FREED_READ_RELAXED", Acquire));
        let issued = words[ISSUED].load(Acquire);
        if words[WORD].load(Acquire) == word {
            assert!(issued <= freed, "an object looks live that was freed");
        }
        owner.join().unwrap();
    });
}

/// A reader of the clock that may not draw takes the latest line, while two more are drawn.
pub fn ticks() {
    const LINES: usize = 0;
    const PLACES: usize = 1; // of two words each
    explore(None, || {
        let words = words([1, 0, 0, 1, 1]);
        let drawer = {
            let words = words.clone();
            thread::spawn(move || {
                for n in 2..=3 {
                    let place = PLACES + 2 * (n & 1);
                    words[place].store(n as u64, unless("LINE_RELAXED", Release));
                    words[place + 1].store(n as u64, unless("LINE_RELAXED", Release));
                    words[LINES].store(n as u64, Release);
                }
            })
        };
        let n = words[LINES].load(Acquire);
        let place = PLACES + 2 * (n as usize & 1);
        let order = unless("LINE_READ_RELAXED", Acquire);
        let line = [words[place].load(order), words[place + 1].load(order)];
        if words[LINES].load(Acquire) == n {
            assert_eq!(line, [n, n], "parts of two lines");
        }
        drawer.join().unwrap();
    });
}

/// A thread's record of sums turns from label 1 to label 2, and gets a sum of that. A reader of either
/// label takes no sum of the other.
pub fn pending() {
    const WHOSE: usize = 0; // turns << 2 | label
    const SUM: usize = 1;
    const SHARD: usize = 2; // of label 1
    explore(None, || {
        let words = words([1, 1, 0]);
        let owner = {
            let words = words.clone();
            thread::spawn(move || {
                words[SUM].store(0, Release);
                words[SHARD].fetch_add(1, Release);
                words[WHOSE].store(1 << 2 | 2, unless("TURNED_RELAXED", Release));
                words[SUM].store(2, unless("POSTED_RELAXED", Release));
            })
        };
        let shard = words[SHARD].load(Acquire);
        let whose = words[WHOSE].load(Acquire);
        let sum = words[SUM].load(unless("SUM_READ_RELAXED", Acquire));
        if mutant("NO_SECOND_LOOK") || words[WHOSE].load(Relaxed) == whose {
            if whose & 3 == 1 {
                assert!(shard + sum <= 1, "label 1 has too much");
            } else {
                assert!(sum == 0 || sum == 2, "label 2 has a sum of label 1");
            }
        }
        owner.join().unwrap();
    });
}
