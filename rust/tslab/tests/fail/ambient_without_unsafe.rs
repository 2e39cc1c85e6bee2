// E0133: Global::ambient` is unsafe and requires unsafe function or block
#[cfg(not(good))]
static MEMORY: tslab::Global = tslab::Global::ambient(); // here
#[cfg(good)]
static MEMORY: tslab::Global = tslab::Global::new();
fn main() {
    MEMORY.allocator().unwrap();
}
