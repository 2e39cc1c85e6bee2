//! A region of one object: frees of other threads against the end of its life and the next one
//! (`src/heap/bump.h` tsi_bump_enter, tsi_bump_free_in_life and tsi_bump_leave, `src/mem/region.c`
//! take_word, note_inside and begin_life). There is one generation, so each end uses them up.

use crate::{explore, mutant, unless};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicU8, Ordering::*};
use loom::sync::Arc;
use loom::thread;

const GEN: u64 = 1; // the only generation, and the last
const GEN_SHIFT: u32 = 56;
const ENTERED: u64 = 1 << 40;
const OBJECT: u64 = 1 << 20;
const BY_OTHER: u8 = 0x80;

fn gen_of(word: u64) -> u64 {
    word >> GEN_SHIFT
}
fn entered(word: u64) -> u32 {
    (word >> 40 & 0xffff) as u32
}
fn objects(word: u64) -> u64 {
    word >> 20 & 0xfffff
}

struct Region {
    word: AtomicU64,
    issued: AtomicU64,
    rel: AtomicU64,
    late: AtomicU32,
    byte: AtomicU8, // of the only granule
    object: UnsafeCell<u32>,
}

impl Region {
    /// A region whose object lives.
    fn new() -> Region {
        Region {
            word: AtomicU64::new(GEN << GEN_SHIFT),
            issued: AtomicU64::new(1),
            rel: AtomicU64::new(1),
            late: AtomicU32::new(0),
            byte: AtomicU8::new(GEN as u8),
            object: UnsafeCell::new(0),
        }
    }

    fn touch(&self) {
        // SAFETY: loom panics where another thread's access is not ordered with this one
        self.object.with_mut(|object| unsafe { *object += 1 });
    }

    fn enter(&self) -> Option<u64> {
        let mut word = self.word.load(Acquire);
        loop {
            if gen_of(word) == 0 {
                return None;
            }
            match self.word.compare_exchange(word, word + ENTERED, unless("FREER_RELAXED", SeqCst), Acquire) {
                Ok(_) => return Some(gen_of(word)),
                Err(now) => word = now,
            }
        }
    }

    fn leave(&self, gen: u64, counted: u64) -> bool {
        let mut word = self.word.load(Relaxed);
        loop {
            if gen_of(word) != gen && !mutant("LEAVE_ANY_LIFE") {
                self.late.fetch_sub(1, unless("LATE_RELAXED", Release));
                return false;
            }
            let order = unless("FREER_RELAXED", SeqCst);
            match self.word.compare_exchange(word, word.wrapping_sub(ENTERED) + counted, order, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Frees the object as another thread. True if it has.
    fn free(&self) -> bool {
        let Some(gen) = self.enter() else { return false };
        let mut counted = 0;
        if self.rel.load(Acquire) > 0 && self.byte.load(Acquire) == gen as u8 {
            let marked =
                self.byte.compare_exchange(gen as u8, gen as u8 | BY_OTHER, unless("FREER_RELAXED", SeqCst), Relaxed);
            if marked.is_ok() {
                counted = OBJECT + 1;
            }
        }
        self.leave(gen, counted) && counted != 0
    }

    /// True if no object lives, by the counts and by the map. The owner's.
    fn is_empty(&self) -> bool {
        let word = self.word.load(unless("OWNER_RELAXED", SeqCst));
        objects(word) == self.issued.load(Relaxed) && self.byte.load(Relaxed) != GEN as u8
    }

    /// Ends the life. Returns the objects that others have freed in it. The owner's.
    fn end(&self) -> u64 {
        self.issued.store(0, Release);
        self.rel.store(0, Release);
        let order = if mutant("OWNER_RELAXED") { Relaxed } else { SeqCst };
        let word = self.word.swap(0, order);
        if entered(word) != 0 {
            self.late.fetch_add(entered(word), Relaxed);
        }
        objects(word)
    }

    /// Begins the next life and puts an object there, or refuses while a freer sleeps in an old one. The owner's.
    fn begin(&self) -> bool {
        if !mutant("LATE_IGNORED") && self.late.load(unless("LATE_RELAXED", Acquire)) != 0 {
            return false;
        }
        self.byte.store(0, Relaxed);
        self.word.store(GEN << GEN_SHIFT, Release);
        self.byte.store(GEN as u8, Relaxed);
        self.rel.store(1, Release);
        self.issued.store(1, Release);
        true
    }
}

/// A thread uses the object and frees it; the owner sees the region empty and writes there.
pub fn reuse() {
    explore(Some(3), || {
        let region = Arc::new(Region::new());
        let freer = {
            let region = region.clone();
            thread::spawn(move || {
                region.touch();
                assert!(region.free());
            })
        };
        let owner = {
            let region = region.clone();
            thread::spawn(move || {
                if region.is_empty() {
                    assert_eq!(region.end(), 1);
                    if region.begin() {
                        region.touch();
                    }
                }
            })
        };
        freer.join().unwrap();
        owner.join().unwrap();
    });
}

/// Two threads free the object while the owner ends the life and begins another.
pub fn lives() {
    explore(Some(2), || {
        let region = Arc::new(Region::new());
        let freer = |region: &Arc<Region>| {
            let region = region.clone();
            thread::spawn(move || region.free() as u64)
        };
        let freers = [freer(&region), freer(&region)];
        let owner = {
            let region = region.clone();
            thread::spawn(move || (region.end(), region.begin()))
        };
        let (ended, again) = owner.join().unwrap();
        assert!(ended <= 1, "one object, counted twice");
        let freed: u64 = freers.map(|freer| freer.join().unwrap()).iter().sum();
        let word = region.word.load(Relaxed);
        assert_eq!(entered(word), 0, "a freer has left a life that it has not entered");
        assert_eq!(region.late.load(Relaxed), 0, "a freer that slept is not counted out");
        assert_eq!(freed, ended + objects(word), "a free is counted twice, or not at all");
        if again {
            let marked = region.byte.load(Relaxed) != GEN as u8;
            assert_eq!(marked, objects(word) != 0, "a freer of the old life has marked an object of the next");
        }
    });
}
