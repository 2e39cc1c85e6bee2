// E0505: cannot move out of `domain` because it is borrowed
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let object = domain.alloc(5);
    #[cfg(not(good))]
    drop(domain); // here
    *object += 1;
}
