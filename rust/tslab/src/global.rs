//! The library as the program's allocator.

use std::alloc::{GlobalAlloc, Layout};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

use tslab_sys as sys;

use crate::error::Error;
use crate::raw::{self, ALIGNMENT};
use crate::Allocator;

/// The library as `#[global_allocator]`: `Box`, `Vec` and all else of the program lie outside of all phases and live until they are
/// freed. Phases of [`allocator`](Self::allocator) are then phases of the same allocator.
///
/// The allocator is made with the first allocation, with the options of `TSLAB_OPTIONS`, and is never ended.
///
/// ```
/// use tslab::Global;
///
/// #[global_allocator]
/// static MEMORY: Global = Global::new();
///
/// let slab = MEMORY.allocator()?;
/// let words = vec![String::from("outside"); 3];
/// assert!(slab.owns(words.as_ptr()));
/// # Ok::<(), tslab::Error>(())
/// ```
pub struct Global {
    home: AtomicPtr<sys::SlabAllocator>,
    ambient: bool,
}

impl Global {
    /// One that allocates outside of all phases, whatever scope the thread is in.
    #[allow(clippy::new_without_default)] // for a static
    pub const fn new() -> Self {
        Self { home: AtomicPtr::new(ptr::null_mut()), ambient: false }
    }
    /// One that allocates in the phase that the thread is inside of: `String` and `Vec` of a request lie in its phase.
    ///
    /// # Safety
    /// What a thread allocates inside of a phase is not used any more when that ends, and the compiler cannot check it: a `String`
    /// has no lifetime. That holds for all code that runs inside of [`Allocator::scope`], [`Phase::enter`](crate::Phase::enter)
    /// and [`in_phase`](crate::in_phase), of other crates and of the standard library as well. Among what breaks it: anything that is
    /// returned from the closure or kept in a `static`, a thread-local variable, a channel or a cache; the first use of what
    /// initialises itself (`OnceLock`, a regular expression, `stdout`, a log); a thread that is started; a panic's payload, which
    /// leaves the scope. A free of such an object behind the end is refused; a read is not seen.
    pub const unsafe fn ambient() -> Self {
        Self { home: AtomicPtr::new(ptr::null_mut()), ambient: true }
    }
    /// The allocator, for phases.
    ///
    /// # Errors
    /// The system grants no memory for one.
    pub fn allocator(&self) -> Result<Allocator, Error> {
        match NonNull::new(self.home()) {
            // SAFETY: made by slab_allocator_create, and never ended.
            Some(home) => unsafe { Allocator::retain(home) }.ok_or_else(Error::last),
            None => Err(Error::last()),
        }
    }

    #[inline]
    fn home(&self) -> *mut sys::SlabAllocator {
        // Acquire: pairs with the release of whoever made it, so that what it points to is there.
        let home = self.home.load(Ordering::Acquire);
        if home.is_null() {
            self.create()
        } else {
            home
        }
    }
    // No lock of the standard library, which may allocate.
    #[cold]
    fn create(&self) -> *mut sys::SlabAllocator {
        // SAFETY: no arguments.
        let made = unsafe { sys::slab_allocator_create() };
        if made.is_null() {
            return made;
        }
        // Release: pairs with the acquire above. Acquire where another thread was first: that one's is taken.
        match self.home.compare_exchange(ptr::null_mut(), made, Ordering::Release, Ordering::Acquire) {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: nobody else knows of it.
                unsafe { sys::slab_allocator_free(made) };
                first
            }
        }
    }
}

fn or_null<E>(p: Result<NonNull<u8>, E>) -> *mut u8 {
    p.map_or(ptr::null_mut(), NonNull::as_ptr)
}

// SAFETY: blocks are of the size and alignment that were asked for and live until they are freed, in the ambient form by the word of
// whoever made it. No function unwinds or allocates by itself.
unsafe impl GlobalAlloc for Global {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(home) = NonNull::new(self.home()) else { return ptr::null_mut() };
        // SAFETY: the allocator lives.
        unsafe {
            match (self.ambient, layout.align() <= ALIGNMENT) {
                (false, _) => or_null(raw::take_outside(home, layout)),
                (true, true) => sys::slab_malloc0(home.as_ptr(), layout.size()).cast(),
                (true, false) => sys::slab_aligned_alloc(home.as_ptr(), layout.align(), layout.size().max(1)).cast(),
            }
        }
    }
    #[inline]
    unsafe fn dealloc(&self, p: *mut u8, _layout: Layout) {
        // SAFETY: the block is one of ours, so the allocator is there.
        unsafe { sys::slab_free(self.home(), p.cast()) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some(home) = NonNull::new(self.home()) else { return ptr::null_mut() };
        // SAFETY: the allocator lives; a block has the bytes of its layout.
        unsafe {
            match (self.ambient, layout.align() <= ALIGNMENT) {
                (false, _) => or_null(raw::take_outside_zeroed(home, layout)),
                (true, true) => sys::slab_calloc(home.as_ptr(), 1, layout.size().max(1)).cast(),
                (true, false) => {
                    let p = self.alloc(layout);
                    if !p.is_null() {
                        p.write_bytes(0, layout.size());
                    }
                    p
                }
            }
        }
    }
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block is one of ours with that layout, so the allocator is there; the size is not 0 and not too large, by the
        // caller's word.
        unsafe {
            if layout.align() <= ALIGNMENT {
                let resize = if self.ambient { sys::slab_realloc } else { sys::slab_realloc_outside };
                return resize(self.home(), p.cast(), size).cast();
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(p, moved, layout.size().min(size));
                self.dealloc(p, layout);
            }
            moved
        }
    }
}

impl fmt::Debug for Global {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Global").field("ambient", &self.ambient).finish_non_exhaustive()
    }
}
