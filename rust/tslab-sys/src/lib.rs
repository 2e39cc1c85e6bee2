//! The C functions of [temporal-slab](https://docs.rs/tslab), an allocator for programs that work in phases.
//!
//! Names, types and meaning are those of the C headers `slab_alloc.h`, `epoch_domain.h`, `slab_stats.h`, `slab_diagnostics.h`,
//! `slab_lane.h` and `slab_segment.h`, which the package has in `c/include`; the crate `tslab` is the safe way to them. The two `asprintf` families are
//! variadic here as there.
//!
//! The library is compiled into this crate from the sources that come with it. Where the environment has `TSLAB_LIB_DIR`, the
//! `libtemporal_slab.a` of that folder, of the same version, is linked in its place.
//!
//! A `cdylib` with this crate inside stays loaded after `dlclose`, because threads that have used the library run its code as they
//! exit.
#![no_std]
#![cfg(target_os = "linux")]

#[allow(
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc
)]
mod bindings;
pub use bindings::*;

mod lane;
pub use lane::*;

/// The version of the headers that these declarations are of, "major.minor.patch"; [`slab_version`] has the library's.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
