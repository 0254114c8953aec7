//! Memory allocator of the binary.
//!
//! Below: mimalloc and the system's allocator. Above: the binary, which makes [`Allocator`] its
//! global allocator.
//!
//! Most allocations of a server are small, soon freed, and freed by another thread. Mimalloc is
//! made for that; the allocator of musl, with its one lock, is not. The few large blocks are frames
//! and pages of records. Musl extends them in place and returns them to the system at once, where
//! mimalloc copies them and keeps each for a while. SQLite nearly always allocates small blocks,
//! and gets them from mimalloc. docs/decisions/0011 has the figures.

mod sqlite;

pub use self::sqlite::install_in_sqlite;

use std::alloc::{GlobalAlloc, Layout, System};

use mimalloc::MiMalloc;

/// Size in bytes from which a block is large.
const LARGE_BYTES: usize = 64 << 10;

/// Allocates small blocks with mimalloc and large ones with the system's allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

fn is_large(bytes: usize) -> bool {
    bytes >= LARGE_BYTES
}

#[expect(unsafe_code, reason = "an allocator hands out raw memory")]
// SAFETY: The size of a block alone decides its allocator, and the caller must pass the true size
// when it frees or resizes the block. So each block returns to the allocator it came from, and both
// allocators satisfy the contract of `GlobalAlloc`.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller's guarantees are those that both allocators require.
        unsafe {
            if is_large(layout.size()) {
                System.alloc(layout)
            } else {
                MiMalloc.alloc(layout)
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: As in `alloc`.
        unsafe {
            if is_large(layout.size()) {
                System.alloc_zeroed(layout)
            } else {
                MiMalloc.alloc_zeroed(layout)
            }
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: The block has this layout, so it came from this allocator.
        unsafe {
            if is_large(layout.size()) {
                System.dealloc(block, layout);
            } else {
                MiMalloc.dealloc(block, layout);
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: The block has this layout, so its size names its allocator. The caller guarantees
        // that the new size with the old alignment is a valid layout. Where the allocator changes,
        // the new block differs from the old one, both have the bytes that are copied, and the old
        // one is freed only after that.
        unsafe {
            match (is_large(layout.size()), is_large(bytes)) {
                (true, true) => System.realloc(block, layout, bytes),
                (false, false) => MiMalloc.realloc(block, layout, bytes),
                _ => {
                    let changed = Layout::from_size_align_unchecked(bytes, layout.align());
                    let moved = self.alloc(changed);
                    if !moved.is_null() {
                        moved.copy_from_nonoverlapping(block, layout.size().min(bytes));
                        self.dealloc(block, layout);
                    }
                    moved
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
