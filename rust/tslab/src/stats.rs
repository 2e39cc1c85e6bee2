//! Receipts and statistics.

use std::ffi::{c_char, c_void};
use std::fmt;

use tslab_sys as sys;

use crate::{Allocator, Error};

/// The label of a phase: at most 31 bytes of text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Label([u8; 32]);

impl Label {
    fn of(text: &[c_char; 32]) -> Self {
        Self(text.map(|c| c as u8))
    }
    /// The text. Should C code have given it something that is not UTF-8, up to there.
    pub fn as_str(&self) -> &str {
        let bytes = self.0.split(|&b| b == 0).next().unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(e) => std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default(),
        }
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// A structure of Rust with fields of one of C. Each field names its type; labels are converted.
macro_rules! mirror {
    (@field $from:ident $field:ident Label) => { Label::of(&$from.$field) };
    (@field $from:ident $field:ident $type:ident) => { $from.$field };
    ($(#[$doc:meta])* $name:ident of $c:ident { $($(#[$field_doc:meta])* $field:ident: $type:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name { $($(#[$field_doc])* pub $field: $type,)* }
        impl From<&sys::$c> for $name {
            fn from(from: &sys::$c) -> Self {
                Self { $($field: mirror!(@field from $field $type),)* }
            }
        }
    };
}

mirror! {
    /// What a phase held, and what its end did. Exact: allocated = freed + released + escaped, of objects and of bytes. Bytes are
    /// usable bytes. Shown as one line of text.
    Receipt of EpochReceipt {
        /// Id of its epoch.
        epoch_id: u32,
        /// Number of its incarnation, which is never used again.
        epoch_era: u64,
        /// Its label.
        label: Label,
        /// Objects that it was given.
        objects_allocated: u64,
        /// Of these: freed one by one.
        objects_freed: u64,
        /// Of these: ended with it.
        objects_released: u64,
        /// Of these: live on, after a drain.
        objects_escaped: u64,
        /// Bytes of the objects that it was given.
        bytes_allocated: u64,
        /// Of these: freed one by one.
        bytes_freed: u64,
        /// Of these: ended with it.
        bytes_released: u64,
        /// Of these: live on.
        bytes_escaped: u64,
        /// Slabs that the end took back.
        slabs_returned: u64,
        /// Their bytes.
        bytes_returned: u64,
        /// Slabs that a thread inside of a call held; it returns them as it leaves.
        slabs_deferred: u64,
        /// Their bytes.
        bytes_deferred: u64,
        /// Resident bytes of the process before; 0 when not measured.
        rss_before: u64,
        /// Resident bytes of the process after; 0 when not measured.
        rss_after: u64,
        /// Nanoseconds that the end took; 0 when the phase held nothing.
        close_ns: u64,
        /// Times that the end interrupted running threads of the process.
        interrupts: u32,
        /// Of `slabs_returned`: regions, where objects lie one behind the other.
        regions_returned: u32,
    }
}

mirror! {
    /// What an open phase holds now. Exact while no thread allocates or frees in it.
    Held of SlabDomainStats {
        /// Number of the incarnation that is open.
        epoch_era: u64,
        /// Objects that were allocated and not freed, by all threads.
        live_objects: u64,
        /// Their usable bytes.
        live_bytes: u64,
        /// Bytes of its slabs and large objects, used or not: what budgets limit.
        committed_bytes: u64,
        /// Slabs that it has, large objects among them.
        slabs: u64,
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut label = [0; 32];
        for (to, from) in label.iter_mut().zip(self.label.0) {
            *to = from as c_char;
        }
        let c = sys::EpochReceipt {
            version: 2,
            epoch_id: self.epoch_id,
            epoch_era: self.epoch_era,
            label,
            objects_allocated: self.objects_allocated,
            objects_freed: self.objects_freed,
            objects_released: self.objects_released,
            objects_escaped: self.objects_escaped,
            bytes_allocated: self.bytes_allocated,
            bytes_freed: self.bytes_freed,
            bytes_released: self.bytes_released,
            bytes_escaped: self.bytes_escaped,
            slabs_returned: self.slabs_returned,
            bytes_returned: self.bytes_returned,
            slabs_deferred: self.slabs_deferred,
            bytes_deferred: self.bytes_deferred,
            rss_before: self.rss_before,
            rss_after: self.rss_after,
            close_ns: self.close_ns,
            interrupts: self.interrupts,
            regions_returned: self.regions_returned,
        };
        let mut text = [0_u8; 1024];
        // SAFETY: a receipt, and room of that size.
        let n = unsafe { sys::epoch_receipt_text(&c, text.as_mut_ptr().cast(), text.len()) }.min(text.len() - 1);
        f.write_str(&String::from_utf8_lossy(&text[..n]))
    }
}

mirror! {
    /// A whole allocator: [`Allocator::stats`].
    Stats of SlabGlobalStats {
        /// Live objects.
        live_objects: u64,
        /// Their usable bytes.
        live_bytes: u64,
        /// Slabs in an epoch, and what is kept warm, in bytes.
        committed_bytes: u64,
        /// Resident pages of its own tables, in bytes.
        metadata_bytes: u64,
        /// Address space, in bytes.
        reserved_bytes: u64,
        /// Resident bytes of the process.
        rss_bytes_current: u64,
        /// Slabs that hold memory now.
        net_slabs: u64,
        /// Phases that accept allocations.
        open_phases: u64,
        /// Phases that do not, and in which objects live.
        draining_phases: u64,
        /// Bytes of no phase that are kept for reuse.
        warm_bytes: u64,
        /// Budget of these.
        warm_budget_bytes: u64,
        /// Allocations that left the fast path.
        total_slow_path_hits: u64,
        /// The nearest limit on what phases can hold, in bytes.
        limit_bytes: u64,
        /// What counts against it, in bytes.
        limit_used_bytes: u64,
        /// Nanoseconds to it at the pace of growth; 0: not in sight within a year.
        limit_ns: u64,
        /// Its name.
        limit_name: Label,
        /// Bytes by which live bytes grow in a second.
        growth_per_second: f64,
    }
}

mirror! {
    /// Refused calls by cause, since the allocator was made: [`Allocator::refusals`]. Safe Rust code adds to `bad_size`, `out_of_memory`
    /// and `over_budget` only.
    Refusals of SlabRefusals {
        /// Frees by handles of objects that had ended.
        stale_handle: u64,
        /// Frees by forged handles, and by those of another allocator.
        bad_handle: u64,
        /// Frees of what was free.
        double_free: u64,
        /// Frees of what had ended with its phase.
        stale_free: u64,
        /// Frees of a pointer into an object.
        interior_pointer: u64,
        /// Frees of what is not the allocator's.
        foreign_pointer: u64,
        /// Frees with a size that the object cannot have.
        size_mismatch: u64,
        /// Ids and eras of no epoch.
        bad_epoch: u64,
        /// Allocations in a phase that had ended.
        closed_epoch: u64,
        /// Sizes that cannot be served.
        bad_size: u64,
        /// Scopes left in the wrong order, or ended while somebody was inside.
        domain_order: u64,
        /// New objects whose memory was written to after the end of an earlier one.
        write_after_end: u64,
        /// Domains whose epoch had moved on.
        domain_stale: u64,
        /// Allocations refused for want of memory.
        out_of_memory: u64,
        /// Allocations refused by a budget.
        over_budget: u64,
    }
}

mirror! {
    /// What one label's phases hold and have done: [`Allocator::labels`]. Allocated = freed + released + live.
    LabelStats of SlabLabelStats {
        /// The label; "(unlabeled)" and "(other)" among them.
        label: Label,
        /// Phases opened since the start.
        phases_opened: u64,
        /// Phases ended since the start.
        phases_ended: u64,
        /// Phases open now.
        phases_open: u64,
        /// Phases ended in which objects live.
        phases_draining: u64,
        /// Objects allocated since the start.
        objects_allocated: u64,
        /// Their bytes.
        bytes_allocated: u64,
        /// Objects freed one by one.
        objects_freed: u64,
        /// Objects that ended with their phase.
        objects_released: u64,
        /// Objects that outlived their phase.
        objects_escaped: u64,
        /// Live objects.
        live_objects: u64,
        /// Live bytes.
        live_bytes: u64,
        /// Bytes of slabs and large objects held now.
        committed_bytes: u64,
        /// The most that these ever were.
        peak_bytes: u64,
        /// Refused calls.
        refusals: u64,
        /// Made outside of its phases by a thread inside of one.
        outside_objects: u64,
    }
}

mirror! {
    /// One phase that is open and was used, or that drains: [`Allocator::phases`].
    PhaseStats of SlabPhaseStats {
        /// Id of its epoch.
        epoch_id: u32,
        /// Number of its incarnation.
        epoch_era: u64,
        /// Its label.
        label: Label,
        /// Nanoseconds since its first slab.
        age_ns: u64,
        /// Threads that have slabs of it.
        threads: u32,
        /// Objects allocated.
        objects_allocated: u64,
        /// Live objects.
        live_objects: u64,
        /// Live bytes.
        live_bytes: u64,
        /// Bytes of slabs and large objects held now.
        committed_bytes: u64,
        /// The most that these ever were.
        peak_bytes: u64,
    }
}

/// Rows of a table of which the library says how long it is, and which may grow meanwhile.
fn rows<C: Default + Clone, T: for<'c> From<&'c C>>(fill: impl Fn(*mut C, usize) -> usize) -> Vec<T> {
    let mut room: Vec<C> = Vec::new();
    loop {
        let n = fill(room.as_mut_ptr(), room.len());
        if n <= room.len() {
            return room[..n].iter().map(T::from).collect();
        }
        room.resize(n + 8, C::default());
    }
}

type Write = Option<unsafe extern "C" fn(ctx: *mut c_void, bytes: *const c_char, n: usize) -> bool>;

fn text(write_by: impl FnOnce(Write, *mut c_void) -> bool) -> Result<String, Error> {
    unsafe extern "C" fn write(ctx: *mut c_void, bytes: *const c_char, n: usize) -> bool {
        // SAFETY: the Vec of below, and n bytes.
        unsafe { (*ctx.cast::<Vec<u8>>()).extend_from_slice(std::slice::from_raw_parts(bytes.cast(), n)) };
        true
    }
    let mut bytes: Vec<u8> = Vec::new();
    if !write_by(Some(write), std::ptr::from_mut(&mut bytes).cast()) {
        return Err(Error::plain());
    }
    Ok(String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

// SAFETY of all: the allocator lives, what is to be filled is of the type, and functions are called with their own argument before
// the call returns.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Allocator {
    /// The whole allocator. O(threads + slabs).
    pub fn stats(&self) -> Stats {
        let mut out = sys::SlabGlobalStats::default();
        unsafe { sys::slab_stats_global(self.as_raw(), &mut out) };
        Stats::from(&out)
    }
    /// Refused calls by cause. O(threads).
    pub fn refusals(&self) -> Refusals {
        let mut out = sys::SlabRefusals::default();
        unsafe { sys::slab_stats_refusals(self.as_raw(), &mut out) };
        Refusals::from(&out)
    }
    /// One row for each label. O(slabs + labels).
    pub fn labels(&self) -> Vec<LabelStats> {
        rows(|out: *mut sys::SlabLabelStats, n| unsafe { sys::slab_stats_labels(self.as_raw(), out, n) })
    }
    /// One row for each phase that is open and was used, or that drains, oldest first. O(slabs + phases).
    pub fn phases(&self) -> Vec<PhaseStats> {
        rows(|out: *mut sys::SlabPhaseStats, n| unsafe { sys::slab_stats_phases(self.as_raw(), out, n) })
    }
    /// All statistics as a JSON document.
    ///
    /// # Errors
    /// No memory for the snapshot.
    pub fn json(&self) -> Result<String, Error> {
        text(|write, ctx| unsafe { sys::slab_stats_json(self.as_raw(), write, ctx) })
    }
    /// All statistics in the text format of Prometheus.
    ///
    /// # Errors
    /// No memory for the snapshot.
    pub fn prometheus(&self) -> Result<String, Error> {
        text(|write, ctx| unsafe { sys::slab_stats_prometheus(self.as_raw(), write, ctx) })
    }
    /// What is wrong and what to do, as text: which label leaks, why allocations are slow.
    ///
    /// # Errors
    /// No memory for the reports.
    pub fn doctor(&self) -> Result<String, Error> {
        text(|write, ctx| unsafe { sys::slab_doctor(self.as_raw(), write, ctx) })
    }
    /// Copies the statistics to the segment now ([`Options::segment`](crate::Options::segment)), for a program that is idle. False
    /// without one.
    pub fn publish(&self) -> bool {
        unsafe { sys::slab_stats_publish(self.as_raw()) }
    }
}
