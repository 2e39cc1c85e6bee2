// E0521: borrowed data escapes outside of closure
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let mut kept: Option<&mut i32> = None;
    slab.scope("s", |phase| {
        #[cfg(not(good))]
        { kept = Some(phase.alloc(1)); } // here
        let _ = phase;
    })
    .unwrap();
    assert!(kept.is_none());
    kept = None;
    let _ = kept;
}
