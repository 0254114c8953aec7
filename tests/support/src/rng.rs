//! Random numbers, all from one seed.

/// SplitMix64: small, fast, and the same everywhere.
///
/// Recorded seeds depend on the sequence of each constructor.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Creates the sequence of a seed. The sequences of neighbouring seeds are unrelated.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// Creates a separate sequence for each purpose, so that removing one leaves the others as they
    /// were.
    pub fn for_purpose(seed: u64, purpose: u64) -> Self {
        let mut rng = Self(seed ^ purpose.wrapping_mul(0xd134_2543_de82_ef95));
        rng.bits();
        rng
    }

    /// Creates the sequence that follows this state of the generator.
    pub fn from_state(state: u64) -> Self {
        Self(state)
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below a bound, or zero if the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.bits() % bound }
    }

    /// Returns a number from `low` up to but not including `high`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low))
    }

    /// Returns an index into a sequence of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Returns true with this probability in percent.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns one of the items. Panics if there is none.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }
}

/// Returns a hash that is the same on every machine and in every run (FNV-1a).
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_seeds_keep_their_sequences() {
        let sequences = [
            (
                Rng::from_state(0),
                [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4],
            ),
            (Rng::new(1), [0xedc5_c951_a346_4413, 0x80b9_7054_b83c_930f]),
            (
                Rng::for_purpose(7, 2),
                [0x8f72_945d_25aa_e4b2, 0x33bf_995e_0c7a_b300],
            ),
        ];
        for (mut rng, expected) in sequences {
            let state = rng.clone();
            assert_eq!([rng.bits(), rng.bits()], expected, "{state:?}");
        }
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn numbers_stay_in_their_bounds() {
        let mut rng = Rng::new(1);
        assert_eq!((rng.below(0), rng.range(3, 3)), (0, 3));
        for _ in 0..1000 {
            assert!(rng.below(3) < 3);
            assert!((5..8).contains(&rng.range(5, 8)));
            assert!([1, 2].contains(rng.pick(&[1, 2])));
        }
        assert!(!rng.percent(0) && rng.percent(100));
    }
}
