//! A phase that only its thread has touched begins and ends by the straight way
//! (`src/heap/ready.c`, `src/phase/epoch.h`): the count of times that its stripe was taken says
//! whether others have put something there.

use crate::{explore, mutant, unless};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering::*};
use loom::sync::Arc;
use loom::thread;

struct Record {
    stripe: AtomicU32,
    word: AtomicU32,        // the era; 0: nobody's
    fast: AtomicU32,        // times that the stripe was taken in this life
    extra: UnsafeCell<u32>, // what others have put there
}

impl Record {
    fn take(&self) {
        while self.stripe.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            thread::yield_now();
        }
    }

    fn give(&self) {
        self.stripe.store(0, unless("STRIPE_RELAXED", Release));
    }

    /// Counts a take of the stripe. Under it.
    fn count(&self) {
        if self.word.load(Relaxed) != 0 {
            self.fast.store(self.fast.load(Relaxed) + 1, Relaxed);
        }
    }

    fn open(&self, era: u32) {
        if mutant("COUNT_SET_LATE") {
            self.word.store(era, Release);
            self.fast.store(0, Relaxed);
        } else {
            self.fast.store(0, Relaxed);
            self.word.store(era, unless("OPENED_RELAXED", Release));
        }
    }

    /// Ends the life. Returns what others had put there.
    fn end(&self, era: u32) -> u32 {
        self.take();
        self.count();
        let straight = self.fast.load(Relaxed) == 1 && self.word.load(Relaxed) == era;
        let mut found = 0;
        if !straight {
            // SAFETY: under the stripe; loom panics if another access is not ordered with this one
            found = self.extra.with_mut(|extra| unsafe { std::mem::take(&mut *extra) });
        }
        self.word.store(0, Relaxed);
        self.give();
        found
    }

    /// Puts something into the phase of the era that the caller has read. True if it has.
    fn put(&self) -> bool {
        let seen = self.word.load(Acquire);
        if seen == 0 {
            return false;
        }
        self.take();
        if !mutant("UNCOUNTED") {
            self.count();
        }
        let still = self.word.load(Relaxed) == seen;
        if still {
            // SAFETY: as in `end`
            self.extra.with_mut(|extra| unsafe { *extra += 1 });
        }
        self.give();
        still
    }
}

/// The owner lives two lives of the record; another thread puts something into whichever it meets, twice.
pub fn check() {
    explore(Some(4), || {
        let record = Arc::new(Record {
            stripe: AtomicU32::new(0),
            word: AtomicU32::new(0),
            fast: AtomicU32::new(0),
            extra: UnsafeCell::new(0),
        });
        let other = {
            let record = record.clone();
            thread::spawn(move || record.put() as u32 + record.put() as u32)
        };
        let owner = thread::spawn(move || {
            (1..=2)
                .map(|era| {
                    record.open(era);
                    record.end(era)
                })
                .sum::<u32>()
        });
        let found = owner.join().unwrap();
        assert_eq!(found, other.join().unwrap(), "what another thread had put there is lost");
    });
}
