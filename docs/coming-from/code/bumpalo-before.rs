// Frames in a bump arena, which is reset after each.
use bumpalo::collections::Vec;
use bumpalo::Bump;

struct Particle<'a> {
    name: &'a str,
    height: i32,
}

fn frame(memory: &Bump, n: i32) -> &str {
    let mut high: Vec<&Particle> = Vec::new_in(memory);
    for i in 0..100 {
        let name = bumpalo::format!(in memory, "p{}", i).into_bump_str();
        let particle = memory.alloc(Particle { name, height: i * n % 37 });
        if particle.height > 30 {
            high.push(particle);
        }
    }
    bumpalo::format!(in memory, "frame {}: {} of them high, {} first", n, high.len(), high[0].name).into_bump_str()
}

fn main() {
    let mut memory = Bump::new();
    let mut longest = String::new(); // outlives its frame
    for n in 1..=3 {
        let line = frame(&memory, n);
        println!("{}", line);
        if line.len() > longest.len() {
            longest = line.to_string();
        }
        memory.reset();
    }
    println!("longest: {}", longest);
}
