//! A phase for one thread.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use tslab_sys as sys;

use crate::error::{refused, AllocError};
use crate::phase::{allocation_functions, Phase};
use crate::raw::{self, Place};

/// A phase for one thread: what a loop that allocates much holds. Neither `Send` nor `Sync`; each thread has its own,
/// [`Phase::lane`].
///
/// **Its fast path is inlined**, with all that the call promises, for objects of up to 4 KiB and alignments up to 16, as long as a
/// region of the phase lasts; then it calls. It pays where a thread makes more than some ten objects in a row. A lane of a phase that C
/// code ends meanwhile is refused like the phase.
///
/// ```
/// let slab = tslab::Allocator::new()?;
/// let sum = slab.scope("batch", |phase| {
///     let lane = phase.lane();
///     (0..1000_u64).map(|n| *lane.alloc(n)).sum::<u64>()
/// })?;
/// assert_eq!(sum, 499_500);
/// # Ok::<(), tslab::Error>(())
/// ```
pub struct Lane<'p> {
    c: UnsafeCell<sys::SlabLane>,
    /// Borrows the phase; and a raw pointer takes Send and Sync away, on purpose.
    of: PhantomData<(&'p Phase, *mut ())>,
}

impl Place for &UnsafeCell<sys::SlabLane> {
    #[inline]
    fn domain(self) -> NonNull<sys::epoch_domain_t> {
        // SAFETY: nobody writes the lane meanwhile, for it stays on its thread; a lane has a domain from `new` on.
        unsafe { NonNull::new_unchecked((*self.get()).domain) }
    }
    #[inline]
    unsafe fn malloc(self, size: usize) -> *mut std::ffi::c_void {
        // SAFETY: the domain lives, so its allocator does; nobody else uses the lane meanwhile.
        unsafe { sys::slab_lane_malloc(self.get(), size) }
    }
}

impl<'p> Lane<'p> {
    #[inline]
    pub(crate) fn new(phase: &'p Phase) -> Self {
        let mut c = sys::SlabLane::default();
        // SAFETY: the domain lives. Where C code has ended the phase the lane is none, and refuses what the phase refuses.
        unsafe { sys::slab_lane_open(&mut c, phase.raw().as_ptr()) };
        c.domain = phase.raw().as_ptr();
        Self { c: UnsafeCell::new(c), of: PhantomData }
    }
    #[inline]
    fn place(&self) -> &UnsafeCell<sys::SlabLane> {
        &self.c
    }

    allocation_functions!('p);
}

impl fmt::Debug for Lane<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}
