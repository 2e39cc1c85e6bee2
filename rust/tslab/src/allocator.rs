//! The allocator: where phases come from.

use std::alloc::Layout;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use tslab_sys as sys;

use crate::error::{refused, AllocError, Error};
use crate::phase::{Domain, Phase};
use crate::raw::{self, CLabel};
use crate::stats::Receipt;
use crate::Boxed;

/// Options of an [`Allocator`]; what is not set has its default. The environment variable `TSLAB_OPTIONS` overrides.
///
/// ```
/// let slab = tslab::Allocator::with_options(&tslab::Options::new().max_bytes(64 << 20))?;
/// # Ok::<(), tslab::Error>(())
/// ```
#[derive(Clone)]
pub struct Options(sys::SlabOptions);

macro_rules! options {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $field:ident;)*) => {
        $($(#[$doc])* #[must_use] pub fn $name(mut self, value: $type) -> Self {
            self.0.$field = value.into();
            self
        })*
    };
}

impl Options {
    /// All defaults.
    pub fn new() -> Self {
        Self(sys::SlabOptions { struct_size: std::mem::size_of::<sys::SlabOptions>(), ..Default::default() })
    }
    options! {
        /// Epochs of the ring, 2 to 1024; default 16.
        ring_size: u32 => ring_size;
        /// Address space for objects in bytes, 16 MiB to 64 GiB; default 64 GiB, halved until the system grants it.
        reserve_bytes: u64 => reserve_bytes;
        /// A fixed budget of empty pages kept for reuse, in bytes; `u64::MAX` for none. Default: it starts at 1 MiB and learns.
        warm_bytes: u64 => warm_bytes;
        /// The most that the budget may learn, in bytes; default 64 MiB.
        warm_limit_bytes: u64 => warm_limit_bytes;
        /// The most bytes that slabs and large objects may have at a time; 0 for no limit.
        max_bytes: u64 => max_bytes;
        /// Shows the statistics to other processes of the user: `tslab top --pid`.
        segment: bool => segment;
        /// Threads allocate by turns from slabs that are no thread's: least memory.
        shared: bool => shared;
        /// On misuse says on standard error which it is, and aborts.
        misuse_fatal: bool => misuse_fatal;
        /// Touches pages as they are committed.
        prefault: bool => prefault;
        /// Asks for transparent huge pages.
        huge_pages: bool => huge_pages;
        /// Times one slow allocation in so many, 16 to 1048576; 0 for none.
        sampling_period: u32 => sampling_period;
        /// Profiles one allocation in about so many bytes, 512 and more; 0 for none.
        profile_bytes: u64 => profile_bytes;
        /// Empty slabs of phases that go on are looked for once in so many milliseconds, and go back; 0: they stay until
        /// [`Allocator::trim`] or the end.
        decay_ms: u32 => decay_ms;
        /// No line on standard error about words of `TSLAB_OPTIONS` that are ignored.
        quiet: bool => quiet;
    }
    /// The C structure, for options that have no function here.
    ///
    /// # Safety
    /// `struct_size` stays as it is; the functions that are set may be called with their contexts, by any thread, as `slab_alloc.h`
    /// says.
    pub unsafe fn as_raw_mut(&mut self) -> &mut sys::SlabOptions {
        &mut self.0
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How [`Allocator::close`] ends an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Close {
    /// Live objects stay valid; their memory goes back as they are freed.
    Drain,
    /// Every live object ends now.
    Release,
}

impl Close {
    fn mode(self) -> sys::EpochCloseMode {
        match self {
            Self::Drain => sys::EPOCH_DRAIN,
            Self::Release => sys::EPOCH_RELEASE,
        }
    }
}

/// An allocator, counted: clones are the same allocator, and the last one that goes ends it. Phases hold one each.
///
/// Any thread may use it. With the feature `allocator-api2` it is memory for collections, too: what they hold lies outside of all
/// phases then, and lives as long as they do.
///
/// ```
/// use tslab::Allocator;
///
/// let slab = Allocator::new()?;
/// let words = slab.scope("GET /", |phase| {
///     let line = phase.alloc_str("to be or not to be");
///     line.split(' ').count()
/// })?; // what was allocated ends here
/// assert_eq!(words, 6);
/// # Ok::<(), tslab::Error>(())
/// ```
pub struct Allocator {
    raw: NonNull<sys::SlabAllocator>,
}

// SAFETY: "any thread may call anything at any time" (slab_alloc.h). What must not happen, a call on an allocator while it is
// destroyed, does not: a call borrows an Allocator, which is one of the holders.
unsafe impl Send for Allocator {}
// SAFETY: as above.
unsafe impl Sync for Allocator {}

impl Allocator {
    /// A new one, with all defaults. Reserves address space, a few system calls.
    ///
    /// # Errors
    /// The system grants no memory.
    pub fn new() -> Result<Self, Error> {
        // SAFETY: no arguments.
        let raw = NonNull::new(unsafe { sys::slab_allocator_create() }).ok_or_else(Error::last)?;
        Ok(Self { raw })
    }
    /// A new one, with options.
    ///
    /// # Errors
    /// A bad option, or no memory.
    pub fn with_options(options: &Options) -> Result<Self, Error> {
        // SAFETY: the structure is of the size that it says.
        let raw = NonNull::new(unsafe { sys::slab_allocator_create_with(&options.0) }).ok_or_else(Error::last)?;
        Ok(Self { raw })
    }
    /// Takes over a C allocator as one of its holders.
    ///
    /// # Safety
    /// It was made by `slab_allocator_create` or `_create_with`, the caller is one of its holders and gives that up; and nobody
    /// releases or frees by it what Rust code still uses.
    pub unsafe fn from_raw(raw: NonNull<sys::SlabAllocator>) -> Self {
        Self { raw }
    }
    /// For the C functions. Freeing it, or releasing epochs in which something still lives, is up to the caller, who says so by
    /// `unsafe` there.
    pub fn as_raw(&self) -> *mut sys::SlabAllocator {
        self.raw.as_ptr()
    }
    /// Gives it up as a C allocator, which the caller frees.
    pub fn into_raw(self) -> NonNull<sys::SlabAllocator> {
        ManuallyDrop::new(self).raw
    }
    #[cfg(feature = "allocator-api2")]
    pub(crate) fn raw(&self) -> NonNull<sys::SlabAllocator> {
        self.raw
    }
    /// One more holder of a C allocator; None where it is not counted (`allocator_init`).
    ///
    /// # Safety
    /// It lives.
    pub(crate) unsafe fn retain(raw: NonNull<sys::SlabAllocator>) -> Option<Self> {
        // SAFETY: it lives.
        NonNull::new(unsafe { sys::slab_allocator_retain(raw.as_ptr()) }).map(|raw| Self { raw })
    }

    /// Begins a phase, which this thread is inside of until `f` returns or panics, and ends it: what was allocated in it is gone in
    /// one step. C code that calls `slab_malloc` on this allocator allocates there meanwhile. Scopes nest.
    ///
    /// No object leaves it: `f` is given the phase for its own lifetime only. The label, of which 31 bytes are kept, is what
    /// statistics attribute the memory to: a route, not a request.
    ///
    /// # Errors
    /// No record for another phase; `f` was not called then.
    pub fn scope<R>(&self, label: &str, f: impl FnOnce(&Phase) -> R) -> Result<R, Error> {
        let scope = Scope::begin(self, label)?;
        Ok(f(&scope.phase))
    }
    /// [`scope`](Self::scope), with what the phase held.
    ///
    /// # Errors
    /// No record for another phase; `f` was not called then. Or C code has left a scope of its own open inside: then the phase
    /// stays as it is.
    pub fn scope_with_receipt<R>(&self, label: &str, f: impl FnOnce(&Phase) -> R) -> Result<(R, Receipt), Error> {
        let scope = Scope::begin(self, label)?;
        let result = f(&scope.phase);
        Ok((result, scope.end()?))
    }
    /// A phase that lives as long as the value that this returns.
    ///
    /// # Errors
    /// No record for another phase.
    pub fn domain(&self, label: &str) -> Result<Domain, Error> {
        Domain::new(self, label)
    }

    /// An object with one owner, outside of all phases, whatever scope the thread is in: a session made inside a request.
    ///
    /// # Panics
    /// Where memory is refused.
    pub fn boxed<T>(&self, value: T) -> Boxed<'_, T> {
        self.try_boxed(value).unwrap_or_else(|e| refused(e))
    }
    /// [`boxed`](Self::boxed) without the panic.
    ///
    /// # Errors
    /// Memory is refused; the value was dropped.
    pub fn try_boxed<T>(&self, value: T) -> Result<Boxed<'_, T>, AllocError> {
        // SAFETY: the allocator lives, now and as long as the Boxed, which borrows it; the block has room for a T, and outside of
        // phases only `unsafe` ends it.
        unsafe {
            let p = raw::take_outside(self.raw, Layout::new::<T>())?.cast::<T>();
            p.as_ptr().write(value);
            Ok(Boxed::from_parts(p, self.raw))
        }
    }

    /// Closes the current epoch of the ring to allocation and opens the next: what is allocated outside of phases goes there.
    /// Nothing ends by it. Returns the new one's id.
    pub fn advance(&self) -> u32 {
        // SAFETY: the allocator lives.
        unsafe { sys::epoch_advance_id(self.as_raw()) }
    }
    /// Id of the ring's current epoch.
    pub fn current_epoch(&self) -> u32 {
        // SAFETY: the allocator lives.
        unsafe { sys::epoch_current(self.as_raw()) }
    }
    /// Era of the incarnation that an epoch's id names now; eras are never used again. None: there is no such epoch.
    pub fn era(&self, epoch: u32) -> Option<u64> {
        // SAFETY: the allocator lives; any id will do.
        match unsafe { sys::epoch_era(self.as_raw(), epoch) } {
            0 => None,
            era => Some(era),
        }
    }
    /// Ends the incarnation that an epoch's id names now, of the ring or of a phase.
    ///
    /// # Safety
    /// With [`Close::Release`], nothing that lies there is used any more: no reference, [`Boxed`], collection or handle, of any
    /// thread. The compiler cannot know: an id is a number. With [`Close::Drain`] live objects stay valid; that the memory of objects
    /// that were never freed stays is no matter of safety.
    ///
    /// # Errors
    /// No such epoch.
    pub unsafe fn close(&self, epoch: u32, how: Close) -> Result<Receipt, Error> {
        let mut out = sys::EpochReceipt::default();
        // SAFETY: the allocator lives; the caller answers for what is there.
        match unsafe { sys::epoch_close_ex(self.as_raw(), epoch, how.mode(), &mut out) } {
            true => Ok(Receipt::from(&out)),
            false => Err(Error::plain()),
        }
    }
    /// [`close`](Self::close) of the incarnation with this era, also one that the ring has moved past.
    ///
    /// # Safety
    /// As for [`close`](Self::close).
    ///
    /// # Errors
    /// It is gone.
    pub unsafe fn close_era(&self, era: u64, how: Close) -> Result<Receipt, Error> {
        let mut out = sys::EpochReceipt::default();
        // SAFETY: the allocator lives; the caller answers for what is there.
        match unsafe { sys::epoch_close_era(self.as_raw(), era, how.mode(), &mut out) } {
            true => Ok(Receipt::from(&out)),
            false => Err(Error::plain()),
        }
    }
    /// Limits what all phases of a label together may commit, in bytes; 0 for no limit. Above `hard` allocations are refused
    /// ([`ErrorKind::Budget`](crate::ErrorKind::Budget)); above `soft` a warning is counted.
    ///
    /// # Errors
    /// `hard` is below `soft`, or the label found no room.
    pub fn set_label_budget(&self, label: &str, soft: usize, hard: usize) -> Result<(), Error> {
        // SAFETY: the allocator lives, the label ends with a 0, and there is no function to be called.
        let done = unsafe {
            let label = CLabel::new(label);
            sys::slab_label_set_budget(self.as_raw(), label.as_ptr(), soft, hard, None, std::ptr::null_mut())
        };
        if done {
            Ok(())
        } else {
            Err(Error::plain())
        }
    }
    /// Gives empty pages of all phases, and those kept for reuse, back to the system.
    pub fn trim(&self) {
        // SAFETY: the allocator lives.
        unsafe { sys::slab_trim(self.as_raw()) }
    }
    /// Gives back what this thread keeps for reuse.
    pub fn flush_thread(&self) {
        // SAFETY: the allocator lives.
        unsafe { sys::slab_thread_flush(self.as_raw()) }
    }
    /// True when the address lies where this allocator keeps objects.
    pub fn owns<T: ?Sized>(&self, p: *const T) -> bool {
        // SAFETY: the allocator lives; the address is not followed.
        unsafe { sys::slab_owns(self.as_raw(), p.cast()) }
    }
}

impl Clone for Allocator {
    fn clone(&self) -> Self {
        // SAFETY: it lives; all of ours are counted.
        unsafe { Self::retain(self.raw) }.expect("an allocator of slab_allocator_create")
    }
}

impl Drop for Allocator {
    fn drop(&mut self) {
        // SAFETY: gives up one holder. The last one: no call is under way, since a call borrows a holder, and nothing of it is in
        // use, since what is borrows a holder or is one.
        unsafe { sys::slab_allocator_free(self.raw.as_ptr()) }
    }
}

/// The same allocator, not an equal one.
impl PartialEq for Allocator {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl Eq for Allocator {}

impl fmt::Debug for Allocator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Allocator").field(&self.raw).finish()
    }
}

/// Leaves and ends a phase, also in a panic. Never in the hands of a caller, who could forget it.
struct Scope {
    phase: Phase,
}

impl Scope {
    fn begin(slab: &Allocator, label: &str) -> Result<Self, Error> {
        let label = CLabel::new(label);
        // SAFETY: the allocator lives, also until the end, since our caller borrows it; the label ends with a 0.
        let raw = unsafe { sys::epoch_domain_begin(slab.as_raw(), label.as_ptr()) };
        // SAFETY: a new domain, which `drop` ends.
        Ok(Self { phase: unsafe { Phase::from_raw(NonNull::new(raw).ok_or_else(Error::last)?) } })
    }
    fn end(self) -> Result<Receipt, Error> {
        let scope = ManuallyDrop::new(self);
        let mut out = sys::EpochReceipt::default();
        // SAFETY: begun on this thread; nobody has a reference into it any more.
        match unsafe { sys::epoch_domain_end_ex(scope.phase.as_raw(), &mut out) } {
            true => Ok(Receipt::from(&out)),
            false => Err(Error::last()),
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        // SAFETY: begun on this thread; nobody has a reference into it any more. Where C code has left the thread inside of
        // another scope it is refused, and the phase stays.
        let _ = unsafe { sys::epoch_domain_end(self.phase.as_raw()) };
    }
}
