//! Bilevel rows by ITU-T T.4 and T.6: Group 3 of one and of two dimensions, Group 4, and runs alone. It must not know
//! tags.
//!
//! A row is known by its changes: where black begins, where white begins again, and so on, from the left. The first
//! pixel is white where the first change is not 0.

use std::sync::LazyLock;

use super::fax_codes::{CODE_BITS, Code, Mode, Tables};
use crate::deadline::Watch;
use crate::error::{Error, Result};

/// How rows are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    /// Runs; a row begins with a whole byte, or with so many.
    Runs { align: usize },
    /// Runs, or where `two` is set changes against the row above, behind marks that say which.
    Group3 { two: bool },
    /// Changes against the row above.
    Group4,
}

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::new);

/// Zeros and a one: the end of a line.
const END_OF_LINE_BITS: usize = 12;

/// A mark of where a line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Nothing,
    Line,
    /// Several of them, or one where rows have none.
    Image,
}

/// Decodes rows of `width` pixels to `out`, `stride` bytes each: 1 is black. Where the data say that the image ends
/// behind fewer rows, the others are white, as in libtiff.
///
/// # Errors
/// Codes that there are not, rows that are too long, data that end too early; when nobody waits any more.
pub(super) fn decode(
    data: &[u8],
    scheme: Scheme,
    width: usize,
    stride: usize,
    out: &mut [u8],
    watch: &Watch<'_>,
) -> Result<()> {
    let mut reader = Reader { data, at: 0 };
    let (mut above, mut row) = (Vec::new(), Vec::new());
    for (y, line) in out.chunks_exact_mut(stride).enumerate() {
        watch.charge(width)?;
        let mark = match scheme {
            Scheme::Runs { .. } => Mark::Nothing,
            Scheme::Group3 { .. } => reader.end_of_line()?,
            Scheme::Group4 if reader.peek(END_OF_LINE_BITS) == 1 => Mark::Image,
            Scheme::Group4 => Mark::Nothing,
        };
        if mark == Mark::Image {
            if y == 0 {
                return Err(ended());
            }
            line.fill(0);
            continue;
        }
        let by_runs = match scheme {
            Scheme::Runs { align } => {
                reader.at = reader.at.next_multiple_of(8 * align);
                true
            }
            Scheme::Group3 { two } => {
                if two && mark != Mark::Line {
                    return Err(damaged("a row without a mark in front of it"));
                }
                !two || reader.bit()
            }
            Scheme::Group4 => false,
        };
        row.clear();
        if by_runs {
            reader.runs(width, &mut row)?;
        } else {
            reader.changes(width, &above, &mut row)?;
        }
        if reader.at > 8 * data.len() {
            return Err(ended());
        }
        draw(&row, width, line);
        std::mem::swap(&mut above, &mut row);
    }
    Ok(())
}

fn ended() -> Error {
    Error::invalid("truncated: the data end before the image does")
}

fn damaged(what: &str) -> Error {
    Error::invalid(format!("damaged: {what}"))
}

/// Adds a change. A run of nothing between two others makes them one.
fn push(row: &mut Vec<usize>, at: usize, width: usize) {
    if row.last() == Some(&at) {
        row.pop();
    } else if at < width {
        row.push(at);
    }
}

/// Sets the bits of black pixels.
fn draw(row: &[usize], width: usize, line: &mut [u8]) {
    line.fill(0);
    for run in row.chunks(2) {
        let (start, end) = (run[0], run.get(1).copied().unwrap_or(width));
        let (first, last) = (start / 8, end / 8);
        let (head, tail) = (0xFF >> (start % 8), !(0xFF_u8 >> (end % 8)));
        if first == last {
            line[first] |= head & tail;
            continue;
        }
        line[first] |= head;
        line[first + 1..last].fill(0xFF);
        if tail != 0 {
            line[last] |= tail;
        }
    }
}

/// Reads bits, the highest of a byte first. Behind the data there are zeros.
struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next bits, at most 16.
    fn peek(&self, count: usize) -> usize {
        let byte = |i: usize| usize::from(self.data.get(self.at / 8 + i).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        word >> (24 - count - self.at % 8) & ((1 << count) - 1)
    }

    fn bit(&mut self) -> bool {
        let bit = self.peek(1) != 0;
        self.at += 1;
        bit
    }

    /// Passes the mark of a line's end, if one is next, with zeros before it. Several of them end the image, and are
    /// not passed.
    fn end_of_line(&mut self) -> Result<Mark> {
        if self.peek(END_OF_LINE_BITS - 1) != 0 {
            return Ok(Mark::Nothing);
        }
        let before = self.at;
        while !self.bit() {
            if self.at >= 8 * self.data.len() {
                return Err(ended());
            }
        }
        // Behind the mark of two dimensions stands what the next row is coded by.
        let another = [self.peek(END_OF_LINE_BITS), self.peek(END_OF_LINE_BITS + 1) & 0xFFF].contains(&1);
        if another {
            self.at = before;
            return Ok(Mark::Image);
        }
        Ok(Mark::Line)
    }

    /// Pixels of a run of one colour.
    fn run(&mut self, black: bool) -> Result<usize> {
        let mut length = 0;
        loop {
            let Code { value, bits } = TABLES.runs[usize::from(black)][self.peek(CODE_BITS)];
            if bits == 0 {
                return Err(damaged("a code that there is not"));
            }
            self.at += usize::from(bits);
            length += usize::from(value);
            // Longer runs begin with codes of multiples of 64.
            if value < 64 {
                return Ok(length);
            }
            if self.at > 8 * self.data.len() {
                return Err(damaged("a run without an end"));
            }
            // Some writers leave the last code of a row out where it adds nothing.
            if self.peek(END_OF_LINE_BITS - 1) == 0 {
                return Ok(length);
            }
        }
    }

    fn runs(&mut self, width: usize, row: &mut Vec<usize>) -> Result<()> {
        let (mut at, mut black) = (0, false);
        while at < width {
            at += self.run(black)?;
            if at > width {
                return Err(damaged("a row that is too long"));
            }
            push(row, at, width);
            black = !black;
        }
        Ok(())
    }

    fn changes(&mut self, width: usize, above: &[usize], row: &mut Vec<usize>) -> Result<()> {
        // Where the coded part of the row ends, and the first change above it.
        let (mut at, mut black, mut next) = (0_usize, false, 0_usize);
        let mut begun = false;
        while at < width {
            let behind = |change: usize| change > at || (!begun && change == 0);
            while next > 0 && behind(above[next - 1]) {
                next -= 1;
            }
            while above.get(next).is_some_and(|&change| !behind(change)) {
                next += 1;
            }
            // A change to the other colour.
            let place = next + usize::from((next % 2 == 1) != black);
            let change = |i: usize| above.get(i).copied().unwrap_or(width);
            let Code { value, bits } = TABLES.modes[self.peek(CODE_BITS)];
            self.at += usize::from(bits);
            match Mode::numbered(value, bits).ok_or_else(|| damaged("a code that there is not"))? {
                Mode::Pass => at = change(place + 1),
                Mode::Horizontal => {
                    for black in [black, !black] {
                        at += self.run(black)?;
                        if at > width {
                            return Err(damaged("a row that is too long"));
                        }
                        push(row, at, width);
                    }
                }
                Mode::Vertical(distance) => {
                    let to = change(place).checked_add_signed(distance);
                    let to = to.filter(|&to| to <= width && (to > at || !begun));
                    at = to.ok_or_else(|| damaged("a change outside of its row"))?;
                    push(row, at, width);
                    black = !black;
                }
            }
            begun = true;
            if self.at > 8 * self.data.len() {
                return Err(ended());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bits: &str, scheme: Scheme, width: usize, height: usize) -> Result<Vec<u8>> {
        let bits: Vec<u8> = bits.bytes().filter(u8::is_ascii_digit).map(|bit| bit - b'0').collect();
        let data: Vec<u8> = bits
            .chunks(8)
            .map(|byte| (0..8).fold(0, |sum, i| sum << 1 | byte.get(i).unwrap_or(&0)))
            .collect();
        let mut out = vec![0xAA; width.div_ceil(8) * height];
        decode(&data, scheme, width, width.div_ceil(8), &mut out, &Watch::forever())?;
        Ok(out)
    }

    #[test]
    fn runs_are_drawn() {
        // 4 white, 3 black, 9 white; then none white, 16 black, in a byte of its own.
        let bits = "1011 10 10100 00000 00110101 0000010111";
        assert_eq!(rows(bits, Scheme::Runs { align: 1 }, 16, 2).expect("rows"), [0x0E, 0, 0xFF, 0xFF]);
        let bits = "000000000001 1011 10 10100 0000 000000000001 00110101 0000010111";
        assert_eq!(rows(bits, Scheme::Group3 { two: false }, 16, 2).expect("rows"), [0x0E, 0, 0xFF, 0xFF]);
    }

    #[test]
    fn a_row_may_end_without_the_code_of_no_pixels() {
        // None white, 64 black; the end of the line; 64 white.
        let bits = "000000000001 00110101 0000001111 000000000001 11011 000000000001";
        let found = rows(bits, Scheme::Group3 { two: false }, 64, 2).expect("rows");
        assert_eq!(found, [[0xFF; 8], [0; 8]].concat());
        // Only where it is the row's end.
        assert!(rows(bits, Scheme::Group3 { two: false }, 65, 2).is_err());
    }

    #[test]
    fn changes_are_followed() {
        // Horizontal 4 white and 3 black, to the end; one to the right and one to the left; passed over.
        let bits = "001 1011 10 1  011 010 1  0001 1";
        assert_eq!(rows(bits, Scheme::Group4, 16, 3).expect("rows"), [0x0E, 0, 0x04, 0, 0, 0]);
        let bits = "000000000001 1 1011 10 10100 000000000001 0 011 010 1";
        assert_eq!(rows(bits, Scheme::Group3 { two: true }, 16, 2).expect("rows"), [0x0E, 0, 0x04, 0]);
    }

    #[test]
    fn rows_behind_the_end_are_white() {
        let end = "000000000001";
        let bits = format!("001 1011 10 1 {end} {end}");
        assert_eq!(rows(&bits, Scheme::Group4, 16, 3).expect("rows"), [0x0E, 0, 0, 0, 0, 0]);
        let bits = format!("{end} 1011 10 10100 0000 {end} {end} {end} {end} {end} {end}");
        assert_eq!(rows(&bits, Scheme::Group3 { two: false }, 16, 3).expect("rows"), [0x0E, 0, 0, 0, 0, 0]);
        let bits = format!("{end} 1 1011 10 10100 {end} 1 {end} 1 {end} 1");
        assert_eq!(rows(&bits, Scheme::Group3 { two: true }, 16, 3).expect("rows"), [0x0E, 0, 0, 0, 0, 0]);
        // An end that comes first is none, and so is one that is not there.
        for (bits, scheme) in [
            (format!("{end} {end}"), Scheme::Group4),
            (format!("{end} {end}"), Scheme::Group3 { two: false }),
            ("001 1011 10 1".into(), Scheme::Group4),
            (format!("{end} 1011 10 10100"), Scheme::Group3 { two: false }),
        ] {
            assert!(rows(&bits, scheme, 16, 3).is_err(), "{bits}");
        }
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        let text = |bits, scheme| rows(bits, scheme, 16, 2).map_err(|error| error.to_string());
        let runs = Scheme::Runs { align: 1 };
        assert!(text("0000000000000000", runs).is_err_and(|text| text.contains("a code that there is not")));
        assert!(text("11011 1011 1011", runs).is_err_and(|text| text.contains("too long")));
        assert!(text("1011 10 10100", runs).is_err_and(|text| text.contains("code")));
        let two = Scheme::Group3 { two: true };
        assert!(text("1011 10 10100", two).is_err_and(|text| text.contains("without a mark")));
        assert!(text("010", Scheme::Group4).is_err());
        // Two ends of a block.
        assert!(text("000000000001 000000000001", Scheme::Group4).is_err());
    }
}
