// E0502: cannot borrow `domain` as mutable because it is also borrowed as immutable
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    #[allow(unused_mut)]
    let mut domain = slab.domain("d").unwrap();
    let object = domain.alloc_slice_copy(&[1, 2]);
    #[cfg(not(good))]
    domain.reset().unwrap(); // here
    object[0] = 3;
}
