// E0502: cannot borrow `pool` as mutable because it is also borrowed as immutable
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let mut pool = domain.pool();
    let handle = pool.insert(String::new());
    let object = pool.get(handle).unwrap();
    #[cfg(not(good))]
    pool.remove(handle); // here
    assert!(object.is_empty());
}
