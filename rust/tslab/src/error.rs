//! Why a call was refused.

use std::ffi::CStr;
use std::fmt;

use tslab_sys as sys;

/// What was wrong, in the words of the C library's `SlabError`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No memory, or no record for another phase.
    NoMemory,
    /// Over a hard budget, or over [`Options::max_bytes`](crate::Options::max_bytes).
    Budget,
    /// An option, or a call that the object is not made for.
    Argument,
    /// A size or an alignment that cannot be served.
    Size,
    /// The pointer or handle is no live object of the allocator.
    Object,
    /// No such epoch.
    Epoch,
    /// The phase accepts no allocations any more.
    Ended,
    /// Somebody else is inside of the phase.
    Busy,
    /// The phase is not the innermost one of the thread.
    Order,
    /// A reason that this version has no word for.
    Other,
}

impl ErrorKind {
    /// Of the last call on this thread that gave NULL or false.
    #[cold]
    fn last() -> Self {
        // SAFETY: reads a number of this thread.
        match unsafe { sys::slab_error() } as sys::SlabError {
            sys::SLAB_ERROR_NO_MEMORY => Self::NoMemory,
            sys::SLAB_ERROR_BUDGET => Self::Budget,
            sys::SLAB_ERROR_ARGUMENT => Self::Argument,
            sys::SLAB_ERROR_SIZE => Self::Size,
            sys::SLAB_ERROR_OBJECT => Self::Object,
            sys::SLAB_ERROR_EPOCH => Self::Epoch,
            sys::SLAB_ERROR_ENDED => Self::Ended,
            sys::SLAB_ERROR_BUSY => Self::Busy,
            sys::SLAB_ERROR_ORDER => Self::Order,
            _ => Self::Other,
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::NoMemory => "out of memory",
            Self::Budget => "over a budget",
            Self::Argument => "a bad argument",
            Self::Size => "a bad size or alignment",
            Self::Object => "no live object of the allocator",
            Self::Epoch => "no such epoch",
            Self::Ended => "the phase accepts no allocations any more",
            Self::Busy => "somebody else is inside of the phase",
            Self::Order => "the phase is not the innermost one of the thread",
            Self::Other => "refused",
        }
    }
}

/// An allocation that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocError {
    kind: ErrorKind,
}

impl AllocError {
    #[cold]
    pub(crate) fn last() -> Self {
        Self { kind: ErrorKind::last() }
    }
    #[cold]
    pub(crate) fn size() -> Self {
        Self { kind: ErrorKind::Size }
    }
    /// Why it was refused.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "temporal-slab: allocation refused: {}", self.kind.sentence())
    }
}

impl std::error::Error for AllocError {}

/// A call that was refused, with the library's sentence on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    sentence: String,
}

impl Error {
    #[cold]
    pub(crate) fn last() -> Self {
        let kind = ErrorKind::last();
        // SAFETY: a string of this thread, which is valid until its next call.
        let sentence = unsafe { CStr::from_ptr(sys::slab_last_error()) }.to_string_lossy().into_owned();
        Self { kind, sentence: if sentence.is_empty() { kind.sentence().to_owned() } else { sentence } }
    }
    /// Of calls that set the kind and no sentence.
    #[cold]
    pub(crate) fn plain() -> Self {
        let kind = ErrorKind::last();
        Self { kind, sentence: kind.sentence().to_owned() }
    }
    /// Why it was refused.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "temporal-slab: {}", self.sentence)
    }
}

impl std::error::Error for Error {}

impl From<AllocError> for Error {
    fn from(e: AllocError) -> Self {
        Self { kind: e.kind, sentence: e.kind.sentence().to_owned() }
    }
}

/// Ends the thread's work as a failed allocation of the standard collections does, but by a panic, so that the phases that it is
/// inside of end.
#[cold]
#[inline(never)]
#[track_caller]
pub(crate) fn refused(e: AllocError) -> ! {
    panic!("{e}")
}
