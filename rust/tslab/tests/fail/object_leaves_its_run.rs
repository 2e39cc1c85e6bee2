// no code: lifetime may not live long enough
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    #[cfg(not(good))]
    let _ = slab.run("r", |run| run.alloc(1)); // here
    #[cfg(good)]
    let _ = slab.run("r", |run| *run.alloc(1));
}
