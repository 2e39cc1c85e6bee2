// E0507: cannot move out of dereference of `Domain`
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    #[cfg(not(good))]
    let mut numbers = allocator_api2::vec::Vec::new_in(*domain); // here
    #[cfg(good)]
    let mut numbers = allocator_api2::vec::Vec::new_in(&*domain);
    numbers.push(1);
}
