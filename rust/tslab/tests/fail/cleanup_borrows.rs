// E0597: `local` does not live long enough
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let local = String::new();
    #[cfg(not(good))]
    let local = &local; // here
    domain.on_end(move || drop(local)).unwrap();
}
