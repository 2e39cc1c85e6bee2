//! The inline functions of `slab_lane.h`, in Rust. Where the processor is not one of those that have an inlined path, and under Miri,
//! each allocation is a call.

use core::ffi::{c_char, c_void};

use crate::{epoch_domain_t, SlabAllocator, SlabLane, SlabRun, SLAB_LANE_VERSION};
use crate::{slab_lane_begin_as, slab_lane_malloc_called, slab_lane_open_as};
use crate::{slab_run_begin_as, slab_run_end_as, slab_run_malloc_called};

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

/// Begins a run in the domain's present epoch. False, with errno, and a run that is none.
///
/// # Safety
/// The run may be written; the domain is one, or NULL.
#[inline]
pub unsafe fn slab_run_begin(run: *mut SlabRun, d: *mut epoch_domain_t) -> bool {
    let mut made = SlabRun::default();
    // SAFETY: as above.
    unsafe {
        let ok = slab_run_begin_as(&mut made, d, SLAB_LANE_VERSION);
        run.write(made);
        ok
    }
}

/// Allocates in the run's phase, inlined for as long as its region lasts. NULL with errno. As in C, the thread is asked for in debug
/// builds alone.
///
/// # Safety
/// The run was begun by this thread and is no copy of another one that is still used, or it is none; it has not ended otherwise than by
/// [`slab_run_end`] of this place; its allocator lives; nobody else uses the run meanwhile.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
#[inline]
pub unsafe fn slab_run_malloc(run: *mut SlabRun, size: usize) -> *mut c_void {
    use core::sync::atomic::AtomicU8;
    use core::sync::atomic::Ordering::{Relaxed, Release};

    // SAFETY: slab_run_malloc of slab_lane.h, word for word. Place, end and map are those of a region that is the run's; what others
    // read is atomic here. The start of what is left first: it bounds the object.
    unsafe {
        let last = size.wrapping_sub(1) | 15;
        let at = (*run).at_;
        let mine = !cfg!(debug_assertions) || ((*run).thread_ != 0 && thread_at((*run).thread_at_) == (*run).thread_);
        if !mine || last >= 4096 || last >= (*run).end_.wrapping_sub(at) {
            let was = *run;
            (*run).at_ = 0; // so that functions which the call calls come by it: they are refused
            (*run).end_ = 0;
            *run = slab_run_malloc_called(was, size);
            return (*run).got_;
        }
        let end = at + last + 1;
        (*run).at_ = end;
        (*run).count_ += 1;
        AtomicU8::from_ptr(((*run).map_.wrapping_add(end >> 4)) as *mut u8).store((*run).gap_ as u8, Relaxed);
        AtomicU8::from_ptr(((*run).map_.wrapping_add(at >> 4)) as *mut u8).store((*run).life_ as u8, Release);
        at as *mut c_void
    }
}

/// Allocates in the run's phase: a call. NULL with errno.
///
/// # Safety
/// The run was begun, or is none; its allocator lives; nobody else uses the run meanwhile.
#[cfg(not(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
#[inline]
pub unsafe fn slab_run_malloc(run: *mut SlabRun, size: usize) -> *mut c_void {
    // SAFETY: as above.
    unsafe {
        *run = slab_run_malloc_called(*run, size);
        (*run).got_
    }
}

/// Ends the run, which is none then. False, with errno: it is none, another thread's, or its epoch has ended.
///
/// # Safety
/// The run was begun, or is none; its allocator lives; nobody else uses the run meanwhile.
#[inline]
pub unsafe fn slab_run_end(run: *mut SlabRun) -> bool {
    // SAFETY: as above.
    unsafe {
        let ended = *run;
        (*run).domain = core::ptr::null_mut();
        (*run).at_ = 0;
        (*run).end_ = 0;
        (*run).thread_ = 0;
        slab_run_end_as(ended)
    }
}
