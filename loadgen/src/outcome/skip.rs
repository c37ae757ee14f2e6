//! Finds the end of a container without looking at each byte by itself.
//!
//! Vehicle listings are short strings by the thousand, and a branch per string costs more than the bytes in it. So 64
//! bytes are looked at together, as bit masks: where the quotes are, which bytes are inside of strings (the running
//! exclusive or of the quotes), and how many brackets open and close outside of them.

use wide::u8x16;

/// The bytes looked at together.
const BLOCK: usize = 64;

/// The index after the bracket that closes the one at `start`; `None` if there is none. Brackets are only counted, so
/// that `[}` counts as closed: what is skipped is not validated.
pub(super) fn end_of_container(bytes: &[u8], start: usize) -> Option<usize> {
    let mut state = State { depth: 0, in_string: 0, escaped: false };
    let (blocks, rest) = bytes.get(start..)?.as_chunks::<BLOCK>();
    for (index, block) in blocks.iter().enumerate() {
        if let Some(end) = state.look(block) {
            return Some(start + index * BLOCK + end);
        }
    }
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    state.look(&last).map(|end| start + blocks.len() * BLOCK + end)
}

/// What is known at the begin of a block.
struct State {
    depth: u64,
    /// All ones inside of a string, else 0.
    in_string: u64,
    /// Whether the first byte is escaped by the last one before.
    escaped: bool,
}

impl State {
    /// Looks at one block; gives the index after the bracket that closes the container.
    fn look(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let lanes = Lanes::of(block);
        let mut quotes = lanes.equal(b'"');
        let backslashes = lanes.equal(b'\\');
        if backslashes != 0 || self.escaped {
            quotes &= !self.escaped_bytes(backslashes);
        }
        // Bit i is the exclusive or of bits 0 to i: from an opening quote to the byte before the closing one.
        let mut inside = quotes;
        for shift in [1, 2, 4, 8, 16, 32] {
            inside ^= inside << shift;
        }
        inside ^= self.in_string;
        self.in_string = if inside >> 63 == 1 { u64::MAX } else { 0 };
        // Square and curly brackets differ in one bit.
        let lanes = lanes.with(0x20);
        let opening = lanes.equal(b'{') & !inside;
        let closing = lanes.equal(b'}') & !inside;
        let closed = u64::from(closing.count_ones());
        // Too few close here to end the container, whatever their order.
        if closed < self.depth {
            self.depth += u64::from(opening.count_ones());
            self.depth -= closed;
            return None;
        }
        let mut brackets = opening | closing;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            brackets &= brackets - 1;
            if opening >> at & 1 == 1 {
                self.depth += 1;
            } else {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Some(at as usize + 1);
                }
            }
        }
        None
    }

    /// The bytes that a backslash before them escapes. Blocks with backslashes are rare: one bit at a time will do.
    fn escaped_bytes(&mut self, mut backslashes: u64) -> u64 {
        let mut escaped = u64::from(self.escaped);
        self.escaped = false;
        // An escaped backslash escapes nothing.
        backslashes &= !escaped;
        while backslashes != 0 {
            let at = backslashes.trailing_zeros();
            if at == 63 {
                self.escaped = true;
                break;
            }
            escaped |= 2 << at;
            backslashes &= !(3 << at);
        }
        escaped
    }
}

/// A block as the vectors that every machine has.
#[derive(Clone, Copy)]
struct Lanes([u8x16; BLOCK / 16]);

impl Lanes {
    fn of(block: &[u8; BLOCK]) -> Lanes {
        let (lanes, _) = block.as_chunks::<16>();
        Lanes(std::array::from_fn(|lane| u8x16::new(lanes[lane])))
    }

    /// The same with these bits set in each byte.
    fn with(self, bits: u8) -> Lanes {
        Lanes(self.0.map(|lane| lane | u8x16::splat(bits)))
    }

    /// A bit for each byte that equals this one.
    fn equal(self, byte: u8) -> u64 {
        let wanted = u8x16::splat(byte);
        let masks = self.0.map(|lane| u64::from(lane.simd_eq(wanted).to_bitmask()));
        masks[0] | masks[1] << 16 | masks[2] << 32 | masks[3] << 48
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, one byte after the other.
    fn plainly(bytes: &[u8]) -> Option<usize> {
        let (mut depth, mut in_string, mut escaped) = (0u64, false, false);
        for (index, &byte) in bytes.iter().enumerate() {
            // Outside of strings, where no backslash belongs, it changes no bracket.
            if std::mem::take(&mut escaped) && matches!(byte, b'"' | b'\\') {
                continue;
            }
            match byte {
                b'\\' => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        return Some(index + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    proptest! {
        #[test]
        fn in_blocks_as_plainly(text in r#"\{[\{\}\[\]",:\\a ]{0,400}"#) {
            prop_assert_eq!(end_of_container(text.as_bytes(), 0), plainly(text.as_bytes()), "{}", text);
        }

        #[test]
        fn strings_of_any_length(text in "[a-z]{0,200}", quotes in 0usize..5, pad in 0usize..130) {
            let value = serde_json::json!({"a": text, "b": ["\"".repeat(quotes), "\\".repeat(quotes), "}]"]});
            let bytes = format!("{}{value}}}", " ".repeat(pad));
            prop_assert_eq!(end_of_container(bytes.as_bytes(), pad), Some(bytes.len() - 1));
        }
    }
}
