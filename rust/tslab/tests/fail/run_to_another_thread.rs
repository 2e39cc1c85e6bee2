// E0277: `*mut ()` cannot be shared between threads safely
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    slab.run("r", |run| {
        let made = run.alloc(1);
        std::thread::scope(|s| {
            #[cfg(not(good))]
            s.spawn(move || { run.alloc(1); }); // here
            #[cfg(good)]
            s.spawn(move || { *made += 1; });
        });
    }).unwrap();
}
