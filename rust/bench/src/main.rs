//! A request of 225 objects of 40 to 700 bytes, and one of ten, begin and end included, in phases of tslab beside bumpalo, mimalloc
//! and the system's allocator, as `Box` has them.
//!
//! Usage: tslab-bench [--reps N] [--requests N] [--objects N]      --objects: requests of so many only
//!
//! All ways go by turns in each repetition, and a ratio is the median of those to Box in the same repetition: other work on the machine
//! falls on all of them. The time is that of the thread on a processor. Of each object the first eight bytes and the last are written;
//! sizes are log-uniform, the same for all ways, aligned to 8.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::process::exit;
use std::ptr::NonNull;

use bumpalo::Bump;
use mimalloc::MiMalloc;
use tslab::sys;
use tslab::{Allocator, Domain};

/// What all ways are given.
struct Load {
    layouts: Vec<Layout>,
    slab: Allocator,
    bump: Bump,
    domain: Domain,
    list: Vec<*mut u8>,
}

/// Does so many requests.
type Way = fn(&mut Load, requests: usize);

#[inline]
fn touch(p: *mut u8, layout: Layout) {
    // SAFETY: the object has at least 40 bytes, aligned to 8.
    unsafe {
        p.cast::<u64>().write(layout.size() as u64);
        p.add(layout.size() - 1).write(1);
    }
    black_box(p);
}

/// Every object freed by itself, as the owner of a Box does.
#[inline]
fn singly(load: &mut Load, requests: usize, memory: &impl GlobalAlloc) {
    for _ in 0..requests {
        load.list.clear();
        for &layout in &load.layouts {
            // SAFETY: the size is not 0.
            let p = unsafe { memory.alloc(layout) };
            assert!(!p.is_null());
            touch(p, layout);
            load.list.push(p);
        }
        for (&layout, &p) in load.layouts.iter().zip(&load.list) {
            // SAFETY: allocated above, with this layout.
            unsafe { memory.dealloc(p, layout) };
        }
    }
}

#[inline]
fn all(layouts: &[Layout], alloc: impl Fn(Layout) -> NonNull<u8>) {
    for &layout in layouts {
        touch(alloc(layout).as_ptr(), layout);
    }
}

fn in_box(load: &mut Load, requests: usize) {
    singly(load, requests, &System);
}

fn in_mimalloc(load: &mut Load, requests: usize) {
    singly(load, requests, &MiMalloc);
}

fn in_new_bump(load: &mut Load, requests: usize) {
    for _ in 0..requests {
        let bump = Bump::new();
        all(&load.layouts, |layout| bump.alloc_layout(layout));
    }
}

fn in_reset_bump(load: &mut Load, requests: usize) {
    for _ in 0..requests {
        all(&load.layouts, |layout| load.bump.alloc_layout(layout));
        load.bump.reset();
    }
}

fn in_scope(load: &mut Load, requests: usize) {
    for _ in 0..requests {
        load.slab
            .scope("request", |phase| all(&load.layouts, |layout| phase.try_alloc_layout(layout).expect("memory")))
            .expect("a phase");
    }
}

fn in_lane(load: &mut Load, requests: usize) {
    for _ in 0..requests {
        load.slab
            .scope("request", |phase| {
                let lane = phase.lane();
                all(&load.layouts, |layout| lane.try_alloc_layout(layout).expect("memory"));
            })
            .expect("a phase");
    }
}

fn in_run(load: &mut Load, requests: usize) {
    for _ in 0..requests {
        load.slab
            .run("request", |run| all(&load.layouts, |layout| run.try_alloc_layout(layout).expect("memory")))
            .expect("a phase");
    }
}

fn in_domain(load: &mut Load, requests: usize) {
    for _ in 0..requests {
        let domain = load.slab.domain("request").expect("a phase");
        all(&load.layouts, |layout| domain.try_alloc_layout(layout).expect("memory"));
    }
}

fn in_reset_domain(load: &mut Load, requests: usize) {
    for _ in 0..requests {
        all(&load.layouts, |layout| load.domain.try_alloc_layout(layout).expect("memory"));
        load.domain.reset().expect("a phase");
    }
}

fn in_scope_singly(load: &mut Load, requests: usize) {
    let home = load.slab.as_raw();
    for _ in 0..requests {
        let list = &mut load.list;
        list.clear();
        load.slab
            .scope("request", |phase| {
                for &layout in &load.layouts {
                    let p = phase.try_alloc_layout(layout).expect("memory").as_ptr();
                    touch(p, layout);
                    list.push(p);
                }
                for &p in list.iter() {
                    // SAFETY: allocated above.
                    unsafe { sys::slab_free(home, p.cast()) };
                }
            })
            .expect("a phase");
    }
}

fn in_c(load: &mut Load, requests: usize) {
    for _ in 0..requests {
        // SAFETY: the allocator lives; the domain is ended by this thread, once, and used before that only.
        unsafe {
            let d = sys::epoch_domain_begin(load.slab.as_raw(), c"request".as_ptr());
            all(&load.layouts, |layout| {
                NonNull::new(sys::epoch_domain_malloc(d, layout.size()).cast()).expect("memory")
            });
            assert!(sys::epoch_domain_end(d));
        }
    }
}

const WAYS: [(&str, Way); 11] = [
    ("Box (the system's malloc), freed singly", in_box),
    ("mimalloc, freed singly", in_mimalloc),
    ("bumpalo, new for each", in_new_bump),
    ("bumpalo, reset after each", in_reset_bump),
    ("tslab, scope", in_scope),
    ("tslab, scope and lane", in_lane),
    ("tslab, run", in_run),
    ("tslab, Domain for each", in_domain),
    ("tslab, Domain reset after each", in_reset_domain),
    ("tslab, scope, freed singly", in_scope_singly),
    ("the C functions behind a scope", in_c),
];

/// Nanoseconds that this thread has been on a processor.
fn processor_ns() -> u64 {
    #[repr(C)]
    #[derive(Default)]
    struct Timespec {
        seconds: i64,
        nanoseconds: i64,
    }
    extern "C" {
        fn clock_gettime(clock: i32, out: *mut Timespec) -> i32;
    }
    const CLOCK_THREAD_CPUTIME_ID: i32 = 3;
    let mut now = Timespec::default();
    // SAFETY: a clock of Linux, and room for a time.
    assert_eq!(unsafe { clock_gettime(CLOCK_THREAD_CPUTIME_ID, &mut now) }, 0);
    (now.seconds * 1_000_000_000 + now.nanoseconds) as u64
}

/// Log-uniform from 40 to 700, from a fixed seed.
fn layouts(n: usize) -> Vec<Layout> {
    let mut state = 42_u64;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let part = (state >> 11) as f64 / (1_u64 << 53) as f64;
            let size = 40.0 * (700.0_f64 / 40.0).powf(part);
            Layout::from_size_align(size as usize, 8).expect("a size")
        })
        .collect()
}

fn median(of: &mut [f64]) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() {
    let (mut reps, mut requests, mut sizes) = (7, 20_000, vec![225, 10]);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().and_then(|v| v.parse::<usize>().ok()).filter(|&v| v > 0);
        match (arg.as_str(), value) {
            ("--reps", Some(n)) => reps = n,
            ("--requests", Some(n)) => requests = n,
            ("--objects", Some(n)) => sizes = vec![n],
            _ => {
                eprintln!("usage: tslab-bench [--reps N] [--requests N] [--objects N]");
                exit(2);
            }
        }
    }
    let slab = Allocator::new().expect("an allocator");
    for objects in sizes {
        let domain = slab.domain("frame").expect("a phase");
        let layouts = layouts(objects);
        let bytes: usize = layouts.iter().map(Layout::size).sum();
        let mut load =
            Load { layouts, slab: slab.clone(), bump: Bump::new(), domain, list: Vec::with_capacity(objects) };
        let requests = (requests * 225).div_ceil(objects);
        let mut times = vec![Vec::new(); WAYS.len()];
        for rep in 0..=reps {
            for (way, times) in WAYS.iter().zip(&mut times) {
                let begin = processor_ns();
                way.1(&mut load, if rep == 0 { requests / 10 + 1 } else { requests });
                let ns = (processor_ns() - begin) as f64 / requests as f64;
                if rep > 0 {
                    times.push(ns); // the first warms up
                }
            }
        }
        println!("{objects} objects, {bytes} bytes: median of {reps} repetitions of {requests} requests");
        println!("{:>10} {:>8}  way", "ns", "to Box");
        let boxes = times[0].clone();
        for ((name, _), times) in WAYS.iter().zip(&mut times) {
            let mut ratios: Vec<f64> = times.iter().zip(&boxes).map(|(t, b)| t / b).collect();
            println!("{:>10.1} {:>8.3}  {name}", median(times), median(&mut ratios));
        }
        println!();
    }
}
