//! A phase that is one thread's alone.

use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem::{size_of, ManuallyDrop, MaybeUninit};
use std::ptr::NonNull;

use tslab_sys as sys;

use crate::error::{refused, AllocError, Error};
use crate::phase::allocation_functions;
use crate::raw::{self, CLabel, Place};
use crate::stats::Receipt;
use crate::Allocator;

/// A phase that is one thread's alone, as [`Allocator::run`] lends it: the fastest way to allocate. Neither `Send` nor `Sync`.
///
/// An allocation of up to 4 KiB, aligned to at most 16, is inlined and asks nobody: the thread has the rest of a region to itself. What it
/// makes are ordinary objects of the phase, which threads of a [`std::thread::scope`] may be lent.
///
/// A run is lent to a closure and never owned, since the library releases such a phase when its thread exits: in a value that can be
/// forgotten, what it lends could live longer.
///
/// ```
/// let slab = tslab::Allocator::new()?;
/// let sum = slab.run("batch", |run| (0..1000_u64).map(|n| *run.alloc(n)).sum::<u64>())?;
/// assert_eq!(sum, 499_500);
/// # Ok::<(), tslab::Error>(())
/// ```
pub struct Run<'p> {
    c: UnsafeCell<sys::SlabRun>,
    /// The phase, whose lifetime the closure cannot name; and a raw pointer takes Send and Sync away, on purpose.
    of: PhantomData<(&'p (), *mut ())>,
}

impl Place for &UnsafeCell<sys::SlabRun> {
    #[inline]
    fn domain(self) -> NonNull<sys::epoch_domain_t> {
        // SAFETY: nobody writes the run meanwhile, for it stays on its thread; it has a domain until `drop` ends it.
        unsafe { NonNull::new_unchecked((*self.get()).domain) }
    }
    #[inline]
    unsafe fn malloc(self, size: usize) -> *mut std::ffi::c_void {
        // SAFETY: begun by this thread, which it does not leave; not copied, and ended by `drop` alone. The domain lives, so its
        // allocator does.
        unsafe { sys::slab_run_malloc(self.get(), size) }
    }
}

impl<'p> Run<'p> {
    #[inline]
    fn place(&self) -> &UnsafeCell<sys::SlabRun> {
        &self.c
    }

    allocation_functions!('p);
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// Ends the run and its phase, also in a panic. Never in the hands of a caller, who could forget it.
struct Running<'a> {
    run: Run<'a>,
    domain: NonNull<sys::epoch_domain_t>,
}

impl<'a> Running<'a> {
    #[inline]
    fn begin(slab: &'a Allocator, label: &str) -> Result<Self, Error> {
        let label = CLabel::new(label);
        let options = sys::SlabDomainOptions {
            struct_size: size_of::<sys::SlabDomainOptions>(),
            label: label.as_ptr(),
            flags: sys::SLAB_DOMAIN_OWNER_ONLY,
            ..Default::default()
        };
        // SAFETY: the allocator lives, also until the end, since it is borrowed; the structure has its size, the label ends with a 0.
        // Where the run is refused nobody has the domain.
        unsafe {
            let domain = sys::epoch_domain_create_ex(slab.as_raw(), &options);
            let domain = NonNull::new(domain).ok_or_else(Error::last)?;
            let mut c = sys::SlabRun::default();
            if !sys::slab_run_begin(&mut c, domain.as_ptr()) {
                let refused = Error::last();
                sys::epoch_domain_destroy(domain.as_ptr());
                return Err(refused);
            }
            Ok(Self { run: Run { c: UnsafeCell::new(c), of: PhantomData }, domain })
        }
    }
    fn end(self) -> Result<Receipt, Error> {
        let running = ManuallyDrop::new(self);
        let mut out = sys::EpochReceipt::default();
        // SAFETY: begun by this thread; nobody has a reference into the phase any more.
        unsafe {
            let _ = sys::slab_run_end(running.run.c.get());
            match sys::epoch_domain_destroy_ex(running.domain.as_ptr(), &mut out) {
                true => Ok(Receipt::from(&out)),
                false => Err(Error::last()),
            }
        }
    }
}

impl Drop for Running<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: begun by this thread; nobody has a reference into the phase any more.
        unsafe {
            let _ = sys::slab_run_end(self.run.c.get());
            let _ = sys::epoch_domain_destroy(self.domain.as_ptr());
        }
    }
}

impl Allocator {
    /// Begins a phase that is this thread's alone, and ends it when `f` returns or panics: the fastest way to make many objects on one
    /// thread. No object leaves it. Runs nest, with each other and with scopes: each is a phase of its own.
    ///
    /// The thread is not inside of the phase as of a [`scope`](Self::scope): C code that calls `slab_malloc`, and
    /// [`with_current`](crate::with_current), stay where they are.
    ///
    /// # Errors
    /// No record for another phase; `f` was not called then.
    #[inline]
    pub fn run<R>(&self, label: &str, f: impl FnOnce(&Run<'_>) -> R) -> Result<R, Error> {
        let running = Running::begin(self, label)?;
        Ok(f(&running.run))
    }
    /// [`run`](Self::run), with what the phase held.
    ///
    /// # Errors
    /// No record for another phase; `f` was not called then.
    pub fn run_with_receipt<R>(&self, label: &str, f: impl FnOnce(&Run<'_>) -> R) -> Result<(R, Receipt), Error> {
        let running = Running::begin(self, label)?;
        let result = f(&running.run);
        Ok((result, running.end()?))
    }
}
