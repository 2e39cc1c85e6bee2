//! What every way of allocating in a phase has in common.

use std::alloc::Layout;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use tslab_sys as sys;

use crate::error::AllocError;

/// Every object of the library has this alignment; more is asked for by name.
pub(crate) const ALIGNMENT: usize = 16;

/// An address for what has no bytes: aligned, not NULL, and nobody's.
#[inline]
pub(crate) fn dangling(layout: Layout) -> NonNull<u8> {
    // SAFETY: an alignment is not 0.
    unsafe { NonNull::new_unchecked(ptr::null_mut::<u8>().wrapping_add(layout.align())) }
}

#[inline]
pub(crate) fn found<T>(p: *mut std::ffi::c_void) -> Result<NonNull<T>, AllocError> {
    match NonNull::new(p.cast()) {
        Some(p) => Ok(p),
        None => Err(AllocError::last()),
    }
}

/// Where memory of a domain comes from: the domain, or a lane or run of it.
pub(crate) trait Place: Copy {
    fn domain(self) -> NonNull<sys::epoch_domain_t>;
    /// # Safety
    /// The domain lives.
    unsafe fn malloc(self, size: usize) -> *mut std::ffi::c_void;
}

impl Place for NonNull<sys::epoch_domain_t> {
    #[inline]
    fn domain(self) -> NonNull<sys::epoch_domain_t> {
        self
    }
    #[inline]
    unsafe fn malloc(self, size: usize) -> *mut std::ffi::c_void {
        // SAFETY: the domain lives.
        unsafe { sys::epoch_domain_malloc(self.as_ptr(), size) }
    }
}

/// Memory of a domain, not set.
///
/// # Safety
/// The domain lives.
#[inline]
pub(crate) unsafe fn take(d: impl Place, layout: Layout) -> Result<NonNull<u8>, AllocError> {
    if layout.size() == 0 {
        return Ok(dangling(layout));
    }
    // SAFETY: the domain lives; size and alignment are those of a Layout.
    found(unsafe {
        if layout.align() <= ALIGNMENT {
            d.malloc(layout.size())
        } else {
            sys::epoch_domain_aligned_alloc(d.domain().as_ptr(), layout.align(), layout.size())
        }
    })
}

/// The same for the ring's current epoch, wherever that has moved to meanwhile.
///
/// # Safety
/// The allocator lives.
#[inline]
pub(crate) unsafe fn take_outside(a: NonNull<sys::SlabAllocator>, layout: Layout) -> Result<NonNull<u8>, AllocError> {
    if layout.size() == 0 {
        return Ok(dangling(layout));
    }
    if layout.align() <= ALIGNMENT {
        // SAFETY: the allocator lives.
        return found(unsafe { sys::slab_malloc_outside(a.as_ptr(), layout.size()) });
    }
    // SAFETY: the allocator lives.
    in_the_ring(a, |epoch| unsafe { sys::slab_aligned_alloc_epoch(a.as_ptr(), layout.align(), layout.size(), epoch) })
}

/// Zeroed memory there. Large blocks become resident only where they are touched.
///
/// # Safety
/// The allocator lives.
pub(crate) unsafe fn take_outside_zeroed(
    a: NonNull<sys::SlabAllocator>,
    layout: Layout,
) -> Result<NonNull<u8>, AllocError> {
    if layout.size() == 0 || layout.align() > ALIGNMENT {
        // SAFETY: the allocator lives; the block has layout.size() bytes.
        return unsafe {
            let p = take_outside(a, layout)?;
            p.as_ptr().write_bytes(0, layout.size());
            Ok(p)
        };
    }
    // SAFETY: the allocator lives.
    in_the_ring(a, |epoch| unsafe { sys::slab_calloc_epoch(a.as_ptr(), 1, layout.size(), epoch) })
}

fn in_the_ring(
    a: NonNull<sys::SlabAllocator>,
    make: impl Fn(sys::EpochId) -> *mut std::ffi::c_void,
) -> Result<NonNull<u8>, AllocError> {
    loop {
        // SAFETY: our callers hold the allocator.
        let epoch = unsafe { sys::epoch_current(a.as_ptr()) };
        match found(make(epoch)) {
            // SAFETY: as above. The ring has moved on between the two calls: again.
            Err(e) if e.kind() == crate::ErrorKind::Ended && epoch != unsafe { sys::epoch_current(a.as_ptr()) } => {}
            result => return result,
        }
    }
}

/// Room for a T in the domain, then the T, in place.
///
/// # Safety
/// The domain lives for `'p` and is not reset.
#[inline]
pub(crate) unsafe fn make<'p, T>(d: impl Place, f: impl FnOnce() -> T) -> Result<&'p mut T, AllocError> {
    // SAFETY: the domain lives.
    let p = unsafe { take(d, Layout::new::<T>()) }?.cast::<T>();
    // SAFETY: room for a T that nobody else has, until the domain ends.
    unsafe {
        p.as_ptr().write(f());
        Ok(&mut *p.as_ptr())
    }
}

/// Room for n T in the domain.
///
/// # Safety
/// The domain lives for `'p` and is not reset.
#[inline]
pub(crate) unsafe fn room<'p, T>(d: impl Place, n: usize) -> Result<&'p mut [MaybeUninit<T>], AllocError> {
    let layout = Layout::array::<T>(n).map_err(|_| AllocError::size())?;
    // SAFETY: the domain lives; the block has the bytes of the array, which need not be set, and nobody else has it.
    unsafe { Ok(std::slice::from_raw_parts_mut(take(d, layout)?.cast().as_ptr(), n)) }
}

/// n T in the domain, each made by `f(index)`. Where f panics those before it are not dropped.
///
/// # Safety
/// The domain lives for `'p` and is not reset.
pub(crate) unsafe fn make_slice<'p, T>(
    d: impl Place,
    n: usize,
    mut f: impl FnMut(usize) -> T,
) -> Result<&'p mut [T], AllocError> {
    // SAFETY: passed on.
    let room = unsafe { room::<T>(d, n) }?;
    for (i, place) in room.iter_mut().enumerate() {
        place.write(f(i));
    }
    // SAFETY: all n are set; MaybeUninit<T> has the layout of T.
    Ok(unsafe { &mut *(room as *mut [MaybeUninit<T>] as *mut [T]) })
}

/// A copy of the slice in the domain.
///
/// # Safety
/// The domain lives for `'p` and is not reset.
#[inline]
pub(crate) unsafe fn copy<'p, T: Copy>(d: impl Place, from: &[T]) -> Result<&'p mut [T], AllocError> {
    // SAFETY: the domain lives. The block has the bytes of `from`, and is not part of it, since nobody else has it.
    unsafe {
        let to = take(d, Layout::for_value(from))?.cast::<T>();
        ptr::copy_nonoverlapping(from.as_ptr(), to.as_ptr(), from.len());
        Ok(std::slice::from_raw_parts_mut(to.as_ptr(), from.len()))
    }
}

/// A copy of the text in the domain.
///
/// # Safety
/// The domain lives for `'p` and is not reset.
#[inline]
pub(crate) unsafe fn copy_str<'p>(d: impl Place, from: &str) -> Result<&'p mut str, AllocError> {
    // SAFETY: the bytes of a str are UTF-8.
    unsafe { Ok(std::str::from_utf8_unchecked_mut(copy(d, from.as_bytes())?)) }
}

/// Gives an object of `layout` back, before its phase ends.
///
/// # Safety
/// The allocator lives; the object is one of it with this layout, and nobody uses it any more.
#[inline]
pub(crate) unsafe fn give(a: NonNull<sys::SlabAllocator>, p: NonNull<u8>, layout: Layout) {
    if layout.size() != 0 {
        // SAFETY: as above.
        unsafe { sys::slab_free(a.as_ptr(), p.as_ptr().cast()) }
    }
}

/// A label as C has it: at most 31 bytes, whole characters, up to the first NUL.
pub(crate) struct CLabel([u8; 32]);

impl CLabel {
    pub(crate) fn new(text: &str) -> Self {
        let mut room = [0; 32];
        let mut n = text.bytes().position(|b| b == 0).unwrap_or(text.len()).min(31);
        while !text.is_char_boundary(n) {
            n -= 1;
        }
        room[..n].copy_from_slice(&text.as_bytes()[..n]);
        Self(room)
    }
    pub(crate) fn as_ptr(&self) -> *const std::ffi::c_char {
        self.0.as_ptr().cast()
    }
}

#[cfg(test)]
mod tests {
    use super::CLabel;

    #[test]
    fn a_label_is_cut_between_characters_and_ends_with_a_0() {
        for (given, kept) in [
            ("012345678901234567890123456789ä", "012345678901234567890123456789"),
            ("01234567890123456789012345678ä", "01234567890123456789012345678ä"),
            ("01234567890123456789012345678\u{20ac}x", "01234567890123456789012345678"),
            ("\u{1f980}", "\u{1f980}"),
            ("a\0b", "a"),
            ("", ""),
        ] {
            let label = CLabel::new(given);
            assert_eq!(&label.0[..kept.len()], kept.as_bytes(), "{given:?}");
            assert!(label.0[kept.len()..].iter().all(|&b| b == 0), "{given:?}");
        }
    }
}
