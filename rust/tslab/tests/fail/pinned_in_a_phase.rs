// E0277: cannot be unpinned
fn pinned<T>(boxed: &mut tslab::Boxed<'_, T>) {
    #[cfg(not(good))]
    std::pin::Pin::new(&mut **boxed); // here
    #[cfg(good)]
    std::pin::Pin::new(boxed);
}
fn main() {
    pinned(&mut tslab::Allocator::new().unwrap().boxed(1));
}
