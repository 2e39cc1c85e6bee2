// E0277: `*mut ()` cannot be sent between threads safely
fn sent<T: Send>() {}
fn main() {
    #[cfg(not(good))]
    sent::<tslab::Run<'static>>(); // here
    #[cfg(good)]
    sent::<tslab::Domain>();
}
