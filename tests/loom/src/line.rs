//! A line of two slots: frees of other threads, refills and releases
//! (`src/heap/free.c` spot_is_live and set_bit, `src/heap/line.c` take_remote and
//! tsi_line_hand_out, `src/heap/settle.c` renew_words). One remote word stands for both.

use crate::{explore, mutant, unless};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering::*};
use loom::sync::Arc;
use loom::thread;

pub const FULL: u64 = 0b11;

/// Bits of slots in the upper half, the incarnation in the lower one.
fn word(bits: u64, seq: u64) -> u64 {
    bits << 32 | seq
}

pub struct Line {
    avail: AtomicU64,
    freed: AtomicU64,
    remote: AtomicU64,
    tag: AtomicU64, // seq << 8 | state; OWNED or PURGING
    objects: [UnsafeCell<u32>; 2],
}

const OWNED: u64 = 1;
const PURGING: u64 = 3;

fn tag(seq: u64, state: u64) -> u64 {
    seq << 8 | state
}

impl Line {
    fn new() -> Line {
        Line {
            avail: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            remote: AtomicU64::new(word(0, 1)),
            tag: AtomicU64::new(tag(1, OWNED)),
            objects: [UnsafeCell::new(0), UnsafeCell::new(0)],
        }
    }

    fn touch(&self, slot: usize) {
        // SAFETY: loom panics where another thread's access is not ordered with this one
        self.objects[slot].with_mut(|object| unsafe { *object += 1 });
    }

    /// Frees a slot as another thread, under the tag that the call has read. True if it has freed it.
    fn free(&self, slot: usize, seen: u64) -> bool {
        if seen & 0xff != OWNED {
            return false;
        }
        let bit = word(1 << slot, 0);
        loop {
            let (was, gone) = if mutant("CHECK_BACKWARDS") {
                let gone = self.avail.load(Acquire) | self.freed.load(Acquire);
                (self.remote.load(Acquire), gone)
            } else {
                let was = self.remote.load(Acquire);
                let freed = self.freed.load(Acquire);
                (was, freed | self.avail.load(Relaxed))
            };
            if was as u32 as u64 != seen >> 8 && !mutant("FREE_ANY_INCARNATION") {
                return false;
            }
            if (gone >> slot & 1) != 0 || was & bit != 0 {
                return false;
            }
            if self.remote.compare_exchange(was, was | bit, unless("FREE_RELAXED", SeqCst), Relaxed).is_ok() {
                return true;
            }
        }
    }

    /// Moves slots that others have freed to `freed`. The owner's.
    fn take_remote(&self) -> u64 {
        let mut freed = self.freed.load(Relaxed);
        let mut was = self.remote.load(unless("TAKE_NO_ACQUIRE", Acquire));
        let theirs = was >> 32;
        if theirs == 0 {
            return freed;
        }
        freed |= theirs;
        if !mutant("MERGE_CLEARS_FIRST") {
            self.freed.store(freed, Release);
        }
        let order = if mutant("TAKE_NO_ACQUIRE") { Release } else { unless("TAKE_RELAXED", SeqCst) };
        while let Err(now) = self.remote.compare_exchange(was, was & !word(theirs, 0), order, Relaxed) {
            was = now;
        }
        if mutant("MERGE_CLEARS_FIRST") {
            self.freed.store(freed, Release);
        }
        freed
    }

    /// Hands out what is free. The owner's.
    fn refill(&self) {
        let out = self.take_remote();
        if out == 0 || self.avail.load(Relaxed) != 0 {
            return;
        }
        if mutant("FREED_CLEARED_FIRST") {
            self.freed.store(0, Release);
            self.avail.store(out, Release);
        } else {
            self.avail.store(out, Release);
            self.freed.store(0, Release);
        }
    }

    /// Ends the incarnation and begins the next. Returns how many objects lived at that instant. The closer's.
    fn renew(&self) -> u32 {
        self.tag.store(tag(1, PURGING), SeqCst);
        let was = if mutant("RELEASE_BY_STORE") {
            let was = self.remote.load(SeqCst);
            self.remote.store(word(0, 2), SeqCst);
            was
        } else {
            self.remote.swap(word(0, 2), SeqCst)
        };
        self.avail.store(0, Relaxed);
        self.freed.store(0, Relaxed);
        self.tag.store(tag(2, OWNED), SeqCst);
        (FULL & !(was >> 32)).count_ones()
    }

    fn allocate(&self) -> Option<usize> {
        let avail = self.avail.load(Relaxed);
        if avail == 0 {
            return None;
        }
        self.avail.store(avail & (avail - 1), Relaxed);
        Some(avail.trailing_zeros() as usize)
    }
}

/// Two threads use an object each and free it; the owner hands the slots out again and writes there.
pub fn reuse() {
    explore(Some(3), || {
        let line = Arc::new(Line::new());
        let freers: Vec<_> = (0..2)
            .map(|slot| {
                let line = line.clone();
                thread::spawn(move || {
                    line.touch(slot);
                    assert!(line.free(slot, line.tag.load(SeqCst)));
                })
            })
            .collect();
        let owner = {
            let line = line.clone();
            thread::spawn(move || {
                let mut live = 0;
                for _ in 0..2 {
                    line.refill();
                    if let Some(slot) = line.allocate() {
                        line.touch(slot);
                        live |= 1 << slot;
                    }
                }
                live
            })
        };
        for freer in freers {
            freer.join().unwrap();
        }
        let live = owner.join().unwrap();
        let free = line.remote.load(Relaxed) >> 32 | line.freed.load(Relaxed) | line.avail.load(Relaxed);
        assert_eq!((free & live, free | live), (0, FULL), "a slot is lost, or has two owners");
    });
}

/// A thread frees an object; another, which has seen that, frees it again, while the owner takes in and refills. (Two
/// threads that free one object at the same moment are told apart in regions and by handles only.)
pub fn double() {
    explore(Some(3), || {
        let line = Arc::new(Line::new());
        let done = Arc::new(AtomicU64::new(0));
        let owner = {
            let line = line.clone();
            thread::spawn(move || line.refill())
        };
        let first = {
            let (line, done) = (line.clone(), done.clone());
            thread::spawn(move || {
                assert!(line.free(0, line.tag.load(SeqCst)));
                done.store(1, Release);
            })
        };
        let second = thread::spawn(move || {
            let freed = done.load(Acquire) == 1 && line.free(0, line.tag.load(SeqCst));
            assert!(!freed, "an object is freed twice");
        });
        owner.join().unwrap();
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// A closer ends the line's incarnation and begins the next, in which both slots are objects again.
pub fn release() {
    explore(Some(2), || {
        let line = Arc::new(Line::new());
        let freers: Vec<_> = (0..2)
            .map(|slot| {
                let line = line.clone();
                thread::spawn(move || {
                    let seen = line.tag.load(SeqCst);
                    // a call that begins later names an object of the next incarnation
                    seen >> 8 == 1 && line.free(slot, seen)
                })
            })
            .collect();
        let closer = {
            let line = line.clone();
            thread::spawn(move || line.renew())
        };
        let live = closer.join().unwrap();
        let freed: u32 = freers.into_iter().map(|freer| freer.join().unwrap() as u32).sum();
        assert_eq!(freed + live, 2, "the receipt and the frees do not add up");
        assert_eq!(line.remote.load(Relaxed), word(0, 2), "a late free has met the next incarnation");
    });
}
