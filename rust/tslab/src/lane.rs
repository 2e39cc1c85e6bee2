//! A phase for one thread.

use std::alloc::Layout;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use tslab_sys as sys;

use crate::error::{refused, AllocError};
use crate::phase::{allocation_functions, Phase};
use crate::raw;

/// A phase for one thread: what a loop that allocates much holds. Neither `Send` nor `Sync`; each thread has its own,
/// [`Phase::lane`].
///
/// **It calls.** Each allocation is a call of the C library, which finds the thread's heap of the phase in constant time, however many
/// phases are open; nothing of it is inlined into the program today. What a lane saves beside [`Phase`] is a load. It is a type
/// of its own so that a program which uses it has an inlined path when the C library offers one, without a change.
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
    raw: NonNull<sys::epoch_domain_t>,
    /// Borrows the phase; and a raw pointer takes Send and Sync away, on purpose.
    of: PhantomData<(&'p Phase, *mut ())>,
}

impl<'p> Lane<'p> {
    #[inline]
    pub(crate) fn new(phase: &'p Phase) -> Self {
        Self { raw: phase.raw(), of: PhantomData }
    }
    #[inline]
    fn raw(&self) -> NonNull<sys::epoch_domain_t> {
        self.raw
    }

    allocation_functions!('p);
}

impl fmt::Debug for Lane<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}
