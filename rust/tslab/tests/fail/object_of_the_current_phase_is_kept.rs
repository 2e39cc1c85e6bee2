// E0521: borrowed data escapes outside of closure
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let mut kept: Vec<&str> = Vec::new();
    slab.scope("s", |_| {
        tslab::with_current(|phase| {
            #[cfg(not(good))]
            kept.push(phase.unwrap().alloc_str("text")); // here
            kept.push(if phase.is_some() { "text" } else { "none" });
        })
    })
    .unwrap();
}
