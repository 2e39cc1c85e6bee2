// E0133: Allocator::close_era` is unsafe and requires unsafe function or block
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    #[cfg(not(good))]
    let _ = slab.close_era(domain.era(), tslab::Close::Release); // here
    #[cfg(good)]
    let _ = unsafe { slab.close_era(domain.era(), tslab::Close::Release) };
}
