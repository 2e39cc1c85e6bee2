// no code: lifetime may not live long enough
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    #[cfg(not(good))]
    let _ = slab.scope("s", |phase| phase.alloc(1)); // here
    #[cfg(good)]
    let _ = slab.scope("s", |phase| *phase.alloc(1));
}
