//! Allocator of SQLite, which as a C library would use that of the C library.

use std::ffi::{c_int, c_void};

use libmimalloc_sys::{mi_free, mi_malloc, mi_realloc, mi_usable_size};
use rusqlite::ffi::{
    SQLITE_CONFIG_MALLOC, SQLITE_CONFIG_MEMSTATUS, SQLITE_OK, sqlite3_config, sqlite3_mem_methods,
};

/// Makes SQLite allocate with mimalloc, and without counting memory, for which it would take a lock
/// each time. Returns whether it succeeded: once SQLite was used it is too late.
pub fn install_in_sqlite() -> bool {
    let methods = sqlite3_mem_methods {
        xMalloc: Some(allocate),
        xFree: Some(free),
        xRealloc: Some(change),
        xSize: Some(size),
        xRoundup: Some(rounded),
        xInit: Some(begin),
        xShutdown: Some(end),
        pAppData: std::ptr::null_mut(),
    };
    // SAFETY: SQLite copies the methods, which satisfy its documented requirements. It refuses any
    // change once it runs. Nothing else in this process configures it.
    #[expect(unsafe_code, reason = "SQLite is told by a call of C")]
    unsafe {
        sqlite3_config(SQLITE_CONFIG_MALLOC, &raw const methods) == SQLITE_OK
            && sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0) == SQLITE_OK
    }
}

/// Returns a block of at least this many bytes, aligned to 8, or null.
extern "C" fn allocate(bytes: c_int) -> *mut c_void {
    let Ok(bytes) = usize::try_from(bytes) else {
        return std::ptr::null_mut();
    };
    // SAFETY: It may be called with any size at any time.
    #[expect(unsafe_code, reason = "mimalloc is C")]
    unsafe {
        mi_malloc(bytes)
    }
}

#[expect(unsafe_code, reason = "mimalloc is C")]
unsafe extern "C" fn free(block: *mut c_void) {
    // SAFETY: SQLite frees only blocks from `allocate` or `change`, and each once.
    unsafe { mi_free(block) }
}

#[expect(unsafe_code, reason = "mimalloc is C")]
unsafe extern "C" fn change(block: *mut c_void, bytes: c_int) -> *mut c_void {
    let Ok(bytes) = usize::try_from(bytes) else {
        return std::ptr::null_mut();
    };
    // SAFETY: SQLite resizes only blocks that it got and has not freed.
    unsafe { mi_realloc(block, bytes) }
}

#[expect(unsafe_code, reason = "mimalloc is C")]
unsafe extern "C" fn size(block: *mut c_void) -> c_int {
    // SAFETY: SQLite queries only blocks that it got and has not freed.
    let bytes = unsafe { mi_usable_size(block) };
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

extern "C" fn rounded(bytes: c_int) -> c_int {
    bytes.saturating_add(7) / 8 * 8
}

extern "C" fn begin(_: *mut c_void) -> c_int {
    SQLITE_OK
}

extern "C" fn end(_: *mut c_void) {}
