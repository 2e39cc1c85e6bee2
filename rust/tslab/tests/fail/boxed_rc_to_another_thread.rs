// E0277: `Rc<i32>` cannot be sent between threads safely
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    #[cfg(not(good))]
    let boxed = domain.boxed(std::rc::Rc::new(1));
    #[cfg(good)]
    let boxed = domain.boxed(std::sync::Arc::new(1));
    std::thread::scope(|s| {
        s.spawn(move || assert_eq!(**boxed, 1)); // here
    });
}
