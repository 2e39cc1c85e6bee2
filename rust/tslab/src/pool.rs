//! Objects that are named by handles.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use tslab_sys as sys;

use crate::error::{refused, AllocError};
use crate::phase::Phase;

/// The name of an object of a [`Pool`]: a number that never names another object once that one has ended. Any pool but its own
/// answers None to it.
pub struct Handle<T> {
    bits: sys::SlabHandle,
    pool: u64,
    of: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// What the C library knows the object by.
    pub fn to_bits(self) -> u64 {
        self.bits
    }
}

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> PartialEq for Handle<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.bits, self.pool) == (other.bits, other.pool)
    }
}

impl<T> Eq for Handle<T> {}

impl<T> Hash for Handle<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.bits, self.pool).hash(state);
    }
}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({:#x})", self.bits)
    }
}

/// Objects of one type in a phase, named by [`Handle`]s, for structures whose parts name each other and come and go: graphs,
/// sessions, timers. A handle of an object that was removed gives None, also when its memory is in use again.
///
/// What is still there when the pool goes stays until the phase ends, and is dropped by nobody, as with [`Phase::alloc`].
///
/// ```
/// let slab = tslab::Allocator::new()?;
/// slab.scope("graph", |phase| {
///     let mut nodes = phase.pool();
///     let a = nodes.insert("a");
///     let b = nodes.insert("b");
///     assert_eq!(nodes.remove(a), Some("a"));
///     assert_eq!((nodes.get(a), nodes.get(b)), (None, Some(&"b")));
/// })?;
/// # Ok::<(), tslab::Error>(())
/// ```
// Why this is sound, although handles are plain numbers: a handle has its pool's number, which is given once in a process, and no other
// pool looks at it. So the bits were issued by this pool, for a T, in this phase's allocator, which lives; the C library says whether
// that object still does. It ends by `remove` alone, which borrows the pool alone, or with the phase, which the pool borrows.
pub struct Pool<'p, T> {
    phase: &'p Phase,
    number: u64,
    live: usize,
    owns: PhantomData<T>,
}

impl<'p, T> Pool<'p, T> {
    pub(crate) fn new(phase: &'p Phase) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        // Relaxed: numbers differ, and nothing else depends on them.
        Self { phase, number: NUMBERS.fetch_add(1, Ordering::Relaxed), live: 0, owns: PhantomData }
    }
    /// Moves the value into the phase and names it.
    ///
    /// # Panics
    /// Where memory is refused.
    pub fn insert(&mut self, value: T) -> Handle<T> {
        self.try_insert(value).unwrap_or_else(|e| refused(e))
    }
    /// [`insert`](Self::insert) without the panic.
    ///
    /// # Errors
    /// Memory is refused; the value was dropped.
    pub fn try_insert(&mut self, value: T) -> Result<Handle<T>, AllocError> {
        let mut bits = 0;
        let size = std::mem::size_of::<T>().max(1); // what has no bytes has a name, too
                                                    // SAFETY: the domain lives; the block has room for a T and is nobody else's.
        unsafe {
            let p = sys::epoch_domain_alloc_obj(self.phase.as_raw(), size, std::mem::align_of::<T>(), &mut bits);
            let p = NonNull::new(p.cast::<T>()).filter(|_| bits != 0).ok_or_else(AllocError::last)?;
            p.as_ptr().write(value);
        }
        self.live += 1;
        Ok(Handle { bits, pool: self.number, of: PhantomData })
    }
    fn find(&self, handle: Handle<T>) -> Option<NonNull<T>> {
        if handle.pool != self.number {
            return None;
        }
        // SAFETY: the allocator lives; any handle will do.
        NonNull::new(unsafe { sys::slab_handle_ptr(self.phase.home().as_ptr(), handle.bits) }.cast())
    }
    /// The object; None when it was removed, and for a handle of another pool.
    pub fn get(&self, handle: Handle<T>) -> Option<&T> {
        // SAFETY: a live T of this pool, see above; its end borrows the pool alone.
        self.find(handle).map(|p| unsafe { p.as_ref() })
    }
    /// The object, to be changed.
    pub fn get_mut(&mut self, handle: Handle<T>) -> Option<&mut T> {
        // SAFETY: as get, and the pool is borrowed alone.
        self.find(handle).map(|mut p| unsafe { p.as_mut() })
    }
    /// Takes the object out and frees its memory. None when it was removed before, and for a handle of another pool.
    pub fn remove(&mut self, handle: Handle<T>) -> Option<T> {
        let p = self.find(handle)?;
        self.live -= 1;
        // SAFETY: a live T of this pool, which is read once: from here on the handle is stale.
        unsafe {
            let value = p.as_ptr().read();
            let _ = sys::free_obj(self.phase.home().as_ptr(), handle.bits);
            Some(value)
        }
    }
    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.live
    }
    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }
}

impl<T> fmt::Debug for Pool<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("len", &self.live).finish_non_exhaustive()
    }
}
