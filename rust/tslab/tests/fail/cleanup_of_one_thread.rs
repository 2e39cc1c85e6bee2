// E0277: `Rc<i32>` cannot be sent between threads safely
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    #[cfg(not(good))]
    let kept = std::rc::Rc::new(1);
    #[cfg(good)]
    let kept = std::sync::Arc::new(1);
    domain.on_end(move || drop(kept)).unwrap(); // here
}
