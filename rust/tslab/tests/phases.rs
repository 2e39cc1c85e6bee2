//! Phases, scopes, objects with and without an owner, pools, cleanups, errors.

use std::cell::Cell;
use std::mem::{align_of, size_of};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use tslab::{with_current, Allocator, Boxed, Close, Domain, ErrorKind, Options};

fn slab() -> Allocator {
    Allocator::new().unwrap()
}

/// Counts what is dropped.
struct Counted<'c>(&'c Cell<usize>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

fn address<T: ?Sized>(p: &T) -> usize {
    (p as *const T).cast::<u8>() as usize
}

#[test]
fn the_library_is_of_the_version_of_its_declarations() {
    // SAFETY: a string that is always there.
    let linked = unsafe { std::ffi::CStr::from_ptr(tslab::sys::slab_version()) };
    assert_eq!(linked.to_str(), Ok(tslab::sys::VERSION));
    assert_eq!(tslab::sys::VERSION, env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_scope_ends_what_it_held() {
    let slab = slab();
    let (sum, receipt) = slab
        .scope_with_receipt("request", |phase| {
            let one = phase.alloc(1_u64);
            let two = phase.alloc_with(|| 2_u64);
            *one += 10;
            let text = phase.alloc_str("drei");
            text.make_ascii_uppercase();
            assert_eq!(text, "DREI");
            let copied = phase.alloc_slice_copy(&[1_u16, 2, 3]);
            copied[0] = 7;
            assert_eq!(copied, [7, 2, 3]);
            assert_eq!(phase.alloc_slice_fill_with(3, |i| i * i), [0, 1, 4]);
            assert_eq!(phase.alloc_slice_clone(&[Some(1), None]), [Some(1), None]);
            assert_eq!(phase.alloc_slice_default::<u32>(2), [0, 0]);
            phase.alloc_uninit::<[u8; 100]>().write([1; 100]);
            assert!(slab.owns(one) && slab.owns(text.as_ptr()));
            *one + *two
        })
        .unwrap();
    assert_eq!(sum, 13);
    assert_eq!(receipt.label.as_str(), "request");
    assert_eq!((receipt.objects_allocated, receipt.objects_released, receipt.objects_freed), (8, 8, 0));
    assert!(receipt.bytes_released >= 8 + 8 + 4 + 6 + 24 + 16 + 8 + 100);
    assert!(receipt.to_string().contains("\"request\""));
    assert_eq!(slab.stats().live_objects, 0);
}

#[test]
fn values_without_bytes_take_no_memory_and_are_aligned() {
    #[derive(Clone, Copy)]
    #[repr(align(64))]
    struct Nothing;
    let slab = slab();
    let dropped = Cell::new(0);
    struct Loud;
    thread_local!(static LOUD: Cell<usize> = const { Cell::new(0) });
    impl Drop for Loud {
        fn drop(&mut self) {
            LOUD.with(|n| n.set(n.get() + 1));
        }
    }
    let ((), receipt) = slab
        .scope_with_receipt("none", |phase| {
            assert_eq!(address(phase.alloc(Nothing)) % 64, 0);
            phase.alloc(());
            assert!(phase.alloc_slice_copy::<u64>(&[]).is_empty());
            assert!(phase.alloc_str("").is_empty());
            assert_eq!(phase.alloc_slice_copy(&[Nothing; 9]).len(), 9);
            phase.alloc(Loud);
            drop(phase.boxed(Loud));
            Boxed::leak(phase.boxed(Loud));
            drop(Boxed::into_inner(phase.boxed(Loud)));
            let empty: [Counted; 0] = [];
            drop(phase.boxed(empty));
        })
        .unwrap();
    assert_eq!(receipt.objects_allocated, 0);
    assert_eq!(LOUD.with(Cell::get), 2);
    assert_eq!(dropped.get(), 0);
}

#[test]
fn alignments_of_all_sizes_hold() {
    macro_rules! aligned {
        ($($n:literal)*) => {$({
            #[repr(align($n))]
            #[derive(Clone, Copy)]
            struct Wide(u8);
            let slab = slab();
            let domain = slab.domain("aligned").unwrap();
            for i in 0..20 {
                let wide = domain.alloc(Wide(i));
                assert_eq!((address(wide) % $n, wide.0), (0, i));
                assert_eq!(address(domain.lane().alloc_slice_copy(&[Wide(i); 3])) % $n, 0);
                assert_eq!(address(&*domain.boxed(Wide(i))) % $n, 0);
                assert_eq!(address(&*slab.boxed(Wide(i))) % $n, 0);
            }
            let mut pool = domain.pool();
            let handle = pool.insert(Wide(9));
            assert_eq!(address(pool.get(handle).unwrap()) % $n, 0);
            assert_eq!(align_of::<Wide>(), $n);
        })*};
    }
    aligned!(2 8 16 32 64 128 4096 16384);
    let slab = slab();
    let domain = slab.domain("too much").unwrap();
    for log2 in 0..26 {
        let layout = std::alloc::Layout::from_size_align(100, 1 << log2).unwrap();
        assert_eq!(domain.try_alloc_layout(layout).unwrap().as_ptr() as usize % layout.align(), 0);
    }
    let layout = std::alloc::Layout::from_size_align(64, 1 << 40).unwrap();
    assert_eq!(domain.try_alloc_layout(layout).unwrap_err().kind(), ErrorKind::Size);
}

#[test]
fn the_end_of_a_phase_drops_nothing_and_a_boxed_does() {
    let slab = slab();
    let dropped = Cell::new(0);
    slab.scope("drops", |phase| {
        phase.alloc(Counted(&dropped));
        phase.alloc_slice_fill_with(5, |_| Counted(&dropped));
        assert_eq!(dropped.get(), 0);
        let first = phase.boxed(Counted(&dropped));
        let second = phase.boxed([Counted(&dropped), Counted(&dropped)]);
        drop(first);
        assert_eq!(dropped.get(), 1);
        std::mem::forget(phase.boxed(Counted(&dropped)));
        Boxed::leak(phase.boxed(Counted(&dropped)));
        let taken = Boxed::into_inner(second);
        assert_eq!(dropped.get(), 1);
        drop(taken);
    })
    .unwrap();
    assert_eq!(dropped.get(), 3);
    assert_eq!(slab.stats().live_objects, 0);
}

#[test]
fn a_boxed_frees_its_memory_also_when_its_destructor_panics() {
    struct Panics([u8; 100]);
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("in a destructor, byte {}", self.0[99]);
        }
    }
    let slab = slab();
    let domain = slab.domain("panics").unwrap();
    let object = domain.boxed(Panics([1; 100]));
    assert_eq!(slab.stats().live_objects, 1);
    assert!(catch_unwind(AssertUnwindSafe(|| drop(object))).is_err());
    assert_eq!(slab.stats().live_objects, 0);
    assert_eq!(domain.end().unwrap().objects_freed, 1);
}

#[test]
fn a_boxed_of_a_trait() {
    let slab = slab();
    let shown = slab.boxed(String::from("shown"));
    // SAFETY: the same object.
    let shown: Boxed<'_, dyn std::fmt::Display> = unsafe { Boxed::map_pointer(shown, |p| p as _) };
    assert_eq!(format!("{shown}"), "shown");
    drop(shown);
    assert_eq!(slab.stats().live_objects, 0);
    assert_eq!(size_of::<Boxed<'_, u8>>(), 2 * size_of::<usize>());
}

#[test]
fn a_panic_leaves_and_ends_the_scope() {
    let slab = slab();
    let domain = slab.domain("outer").unwrap();
    let caught = catch_unwind(AssertUnwindSafe(|| {
        domain.enter(|| {
            slab.scope("inner", |phase| {
                phase.alloc(5);
                assert_eq!(slab.labels().iter().find(|l| l.label.as_str() == "inner").unwrap().phases_open, 1);
                panic!("in the middle");
            })
        })
    }));
    assert!(caught.is_err());
    with_current(|phase| assert!(phase.is_none()));
    assert_eq!(slab.labels().iter().find(|l| l.label.as_str() == "inner").unwrap().phases_open, 0);
    let caught = catch_unwind(AssertUnwindSafe(|| domain.alloc_with(|| -> u64 { panic!("making it") })));
    assert!(caught.is_err());
    domain.end().unwrap();
    assert_eq!(slab.refusals().domain_order, 0);
}

#[test]
fn a_phase_tells_what_it_holds() {
    let slab = slab();
    slab.scope("held", |phase| {
        assert_eq!(phase.held().unwrap().live_objects, 0);
        phase.alloc([1u8; 100]);
        phase.alloc_str("a text");
        let held = phase.held().unwrap();
        assert_eq!((held.live_objects, held.epoch_era), (2, phase.era()));
        assert!(held.live_bytes >= 106 && held.committed_bytes >= held.live_bytes && held.slabs != 0);
    })
    .unwrap();
}

#[test]
fn the_current_phase_is_the_innermost() {
    let slab = slab();
    let other = Allocator::new().unwrap();
    let era = || with_current(|phase| phase.map(|p| p.era()));
    assert_eq!(era(), None);
    slab.scope("one", |one| {
        assert_eq!(era(), Some(one.era()));
        other
            .scope("two", |two| {
                assert_eq!(era(), Some(two.era()));
                with_current(|phase| assert_eq!(phase.unwrap().allocator().unwrap(), other));
                one.enter(|| assert_eq!(era(), Some(one.era()))).unwrap();
                assert_eq!(era(), Some(two.era()));
            })
            .unwrap();
        let kept = with_current(|phase| *phase.unwrap().alloc(3));
        assert_eq!((era(), kept), (Some(one.era()), 3));
    })
    .unwrap();
    assert_eq!(era(), None);
}

#[test]
fn c_code_allocates_where_the_thread_is() {
    let slab = slab();
    let domain = Domain::new(&slab, "c").unwrap();
    // SAFETY: the allocator lives.
    let make = || unsafe { tslab::sys::slab_malloc(slab.as_raw(), 100) };
    domain.enter(|| assert!(!make().is_null())).unwrap();
    assert!(!make().is_null());
    assert_eq!(domain.end().unwrap().objects_allocated, 1);
    assert_eq!(slab.stats().live_objects, 1);
}

#[test]
fn a_domain_is_reset_ended_drained_and_dropped() {
    let slab = slab();
    let mut domain = slab.domain("frame").unwrap();
    assert!(domain.last_receipt().is_none());
    let mut eras = vec![domain.era()];
    for n in 1..=3 {
        domain.alloc_slice_fill_with(n, |i| i);
        domain.alloc(n);
        domain.reset().unwrap();
        assert_eq!(domain.last_receipt().unwrap().objects_released, 2);
        eras.push(domain.era());
    }
    eras.sort_unstable();
    eras.dedup();
    assert_eq!(eras.len(), 4);
    domain.alloc(1);
    assert_eq!(domain.home(), &slab);
    let receipt = domain.end().unwrap();
    assert_eq!((receipt.objects_allocated, receipt.label.as_str()), (1, "frame"));

    let domain = slab.domain("drained").unwrap();
    // SAFETY: the domain lives.
    let c = unsafe { tslab::sys::epoch_domain_malloc(domain.as_raw(), 64) };
    let receipt = domain.drain().unwrap();
    assert_eq!(receipt.objects_escaped, 1);
    assert_eq!(slab.stats().draining_phases, 1);
    // SAFETY: it lives on.
    assert!(unsafe { tslab::sys::slab_free_checked(slab.as_raw(), c) });
    assert_eq!(slab.stats().draining_phases, 0);

    let domain = slab.domain("dropped").unwrap();
    domain.alloc(1);
    drop(domain);
    assert_eq!(slab.stats().live_objects, 0);
}

#[test]
fn a_domain_outlives_all_other_holders_of_its_allocator() {
    let domain = {
        let slab = slab();
        slab.domain("last").unwrap()
    };
    assert_eq!(*domain.alloc(4), 4);
    let again = domain.allocator().unwrap();
    drop(domain);
    assert_eq!(again.stats().live_objects, 0);
}

#[test]
fn forgotten_domains_and_owners_stay_and_harm_nothing() {
    let slab = slab();
    let domain = slab.domain("forgotten").unwrap();
    std::mem::forget(domain.boxed(String::from("leaks")));
    std::mem::forget(domain);
    assert_eq!(slab.labels().iter().find(|l| l.label.as_str() == "forgotten").unwrap().phases_open, 1);
    slab.scope("next", |phase| assert_eq!(*phase.alloc(1), 1)).unwrap();
    assert_eq!(slab.stats().live_objects, 1);
}

#[test]
fn where_c_code_is_inside_an_end_is_refused_and_the_phase_stays() {
    let slab = slab();
    let mut domain = slab.domain("held").unwrap();
    let object = domain.as_raw();
    // SAFETY: the domain lives; C code that forgets to leave.
    assert!(unsafe { tslab::sys::epoch_domain_enter(object) });
    std::thread::scope(|s| {
        s.spawn(|| assert_eq!(domain.reset().unwrap_err().kind(), ErrorKind::Busy));
    });
    domain.alloc(1);
    assert_eq!(domain.end().unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(slab.stats().live_objects, 1);
    // SAFETY: it stays.
    unsafe {
        assert!(tslab::sys::epoch_domain_exit(object));
        assert!(tslab::sys::epoch_domain_destroy(object));
    }
    assert_eq!(slab.stats().live_objects, 0);
}

#[test]
fn a_drop_that_is_refused_keeps_the_allocator_too() {
    let domain = slab().domain("held, of an allocator that nobody else holds").unwrap();
    let object = domain.as_raw();
    // SAFETY: the domain lives; C code that forgets to leave.
    assert!(unsafe { tslab::sys::epoch_domain_enter(object) });
    // SAFETY: it lives as long as the domain.
    let home = unsafe { (*object).alloc };
    drop(domain);
    // SAFETY: both stay, as the end was refused. What is given up at last is what the Domain held.
    unsafe {
        assert!(!tslab::sys::slab_malloc(home, 10).is_null());
        assert!(tslab::sys::epoch_domain_exit(object));
        assert!(tslab::sys::epoch_domain_destroy(object));
        drop(Allocator::from_raw(std::ptr::NonNull::new(home).unwrap()));
    }
}

#[test]
fn cleanups_run_once_at_the_end_last_first() {
    let slab = slab();
    let said = Arc::new(Mutex::new(Vec::new()));
    let say = |what: &'static str| {
        let said = Arc::clone(&said);
        move || said.lock().unwrap().push(what)
    };
    let mut domain = slab.domain("cleanups").unwrap();
    domain.on_end(say("first")).unwrap();
    domain.on_end(say("second")).unwrap();
    domain.reset().unwrap();
    domain.on_end(say("third")).unwrap();
    drop(domain);
    slab.scope("scope", |phase| phase.on_end(say("fourth")).unwrap()).unwrap();
    assert_eq!(*said.lock().unwrap(), ["second", "first", "third", "fourth"]);
    assert_eq!(Arc::strong_count(&said), 1);
}

#[test]
fn a_refused_cleanup_is_dropped_and_not_called() {
    let slab = slab();
    let domain = slab.domain("ended").unwrap();
    // SAFETY: nothing is in use.
    unsafe { slab.close_era(domain.era(), Close::Release) }.unwrap();
    let kept = Arc::new(());
    let moved = Arc::clone(&kept);
    let refused = domain.on_end(move || assert_eq!(Arc::strong_count(&moved), 0)).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Ended);
    assert_eq!(Arc::strong_count(&kept), 1);
    assert_eq!(domain.try_alloc(1).unwrap_err().kind(), ErrorKind::Ended);
}

#[test]
fn an_allocation_over_a_budget_is_refused_and_the_value_dropped() {
    let slab = slab();
    let domain = slab.domain("small").unwrap();
    assert_eq!(domain.set_budget(10, 5).unwrap_err().kind(), ErrorKind::Argument);
    domain.set_budget(0, 1 << 20).unwrap();
    let shared = Rc::new(());
    let mut refused = 0;
    for _ in 0..100 {
        let value = (Rc::clone(&shared), [0_u8; 100_000]);
        if let Err(e) = domain.try_boxed(value).map(Boxed::leak) {
            assert_eq!(e.kind(), ErrorKind::Budget);
            assert!(e.to_string().contains("budget"));
            refused += 1;
        }
    }
    assert!(refused > 50);
    assert_eq!(Rc::strong_count(&shared), 1 + 100 - refused);
    assert_eq!(slab.refusals().over_budget, refused as u64);
    let panics = catch_unwind(AssertUnwindSafe(|| domain.alloc_slice_fill_with(1_000_000, |_| 0_u8).len()));
    assert!(panics.unwrap_err().downcast_ref::<String>().unwrap().contains("over a budget"));
    assert_eq!(domain.try_alloc_slice_fill_with(usize::MAX / 2, |_| 0_u64).unwrap_err().kind(), ErrorKind::Size);

    slab.set_label_budget("limited", 0, 1 << 20).unwrap();
    assert!(slab.set_label_budget("limited", 2, 1).is_err());
    slab.scope("limited", |phase| {
        assert_eq!(phase.try_alloc_slice_fill_with(2_000_000, |_| 0_u8).unwrap_err().kind(), ErrorKind::Budget);
    })
    .unwrap();
}

#[test]
fn options_are_heard_and_bad_ones_refused() {
    let slab = Allocator::with_options(&Options::new().max_bytes(1 << 20).ring_size(4).quiet(true)).unwrap();
    let domain = slab.domain("full").unwrap();
    let e = (0..100).find_map(|_| domain.try_alloc([0_u8; 60_000]).err()).expect("an end of memory");
    assert_eq!(e.kind(), ErrorKind::Budget);
    let e = Allocator::with_options(&Options::new().ring_size(1)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Argument);
    assert!(e.to_string().contains("ring_size"), "{e}");
}

#[test]
fn labels_keep_31_bytes_of_whole_characters() {
    let slab = slab();
    for (given, kept) in [
        ("plain", "plain"),
        ("", "(unlabeled)"),
        ("0123456789012345678901234567890", "0123456789012345678901234567890"),
        ("01234567890123456789012345678901", "0123456789012345678901234567890"),
        ("012345678901234567890123456789ä", "012345678901234567890123456789"),
        ("before\0after", "before"),
    ] {
        slab.scope(given, |phase| *phase.alloc(1_u8)).unwrap();
        assert!(slab.labels().iter().any(|l| l.label.as_str() == kept && l.objects_allocated > 0), "{given:?}");
    }
}

#[test]
fn outside_of_phases() {
    let slab = slab();
    let session = slab.scope("request", |_| slab.boxed(String::from("lives on"))).unwrap();
    assert_eq!(*session, "lives on");
    let first = slab.current_epoch();
    for _ in 0..40 {
        slab.advance();
    }
    assert_ne!(slab.era(first), None);
    assert_eq!(slab.era(1_000_000), None);
    assert_eq!(*session, "lives on");
    let label = slab.labels().into_iter().find(|l| l.label.as_str() == "request").unwrap();
    assert_eq!((label.outside_objects, label.objects_allocated), (1, 0));
    drop(session);
    assert_eq!(slab.stats().live_objects, 0);
    slab.trim();
    slab.flush_thread();
}

#[test]
fn closes_by_id_and_era() {
    let slab = slab();
    std::mem::forget(slab.boxed(5_u64));
    let epoch = slab.current_epoch();
    let era = slab.era(epoch).unwrap();
    // SAFETY: nothing is in use.
    unsafe {
        assert_eq!(slab.close(epoch, Close::Drain).unwrap().objects_escaped, 1);
        assert_eq!(slab.close_era(era, Close::Release).unwrap().objects_released, 1);
        assert_eq!(slab.close(12345, Close::Drain).unwrap_err().kind(), ErrorKind::Epoch);
        assert!(slab.close_era(1 << 60, Close::Drain).is_err());
    }
}

#[test]
fn handles_name_one_object_for_ever() {
    let slab = slab();
    let domain = slab.domain("pool").unwrap();
    let mut pool = domain.pool();
    let mut other = domain.pool();
    let stranger = other.insert(String::from("stranger"));
    let mut old = Vec::new();
    for round in 0..50 {
        let handle = pool.insert(format!("object {round}"));
        assert_eq!(pool.get(handle).unwrap(), &format!("object {round}"));
        pool.get_mut(handle).unwrap().push('!');
        assert_eq!(pool.len(), 1);
        for &h in &old {
            assert!(pool.get(h).is_none() && pool.remove(h).is_none());
        }
        assert_eq!(pool.remove(handle).unwrap(), format!("object {round}!"));
        assert!(pool.is_empty());
        old.push(handle);
    }
    assert!(pool.get(stranger).is_none() && pool.get_mut(stranger).is_none() && pool.remove(stranger).is_none());
    assert_eq!(other.get(stranger).unwrap(), "stranger");
    let mut names = std::collections::HashSet::new();
    assert!(old.iter().all(|&h| names.insert(h)));
    let mut nothings = domain.pool::<()>();
    let (a, b) = (nothings.insert(()), nothings.insert(()));
    assert_ne!(a, b);
    assert_eq!((nothings.remove(a), nothings.get(a), nothings.get(b)), (Some(()), None, Some(&())));
}

#[test]
fn a_pool_of_another_allocator_does_not_know_the_handle() {
    let (one, two) = (slab(), slab());
    let (one, two) = (one.domain("one").unwrap(), two.domain("two").unwrap());
    let (mut ones, mut twos) = (one.pool(), two.pool());
    let first = ones.insert(1_u64);
    let second = twos.insert(2_u64);
    assert_eq!((ones.get(second), twos.get(first)), (None, None));
    assert_eq!((ones.get(first), twos.get(second)), (Some(&1), Some(&2)));
}

#[test]
fn figures_and_texts() {
    let slab = slab();
    slab.scope("figures", |phase| {
        phase.alloc_slice_copy(&[1_u8; 5000]);
        let stats = slab.stats();
        assert_eq!(stats.live_objects, 1);
        assert!(
            stats.live_bytes >= 5000 && stats.committed_bytes >= stats.live_bytes && stats.reserved_bytes > 1 << 20
        );
        let phases = slab.phases();
        let row = phases.iter().find(|p| p.epoch_era == phase.era()).unwrap();
        assert_eq!((row.label.as_str(), row.live_objects), ("figures", 1));
    })
    .unwrap();
    for n in 0..30 {
        slab.scope(&format!("label {n}"), |phase| *phase.alloc(n)).unwrap();
    }
    assert!(slab.labels().len() > 30);
    assert!(slab.json().unwrap().contains("\"figures\""));
    assert!(slab.prometheus().unwrap().contains("temporal_slab_"));
    assert!(!slab.doctor().unwrap().is_empty());
    assert!(!slab.publish());
}

#[test]
fn an_allocator_goes_through_c_and_back() {
    let slab = slab();
    let raw = slab.clone().into_raw();
    // SAFETY: given up in the line above.
    let back = unsafe { Allocator::from_raw(raw) };
    assert_eq!(slab, back);
    assert_ne!(slab, self::slab());
    drop(slab);
    assert_eq!(*back.boxed(1), 1);

    let domain = back.domain("lent").unwrap();
    let raw = std::ptr::NonNull::new(domain.as_raw()).unwrap();
    // SAFETY: the domain lives.
    let lent = unsafe { tslab::Phase::borrow_raw(&raw) };
    assert_eq!(lent.era(), domain.era());
    assert_eq!(*lent.alloc(2), 2);
}

#[test]
fn debug_says_something_of_each() {
    let slab = slab();
    let domain = slab.domain("debug").unwrap();
    let phase: &tslab::Phase = &domain;
    let mut pool = phase.pool();
    let handle = pool.insert(1);
    for said in [
        format!("{slab:?}"),
        format!("{domain:?}"),
        format!("{phase:?}"),
        format!("{:?}", phase.lane()),
        format!("{pool:?}"),
        format!("{handle:?}"),
        format!("{:?}", phase.boxed(1)),
        format!("{:?}", Options::new()),
        format!("{:?}", slab.stats()),
        format!("{:?}", tslab::Global::new()),
        format!("{:?}", tslab::in_phase(phase, async {})),
    ] {
        assert!(!said.is_empty());
    }
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    phase
        .on_end(|| {
            CALLS.fetch_add(1, SeqCst);
        })
        .unwrap();
    drop(domain);
    assert_eq!(CALLS.load(SeqCst), 1);
}

/// For AddressSanitizer, which the script runs it under: it must say so.
#[test]
#[ignore = "uses what has ended, on purpose"]
fn uses_an_object_after_its_end() {
    let slab = Allocator::new().unwrap();
    let domain = slab.domain("ended").unwrap();
    let object: *const u64 = domain.alloc(5);
    drop(domain);
    // SAFETY: none.
    println!("{}", unsafe { object.read_volatile() });
}
