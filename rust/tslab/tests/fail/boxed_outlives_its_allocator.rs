// E0505: cannot move out of `slab` because it is borrowed
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let boxed = slab.boxed(5);
    #[cfg(not(good))]
    drop(slab); // here
    assert_eq!(*boxed, 5);
}
