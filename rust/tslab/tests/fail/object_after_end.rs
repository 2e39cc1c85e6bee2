// E0505: cannot move out of `domain` because it is borrowed
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let text = domain.alloc_str("text");
    #[cfg(not(good))]
    domain.end().unwrap(); // here
    text.make_ascii_uppercase();
}
