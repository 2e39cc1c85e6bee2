// E0505: cannot move out of `domain` because it is borrowed
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let text = domain.lane().alloc_str("text"); // of a lane
    #[cfg(not(good))]
    domain.drain().unwrap(); // here
    text.make_ascii_uppercase();
}
