//! Deterministic random numbers.

/// Small random number generator (xorshift), good enough to choose clients and actions.
pub struct CrowdRng(u64);

impl CrowdRng {
    pub fn new(seed: u64) -> Self {
        // The state must not be zero.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below this one.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }
}
