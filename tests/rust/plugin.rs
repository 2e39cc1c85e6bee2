//! A plugin with the static library inside: what tests/install/plugin/plugin.c is in C.

use std::{ffi::c_void, ptr, sync::OnceLock};

extern "C" {
    fn slab_allocator_create() -> *mut c_void;
    fn slab_malloc(a: *mut c_void, size: usize) -> *mut c_void;
    fn slab_free_checked(a: *mut c_void, p: *mut c_void) -> bool;
}

struct Shared(*mut c_void);
// SAFETY: any thread may call anything of an allocator.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}
static ALLOCATOR: OnceLock<Shared> = OnceLock::new();

/// 1 when it worked. The calling thread is known to the library from here on.
#[no_mangle]
pub extern "C" fn plugin_use() -> i32 {
    // SAFETY: the allocator is never freed, and each object is freed once.
    unsafe {
        let a = ALLOCATOR.get_or_init(|| Shared(slab_allocator_create())).0;
        let p = slab_malloc(a, 100);
        i32::from(p != ptr::null_mut() && slab_free_checked(a, p))
    }
}
