// E0505: cannot move out of `domain` because it is borrowed
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let object = domain.alloc(1);
    #[cfg(not(good))]
    let task = tslab::in_phase(domain, async { *object += 1 }); // here
    #[cfg(good)]
    let task = tslab::in_phase(&domain, async { *object += 1 });
    drop(task);
}
