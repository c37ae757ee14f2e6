//! Hashes that are the same on every machine and in every version: what is drawn from them repeats for a seed.

use std::hash::Hasher;

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014; Stafford's variant 13): every bit of the input moves every bit
/// of the output.
pub fn mix(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A 64-bit hash that is the same on every machine and in every version: FNV-1a, mixed.
#[derive(Debug, Clone, Copy)]
pub struct StableHash(u64);

impl StableHash {
    /// A hash that starts from a seed.
    pub fn new(seed: u64) -> StableHash {
        StableHash(0xcbf2_9ce4_8422_2325 ^ mix(seed))
    }
}

impl Hasher for StableHash {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        mix(self.0)
    }
}

/// The hash of some bytes under a seed.
pub fn stable_hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut hash = StableHash::new(seed);
    hash.write(bytes);
    hash.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_pinned() {
        assert_eq!(stable_hash(42, b"inventory.search"), 59_596_344_156_185_217);
    }
}
