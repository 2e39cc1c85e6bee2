//! Memory for the collections of allocator-api2, hashbrown and others.

use std::alloc::Layout;
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator as Memory};
use tslab_sys as sys;

use crate::phase::Phase;
use crate::raw::{self, ALIGNMENT};
use crate::Allocator;

#[inline]
fn whole<E>(p: Result<NonNull<u8>, E>, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
    match p {
        Ok(p) => Ok(NonNull::slice_from_raw_parts(p, layout.size())),
        Err(_) => Err(AllocError),
    }
}

/// Resizes by `resize` where that keeps the alignment, else by a copy.
///
/// # Safety
/// The block is one of the memory with the layout `old`, and is given up when this succeeds.
unsafe fn resized(
    memory: &impl Memory,
    block: NonNull<u8>,
    old: Layout,
    new: Layout,
    resize: impl FnOnce(*mut std::ffi::c_void, usize) -> *mut std::ffi::c_void,
) -> Result<NonNull<[u8]>, AllocError> {
    if old.size() != 0 && new.size() != 0 && new.align() <= ALIGNMENT {
        return whole(raw::found(resize(block.as_ptr().cast(), new.size())), new);
    }
    let moved = memory.allocate(new)?;
    // SAFETY: two blocks, both as large as what is copied; the old one is given up.
    unsafe {
        let bytes = old.size().min(new.size());
        std::ptr::copy_nonoverlapping(block.as_ptr(), moved.cast().as_ptr(), bytes);
        memory.deallocate(block, old);
    }
    Ok(moved)
}

/// Memory of the phase: `Vec::new_in(phase)` and `HashMap::new_in(phase)` with a [`&Phase`](Phase) lie in it, give back what they
/// outgrow, and cannot outlive it.
///
/// ```
/// use allocator_api2::vec::Vec;
///
/// let slab = tslab::Allocator::new()?;
/// let sum: i32 = slab.scope("GET /", |phase| {
///     let mut numbers = Vec::new_in(phase);
///     numbers.extend(1..=100);
///     numbers.iter().sum()
/// })?;
/// assert_eq!(sum, 5050);
/// # Ok::<(), tslab::Error>(())
/// ```
// SAFETY: a block lives until it is given back or the domain is reset or ends, for which nothing may borrow the phase. A Phase is
// never owned by a caller, so what is kept in a collection is a reference to it: copies of that are the same memory.
unsafe impl Memory for Phase {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the domain lives.
        whole(unsafe { raw::take(self.raw(), layout) }, layout)
    }
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() != 0 && layout.align() <= ALIGNMENT {
            // SAFETY: the domain lives.
            let p = unsafe { sys::epoch_domain_calloc(self.as_raw(), 1, layout.size()) };
            return whole(raw::found(p), layout);
        }
        let block = self.allocate(layout)?;
        // SAFETY: a block of that size.
        unsafe { block.cast::<u8>().as_ptr().write_bytes(0, layout.size()) };
        Ok(block)
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's word.
        unsafe { raw::give(self.home(), block, layout) }
    }
    unsafe fn grow(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's word; the domain lives.
        unsafe { resized(self, block, old, new, |p, n| sys::epoch_domain_realloc(self.as_raw(), p, n)) }
    }
    unsafe fn shrink(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's word; the domain lives.
        unsafe { resized(self, block, old, new, |p, n| sys::epoch_domain_realloc(self.as_raw(), p, n)) }
    }
}

/// Memory outside of all phases, whatever scope the thread is in. A collection with an [`Allocator`], or a clone of it, is
/// `'static` and may outlive everything but its own elements; one with a reference borrows it.
// SAFETY: a block lives until it is given back or the allocator ends, which is when its last clone goes; epochs of the ring are
// released by `unsafe` functions only.
unsafe impl Memory for Allocator {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the allocator lives.
        whole(unsafe { raw::take_outside(self.raw(), layout) }, layout)
    }
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the allocator lives.
        whole(unsafe { raw::take_outside_zeroed(self.raw(), layout) }, layout)
    }
    #[inline]
    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller's word.
        unsafe { raw::give(self.raw(), block, layout) }
    }
    unsafe fn grow(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's word; the allocator lives.
        unsafe { resized(self, block, old, new, |p, n| sys::slab_realloc_outside(self.as_raw(), p, n)) }
    }
    unsafe fn shrink(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        // SAFETY: the caller's word; the allocator lives.
        unsafe { resized(self, block, old, new, |p, n| sys::slab_realloc_outside(self.as_raw(), p, n)) }
    }
}

/// Memory of a phase of which nothing is given back before the phase ends: for collections that are built and dropped, whose
/// destructor has then no memory to free. One that grows leaves what it outgrows behind; where that matters there is
/// [`&Phase`](Phase).
///
/// ```
/// use allocator_api2::vec::Vec;
///
/// let slab = tslab::Allocator::new()?;
/// slab.scope("GET /", |phase| {
///     let mut numbers = Vec::with_capacity_in(100, tslab::Bulk(phase));
///     numbers.extend(0..100);
///     assert_eq!(numbers.len(), 100);
/// })?;
/// # Ok::<(), tslab::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Bulk<'p>(pub &'p Phase);

// SAFETY: as for Phase, and blocks live longer.
unsafe impl Memory for Bulk<'_> {
    #[inline]
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.0.allocate(layout)
    }
    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.0.allocate_zeroed(layout)
    }
    #[inline]
    unsafe fn deallocate(&self, _block: NonNull<u8>, _layout: Layout) {}
    #[inline]
    unsafe fn shrink(&self, block: NonNull<u8>, old: Layout, new: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if block.as_ptr() as usize % new.align() == 0 {
            return Ok(NonNull::slice_from_raw_parts(block, new.size()));
        }
        let moved = self.allocate(new)?;
        debug_assert!(new.size() <= old.size());
        // SAFETY: two blocks, both as large as what is copied.
        unsafe { std::ptr::copy_nonoverlapping(block.as_ptr(), moved.cast().as_ptr(), new.size()) };
        Ok(moved)
    }
}
