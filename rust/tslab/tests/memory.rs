//! Collections of allocator-api2 and hashbrown in phases and outside of them.
#![cfg(feature = "allocator-api2")]

use allocator_api2::alloc::Allocator as Memory;
use allocator_api2::boxed::Box;
use allocator_api2::vec::Vec;
use hashbrown::{DefaultHashBuilder, HashMap};
use std::alloc::Layout;
use tslab::{Allocator, Bulk};

fn slab() -> Allocator {
    Allocator::new().unwrap()
}

#[test]
fn vectors_grow_shrink_and_give_back() {
    let slab = slab();
    let ((), receipt) = slab
        .scope_with_receipt("vectors", |phase| {
            let mut numbers = Vec::new_in(phase);
            for n in 0..10_000_u32 {
                numbers.push(n);
            }
            assert!(numbers.iter().copied().eq(0..10_000));
            assert!(slab.owns(numbers.as_ptr()));
            numbers.truncate(10);
            numbers.shrink_to_fit();
            assert_eq!(numbers.as_slice(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
            numbers.clear();
            numbers.shrink_to_fit();
            assert_eq!(numbers.capacity(), 0);
            numbers.push(1);
            let mut words = Vec::new_in(phase);
            words.extend((0..100).map(|n| n.to_string()));
            assert_eq!(words[99], "99"); // and the Strings are dropped
        })
        .unwrap();
    assert_eq!(receipt.objects_released, 0);
    assert!(receipt.objects_allocated > 0);
}

#[test]
fn maps() {
    let slab = slab();
    let domain = slab.domain("maps").unwrap();
    let mut words: HashMap<&str, Vec<usize, &tslab::Phase>, DefaultHashBuilder, &tslab::Phase> =
        HashMap::new_in(&domain);
    for (at, word) in "to be or not to be".split(' ').enumerate() {
        words.entry(domain.alloc_str(word)).or_insert_with(|| Vec::new_in(&domain)).push(at);
    }
    assert_eq!(words["be"].as_slice(), [1, 5]);
    assert_eq!(words.len(), 4);
    drop(words);

    let mut counts = HashMap::with_capacity_in(10, Bulk(&domain));
    for n in 0..1000 {
        *counts.entry(n % 7).or_insert(0) += 1;
    }
    assert_eq!(counts.values().sum::<i32>(), 1000);
    drop(counts);
    assert!(slab.stats().live_objects > 4, "what Bulk has handed out stays");
}

#[test]
fn an_owned_box_outlives_what_made_it() {
    let (boxed, mut vector) = {
        let slab = slab();
        let boxed: Box<dyn Fn(i32) -> i32, Allocator> = {
            let plain = Box::new_in(|n| n + 1, slab.clone());
            allocator_api2::unsize_box!(plain)
        };
        let vector: Vec<u8, Allocator> = slab.scope("request", |_| Vec::with_capacity_in(100, slab.clone())).unwrap();
        (boxed, vector)
    };
    assert_eq!(boxed(1), 2);
    vector.extend_from_slice(&[7; 1000]);
    let home = vector.allocator().clone();
    assert_eq!(home.stats().live_objects, 1); // a closure without captures has no bytes
    drop((boxed, vector));
    assert_eq!(home.stats().live_objects, 0);
}

/// Every way of the trait, for sizes and alignments on both sides of the library's own.
fn all_ways(memory: &impl Memory) {
    // SAFETY of both: n bytes, which are set where they are read.
    #[allow(clippy::undocumented_unsafe_blocks)]
    let fill = |p: *mut u8, n: usize| (0..n).for_each(|i| unsafe { p.add(i).write(i as u8) });
    #[allow(clippy::undocumented_unsafe_blocks)]
    let check = |p: *const u8, n: usize| (0..n).all(|i| unsafe { p.add(i).read() } == i as u8);
    let aligned = |p: std::ptr::NonNull<[u8]>, layout: Layout| {
        assert_eq!(p.cast::<u8>().as_ptr() as usize % layout.align(), 0);
        assert_eq!(p.len(), layout.size());
        p.cast::<u8>()
    };
    for align in [1, 8, 16, 64, 8192] {
        for (small, large) in [(0, 100), (1, 2), (100, 5000), (5000, 300_000), (100, 100)] {
            let layout = |n| Layout::from_size_align(n, align).unwrap();
            // SAFETY: each block is given back once, with its layout of the moment.
            unsafe {
                let p = aligned(memory.allocate(layout(small)).unwrap(), layout(small));
                fill(p.as_ptr(), small);
                let p = aligned(memory.grow(p, layout(small), layout(large)).unwrap(), layout(large));
                assert!(check(p.as_ptr(), small));
                fill(p.as_ptr(), large);
                let wide = Layout::from_size_align(large, align * 4).unwrap();
                let p = aligned(memory.grow(p, layout(large), wide).unwrap(), wide);
                assert!(check(p.as_ptr(), large));
                let p = aligned(memory.shrink(p, wide, layout(small)).unwrap(), layout(small));
                assert!(check(p.as_ptr(), small));
                let p = aligned(memory.grow_zeroed(p, layout(small), layout(large)).unwrap(), layout(large));
                assert!(check(p.as_ptr(), small) && (small..large).all(|i| p.as_ptr().add(i).read() == 0));
                memory.deallocate(p, layout(large));
                let p = aligned(memory.allocate_zeroed(layout(large)).unwrap(), layout(large));
                assert!((0..large).all(|i| p.as_ptr().add(i).read() == 0));
                memory.deallocate(p, layout(large));
            }
        }
    }
    let huge = Layout::from_size_align(isize::MAX as usize - 64, 1).unwrap();
    assert!(memory.allocate(huge).is_err());
    assert!(memory.allocate_zeroed(huge).is_err());
    let p = memory.allocate(Layout::new::<[u8; 64]>()).unwrap().cast::<u8>();
    fill(p.as_ptr(), 64);
    // SAFETY: a block of 64 bytes.
    unsafe {
        assert!(memory.grow(p, Layout::new::<[u8; 64]>(), huge).is_err());
        assert!(check(p.as_ptr(), 64), "where growing fails the block stays");
        memory.deallocate(p, Layout::new::<[u8; 64]>());
    }
}

#[test]
fn all_ways_of_memory() {
    let slab = slab();
    let ((), receipt) = slab.scope_with_receipt("ways", |phase| all_ways(&phase)).unwrap();
    assert_eq!(receipt.objects_released, 0, "everything was given back");
    let ((), receipt) = slab.scope_with_receipt("bulk", |phase| all_ways(&Bulk(phase))).unwrap();
    assert_eq!(receipt.objects_freed, 0, "nothing was given back");
    all_ways(&slab);
    all_ways(&&slab);
    assert_eq!(slab.stats().live_objects, 0);
    let refused = slab.refusals();
    assert_eq!((refused.foreign_pointer, refused.double_free, refused.interior_pointer), (0, 0, 0));
}
