//! Phases: what ends together.

use std::alloc::Layout;
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::Deref;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::NonNull;

use tslab_sys as sys;

use crate::error::{refused, AllocError, Error};
use crate::raw::{self, CLabel};
use crate::stats::{Held, Receipt};
use crate::{Allocator, Boxed, Lane, Pool};

/// The functions that [`Phase`], [`Lane`] and [`Run`](crate::Run) have alike; `$life` is the lifetime of what they lend.
macro_rules! allocation_functions {
    ($($life:lifetime)?) => {
        /// Moves the value there. It is dropped by nobody: the end of a phase takes memory back and runs no destructor. For a
        /// value that must be dropped there is [`Phase::boxed`](crate::Phase::boxed).
        ///
        /// # Panics
        /// Where memory is refused: none is left, or a budget is exceeded.
        #[inline]
        #[allow(clippy::mut_from_ref)] // each call makes an object of its own
        pub fn alloc<T>(&self, value: T) -> &$($life)? mut T {
            self.try_alloc(value).unwrap_or_else(|e| refused(e))
        }
        /// [`alloc`](Self::alloc) without the panic.
        ///
        /// # Errors
        /// Memory is refused; the value was dropped.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn try_alloc<T>(&self, value: T) -> Result<&$($life)? mut T, AllocError> {
            self.try_alloc_with(|| value)
        }
        /// Takes room for a value first, and has `f` make it there.
        ///
        /// # Panics
        /// Where memory is refused, and where `f` does; the room stays unused then until the phase ends.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn alloc_with<T>(&self, f: impl FnOnce() -> T) -> &$($life)? mut T {
            self.try_alloc_with(f).unwrap_or_else(|e| refused(e))
        }
        /// [`alloc_with`](Self::alloc_with) without the first of its panics.
        ///
        /// # Errors
        /// Memory is refused; `f` was not called.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn try_alloc_with<T>(&self, f: impl FnOnce() -> T) -> Result<&$($life)? mut T, AllocError> {
            // SAFETY: the domain lives as long as what borrows it, and a reset borrows it alone.
            unsafe { raw::make(self.place(), f) }
        }
        /// A copy of the slice there.
        ///
        /// # Panics
        /// Where memory is refused.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn alloc_slice_copy<T: Copy>(&self, from: &[T]) -> &$($life)? mut [T] {
            self.try_alloc_slice_copy(from).unwrap_or_else(|e| refused(e))
        }
        /// [`alloc_slice_copy`](Self::alloc_slice_copy) without the panic.
        ///
        /// # Errors
        /// Memory is refused.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn try_alloc_slice_copy<T: Copy>(&self, from: &[T]) -> Result<&$($life)? mut [T], AllocError> {
            // SAFETY: as for try_alloc_with.
            unsafe { raw::copy(self.place(), from) }
        }
        /// A copy of the text there.
        ///
        /// # Panics
        /// Where memory is refused.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn alloc_str(&self, from: &str) -> &$($life)? mut str {
            self.try_alloc_str(from).unwrap_or_else(|e| refused(e))
        }
        /// [`alloc_str`](Self::alloc_str) without the panic.
        ///
        /// # Errors
        /// Memory is refused.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn try_alloc_str(&self, from: &str) -> Result<&$($life)? mut str, AllocError> {
            // SAFETY: as for try_alloc_with.
            unsafe { raw::copy_str(self.place(), from) }
        }
        /// A slice of `n` values, each made by `f(index)`. They are dropped by nobody, also where `f` panics.
        ///
        /// # Panics
        /// Where memory is refused, and where `f` does.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn alloc_slice_fill_with<T>(&self, n: usize, f: impl FnMut(usize) -> T) -> &$($life)? mut [T] {
            self.try_alloc_slice_fill_with(n, f).unwrap_or_else(|e| refused(e))
        }
        /// [`alloc_slice_fill_with`](Self::alloc_slice_fill_with) without the first of its panics.
        ///
        /// # Errors
        /// Memory is refused, or so many values have more bytes than there are; `f` was not called.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn try_alloc_slice_fill_with<T>(
            &self,
            n: usize,
            f: impl FnMut(usize) -> T,
        ) -> Result<&$($life)? mut [T], AllocError> {
            // SAFETY: as for try_alloc_with.
            unsafe { raw::make_slice(self.place(), n, f) }
        }
        /// Room for a value, not set.
        ///
        /// # Panics
        /// Where memory is refused.
        #[inline]
        #[allow(clippy::mut_from_ref)]
        pub fn alloc_uninit<T>(&self) -> &$($life)? mut MaybeUninit<T> {
            self.alloc_with(MaybeUninit::uninit)
        }
        /// Bytes of any size and alignment, not set, which are there until the phase ends. Of size 0: an address that is aligned
        /// and nobody's.
        ///
        /// # Errors
        /// Memory is refused, or the alignment is above 1 GiB.
        #[inline]
        pub fn try_alloc_layout(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
            // SAFETY: the domain lives.
            unsafe { raw::take(self.place(), layout) }
        }
    };
}
pub(crate) use allocation_functions;

/// A phase, as it is lent: by [`Allocator::scope`], by a [`Domain`], by [`with_current`]. What it allocates lives as long as the
/// loan, and ends with the phase in one step.
///
/// Any thread may allocate in it, several at once. Objects are ordinary values: one of a type that is not `Send` stays on its thread.
///
/// - **Destructors.** The end of a phase runs none, like [`mem::forget`](std::mem::forget). What [`alloc`](Phase::alloc) was given
///   and must be dropped, a `String`, leaks what it owns. [`boxed`](Phase::boxed) gives an owner that drops.
/// - **Values without bytes** take no memory. **Alignments** above 16 cost a call of their own.
/// - **Misuse by C code** that has the pointer of [`as_raw`](Phase::as_raw) is refused and counted as everywhere.
#[repr(transparent)]
pub struct Phase {
    raw: NonNull<sys::epoch_domain_t>,
}

// SAFETY: "any thread may call anything at any time", and a domain may be used and ended by another thread than its maker's
// (epoch_domain.h). What a phase lends carries the markers of its own type.
unsafe impl Send for Phase {}
// SAFETY: as above: allocations by several threads at once are what the C library is for, and each gives an object of its own.
unsafe impl Sync for Phase {}

impl Phase {
    /// # Safety
    /// The domain lives as long as the value, or what borrows it, is used, and nothing releases or resets it meanwhile.
    pub(crate) unsafe fn from_raw(raw: NonNull<sys::epoch_domain_t>) -> Self {
        Self { raw }
    }
    /// A C domain as a phase: `unsafe { Phase::borrow_raw(&domain) }`, for Rust code that C code calls.
    ///
    /// # Safety
    /// `*raw` is a domain that lives, and that nobody releases, resets or destroys, as long as the loan.
    pub unsafe fn borrow_raw(raw: &NonNull<sys::epoch_domain_t>) -> &Self {
        // SAFETY: a Phase is such a pointer: repr(transparent).
        unsafe { &*(raw as *const NonNull<sys::epoch_domain_t>).cast::<Self>() }
    }
    #[inline]
    pub(crate) fn raw(&self) -> NonNull<sys::epoch_domain_t> {
        self.raw
    }
    #[inline]
    fn place(&self) -> NonNull<sys::epoch_domain_t> {
        self.raw
    }
    /// For the C functions. Ending or resetting it is not for whoever borrows the phase.
    #[inline]
    pub fn as_raw(&self) -> *mut sys::epoch_domain_t {
        self.raw.as_ptr()
    }
    #[inline]
    pub(crate) fn home(&self) -> NonNull<sys::SlabAllocator> {
        // SAFETY: the domain lives, and its allocator with it; the field is set before anybody has the domain, and never again.
        unsafe { NonNull::new_unchecked((*self.as_raw()).alloc) }
    }
    /// The allocator that the phase is of, as one more holder. None where C code made it by `allocator_init`.
    pub fn allocator(&self) -> Option<Allocator> {
        // SAFETY: it lives as long as the phase.
        unsafe { Allocator::retain(self.home()) }
    }
    /// Number of the phase's incarnation, which no other phase of the allocator ever has. After a reset it is another one.
    pub fn era(&self) -> u64 {
        // SAFETY: the domain lives.
        unsafe { sys::epoch_domain_era(self.as_raw()) }
    }
    /// What the phase holds now, for admission control. Fails with `ESTALE` where C code has ended it. O(slabs of the phase).
    pub fn held(&self) -> Result<Held, Error> {
        let mut out =
            sys::SlabDomainStats { struct_size: std::mem::size_of::<sys::SlabDomainStats>(), ..Default::default() };
        // SAFETY: the domain lives, and the structure has its size.
        match unsafe { sys::epoch_domain_stats(self.as_raw(), &mut out) } {
            true => Ok(Held::from(&out)),
            false => Err(Error::last()),
        }
    }

    allocation_functions!();

    /// A slice of `n` default values; see [`alloc`](Self::alloc) for their destructors.
    ///
    /// # Panics
    /// Where memory is refused.
    #[allow(clippy::mut_from_ref)]
    pub fn alloc_slice_default<T: Default>(&self, n: usize) -> &mut [T] {
        self.alloc_slice_fill_with(n, |_| T::default())
    }
    /// A slice of clones; see [`alloc`](Self::alloc) for their destructors.
    ///
    /// # Panics
    /// Where memory is refused.
    #[allow(clippy::mut_from_ref)]
    pub fn alloc_slice_clone<T: Clone>(&self, from: &[T]) -> &mut [T] {
        self.alloc_slice_fill_with(from.len(), |i| from[i].clone())
    }

    /// An object with an owner: it is dropped, and its memory free again, when the owner goes, which is before the phase ends.
    ///
    /// # Panics
    /// Where memory is refused.
    #[inline]
    pub fn boxed<T>(&self, value: T) -> Boxed<'_, T> {
        self.try_boxed(value).unwrap_or_else(|e| refused(e))
    }
    /// [`boxed`](Self::boxed) without the panic.
    ///
    /// # Errors
    /// Memory is refused; the value was dropped.
    #[inline]
    pub fn try_boxed<T>(&self, value: T) -> Result<Boxed<'_, T>, AllocError> {
        let object = self.try_alloc(value)?;
        // SAFETY: an object of its own, which lives until the Boxed frees it, or as long as the phase is borrowed.
        Ok(unsafe { Boxed::from_parts(NonNull::from(object), self.home()) })
    }
    /// Objects of one type that are named by checked handles.
    pub fn pool<T>(&self) -> Pool<'_, T> {
        Pool::new(self)
    }
    /// The phase for one thread; see [`Lane`].
    #[inline]
    pub fn lane(&self) -> Lane<'_> {
        Lane::new(self)
    }

    /// Has this thread inside of the phase until `f` returns or panics: C code that calls `slab_malloc` allocates there, and
    /// [`with_current`] lends it. Nothing ends by it. Nests; any thread, several at once.
    ///
    /// # Errors
    /// No memory for a scope; `f` was not called.
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> Result<R, Error> {
        let _inside = Inside::enter(self)?;
        Ok(f())
    }
    /// Has `f` called once when the phase has ended, by whichever thread ends it; last registered first. The memory of the phase has
    /// gone by then, so `f` owns what it captures. A panic in it ends the process.
    ///
    /// # Errors
    /// No memory, or the phase has ended; `f` was dropped.
    pub fn on_end<F: FnOnce() + Send + 'static>(&self, f: F) -> Result<(), Error> {
        extern "C" fn call<F: FnOnce()>(arg: *mut std::ffi::c_void) {
            // SAFETY: the Box of below, which the library gives back once.
            let f = unsafe { Box::from_raw(arg.cast::<F>()) };
            if catch_unwind(AssertUnwindSafe(f)).is_err() {
                std::process::abort();
            }
        }
        let arg = Box::into_raw(Box::new(f));
        // SAFETY: the domain lives; `call` is for this argument. Nothing is borrowed: F is 'static, and Send, since any thread may
        // be the one that ends the phase.
        unsafe {
            if sys::epoch_domain_on_end(self.as_raw(), Some(call::<F>), arg.cast()) {
                return Ok(());
            }
            let refused = Error::last();
            drop(Box::from_raw(arg));
            Err(refused)
        }
    }
    /// Limits what the phase may commit, in bytes; 0 for no limit. Above `hard` allocations are refused
    /// ([`ErrorKind::Budget`](crate::ErrorKind::Budget)); above `soft` a warning is counted. Budgets act in steps of a slab.
    ///
    /// # Errors
    /// `hard` is below `soft`.
    pub fn set_budget(&self, soft: usize, hard: usize) -> Result<(), Error> {
        let a = self.home();
        // SAFETY: domain and allocator live; there is no function to be called. The id changes by a reset only, which borrows the
        // domain alone.
        let done = unsafe {
            sys::slab_epoch_set_budget(a.as_ptr(), (*self.as_raw()).epoch_id, soft, hard, None, std::ptr::null_mut())
        };
        if done {
            Ok(())
        } else {
            Err(Error::plain())
        }
    }
}

impl fmt::Debug for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Phase").field("era", &self.era()).finish_non_exhaustive()
    }
}

/// A thread inside of a phase. Never in the hands of a caller, who could forget it or drop two in the wrong order.
pub(crate) struct Inside<'p>(&'p Phase);

impl<'p> Inside<'p> {
    #[inline]
    pub(crate) fn enter(phase: &'p Phase) -> Result<Self, Error> {
        // SAFETY: the domain lives.
        if unsafe { sys::epoch_domain_enter(phase.as_raw()) } {
            Ok(Self(phase))
        } else {
            Err(Error::last())
        }
    }
}

impl Drop for Inside<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: entered by this thread: an Inside is a local variable of a function that calls a closure.
        let _ = unsafe { sys::epoch_domain_exit(self.0.as_raw()) };
    }
}

/// Lends the innermost phase that this thread is inside of, of whatever allocator, for the time of `f`; None when it is in none. For
/// code that is called inside of a phase and is not handed it.
///
/// ```
/// let slab = tslab::Allocator::new()?;
/// fn deep_inside() -> usize {
///     tslab::with_current(|phase| phase.map_or(0, |p| p.alloc_str("in the request").len()))
/// }
/// assert_eq!(deep_inside(), 0);
/// assert_eq!(slab.scope("GET /", |_| deep_inside())?, 14);
/// # Ok::<(), tslab::Error>(())
/// ```
pub fn with_current<R>(f: impl FnOnce(Option<&Phase>) -> R) -> R {
    // SAFETY: asks for a word of this thread. The domain lives while the thread is inside, which it is until f returns: what could
    // take it out and end the phase, the owner of an Inside, a Scope or a Domain, is further out on this thread's stack and waits,
    // or borrows the domain.
    let phase = NonNull::new(unsafe { sys::epoch_domain_current() }).map(|raw| unsafe { Phase::from_raw(raw) });
    f(phase.as_ref())
}

/// A phase that lives as long as this value, and ends with it: in a variable, a structure, an `Arc`, a task. It may be sent to
/// another thread and dropped there. What it lends it lends as a [`Phase`].
///
/// Entering it ([`Phase::enter`]) only says where C code allocates; nothing ends by leaving. [`mem::forget`](std::mem::forget) of it
/// leaves the phase open for ever: a leak, which the statistics show under its label.
///
/// ```
/// use tslab::{Allocator, Domain};
///
/// let slab = Allocator::new()?;
/// let mut frame = Domain::new(&slab, "frame")?;
/// for n in 0..3 {
///     let name = frame.alloc_str("particle");
///     let heights = frame.alloc_slice_fill_with(100, |i| i * n % 37);
///     assert_eq!((name.len(), heights.len()), (8, 100));
///     frame.reset()?; // all of it is gone; `name` and `heights` cannot be used from here on
/// }
/// # Ok::<(), tslab::Error>(())
/// ```
pub struct Domain {
    phase: Phase,
    home: ManuallyDrop<Allocator>,
}

impl Domain {
    /// A new phase with a label, of which 31 bytes are kept.
    ///
    /// # Errors
    /// No record for another phase.
    pub fn new(slab: &Allocator, label: &str) -> Result<Self, Error> {
        let label = CLabel::new(label);
        // SAFETY: the allocator lives, and we hold it for as long as the domain; the label ends with a 0. auto_close may be set until
        // somebody enters: then no exit ends the phase.
        unsafe {
            let raw = sys::epoch_domain_create_labeled(slab.as_raw(), label.as_ptr());
            let raw = NonNull::new(raw).ok_or_else(Error::last)?;
            (*raw.as_ptr()).auto_close = false;
            Ok(Self { phase: Phase::from_raw(raw), home: ManuallyDrop::new(slab.clone()) })
        }
    }
    /// Ends everything that was allocated and goes on, empty, under the same label: the frame loop. Cleanups of
    /// [`on_end`](Phase::on_end) run.
    ///
    /// # Errors
    /// No memory for a record, or C code is inside; then nothing has ended.
    pub fn reset(&mut self) -> Result<(), Error> {
        // SAFETY: the domain is ours alone, so nobody has a reference into it.
        if unsafe { sys::epoch_domain_reset(self.phase.as_raw()) } {
            Ok(())
        } else {
            Err(Error::last())
        }
    }
    /// Ends the phase now, and tells what it held.
    ///
    /// # Errors
    /// C code is inside: then the phase stays open, for ever.
    pub fn end(self) -> Result<Receipt, Error> {
        self.finish(sys::epoch_domain_destroy_ex)
    }
    /// Ends the phase by draining: what C code has allocated in it stays valid until it is freed, the last free gives the memory
    /// back. Objects of Rust are not in use any more, since they borrow the phase; those that were not freed one by one stay,
    /// as leaks.
    ///
    /// # Errors
    /// C code is inside: then the phase stays open, for ever.
    pub fn drain(self) -> Result<Receipt, Error> {
        self.finish(sys::epoch_domain_drain)
    }
    fn finish(
        self,
        how: unsafe extern "C" fn(*mut sys::epoch_domain_t, *mut sys::EpochReceipt) -> bool,
    ) -> Result<Receipt, Error> {
        let mut domain = ManuallyDrop::new(self);
        let mut out = sys::EpochReceipt::default();
        // SAFETY: the domain is ours alone, so nobody has a reference into it. The allocator is given up after it, once; where the
        // end is refused it stays, since the domain does.
        unsafe {
            if !how(domain.phase.as_raw(), &mut out) {
                return Err(Error::last());
            }
            ManuallyDrop::drop(&mut domain.home);
        }
        Ok(Receipt::from(&out))
    }
    /// What the incarnation that ended last held, before the latest [`reset`](Self::reset). None before the first.
    pub fn last_receipt(&self) -> Option<Receipt> {
        let mut out = sys::EpochReceipt::default();
        // SAFETY: the domain lives.
        unsafe { sys::epoch_domain_receipt(self.phase.as_raw(), &mut out) }.then(|| Receipt::from(&out))
    }
    /// The allocator that the phase is of.
    pub fn home(&self) -> &Allocator {
        &self.home
    }
}

impl Deref for Domain {
    type Target = Phase;
    #[inline]
    fn deref(&self) -> &Phase {
        &self.phase
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: the domain is ours alone, so nobody has a reference into it. Where C code is inside the end is refused; then the
        // allocator stays, too. It is given up once, here.
        unsafe {
            if sys::epoch_domain_destroy(self.phase.as_raw()) {
                ManuallyDrop::drop(&mut self.home);
            }
        }
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain").field("era", &self.era()).finish_non_exhaustive()
    }
}

/// What can stand for a [`Phase`]: itself, a [`Domain`], and pointers to these that own or borrow. Sealed: code that relies on getting
/// the same phase each time does.
pub trait AsPhase: sealed::Sealed {
    /// The phase.
    fn as_phase(&self) -> &Phase;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! as_phase {
    ($([$($bound:tt)*] $type:ty, $self:ident => $phase:expr;)*) => {
        $(impl<$($bound)*> sealed::Sealed for $type {}
        impl<$($bound)*> AsPhase for $type {
            #[inline]
            fn as_phase(&$self) -> &Phase {
                $phase
            }
        })*
    };
}

as_phase! {
    [] Phase, self => self;
    [] Domain, self => &self.phase;
    [P: AsPhase + ?Sized] &P, self => (**self).as_phase();
    [P: AsPhase + ?Sized] Box<P>, self => (**self).as_phase();
    [P: AsPhase + ?Sized] std::rc::Rc<P>, self => (**self).as_phase();
    [P: AsPhase + ?Sized] std::sync::Arc<P>, self => (**self).as_phase();
}
