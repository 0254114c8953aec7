//! Faults for tests of a restore.

use std::io;

/// Place where a test lets a restore fail. A fault that returns an error is a failing disk; one
/// that panics is the death of the process: nothing is cleaned up.
pub trait Faults {
    /// Called before each change of the disk, with its name.
    fn reach(&self, point: &'static str) -> io::Result<()>;
}

/// The disk itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFaults;

impl Faults for NoFaults {
    fn reach(&self, _point: &'static str) -> io::Result<()> {
        Ok(())
    }
}
