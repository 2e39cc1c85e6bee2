//! The crate under Miri, which knows no C: the functions of the library that it calls are stood in for by blocks of the system's
//! allocator, one for each object, freed when the object or its phase ends. So Miri sees each use after an end, each leak of what must
//! not leak, each pointer of two owners. `cargo +nightly miri test --test miri`; for other test runs this file is empty.
#![cfg(miri)]

use std::rc::Rc;
use std::sync::{mpsc, Arc};
use std::thread;

use tslab::{in_phase, with_current, Allocator, Boxed, Bulk, Close, Domain};

/// Stand-ins for the C functions.
#[allow(clippy::undocumented_unsafe_blocks, clippy::missing_safety_doc, clippy::not_unsafe_ptr_arg_deref, dead_code)]
mod stand_in {
    use std::alloc::{alloc, alloc_zeroed, dealloc, Layout};
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::ffi::{c_char, c_int, c_void};
    use std::ptr::null_mut;
    use std::sync::Mutex;

    use tslab::sys::{epoch_domain_t, EpochId, EpochReceipt, SlabAllocator, SlabHandle};
    use tslab::sys::{SlabLane, SlabLaneGot, SlabLaneHeap_, SLAB_LANE_VERSION};

    #[derive(Clone, Copy)]
    struct Block {
        p: *mut c_void,
        layout: Layout,
        home: *mut SlabAllocator,
        domain: *mut epoch_domain_t, // NULL: outside
        handle: u64,
    }
    type Cleanup = (*mut epoch_domain_t, unsafe extern "C" fn(*mut c_void), *mut c_void);
    #[derive(Default)]
    struct State {
        blocks: BTreeMap<usize, Block>,
        cleanups: Vec<Cleanup>,
        holders: BTreeMap<usize, usize>,
        last: u64,
    }
    unsafe impl Send for State {}
    static STATE: Mutex<State> =
        Mutex::new(State { blocks: BTreeMap::new(), cleanups: Vec::new(), holders: BTreeMap::new(), last: 0 });
    thread_local!(static SCOPES: RefCell<Vec<*mut epoch_domain_t>> = const { RefCell::new(Vec::new()) });

    fn state<R>(f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut STATE.lock().unwrap())
    }
    fn new_block(home: *mut SlabAllocator, domain: *mut epoch_domain_t, n: usize, align: usize, zero: bool) -> Block {
        let layout = Layout::from_size_align(n, align.max(16)).unwrap();
        let p = unsafe {
            if zero {
                alloc_zeroed(layout)
            } else {
                alloc(layout)
            }
        }
        .cast();
        state(|s| {
            s.last += 1;
            let block = Block { p, layout, home, domain, handle: s.last };
            s.blocks.insert(p as usize, block);
            block
        })
    }
    fn free(p: *mut c_void) -> bool {
        match state(|s| s.blocks.remove(&(p as usize))) {
            Some(b) => {
                unsafe { dealloc(b.p.cast(), b.layout) };
                true
            }
            None => panic!("a free of what is no object"),
        }
    }
    fn resize(p: *mut c_void, n: usize, home: *mut SlabAllocator, domain: *mut epoch_domain_t) -> *mut c_void {
        let had = state(|s| s.blocks[&(p as usize)]).layout.size();
        let q = new_block(home, domain, n, 16, false).p;
        unsafe { p.cast::<u8>().copy_to_nonoverlapping(q.cast(), had.min(n)) };
        free(p);
        q
    }
    fn end_all(which: impl Fn(&Block) -> bool) {
        let ended: Vec<Block> = state(|s| s.blocks.values().filter(|b| which(b)).copied().collect());
        ended.iter().for_each(|b| assert!(free(b.p)));
    }
    fn end_domain(d: *mut epoch_domain_t) {
        end_all(|b| b.domain == d);
        while let Some((_, f, arg)) = state(|s| {
            let at = s.cleanups.iter().rposition(|c| c.0 == d)?;
            Some(s.cleanups.remove(at))
        }) {
            unsafe { f(arg) };
        }
    }
    fn home(d: *mut epoch_domain_t) -> *mut SlabAllocator {
        unsafe { (*d).alloc }
    }

    #[no_mangle]
    extern "C" fn slab_allocator_create() -> *mut SlabAllocator {
        let a = Box::into_raw(Box::<SlabAllocator>::default());
        state(|s| s.holders.insert(a as usize, 1));
        a
    }
    #[no_mangle]
    extern "C" fn slab_allocator_retain(a: *mut SlabAllocator) -> *mut SlabAllocator {
        state(|s| *s.holders.get_mut(&(a as usize)).unwrap() += 1);
        a
    }
    #[no_mangle]
    extern "C" fn slab_allocator_free(a: *mut SlabAllocator) {
        let left = state(|s| {
            let n = s.holders.get_mut(&(a as usize)).unwrap();
            *n -= 1;
            *n
        });
        if left == 0 {
            end_all(|b| b.home == a);
            state(|s| s.holders.remove(&(a as usize)));
            drop(unsafe { Box::from_raw(a) });
        }
    }
    #[no_mangle]
    extern "C" fn epoch_domain_create_labeled(a: *mut SlabAllocator, _: *const c_char) -> *mut epoch_domain_t {
        let epoch_era = state(|s| {
            s.last += 1;
            s.last
        });
        Box::into_raw(Box::new(epoch_domain_t {
            alloc: a,
            epoch_id: 1,
            epoch_era,
            refcount: 0,
            auto_close: true,
            private_: [0; 6],
        }))
    }
    #[no_mangle]
    extern "C" fn epoch_domain_begin(a: *mut SlabAllocator, label: *const c_char) -> *mut epoch_domain_t {
        let d = epoch_domain_create_labeled(a, label);
        epoch_domain_enter(d);
        d
    }
    #[no_mangle]
    extern "C" fn epoch_domain_end(d: *mut epoch_domain_t) -> bool {
        epoch_domain_exit(d) && epoch_domain_destroy(d)
    }
    #[no_mangle]
    extern "C" fn epoch_domain_end_ex(d: *mut epoch_domain_t, _: *mut EpochReceipt) -> bool {
        epoch_domain_end(d)
    }
    #[no_mangle]
    extern "C" fn epoch_domain_destroy(d: *mut epoch_domain_t) -> bool {
        end_domain(d);
        drop(unsafe { Box::from_raw(d) });
        true
    }
    #[no_mangle]
    extern "C" fn epoch_domain_destroy_ex(d: *mut epoch_domain_t, _: *mut EpochReceipt) -> bool {
        epoch_domain_destroy(d)
    }
    #[no_mangle]
    extern "C" fn epoch_domain_drain(d: *mut epoch_domain_t, _: *mut EpochReceipt) -> bool {
        epoch_domain_destroy(d)
    }
    #[no_mangle]
    extern "C" fn epoch_domain_reset(d: *mut epoch_domain_t) -> bool {
        end_domain(d);
        true
    }
    #[no_mangle]
    extern "C" fn epoch_domain_enter(d: *mut epoch_domain_t) -> bool {
        SCOPES.with(|s| s.borrow_mut().push(d));
        true
    }
    #[no_mangle]
    extern "C" fn epoch_domain_exit(d: *mut epoch_domain_t) -> bool {
        assert_eq!(SCOPES.with(|s| s.borrow_mut().pop()), Some(d));
        true
    }
    #[no_mangle]
    extern "C" fn epoch_domain_current() -> *mut epoch_domain_t {
        SCOPES.with(|s| s.borrow().last().copied()).unwrap_or(null_mut())
    }
    #[no_mangle]
    extern "C" fn epoch_domain_era(d: *const epoch_domain_t) -> u64 {
        unsafe { (*d).epoch_era }
    }
    #[no_mangle]
    extern "C" fn epoch_domain_malloc(d: *mut epoch_domain_t, n: usize) -> *mut c_void {
        new_block(home(d), d, n, 16, false).p
    }
    #[no_mangle]
    extern "C" fn slab_lane_open_as(lane: *mut SlabLane, d: *mut epoch_domain_t, version: u32) -> bool {
        assert_eq!(version, SLAB_LANE_VERSION);
        unsafe { lane.write(SlabLane { domain: d, ..SlabLane::default() }) };
        true
    }
    #[no_mangle]
    extern "C" fn slab_lane_malloc_called(
        d: *mut epoch_domain_t,
        _: u64,
        _: u64,
        heap_: *mut SlabLaneHeap_,
        _: *mut u64,
        n: usize,
    ) -> SlabLaneGot {
        SlabLaneGot { p: epoch_domain_malloc(d, n), heap_ }
    }
    #[no_mangle]
    extern "C" fn epoch_domain_calloc(d: *mut epoch_domain_t, n: usize, size: usize) -> *mut c_void {
        new_block(home(d), d, n * size, 16, true).p
    }
    #[no_mangle]
    extern "C" fn epoch_domain_aligned_alloc(d: *mut epoch_domain_t, align: usize, n: usize) -> *mut c_void {
        new_block(home(d), d, n, align, false).p
    }
    #[no_mangle]
    extern "C" fn epoch_domain_realloc(d: *mut epoch_domain_t, p: *mut c_void, n: usize) -> *mut c_void {
        resize(p, n, home(d), d)
    }
    #[no_mangle]
    extern "C" fn epoch_domain_alloc_obj(
        d: *mut epoch_domain_t,
        n: usize,
        align: usize,
        out: *mut SlabHandle,
    ) -> *mut c_void {
        let b = new_block(home(d), d, n, align, false);
        unsafe { *out = b.handle };
        b.p
    }
    #[no_mangle]
    extern "C" fn slab_handle_ptr(_: *mut SlabAllocator, h: SlabHandle) -> *mut c_void {
        state(|s| s.blocks.values().find(|b| b.handle == h).map_or(null_mut(), |b| b.p))
    }
    #[no_mangle]
    extern "C" fn free_obj(a: *mut SlabAllocator, h: SlabHandle) -> bool {
        free(slab_handle_ptr(a, h))
    }
    #[no_mangle]
    extern "C" fn slab_free(_: *mut SlabAllocator, p: *mut c_void) {
        assert!(free(p));
    }
    #[no_mangle]
    extern "C" fn slab_malloc_outside(a: *mut SlabAllocator, n: usize) -> *mut c_void {
        new_block(a, null_mut(), n, 16, false).p
    }
    #[no_mangle]
    extern "C" fn slab_aligned_alloc_epoch(a: *mut SlabAllocator, align: usize, n: usize, _: EpochId) -> *mut c_void {
        new_block(a, null_mut(), n, align, false).p
    }
    #[no_mangle]
    extern "C" fn slab_calloc_epoch(a: *mut SlabAllocator, n: usize, size: usize, _: EpochId) -> *mut c_void {
        new_block(a, null_mut(), n * size, 16, true).p
    }
    #[no_mangle]
    extern "C" fn slab_realloc_outside(a: *mut SlabAllocator, p: *mut c_void, n: usize) -> *mut c_void {
        resize(p, n, a, null_mut())
    }
    #[no_mangle]
    extern "C" fn epoch_current(_: *mut SlabAllocator) -> EpochId {
        0
    }
    #[no_mangle]
    extern "C" fn epoch_close_era(_: *mut SlabAllocator, _: u64, _: u32, _: *mut EpochReceipt) -> bool {
        end_all(|b| b.domain.is_null());
        true
    }
    #[no_mangle]
    extern "C" fn epoch_domain_on_end(
        d: *mut epoch_domain_t,
        f: Option<unsafe extern "C" fn(*mut c_void)>,
        arg: *mut c_void,
    ) -> bool {
        state(|s| s.cleanups.push((d, f.unwrap(), arg)));
        true
    }
    #[no_mangle]
    extern "C" fn slab_error() -> c_int {
        1
    }
    #[no_mangle]
    extern "C" fn slab_last_error() -> *const c_char {
        c"refused".as_ptr()
    }
}

#[test]
fn objects_of_all_kinds_end_with_their_phase() {
    let slab = Allocator::new().unwrap();
    let mut domain = slab.domain("d").unwrap();
    for round in 0..3_u64 {
        let one = domain.alloc(round);
        let two = domain.alloc_with(|| [round; 9]);
        let lane = domain.lane();
        let three = lane.alloc_str("text");
        let four = lane.alloc_slice_fill_with(5, |i| Rc::new(i));
        let five = domain.alloc_slice_copy(&[1_u8, 2, 3]);
        let nothing = domain.alloc(());
        let none = domain.alloc_slice_copy::<u64>(&[]);
        let room = domain.alloc_uninit::<[u8; 100]>();
        *one += 1;
        two[8] = 7;
        three.make_ascii_uppercase();
        five[0] = room.write([1; 100])[99];
        *nothing = ();
        assert!(none.is_empty());
        assert_eq!((*one, two[0], &*three, *four[4], five[0]), (round + 1, round, "TEXT", 4, 1));
        for rc in four {
            // Dropped in place, by hand, since the end does not.
            // SAFETY: each once, and none is used behind it.
            unsafe { std::ptr::drop_in_place(rc) };
        }
        domain.reset().unwrap();
    }
    drop(domain);
    assert_eq!(slab.scope("s", |phase| *phase.alloc(5)).unwrap(), 5);
    #[repr(align(64))]
    struct Wide(u8);
    slab.scope("wide", |phase| assert_eq!(phase.alloc(Wide(3)).0 + phase.boxed(Wide(4)).0 + slab.boxed(Wide(1)).0, 8))
        .unwrap();
}

#[test]
fn owners_drop_once() {
    let slab = Allocator::new().unwrap();
    let counted = Rc::new(());
    let domain = slab.domain("d").unwrap();
    {
        let a = domain.boxed(Rc::clone(&counted));
        let b = slab.boxed(Rc::clone(&counted));
        let mut c = domain.boxed([Rc::clone(&counted), Rc::clone(&counted)]);
        std::mem::swap(&mut *c, &mut [Rc::clone(&counted), Rc::clone(&counted)]);
        let inner = Boxed::into_inner(a);
        // SAFETY: the same object.
        let slice: Boxed<'_, [Rc<()>]> = unsafe { Boxed::map_pointer(c, |p| p as *mut [Rc<()>]) };
        assert_eq!((slice.len(), Rc::strong_count(&counted)), (2, 5));
        drop((b, inner, slice));
        // SAFETY: dropped in place instead of by its owner.
        unsafe { std::ptr::drop_in_place(Boxed::leak(domain.boxed(Rc::clone(&counted)))) };
        drop(domain.boxed(()));
    }
    assert_eq!(Rc::strong_count(&counted), 1);
}

#[test]
fn pools() {
    let slab = Allocator::new().unwrap();
    slab.scope("pool", |phase| {
        let mut pool = phase.pool();
        let handles: Vec<_> = (0..10).map(|n| pool.insert(n.to_string())).collect();
        for (n, &h) in handles.iter().enumerate() {
            pool.get_mut(h).unwrap().push('!');
            let (a, b) = (pool.get(h).unwrap(), pool.get(handles[0]).unwrap_or(&String::new()).clone());
            assert!(a.starts_with(&n.to_string()) && (b.is_empty() || b == "0!"));
            assert_eq!(pool.remove(h).unwrap(), format!("{n}!"));
            assert!(pool.get(h).is_none());
        }
    })
    .unwrap();
}

#[test]
fn collections() {
    use allocator_api2::boxed::Box;
    use allocator_api2::vec::Vec;
    let slab = Allocator::new().unwrap();
    slab.scope("collections", |phase| {
        let mut words = Vec::new_in(phase);
        words.extend((0..50).map(|n| n.to_string()));
        words.drain(10..40);
        words.shrink_to_fit();
        assert_eq!(words[19], "49");
        let mut map = hashbrown::HashMap::with_hasher_in(hashbrown::DefaultHashBuilder::default(), Bulk(phase));
        for (n, word) in words.iter().enumerate() {
            map.insert(word.as_str(), n);
        }
        assert_eq!(map["49"], 19);
        let mut bulk = Vec::new_in(Bulk(phase));
        bulk.extend_from_slice(&[1_u64; 100]);
        bulk.truncate(3);
        bulk.shrink_to_fit();
        assert_eq!(bulk.len(), 3);
    })
    .unwrap();
    let mut owned = Vec::new_in(slab.clone());
    owned.extend(0..100);
    let boxed = Box::new_in(5, slab.clone());
    drop(slab);
    assert_eq!(owned[99] + *boxed, 104);
}

#[test]
fn phases_and_owners_go_between_threads() {
    let slab = Allocator::new().unwrap();
    let domain = slab.domain("shared").unwrap();
    thread::scope(|s| {
        let (to, from) = mpsc::channel();
        let domain = &domain;
        for n in 0..3_u64 {
            let to = to.clone();
            s.spawn(move || {
                domain.enter(|| with_current(|p| assert_eq!(p.unwrap().era(), domain.era()))).unwrap();
                to.send((domain.alloc_slice_copy(&[n; 10]), domain.boxed(Arc::new(n)))).unwrap();
            });
        }
        drop(to);
        let sum: u64 = from.into_iter().map(|(slice, boxed)| slice.iter().sum::<u64>() + **boxed).sum();
        assert_eq!(sum, 33);
    });
    thread::spawn(move || drop(domain)).join().unwrap();
}

#[test]
fn tasks() {
    use std::future::Future;
    use std::task::{Context, Poll, Wake, Waker};
    struct Nobody;
    impl Wake for Nobody {
        fn wake(self: Arc<Self>) {}
    }
    let slab = Allocator::new().unwrap();
    let domain = Arc::new(Domain::new(&slab, "task").unwrap());
    let mut task = Box::pin(in_phase(Arc::clone(&domain), async {
        let kept = String::from("across");
        let looks = &kept; // the future borrows from itself
        let mut first = true;
        std::future::poll_fn(|_| if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) }).await;
        with_current(|p| p.unwrap().alloc_str(looks).len())
    }));
    let waker = Waker::from(Arc::new(Nobody));
    assert!(task.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    let polled = thread::spawn(move || match task.as_mut().poll(&mut Context::from_waker(&waker)) {
        Poll::Ready(n) => n,
        Poll::Pending => 0,
    });
    assert_eq!(polled.join().unwrap(), 6);
    Arc::into_inner(domain).unwrap().end().unwrap();
}

#[test]
fn cleanups_and_panics() {
    let slab = Allocator::new().unwrap();
    let kept = Arc::new(());
    let moved = Arc::clone(&kept);
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        slab.scope("panics", |phase| {
            phase.on_end(move || drop(moved)).unwrap();
            let _boxed = phase.boxed(String::from("dropped as the stack unwinds"));
            panic!("in a scope");
        })
    }));
    assert!(caught.is_err());
    assert_eq!(Arc::strong_count(&kept), 1);
    with_current(|p| assert!(p.is_none()));
}

#[test]
fn a_close_by_era() {
    let slab = Allocator::new().unwrap();
    Boxed::leak(slab.boxed(5));
    // SAFETY: it is not used any more.
    unsafe { slab.close_era(1, Close::Release) }.unwrap();
}
