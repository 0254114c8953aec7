//! The hash of a run.

/// A hash that is the same on every machine and in every run (FNV-1a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hash(pub u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Adds bytes to the hash.
    pub fn add_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Adds a number to the hash.
    pub fn number(&mut self, number: u64) {
        self.0 = (self.0 ^ number)
            .wrapping_mul(0x0000_0100_0000_01b3)
            .rotate_left(17);
    }
}
