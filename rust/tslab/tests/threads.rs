//! Several threads, threads that end, and a child of fork.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;

use tslab::{with_current, Allocator, Boxed, Domain};

/// A small generator, so that each run does the same.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[test]
fn threads_allocate_in_one_phase_and_objects_go_between_them() {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 2_000;
    let slab = Allocator::new().unwrap();
    for _ in 0..3 {
        let domain = slab.domain("shared").unwrap();
        let dropped = AtomicUsize::new(0);
        struct Tracked<'d>(u64, &'d AtomicUsize);
        impl Drop for Tracked<'_> {
            fn drop(&mut self) {
                self.1.fetch_add(1, SeqCst);
            }
        }
        let made: u64 = thread::scope(|s| {
            let (domain, dropped) = (&domain, &dropped);
            let (to, from): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel::<Boxed<'_, Tracked<'_>>>()).unzip();
            let workers: Vec<_> = from
                .into_iter()
                .enumerate()
                .map(|(id, inbox)| {
                    let to = to.clone();
                    s.spawn(move || {
                        let mut random = Random(id as u64 + 1);
                        let lane = domain.lane();
                        let mut kept = Vec::new();
                        let mut made = 0;
                        for n in 0..ROUNDS {
                            let words = lane.alloc_slice_fill_with(random.below(40) as usize, |i| n + i as u64);
                            kept.push((n, &*words));
                            let boxed = domain.boxed(Tracked(n, dropped));
                            made += 1;
                            match random.below(3) {
                                0 => drop(boxed),
                                _ => to[random.below(THREADS) as usize].send(boxed).unwrap(),
                            }
                            while let Ok(boxed) = inbox.try_recv() {
                                assert!(boxed.0 < ROUNDS);
                            }
                            if n % 64 == 0 {
                                domain.enter(|| with_current(|p| assert_eq!(p.unwrap().era(), domain.era()))).unwrap();
                            }
                        }
                        for (n, words) in kept {
                            assert!(words.iter().copied().eq(n..n + words.len() as u64));
                        }
                        drop(to);
                        for boxed in inbox {
                            assert!(boxed.0 < ROUNDS); // until all have let go of their senders
                        }
                        made
                    })
                })
                .collect();
            drop(to);
            workers.into_iter().map(|w| w.join().unwrap()).sum()
        });
        assert_eq!(dropped.load(SeqCst) as u64, made);
        assert_eq!(made, THREADS * ROUNDS);
        let receipt = domain.end().unwrap();
        assert_eq!(receipt.objects_freed, made);
        assert_eq!(receipt.objects_allocated, receipt.objects_freed + receipt.objects_released);
    }
    assert_eq!(slab.stats().live_objects, 0);
    let refusals = slab.refusals();
    assert_eq!((refusals.double_free, refusals.stale_free, refusals.domain_order), (0, 0, 0));
}

#[test]
fn phases_begin_here_and_end_there() {
    let slab = Allocator::new().unwrap();
    let (to, from) = mpsc::channel::<Domain>();
    thread::scope(|s| {
        s.spawn(move || {
            for (n, mut domain) in from.into_iter().enumerate() {
                domain.alloc_str("from the other side");
                match n % 3 {
                    0 => drop(domain),
                    1 => assert_eq!(domain.end().unwrap().objects_allocated, 3),
                    _ => domain.reset().unwrap(),
                }
            }
        });
        for n in 0..3_000_u64 {
            let domain = slab.domain("sent").unwrap();
            domain.alloc(n);
            domain.lane().alloc(n);
            to.send(domain).unwrap();
        }
        drop(to);
    });
    assert_eq!(slab.stats().live_objects, 0);
    assert_eq!(slab.refusals().domain_order, 0);
}

#[test]
fn what_a_thread_leaves_behind_lives_on() {
    let slab = Allocator::new().unwrap();
    let domain = slab.domain("left").unwrap();
    let kept: Vec<&mut [u64]> = (0..20)
        .map(|n| thread::scope(|s| s.spawn(|| domain.alloc_slice_fill_with(100, |i| i as u64 * n)).join().unwrap()))
        .collect();
    let owned = thread::scope(|s| s.spawn(|| slab.boxed(String::from("of a thread that is gone"))).join().unwrap());
    for (n, values) in kept.iter().enumerate() {
        assert!(values.iter().enumerate().all(|(i, &v)| v == (i * n) as u64));
    }
    assert_eq!(*owned, "of a thread that is gone");
    assert_eq!(domain.end().unwrap().objects_released, 20);
}

/// Clones of an allocator that outlive their thread's main work: they go in the destructor of a thread-local variable.
#[test]
fn a_thread_local_allocator_and_domain_go_with_their_thread() {
    thread_local!(static MINE: std::cell::RefCell<Option<(Boxed<'static, u64>, Domain, Allocator)>> = const { std::cell::RefCell::new(None) });
    static SLAB: std::sync::OnceLock<Allocator> = std::sync::OnceLock::new();
    let slab = SLAB.get_or_init(|| Allocator::new().unwrap());
    for n in 0..20 {
        thread::spawn(move || {
            let domain = slab.domain("of a thread").unwrap();
            domain.alloc(n);
            MINE.with(|mine| *mine.borrow_mut() = Some((slab.boxed(n), domain, slab.clone())));
        })
        .join()
        .unwrap();
    }
    assert_eq!(slab.stats().live_objects, 0);
}

#[test]
fn a_child_of_fork_allocates_frees_and_ends() {
    extern "C" {
        fn fork() -> i32;
        fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(status: i32) -> !;
    }
    let slab = Allocator::new().unwrap();
    let busy = std::sync::atomic::AtomicBool::new(true);
    thread::scope(|s| {
        s.spawn(|| {
            while busy.load(SeqCst) {
                slab.scope("busy", |phase| *phase.alloc(1)).unwrap();
            }
        });
        for _ in 0..20 {
            let mut domain = slab.domain("forked").unwrap();
            let before = domain.boxed(5_u64);
            // SAFETY: the child calls the library, which is made for it, and _exit.
            let pid = unsafe { fork() };
            if pid == 0 {
                let right = *before == 5 && {
                    drop(before);
                    let inside = slab.scope("child", |phase| *phase.alloc(7)).ok();
                    domain.alloc(1);
                    inside == Some(7) && domain.reset().is_ok() && domain.end().is_ok()
                };
                // SAFETY: ends the child, without what the parent's test runner would do.
                unsafe { _exit(if right { 0 } else { 1 }) };
            }
            let mut status = -1;
            // SAFETY: waits for the child of above.
            assert_eq!(unsafe { waitpid(pid, &mut status, 0) }, pid);
            assert_eq!(status, 0);
            assert_eq!(*before, 5);
        }
        busy.store(false, SeqCst);
    });
}
