//! The inline functions of `slab_lane.h`, in Rust. Where the processor is not one of those that have an inlined path, and under Miri,
//! each allocation is a call.

use core::ffi::{c_char, c_void};

use crate::{epoch_domain_t, SlabAllocator, SlabLane, SLAB_LANE_VERSION};
use crate::{slab_lane_begin_as, slab_lane_malloc_called, slab_lane_open_as};

/// Opens a lane of the domain's present epoch for the calling thread. False, with errno, and a lane that is none: the domain has ended.
///
/// # Safety
/// The lane may be written; the domain is one, or NULL.
#[inline]
pub unsafe fn slab_lane_open(lane: *mut SlabLane, d: *mut epoch_domain_t) -> bool {
    let mut made = SlabLane::default(); // so that no other function knows the address of the caller's
                                        // SAFETY: as above.
    unsafe {
        let ok = slab_lane_open_as(&mut made, d, SLAB_LANE_VERSION);
        lane.write(made);
        ok
    }
}

/// `epoch_domain_begin` and [`slab_lane_open`].
///
/// # Safety
/// The lane may be written; the allocator is one, or NULL; the label is a C string, or NULL.
#[inline]
pub unsafe fn slab_lane_begin(lane: *mut SlabLane, a: *mut SlabAllocator, label: *const c_char) -> bool {
    let mut made = SlabLane::default();
    // SAFETY: as above.
    unsafe {
        let ok = slab_lane_begin_as(&mut made, a, label, SLAB_LANE_VERSION);
        lane.write(made);
        ok
    }
}

#[inline]
unsafe fn call(lane: *mut SlabLane, size: usize) -> *mut c_void {
    // SAFETY: the caller's promises.
    unsafe {
        let l = *lane;
        let got = slab_lane_malloc_called(l.domain, l.phase_, l.thread_, l.heap_, l.busy_, size);
        (*lane).heap_ = got.heap_;
        got.p
    }
}

/// Allocates in the lane's phase, inlined for as long as its region lasts. NULL with errno.
///
/// # Safety
/// The lane was opened, or is none; its allocator lives; nobody else uses the lane meanwhile.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
#[inline]
pub unsafe fn slab_lane_malloc(lane: *mut SlabLane, size: usize) -> *mut c_void {
    use core::sync::atomic::Ordering::{Relaxed, Release, SeqCst};
    use core::sync::atomic::{compiler_fence, AtomicPtr, AtomicU32, AtomicU64, AtomicU8};

    use crate::slab_lane_left;

    // SAFETY: slab_lane_malloc of slab_lane.h, word for word. On the lane's thread its heap is a record of the library, which stays
    // readable; the region is touched behind the check alone that the heap is the thread's. What others read or write is atomic here.
    unsafe {
        let l = *lane;
        let h = l.heap_;
        let last = size.wrapping_sub(1) | 15;
        if last >= 4096 || thread_at(l.thread_at_) != l.thread_ {
            return call(lane, size);
        }
        let word = AtomicU64::from_ptr(&raw mut (*h).word);
        if AtomicU64::from_ptr(&raw mut (*h).key).load(Relaxed) != l.phase_ {
            return call(lane, size);
        }
        let r = AtomicPtr::from_ptr(&raw mut (*h).region).load(Relaxed);
        let busy = AtomicU64::from_ptr(l.busy_);
        busy.store(r as usize as u64, Release);
        compiler_fence(SeqCst);
        if word.load(Relaxed) != l.live_ {
            return call(lane, size);
        }
        let used = AtomicU32::from_ptr(&raw mut (*r).rel);
        let rel = used.load(Relaxed);
        let end = rel.wrapping_add(last as u32 + 1);
        if end > AtomicU32::from_ptr(&raw mut (*r).lim).load(Relaxed) {
            return call(lane, size);
        }
        AtomicU8::from_ptr((*r).map.add((rel >> 4) as usize)).store((*r).life, Relaxed);
        used.store(end, Release);
        let issued = AtomicU32::from_ptr(&raw mut (*r).issued);
        issued.store(issued.load(Relaxed).wrapping_add(1), Release);
        let p = (*r).base.add(rel as usize).cast();
        busy.store(0, Release);
        compiler_fence(SeqCst);
        if word.load(Relaxed) != l.live_ {
            return slab_lane_left(h, l.busy_, p);
        }
        p
    }
}

/// Allocates in the lane's phase: a call. NULL with errno.
///
/// # Safety
/// The lane was opened, or is none; its allocator lives; nobody else uses the lane meanwhile.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
#[inline]
pub unsafe fn slab_lane_malloc(lane: *mut SlabLane, size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe { call(lane, size) }
}

/// The number of the thread, which lies so far from the thread's pointer; read anew each time.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn thread_at(at: i64) -> u64 {
    let number;
    // SAFETY: the library has said where it is; at 0 of a lane that is none there is the pointer itself.
    unsafe {
        core::arch::asm!("mov {}, qword ptr fs:[{}]", out(reg) number, in(reg) at, options(nostack, preserves_flags, readonly));
    }
    number
}
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
unsafe fn thread_at(at: i64) -> u64 {
    let pointer: *const u8;
    // SAFETY: as on x86-64.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags));
        pointer.offset(at as isize).cast::<u64>().read()
    }
}
