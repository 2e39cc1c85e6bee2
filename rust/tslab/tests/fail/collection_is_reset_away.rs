// E0502: cannot borrow `domain` as mutable because it is also borrowed as immutable
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    #[allow(unused_mut)]
    let mut domain = slab.domain("d").unwrap();
    let mut numbers = allocator_api2::vec::Vec::new_in(tslab::Bulk(&domain));
    #[cfg(not(good))]
    domain.reset().unwrap(); // here
    numbers.push(1);
}
