// E0277: `*mut ()` cannot be sent between threads safely
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let lane = domain.lane();
    std::thread::scope(|s| {
        #[cfg(not(good))]
        s.spawn(move || { let lane = lane; lane.alloc(1); }); // here
        #[cfg(good)]
        s.spawn(|| { domain.lane().alloc(1); });
        #[cfg(good)]
        lane.alloc(1);
    });
}
