//! Where the binary's memory comes from.
//!
//! Below: mimalloc and the system's allocator. Above: the binary, which names [`Memory`] its allocator.
//!
//! Most of what a server allocates is small, soon freed, and freed by another thread: mimalloc is made for that,
//! and the allocator of musl, with its one lock, is not. The few large blocks are frames and pages of records:
//! musl lengthens them in place and gives them back at once, where mimalloc copies them and keeps each for a
//! while. SQLite has small blocks nearly always, and has them from mimalloc. docs/decisions/0011 has the figures.

mod sqlite;

pub use self::sqlite::install_in_sqlite;

use std::alloc::{GlobalAlloc, Layout, System};

use mimalloc::MiMalloc;

/// From here on a block is large.
const LARGE_BYTES: usize = 64 << 10;

/// Small blocks from mimalloc, large ones from the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

fn is_large(bytes: usize) -> bool {
    bytes >= LARGE_BYTES
}

#[expect(unsafe_code, reason = "an allocator hands out raw memory")]
// SAFETY: Whose a block is follows from its size alone, which the caller must say truly when it frees or changes
// the block. So each block goes back to where it came from, and both of those keep what `GlobalAlloc` asks.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: What the caller promises us is what these ask.
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
        // SAFETY: The block has this layout, so it came from this one.
        unsafe {
            if is_large(layout.size()) {
                System.dealloc(block, layout);
            } else {
                MiMalloc.dealloc(block, layout);
            }
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: The block has this layout, so it came from where its size says; the caller promises that the
        // new size with the old alignment is a layout. Where the owner changes, the new block is another than
        // the old one, both have the bytes that are copied, and the old one is freed only after that.
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
