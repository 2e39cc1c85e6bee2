//! The token of a parked line (`src/heap/line.c` T1 to T4, `src/heap/line.h` tsi_line_arm and
//! tsi_line_disarm, `src/heap/free.c` owner_waits): an owner that parks a full line hears of a
//! free. loom takes a sequentially consistent access for an acquire and release one, so those on
//! which two threads' looks depend have a fence here.

use crate::{explore, mutant};
use loom::sync::atomic::{fence, AtomicU64, Ordering::*};
use loom::sync::Arc;
use loom::thread;

const TOKEN: u64 = 1;
const SLOT: u64 = 2; // a slot of either half

struct Line {
    remote: [AtomicU64; 2],
    inbox: AtomicU64,
}

fn look(word: &AtomicU64) -> u64 {
    if mutant("LOOK_RELAXED") {
        return word.load(Relaxed);
    }
    fence(SeqCst);
    word.load(SeqCst)
}

impl Line {
    fn free_slots(&self) -> u64 {
        (look(&self.remote[0]) | look(&self.remote[1])) & !TOKEN
    }

    /// Takes the token out if a slot is free. True for the thread that has it then.
    fn disarm(&self) -> bool {
        let mut word = look(&self.remote[0]);
        while word & TOKEN != 0 {
            if self.free_slots() == 0 {
                return false;
            }
            match self.remote[0].compare_exchange(word, word & !TOKEN, SeqCst, SeqCst) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Frees a slot of a half as another thread.
    fn free(&self, half: usize, slot: u64) {
        let early = mutant("FREER_LOOKS_FIRST").then(|| look(&self.remote[0]));
        self.remote[half].fetch_or(slot, SeqCst); // a compare-exchange in the library
        let word = early.unwrap_or_else(|| look(&self.remote[0]));
        if word & TOKEN != 0 && look(&self.inbox) == 0 && self.disarm() {
            let pushed = self.inbox.compare_exchange(0, 1, SeqCst, SeqCst);
            assert!(pushed.is_ok(), "two threads had the token");
        }
    }

    /// Parks the line. True if it is parked: nothing was free. The owner's.
    fn park(&self) -> bool {
        self.remote[0].fetch_or(TOKEN, SeqCst); // a compare-exchange in the library
        mutant("ARM_NO_RECOUNT") || self.free_slots() == 0
    }
}

/// Two threads free a slot each, in the halves given, while the owner parks.
fn park_beside(halves: [usize; 2]) {
    explore(Some(3), move || {
        let line = Arc::new(Line { remote: [AtomicU64::new(0), AtomicU64::new(0)], inbox: AtomicU64::new(0) });
        let freers = [(halves[0], SLOT), (halves[1], 2 * SLOT)].map(|(half, slot)| {
            let line = line.clone();
            thread::spawn(move || line.free(half, slot))
        });
        let owner = {
            let line = line.clone();
            thread::spawn(move || line.park())
        };
        let parked = owner.join().unwrap();
        for freer in freers {
            freer.join().unwrap();
        }
        let told = line.inbox.load(Relaxed) != 0;
        assert!(!parked || told, "the owner sleeps on free slots");
    });
}

/// Both in the half without the token, and one in each.
pub fn check() {
    park_beside([1, 1]);
    park_beside([0, 1]);
}
