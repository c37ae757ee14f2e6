//! Finds the end of a container without looking at each byte by itself.
//!
//! Vehicle listings are short strings by the thousand, and a branch per string costs more than the bytes in it. So 64
//! bytes are looked at together, as bit masks: where the quotes are, which bytes are inside of strings (the running
//! exclusive or of the quotes), and how many brackets open and close outside of them.

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
        let mut quotes = mask(block, |byte| byte == b'"');
        let backslashes = mask(block, |byte| byte == b'\\');
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
        let opening = mask(block, |byte| byte | 0x20 == b'{') & !inside;
        let closing = mask(block, |byte| byte | 0x20 == b'}') & !inside;
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

/// A bit for each byte that is meant. Written so that compilers turn it into a few vector instructions.
fn mask(block: &[u8; BLOCK], is_meant: impl Fn(u8) -> bool) -> u64 {
    let mut flags = [0; BLOCK];
    for (flag, &byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(is_meant(byte));
    }
    let mut mask = 0;
    for (index, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // Gathers the lowest bits of eight bytes in the highest byte: bit 8 i times 2^(56 - 7 i) is bit 56 + i.
        let gathered = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= gathered << (8 * index);
    }
    mask
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
