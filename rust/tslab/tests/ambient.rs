//! A program whose memory lies in the phase that the thread is inside of: what `Global::ambient` is for, and what it asks of it.
//! No test runner, whose own things would be allocated in phases.

use tslab::Global;

// SAFETY: what is made inside of a scope below is not used behind it.
#[global_allocator]
static MEMORY: Global = unsafe { Global::ambient() };

fn main() {
    let slab = MEMORY.allocator().unwrap();
    let before = String::from("outside, since no phase was entered");
    let (total, receipt) = slab
        .scope_with_receipt("request", |phase| {
            let words: Vec<String> = (0..100).map(|n| format!("word number {n}")).collect();
            let last = phase.alloc_str(&words[99]);
            assert_eq!(last, "word number 99");
            let total = words.iter().map(String::len).sum::<usize>();
            std::mem::forget(words); // ends with the phase, without 101 frees
            let mut grown = vec![1_u8; 100];
            grown.resize(100_000, 2);
            assert_eq!((grown[99], grown[100]), (1, 2));
            let wide = Box::new(Wide([0; 64]));
            assert_eq!(&*wide as *const Wide as usize % 64, 0);
            total
        })
        .unwrap();
    assert_eq!(total, 90 * 14 + 10 * 13);
    assert!(receipt.objects_allocated >= 100 + 1 + 1 + 2);
    assert!(receipt.objects_released >= 102 && receipt.objects_freed >= 2);
    assert_eq!(receipt.objects_escaped, 0);
    assert!(before.starts_with("outside"));
    println!("{receipt}");
}

#[repr(align(64))]
struct Wide(#[allow(dead_code)] [u8; 64]);
