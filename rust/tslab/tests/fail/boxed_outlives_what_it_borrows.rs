// E0597: `local` does not live long enough
struct Looks<'a>(&'a String);
impl Drop for Looks<'_> {
    fn drop(&mut self) {
        println!("{}", self.0);
    }
}
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    #[cfg(good)]
    let local = String::from("local");
    let _boxed;
    #[cfg(not(good))]
    let local = String::from("local");
    _boxed = domain.boxed(Looks(&local)); // here
}
