// E0521: borrowed data escapes outside of closure
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let mut kept: Option<&tslab::Run<'_>> = None;
    slab.run("r", |run| {
        #[cfg(not(good))]
        kept.replace(run); // here
        run.alloc(1);
    }).unwrap();
    kept.take();
}
