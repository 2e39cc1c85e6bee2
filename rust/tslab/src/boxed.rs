//! Objects with one owner.

use std::alloc::Layout;
use std::borrow::{Borrow, BorrowMut};
use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use tslab_sys as sys;

use crate::raw;

/// Owns an object of a phase ([`Phase::boxed`](crate::Phase::boxed)), or of an allocator outside of all phases
/// ([`Allocator::boxed`](crate::Allocator::boxed)): drops it and gives its memory back when it goes. Any thread may be the one that
/// drops it.
///
/// It cannot be pinned, except for a type that is `Unpin`: where it is forgotten, the memory still ends with its phase, without a
/// destructor, which a pinned object must not. `std::pin::pin!` and `Box::pin` are for those.
///
/// ```
/// let slab = tslab::Allocator::new()?;
/// slab.scope("GET /", |phase| {
///     let mut list = phase.boxed(vec![1, 2, 3]); // the Vec's own memory is freed with `list`
///     list.push(4);
///     assert_eq!(list.len(), 4);
/// })?;
/// # Ok::<(), tslab::Error>(())
/// ```
pub struct Boxed<'p, T: ?Sized> {
    object: NonNull<T>,
    home: NonNull<sys::SlabAllocator>,
    owns: PhantomData<(&'p (), T)>,
}

// SAFETY: it is the only pointer to the object, which may be sent; any thread may free (slab_alloc.h), and the allocator lives for 'p.
unsafe impl<T: ?Sized + Send> Send for Boxed<'_, T> {}
// SAFETY: what is shared is the object; freeing takes a Boxed by value.
unsafe impl<T: ?Sized + Sync> Sync for Boxed<'_, T> {}

/// A move of the owner does not move the object.
impl<T: ?Sized> Unpin for Boxed<'_, T> {}

impl<'p, T: ?Sized> Boxed<'p, T> {
    /// # Safety
    /// The object is one of the allocator, or has no bytes; it is the caller's, and both live for `'p`.
    #[inline]
    pub(crate) unsafe fn from_parts(object: NonNull<T>, home: NonNull<sys::SlabAllocator>) -> Self {
        Self { object, home, owns: PhantomData }
    }
    /// Gives the owner up: the object stays until its phase ends, and is dropped by nobody.
    pub fn leak(this: Self) -> &'p mut T {
        // SAFETY: the object lives for 'p, and nobody else has it.
        unsafe { ManuallyDrop::new(this).object.as_mut() }
    }
    /// The pointer of another type: how a `Boxed<T>` becomes a `Boxed<dyn Trait>` on a stable compiler.
    ///
    /// ```
    /// # let slab = tslab::Allocator::new()?;
    /// use tslab::Boxed;
    /// let one: Boxed<'_, u8> = slab.boxed(1);
    /// // SAFETY: the same object.
    /// let shown: Boxed<'_, dyn std::fmt::Display> = unsafe { Boxed::map_pointer(one, |p| p as _) };
    /// assert_eq!(shown.to_string(), "1");
    /// # Ok::<(), tslab::Error>(())
    /// ```
    ///
    /// # Safety
    /// What `f` returns is a pointer to the same, whole object.
    pub unsafe fn map_pointer<U: ?Sized>(this: Self, f: impl FnOnce(*mut T) -> *mut U) -> Boxed<'p, U> {
        let this = ManuallyDrop::new(this);
        // SAFETY: the caller's word, and no pointer to an object is NULL.
        unsafe { Boxed::from_parts(NonNull::new_unchecked(f(this.object.as_ptr())), this.home) }
    }
}

impl<T> Boxed<'_, T> {
    /// Takes the value out and gives the memory back.
    pub fn into_inner(this: Self) -> T {
        let this = ManuallyDrop::new(this);
        // SAFETY: the value is read once, and the memory is not used behind that.
        unsafe {
            let value = this.object.as_ptr().read();
            raw::give(this.home, this.object.cast(), Layout::new::<T>());
            value
        }
    }
}

impl<T: ?Sized> Drop for Boxed<'_, T> {
    #[inline]
    fn drop(&mut self) {
        struct Memory(NonNull<u8>, NonNull<sys::SlabAllocator>, Layout);
        impl Drop for Memory {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the object is over, also where its destructor has panicked, and was ours.
                unsafe { raw::give(self.1, self.0, self.2) }
            }
        }
        // SAFETY: the object lives, and ends here, once.
        unsafe {
            let _memory = Memory(self.object.cast(), self.home, Layout::for_value(self.object.as_ref()));
            std::ptr::drop_in_place(self.object.as_ptr());
        }
    }
}

impl<T: ?Sized> Deref for Boxed<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the object lives, and is ours.
        unsafe { self.object.as_ref() }
    }
}

impl<T: ?Sized> DerefMut for Boxed<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the object lives, and is ours.
        unsafe { self.object.as_mut() }
    }
}

impl<T: ?Sized> AsRef<T> for Boxed<'_, T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized> AsMut<T> for Boxed<'_, T> {
    fn as_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: ?Sized> Borrow<T> for Boxed<'_, T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: ?Sized> BorrowMut<T> for Boxed<'_, T> {
    fn borrow_mut(&mut self) -> &mut T {
        self
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Boxed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Boxed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Boxed<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for Boxed<'_, T> {}

impl<T: ?Sized + PartialOrd> PartialOrd for Boxed<'_, T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (**self).partial_cmp(other)
    }
}

impl<T: ?Sized + Ord> Ord for Boxed<'_, T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(other)
    }
}

impl<T: ?Sized + std::hash::Hash> std::hash::Hash for Boxed<'_, T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (**self).hash(state)
    }
}
