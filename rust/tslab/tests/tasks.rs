//! A phase follows a task from thread to thread.

use std::future::Future;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use tslab::{in_phase, with_current, Allocator, Domain};

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}

/// Waits once.
#[derive(Default)]
struct Once(bool);

impl Future for Once {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

fn era() -> Option<u64> {
    with_current(|phase| phase.map(|p| p.era()))
}

/// Polls a future to its end, each time on a new thread, which must be in no phase before and after.
fn on_many_threads<F: Future + Send>(future: F) -> (F::Output, usize)
where
    F::Output: Send,
{
    let mut future = pin!(future);
    let mut polls = 0;
    loop {
        polls += 1;
        let polled = thread::scope(|s| {
            s.spawn(|| {
                assert_eq!(era(), None);
                let polled = future.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::new(Nobody))));
                assert_eq!(era(), None);
                polled
            })
            .join()
            .unwrap()
        });
        if let Poll::Ready(result) = polled {
            return (result, polls);
        }
    }
}

#[test]
fn each_piece_is_inside() {
    let slab = Allocator::new().unwrap();
    let domain = slab.domain("task").unwrap();
    let expected = Some(domain.era());
    let (seen, polls) = on_many_threads(in_phase(&domain, async {
        let mut seen = 0;
        for n in 0..20 {
            assert_eq!(era(), expected);
            // SAFETY: the allocator lives. C code, which allocates where the thread is.
            assert!(!unsafe { tslab::sys::slab_malloc(slab.as_raw(), 10 + n) }.is_null());
            slab.scope("inner", |inner| assert_eq!(era(), Some(inner.era()))).unwrap();
            Once::default().await;
            seen += 1;
        }
        seen
    }));
    assert_eq!((seen, polls), (20, 21));
    assert_eq!(domain.end().unwrap().objects_allocated, 20);
}

#[test]
fn phases_of_tasks_within_tasks() {
    let slab = Allocator::new().unwrap();
    let outer = Arc::new(slab.domain("outer").unwrap());
    let inner = Arc::new(slab.domain("inner").unwrap());
    let (outer_era, inner_era) = (Some(outer.era()), Some(inner.era()));
    let task = in_phase(Arc::clone(&outer), async move {
        assert_eq!(era(), outer_era);
        in_phase(inner, async {
            assert_eq!(era(), inner_era);
            Once::default().await;
            assert_eq!(era(), inner_era);
            in_phase(outer, async {
                Once::default().await;
                assert_eq!(era(), outer_era);
            })
            .await;
            assert_eq!(era(), inner_era);
        })
        .await;
        assert_eq!(era(), outer_era);
    });
    assert_eq!(on_many_threads(task).1, 3);
    assert_eq!(slab.refusals().domain_order, 0);
}

#[test]
fn a_task_owns_its_phase_and_borrows_across_waits() {
    let slab = Allocator::new().unwrap();
    let task = async {
        let mut domain = Domain::new(&slab, "own").unwrap();
        let mut sum = 0;
        for round in 0..3_u64 {
            let values = domain.alloc_slice_fill_with(10, |i| i as u64 + round);
            let text = domain.boxed(String::from("across"));
            Once::default().await;
            sum += values.iter().sum::<u64>() + text.len() as u64;
            drop(text);
            domain.reset().unwrap();
        }
        sum
    };
    assert_eq!(on_many_threads(task).0, 45 * 3 + 10 * 3 + 18);
    assert_eq!(slab.stats().live_objects, 0);
}

#[test]
fn a_panic_or_a_dropped_task_leaves_no_thread_inside() {
    let slab = Allocator::new().unwrap();
    let domain = Arc::new(slab.domain("cut short").unwrap());
    let mut waits = Box::pin(in_phase(Arc::clone(&domain), async {
        let _kept = Arc::new(1);
        Once::default().await;
        Once::default().await;
    }));
    let waker = Waker::from(Arc::new(Nobody));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(era(), None);
    drop(waits);
    let mut panics = Box::pin(in_phase(Arc::clone(&domain), async { panic!("in a task") }));
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _: Poll<()> = panics.as_mut().poll(&mut Context::from_waker(&waker));
    }));
    assert!(caught.is_err());
    assert_eq!(era(), None);
    drop(panics);
    Arc::into_inner(domain).unwrap().end().unwrap();
}

#[test]
fn many_tasks_of_tokio_in_a_few_phases() {
    const PHASES: usize = 8;
    const TASKS: usize = 8;
    let slab = Allocator::new().unwrap();
    let pool = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().unwrap();
    static MOVED: AtomicUsize = AtomicUsize::new(0);
    let receipts = pool.block_on(async {
        let phases: Vec<_> = (0..PHASES).map(|n| Arc::new(slab.domain(&format!("tokio {n}")).unwrap())).collect();
        let mut tasks = Vec::new();
        for phase in &phases {
            for _ in 0..TASKS {
                let (home, expected) = (slab.clone(), phase.era());
                tasks.push(tokio::spawn(in_phase(Arc::clone(phase), async move {
                    let mut on = thread::current().id();
                    for n in 0..100 {
                        assert_eq!(era(), Some(expected));
                        with_current(|phase| phase.unwrap().alloc_slice_copy(&[n; 10]).len());
                        home.scope("inner", |inner| *inner.alloc(n)).unwrap();
                        tokio::task::yield_now().await;
                        if std::mem::replace(&mut on, thread::current().id()) != on {
                            MOVED.fetch_add(1, SeqCst);
                        }
                    }
                })));
            }
        }
        for task in tasks {
            task.await.unwrap();
        }
        phases.into_iter().map(|p| Arc::into_inner(p).unwrap().end().unwrap()).collect::<Vec<_>>()
    });
    println!("{} times a task went on on another thread", MOVED.load(SeqCst));
    assert!(receipts.iter().all(|r| r.objects_allocated == TASKS as u64 * 100 && r.objects_freed == 0));
    assert_eq!(slab.stats().live_objects, 0);
    assert_eq!(slab.refusals().domain_order, 0);
}
