// E0505: cannot move out of `domain` because it is borrowed
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let phase: &tslab::Phase = &domain;
    let mut numbers = allocator_api2::vec::Vec::new_in(phase);
    #[cfg(not(good))]
    drop(domain); // here
    numbers.push(1);
}
