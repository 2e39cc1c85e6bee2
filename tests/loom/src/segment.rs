//! Publications of statistics, and a reader without a lock (`src/stats/segment.c` P1 to P3,
//! `src/api/segment_read.c`): two buffers of two words, one sequence.

use crate::{explore, mutant, unless};
use loom::sync::atomic::{AtomicU64, Ordering::*};
use loom::sync::Arc;
use loom::thread;

struct Segment {
    sequence: AtomicU64,
    buffers: [[AtomicU64; 2]; 2],
}

impl Segment {
    fn publish(&self, n: u64) {
        if !mutant("NOT_ANNOUNCED") {
            self.sequence.store(2 * n - 1, Release);
        }
        for word in &self.buffers[n as usize & 1] {
            word.store(n, unless("WORDS_RELAXED", Release));
        }
        self.sequence.store(2 * n, unless("COMPLETE_RELAXED", Release));
    }

    /// The words of the latest publication, with its number, if the reader accepts them.
    fn read(&self) -> Option<(u64, [u64; 2])> {
        let n = self.sequence.load(Acquire) / 2;
        if n == 0 {
            return None;
        }
        let buffer = &self.buffers[n as usize & 1];
        let words = [buffer[0].load(Acquire), buffer[1].load(Acquire)];
        let whole = mutant("NO_SECOND_LOOK") || self.sequence.load(Acquire) <= 2 * n + 2;
        whole.then_some((n, words))
    }
}

/// One writer of three publications, one reader that looks twice.
pub fn check() {
    explore(Some(3), || {
        let segment = Arc::new(Segment {
            sequence: AtomicU64::new(0),
            buffers: [[AtomicU64::new(0), AtomicU64::new(0)], [AtomicU64::new(0), AtomicU64::new(0)]],
        });
        let writer = {
            let segment = segment.clone();
            thread::spawn(move || (1..=3).for_each(|n| segment.publish(n)))
        };
        let reader = thread::spawn(move || {
            for _ in 0..2 {
                if let Some((n, words)) = segment.read() {
                    assert_eq!(words, [n, n], "parts of two publications");
                }
            }
        });
        writer.join().unwrap();
        reader.join().unwrap();
    });
}
