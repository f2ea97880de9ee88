//! The codes of ITU-T T.4 and T.6. It must not know rows.

/// The longest code.
pub(super) const CODE_BITS: usize = 13;

/// What a code stands for, and its length; 0 where there is no such code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) value: u16,
    pub(super) bits: u8,
}

/// White runs of 0 to 63 pixels.
const WHITE: &str = "00110101 000111 0111 1000 1011 1100 1110 1111 10011 10100 00111 01000 001000 000011 110100 110101 101010 101011 \
    0100111 0001100 0001000 0010111 0000011 0000100 0101000 0101011 0010011 0100100 0011000 00000010 00000011 00011010 00011011 00010010 \
    00010011 00010100 00010101 00010110 00010111 00101000 00101001 00101010 00101011 00101100 00101101 00000100 00000101 00001010 00001011 \
    01010010 01010011 01010100 01010101 00100100 00100101 01011000 01011001 01011010 01011011 01001010 01001011 00110010 00110011 00110100";

/// White runs of 64, 128 and so on to 1,728 pixels.
const LONG_WHITE: &str = "11011 10010 010111 0110111 00110110 00110111 01100100 01100101 01101000 01100111 011001100 011001101 011010010 \
    011010011 011010100 011010101 011010110 011010111 011011000 011011001 011011010 011011011 010011000 010011001 010011010 011000 010011011";

/// Black runs of 0 to 63 pixels.
const BLACK: &str = "0000110111 010 11 10 011 0011 0010 00011 000101 000100 0000100 0000101 0000111 00000100 00000111 000011000 0000010111 \
    0000011000 0000001000 00001100111 00001101000 00001101100 00000110111 00000101000 00000010111 00000011000 000011001010 000011001011 \
    000011001100 000011001101 000001101000 000001101001 000001101010 000001101011 000011010010 000011010011 000011010100 000011010101 \
    000011010110 000011010111 000001101100 000001101101 000011011010 000011011011 000001010100 000001010101 000001010110 000001010111 \
    000001100100 000001100101 000001010010 000001010011 000000100100 000000110111 000000111000 000000100111 000000101000 000001011000 \
    000001011001 000000101011 000000101100 000001011010 000001100110 000001100111";

/// Black runs of 64, 128 and so on to 1,728 pixels.
const LONG_BLACK: &str = "0000001111 000011001000 000011001001 000001011011 000000110011 000000110100 000000110101 0000001101100 \
    0000001101101 0000001001010 0000001001011 0000001001100 0000001001101 0000001110010 0000001110011 0000001110100 0000001110101 \
    0000001110110 0000001110111 0000001010010 0000001010011 0000001010100 0000001010101 0000001011010 0000001011011 0000001100100 0000001100101";

/// Runs of both colours of 1,792, 1,856 and so on to 2,560 pixels.
const LONGEST: &str = "00000001000 00000001100 00000001101 000000010010 000000010011 000000010100 000000010101 000000010110 000000010111 \
    000000011100 000000011101 000000011110 000000011111";

/// Passed over, horizontal, and vertical with distances from -3 to 3.
const MODES: &str = "0001 001 0000010 000010 010 1 011 000011 0000011";

/// How a part of a row is coded against the one above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Pass,
    Horizontal,
    /// So many pixels to the right of the change above.
    Vertical(isize),
}

impl Mode {
    /// The mode of a [`Code`].
    pub(super) fn numbered(value: u16, bits: u8) -> Option<Self> {
        match (value, bits) {
            (_, 0) => None,
            (0, _) => Some(Mode::Pass),
            (1, _) => Some(Mode::Horizontal),
            (place, _) => Some(Mode::Vertical(place as isize - 5)),
        }
    }
}

/// What each [`CODE_BITS`] bits begin with.
pub(super) struct Tables {
    /// White runs, black runs.
    pub(super) runs: [Vec<Code>; 2],
    pub(super) modes: Vec<Code>,
}

impl Tables {
    pub(super) fn new() -> Self {
        let runs = |short: &'static str, long: &'static str| {
            let short = short.split_whitespace().zip(0..);
            let long = long.split_whitespace().chain(LONGEST.split_whitespace());
            table(short.chain(long.zip((64..).step_by(64))))
        };
        let runs = [runs(WHITE, LONG_WHITE), runs(BLACK, LONG_BLACK)];
        Self { runs, modes: table(MODES.split_whitespace().zip(0..)) }
    }
}

fn table(codes: impl Iterator<Item = (&'static str, u16)>) -> Vec<Code> {
    let mut table = vec![Code::default(); 1 << CODE_BITS];
    for (digits, value) in codes {
        let code = digits.bytes().fold(0, |code, digit| code << 1 | usize::from(digit == b'1'));
        let rest = CODE_BITS - digits.len();
        table[code << rest..(code + 1) << rest].fill(Code { value, bits: digits.len() as u8 });
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_code_begins_another() {
        let all = |lists: &[&'static str]| {
            lists.iter().flat_map(|list| list.split_whitespace()).collect::<Vec<_>>()
        };
        for (codes, count) in [
            (all(&[WHITE, LONG_WHITE, LONGEST]), 104),
            (all(&[BLACK, LONG_BLACK, LONGEST]), 104),
            (all(&[MODES]), 9),
        ] {
            assert_eq!(codes.len(), count);
            for (i, code) in codes.iter().enumerate() {
                assert!(
                    codes
                        .iter()
                        .skip(i + 1)
                        .all(|other| !other.starts_with(code) && !code.starts_with(other))
                );
            }
        }
    }
}
