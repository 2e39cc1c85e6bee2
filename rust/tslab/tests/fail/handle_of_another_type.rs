// E0308: mismatched types
fn main() {
    let slab = tslab::Allocator::new().unwrap();
    let domain = slab.domain("d").unwrap();
    let (mut numbers, mut words) = (domain.pool::<u64>(), domain.pool::<String>());
    let number = numbers.insert(1);
    let word = words.insert(String::new());
    #[cfg(not(good))]
    words.get(number); // here
    words.get(word);
}
