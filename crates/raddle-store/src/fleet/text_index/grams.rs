//! Hashes of trigrams.

use sha2::{Digest, Sha256};

use crate::page::CHARS_MIN;

/// Hashes trigrams of one tenant. The tables have the hashes, so they never change.
#[derive(Clone, Copy, Debug)]
pub(in crate::fleet) struct TrigramHasher {
    seed: u64,
}

impl TrigramHasher {
    /// Creates the hasher of a tenant, as the lists name it. Two tenants share hashes by accident
    /// only, so the entries of one do not slow the searches of another.
    pub(in crate::fleet) fn new(tenant: &str) -> Self {
        let hash: [u8; 32] = Sha256::digest(tenant).into();
        let seed = hash
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes));
        Self { seed }
    }

    /// Adds the hashes of all trigrams of a text.
    pub(in crate::fleet) fn add(self, text: &str, hashes: &mut Vec<i32>) {
        let mut trigram = 0;
        for (at, letter) in text.chars().enumerate() {
            // Three characters of 21 bits each.
            trigram = (trigram << 21 | u64::from(letter)) & ((1 << 63) - 1);
            if at + 1 >= CHARS_MIN {
                hashes.push(self.hash(trigram));
            }
        }
    }

    /// Finalizer of SplitMix64.
    fn hash(self, trigram: u64) -> i32 {
        let mut hash = self.seed ^ trigram.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        (hash >> 32) as u32 as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(tenant: &str, text: &str) -> Vec<i32> {
        let mut hashes = Vec::new();
        TrigramHasher::new(tenant).add(text, &mut hashes);
        hashes
    }

    #[test]
    fn hashes_are_those_in_the_tables() {
        for (tenant, text, expected) in [
            ("", "ne", vec![]),
            ("", "need", vec![-236_587_448, 396_575_610]),
            ("=mill", "nee", vec![1_798_527_768]),
            ("", "äg\u{10ffff}", vec![-264_829_478]),
        ] {
            assert_eq!(hashes(tenant, text), expected, "{tenant} {text}");
        }
    }
}
