//! Random numbers, all from one seed.

/// SplitMix64: small, fast, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5851_f42d_4c95_7f2d)
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

    /// Returns an index into a sequence of this length.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Returns a unique id.
    pub fn id(&mut self, letter: char) -> String {
        format!("{letter}-{:016x}", self.bits())
    }

    /// Returns incompressible bytes.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend_from_slice(&self.bits().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    /// Returns text of about this many bytes: words of a small vocabulary, as a tool might print
    /// them.
    pub fn text(&mut self, count: usize) -> String {
        const WORDS: [&str; 16] = [
            "the", "file", "error", "warning", "in", "line", "of", "function", "returns", "value",
            "test", "passed", "failed", "with", "expected", "found",
        ];
        let mut text = String::with_capacity(count + 24);
        while text.len() < count {
            let bits = self.bits();
            text.push_str(WORDS[(bits & 15) as usize]);
            text.push(' ');
            text.push_str(WORDS[(bits >> 4 & 15) as usize]);
            text.push_str(&format!(" {:x}\n", bits >> 40));
        }
        text.truncate(count);
        text
    }
}

/// Returns a hash that is the same on every machine and in every run (FNV-1a).
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
