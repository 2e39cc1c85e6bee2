//! Runs: what they make are objects of a phase of their own, which ends with the closure, whichever way that is left.

use std::alloc::Layout;
use std::panic::{catch_unwind, AssertUnwindSafe};

use tslab::{Allocator, ErrorKind, Options};

/// Phases that are open under any label; the ring's epochs have none.
fn open_phases(slab: &Allocator) -> u64 {
    slab.labels().iter().filter(|l| l.label.as_str() != "(unlabeled)").map(|l| l.phases_open).sum()
}

/// Objects of all sizes keep what was written in them, and are counted.
fn makes_of_all_sizes(slab: &Allocator) {
    let sizes = [1, 15, 16, 17, 100, 1000, 4095, 4096, 4097, 70_000];
    let (made, receipt) = slab
        .run_with_receipt("run", |run| {
            let mut made = Vec::new();
            for n in 0..3000_usize {
                let bytes = run.alloc_slice_fill_with(sizes[n % sizes.len()], |i| (n + i) as u8);
                assert_eq!(bytes.as_ptr() as usize % 16, 0);
                made.push(bytes);
            }
            for (n, bytes) in made.iter().enumerate() {
                assert!(bytes.iter().enumerate().all(|(i, &b)| b == (n + i) as u8), "{n}");
            }
            made.len()
        })
        .unwrap();
    assert_eq!((made, receipt.objects_allocated, receipt.objects_released), (3000, 3000, 3000));
    assert_eq!(slab.stats().live_objects, 0);
}

#[test]
fn objects_of_all_sizes() {
    makes_of_all_sizes(&Allocator::new().unwrap());
    makes_of_all_sizes(&Allocator::with_options(&Options::new().shared(true)).unwrap());
    makes_of_all_sizes(&Allocator::with_options(&Options::new().profile_bytes(4096)).unwrap());
}

#[test]
fn functions_are_those_of_a_lane() {
    let slab = Allocator::new().unwrap();
    let ((), receipt) = slab
        .run_with_receipt("run", |run| {
            assert_eq!(run.alloc_str("to be"), "to be");
            assert_eq!(run.alloc_slice_copy(&[1, 2, 3]), [1, 2, 3]);
            assert_eq!(*run.alloc_with(|| *run.alloc(20) + 1), 21); // it may be used while it makes something
            run.alloc(()); // takes no memory
            let wide = run.try_alloc_layout(Layout::from_size_align(100, 256).unwrap()).unwrap();
            assert_eq!(wide.as_ptr() as usize % 256, 0);
            let e = run.try_alloc_slice_fill_with(usize::MAX / 4, |_| 0_u64).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::Size);
        })
        .unwrap();
    assert_eq!(receipt.objects_allocated, 5);
}

#[test]
fn a_panic_ends_it() {
    let slab = Allocator::new().unwrap();
    for _ in 0..100 {
        let left = catch_unwind(AssertUnwindSafe(|| slab.run("run", |run| assert_ne!(*run.alloc(1), 1))));
        assert!(left.is_err());
        assert_eq!((slab.stats().live_objects, open_phases(&slab)), (0, 0));
    }
    assert_eq!(slab.run("run", |run| *run.alloc(7)).unwrap(), 7);
}

#[test]
fn runs_and_scopes_nest() {
    let slab = Allocator::new().unwrap();
    let sum = slab
        .run("outer", |outer| {
            let mut sum = 0;
            for n in 0..500 {
                let a = outer.alloc(n);
                sum += slab.run("inner", |inner| *inner.alloc(*a) + *outer.alloc(1)).unwrap();
                sum += slab.scope("scope", |phase| *phase.alloc(*a) + *outer.alloc(1)).unwrap();
                assert_eq!(*a, n);
            }
            assert_eq!(slab.stats().live_objects, 1500);
            sum
        })
        .unwrap();
    assert_eq!(sum, 2 * (499 * 500 / 2 + 500));
    assert_eq!((slab.stats().live_objects, open_phases(&slab)), (0, 0));
}

#[test]
fn the_thread_is_not_inside() {
    let slab = Allocator::new().unwrap();
    slab.run("run", |_| tslab::with_current(|phase| assert!(phase.is_none()))).unwrap();
}

#[test]
fn objects_are_lent_to_threads_and_each_thread_has_runs() {
    let slab = Allocator::new().unwrap();
    slab.run("run", |run| {
        let numbers = run.alloc_slice_fill_with(4, |_| 0_u64);
        std::thread::scope(|s| {
            for number in numbers.iter_mut() {
                let slab = &slab;
                s.spawn(move || {
                    *number = slab.run("thread", |own| (0..2000).map(|n| *own.alloc(n)).sum()).unwrap();
                });
            }
            for n in 0..2000 {
                assert_eq!(*run.alloc(n), n);
            }
        });
        assert_eq!(numbers, [1_999_000; 4]);
    })
    .unwrap();
    assert_eq!((slab.stats().live_objects, open_phases(&slab)), (0, 0));
}

#[test]
fn memory_that_is_refused_is_said() {
    let slab = Allocator::new().unwrap();
    slab.set_label_budget("run", 0, 64 << 10).unwrap();
    let (made, kind) = slab
        .run("run", |run| {
            for n in 0..100_000 {
                if let Err(e) = run.try_alloc([n; 8]) {
                    return (n, Some(e.kind()));
                }
            }
            (100_000, None)
        })
        .unwrap();
    assert_eq!(kind, Some(ErrorKind::Budget));
    assert!(made > 100, "{made}");
    assert_eq!((slab.stats().live_objects, open_phases(&slab)), (0, 0));
}
