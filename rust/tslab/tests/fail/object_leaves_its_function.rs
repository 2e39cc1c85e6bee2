// E0515: cannot return value referencing local variable `domain`
fn make<'d>(slab: &tslab::Allocator) -> Option<&'d mut i32> {
    let domain = slab.domain("d").unwrap();
    #[cfg(not(good))]
    return Some(domain.alloc(1)); // here
    #[cfg(good)]
    return Some(*domain.alloc(1)).and(None);
}
fn main() {
    make(&tslab::Allocator::new().unwrap());
}
