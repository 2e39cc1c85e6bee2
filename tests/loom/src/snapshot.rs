//! A snapshot of a line beside its owner's refill (`src/state/liveness.c` tsi_line_handed_out
//! and line_state, `src/heap/line.h` tsi_line_hand_out): it takes no object that is handed out
//! meanwhile for a freed one.

use crate::{explore, mutant, unless};
use loom::sync::atomic::{AtomicU64, Ordering::*};
use loom::sync::Arc;
use loom::thread;

struct Line {
    avail: AtomicU64,
    freed: AtomicU64,
    remote: AtomicU64,
    issued: AtomicU64,
}

impl Line {
    fn hand_out(&self, out: u64) {
        let issued = self.issued.load(Relaxed) + out.count_ones() as u64;
        if mutant("ISSUED_FIRST") {
            self.issued.store(issued, Release);
        }
        self.avail.store(out, Release);
        self.freed.store(0, Release);
        if !mutant("ISSUED_FIRST") {
            self.issued.store(issued, unless("ISSUED_RELAXED", Release));
        }
    }

    /// Objects handed out so far.
    fn handed_out(&self) -> u64 {
        let issued = self.issued.load(Acquire);
        issued - self.avail.load(Acquire).count_ones() as u64
    }

    /// Objects that live.
    fn live(&self) -> u64 {
        let remote = self.remote.load(SeqCst);
        let freed = self.freed.load(Acquire);
        let avail = self.avail.load(Acquire);
        (0b11 & !(remote | freed | avail)).count_ones() as u64
    }

    /// Objects ever handed out, and those that live.
    fn look(&self) -> (u64, u64) {
        if mutant("ISSUED_READ_LAST") {
            let live = self.live();
            return (self.handed_out(), live);
        }
        (self.handed_out(), self.live())
    }
}

/// Slot 0 lives all the time. Slot 1 was freed once and is handed out again, then both are let alone.
pub fn check() {
    explore(None, || {
        let line = Arc::new(Line {
            avail: AtomicU64::new(0),
            freed: AtomicU64::new(0b10),
            remote: AtomicU64::new(0),
            issued: AtomicU64::new(2),
        });
        let owner = {
            let line = line.clone();
            thread::spawn(move || {
                line.hand_out(0b10);
                line.avail.store(0, Relaxed); // the owner allocates slot 1
            })
        };
        let reader = {
            let line = line.clone();
            thread::spawn(move || line.look())
        };
        let (handed_out, live) = reader.join().unwrap();
        assert!(live >= 1, "the object in slot 0 is not seen");
        assert!(handed_out.max(live) - live <= 1, "two objects look freed; one was");
        owner.join().unwrap();
        assert_eq!(line.look(), (3, 2));
    });
}
