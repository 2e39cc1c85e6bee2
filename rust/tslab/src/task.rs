//! A phase that follows a task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::phase::{AsPhase, Inside};

/// A future that is inside of a phase wherever a piece of it runs: [`in_phase`].
#[must_use = "a future does nothing until it is awaited"]
pub struct InPhase<P, F> {
    future: F, // goes before what it may have memory in
    phase: P,
}

/// Takes a phase along with a future: the thread that polls it enters the phase before, and leaves it after, whether the piece waits, is
/// done or panics. C code that calls `slab_malloc` allocates there, and [`with_current`](crate::with_current) lends it. Between two
/// polls no thread is inside, so the task may move from thread to thread, wait, and be dropped anywhere.
///
/// The phase ends with its owner, not with the future: give it an `Arc<Domain>` where several tasks work in one phase, several at once
/// if they like, and a [`Domain`](crate::Domain) where it is the task's own. A task that only allocates by name needs none of this:
/// it owns a `Domain` in a variable.
///
/// ```
/// use std::sync::Arc;
/// use tslab::{in_phase, with_current, Allocator, Domain};
///
/// let slab = Allocator::new()?;
/// let request = Arc::new(Domain::new(&slab, "GET /")?);
/// let task = in_phase(Arc::clone(&request), async {
///     tokio::task::yield_now().await; // goes on on any thread
///     with_current(|phase| phase.map(|p| p.era()))
/// });
/// let pool = tokio::runtime::Builder::new_multi_thread().build().unwrap();
/// assert_eq!(pool.block_on(async { tokio::spawn(task).await.unwrap() }), Some(request.era()));
/// # Ok::<(), tslab::Error>(())
/// ```
///
/// # Panics
/// A poll panics where there is no memory for a scope.
pub fn in_phase<P: AsPhase, F: Future>(phase: P, future: F) -> InPhase<P, F> {
    InPhase { future, phase }
}

impl<P: AsPhase, F: Future> Future for InPhase<P, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is pinned with this structure: it is not moved out of it, there is no Drop, and Unpin is not implemented
        // by hand. The phase is not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: as above.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        let _inside = match Inside::enter(this.phase.as_phase()) {
            Ok(inside) => inside,
            Err(e) => panic!("{e}"),
        };
        future.poll(context)
    }
}

impl<P, F> fmt::Debug for InPhase<P, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPhase").finish_non_exhaustive()
    }
}
