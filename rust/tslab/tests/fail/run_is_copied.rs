// E0507: cannot move out of
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    slab.run("r", |run| {
        #[cfg(not(good))]
        let other = *run; // here
        #[cfg(good)]
        let other = run;
        other.alloc(1);
    }).unwrap();
}
