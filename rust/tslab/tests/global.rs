//! A program whose memory is the library's.

use std::alloc::{alloc_zeroed, dealloc, realloc, Layout};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::thread;

use tslab::Global;

#[global_allocator]
static MEMORY: Global = Global::new();

#[test]
fn everything_lies_outside_of_phases() {
    let slab = MEMORY.allocator().unwrap();
    let mut kept = Vec::new();
    for round in 0..50_u64 {
        let words = slab
            .scope("request", |phase| {
                let mut words: HashMap<String, Vec<u64>> = HashMap::new();
                for n in 0..100 {
                    words.entry(format!("word {}", n % 10)).or_default().push(n * round);
                }
                phase.alloc_slice_fill_with(10, |i| words[&format!("word {i}")][3]);
                words
            })
            .unwrap();
        assert!(slab.owns(words["word 3"].as_ptr()));
        kept.push(words);
    }
    assert!(kept.iter().enumerate().all(|(round, words)| words["word 7"][9] == 97 * round as u64));
    let rows = slab.labels();
    let row = rows.iter().find(|l| l.label.as_str() == "request").unwrap();
    assert_eq!(row.objects_allocated, 50);
    assert!(row.outside_objects > 50 * 100);
    slab.advance();
    drop(kept);
}

#[test]
fn threads_begin_and_end_and_leave_things_to_their_destructors() {
    thread_local!(static LATE: std::cell::RefCell<Vec<Late>> = const { std::cell::RefCell::new(Vec::new()) });
    struct Late(Arc<String>);
    impl Drop for Late {
        fn drop(&mut self) {
            let more = format!("{} and more", self.0); // allocates while the thread ends
            assert!(more.ends_with("more"));
        }
    }
    let shared = Arc::new(String::from("shared"));
    for _ in 0..10 {
        let workers: Vec<_> = (0..4)
            .map(|n| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    LATE.with(|late| late.borrow_mut().push(Late(shared)));
                    (0..1000).map(|i| (i * n, i.to_string())).collect::<BTreeMap<_, _>>()
                })
            })
            .collect();
        for worker in workers {
            assert!(!worker.join().unwrap().is_empty());
        }
    }
    assert_eq!(Arc::strong_count(&shared), 1);
}

#[test]
fn layouts_of_all_kinds() {
    for align in [1, 16, 32, 4096] {
        for size in [1, 100, 5000, 1_000_000] {
            let layout = Layout::from_size_align(size, align).unwrap();
            // SAFETY: one block, which is resized and freed with its layout of the moment.
            unsafe {
                let p = alloc_zeroed(layout);
                assert!(!p.is_null() && p as usize % align == 0);
                assert!((0..size).all(|i| p.add(i).read() == 0));
                p.add(size - 1).write(7);
                p.write(9);
                let p = realloc(p, layout, size * 3);
                assert!(!p.is_null() && p as usize % align == 0);
                assert!(p.read() == 9 && (size == 1 || p.add(size - 1).read() == 7));
                let p = realloc(p, Layout::from_size_align(size * 3, align).unwrap(), 1);
                assert_eq!(p.read(), 9);
                dealloc(p, Layout::from_size_align(1, align).unwrap());
            }
        }
    }
    let mut huge: Vec<u8> = Vec::new();
    assert!(huge.try_reserve_exact(isize::MAX as usize).is_err());
}
