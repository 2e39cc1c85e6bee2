// E0277: `*mut ()` cannot be shared between threads safely
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let lane = domain.lane();
    std::thread::scope(|s| {
        #[cfg(not(good))]
        s.spawn(|| { lane.alloc(1); }); // here
        #[cfg(good)]
        s.spawn(|| { domain.alloc(1); });
    });
    lane.alloc(1);
}
