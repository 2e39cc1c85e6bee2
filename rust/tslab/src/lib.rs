//! Memory for programs that work in phases: requests, frames, transactions, batches. What a phase allocates ends with it, in one step,
//! and the compiler checks that nothing of it is used behind that.
//!
//! ```
//! use tslab::Allocator;
//!
//! let slab = Allocator::new()?;
//! let (words, receipt) = slab.scope_with_receipt("GET /orders", |phase| {
//!     let line = phase.alloc_str("to be or not to be");
//!     let words = phase.alloc_slice_fill_with(6, |i| line.split(' ').nth(i).unwrap_or_default());
//!     words.len()
//! })?;
//! assert_eq!(words, 6);
//! assert_eq!(receipt.objects_released, 2);
//! # Ok::<(), tslab::Error>(())
//! ```
//!
//! | you want | take |
//! |---|---|
//! | an allocator | [`Allocator::new`]; clones are the same one |
//! | a phase for a closure | [`Allocator::scope`], which lends a [`Phase`] |
//! | a phase that is kept, sent, reset in a loop | [`Domain`], which is a [`Phase`] by `Deref` |
//! | an object that ends with its phase | [`Phase::alloc`], [`alloc_str`](Phase::alloc_str), [`alloc_slice_copy`](Phase::alloc_slice_copy), ... |
//! | an object that is dropped | [`Phase::boxed`]; outside of all phases [`Allocator::boxed`] |
//! | objects that name each other | [`Phase::pool`] and [`Handle`] |
//! | a loop on one thread | [`Phase::lane`] |
//! | a phase that is one thread's alone | [`Allocator::run`], which lends a [`Run`] |
//! | a `Vec`, a `HashMap` | `new_in(phase)` of allocator-api2 and hashbrown; [`Bulk`] where nothing is to be freed singly |
//! | a phase that follows a task | [`in_phase`]; inside, [`with_current`] |
//! | the whole program's allocator | [`Global`] |
//! | which labels hold the memory | [`Allocator::labels`], [`doctor`](Allocator::doctor), [`json`](Allocator::json) |
//!
//! What a phase allocates with [`alloc`](Phase::alloc) is **not dropped**: as in other arenas the end takes the memory, and a `String` in
//! it leaks its buffer. [`Boxed`] and collections drop what they hold.
//!
//! # What is `unsafe`, and why
//!
//! - [`Allocator::close`] and [`close_era`](Allocator::close_era): an id is a number, and the compiler does not know what lies there.
//! - [`Global::ambient`]: a `String` has no lifetime that would end with the phase it lies in.
//! - [`Allocator::from_raw`], [`Phase::borrow_raw`], [`Options::as_raw_mut`], [`Boxed::map_pointer`]: what C code, or the caller, says.
//!
//! # Threads, forks, ends
//!
//! Any thread may allocate in any phase, free any object and end any phase that it owns. A thread that exits loses nothing: its memory
//! stays with its phases. A child of `fork` can allocate, free and end phases, whatever other threads were doing. Forgetting
//! ([`mem::forget`](std::mem::forget)) a [`Domain`] leaves its phase open, forgetting a [`Boxed`] leaves its object to the phase; guards
//! that could be forgotten while a thread is inside do not exist, that is what the closures are for.
#![cfg(target_os = "linux")]

mod allocator;
mod boxed;
mod error;
mod global;
mod lane;
#[cfg(feature = "allocator-api2")]
mod memory;
mod phase;
mod pool;
mod raw;
mod run;
mod stats;
mod task;

pub use allocator::{Allocator, Close, Options};
pub use boxed::Boxed;
pub use error::{AllocError, Error, ErrorKind};
pub use global::Global;
pub use lane::Lane;
#[cfg(feature = "allocator-api2")]
pub use memory::Bulk;
pub use phase::{with_current, AsPhase, Domain, Phase};
pub use pool::{Handle, Pool};
pub use run::Run;
pub use stats::{Held, Label, LabelStats, PhaseStats, Receipt, Refusals, Stats};
pub use task::{in_phase, InPhase};

pub use tslab_sys as sys;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
