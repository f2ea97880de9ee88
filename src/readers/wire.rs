//! Messages of Protocol Buffers, as far as readers need them: fields by number, where they are. It must not know what
//! they mean.

use std::ops::Range;

use crate::error::{Error, Result};

/// Bytes of an integer of 64 bits, 7 in each.
const LONGEST: usize = 10;

/// The value of a field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// An integer.
    Number(u64),
    /// Bytes: a message, a text, packed numbers, or one number of 4 or 8 bytes.
    Bytes(Range<usize>),
}

/// The fields of a message that is a part of `bytes`. Behind an error there are no more.
pub(super) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Fields<'a> {
    /// Those of the message at `range`.
    pub(super) fn new(bytes: &'a [u8], range: Range<usize>) -> Self {
        Self { bytes, at: range.start, end: range.end.min(bytes.len()) }
    }

    fn number(&mut self) -> Result<u64> {
        let mut value = 0;
        for (i, &byte) in
            self.bytes.get(self.at..self.end).unwrap_or_default().iter().take(LONGEST).enumerate()
        {
            value |= u64::from(byte & 127).wrapping_shl(7 * i as u32);
            if byte < 128 {
                self.at += i + 1;
                return Ok(value);
            }
        }
        Err(Error::invalid("a protobuf message ends within an integer, or has one of more than 64 bits"))
    }

    fn piece(&mut self, length: u64) -> Result<Value> {
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        let end = end.filter(|&end| end <= self.end).ok_or_else(|| {
            Error::invalid(format!("a protobuf message ends within a field of {length} bytes"))
        })?;
        let start = std::mem::replace(&mut self.at, end);
        Ok(Value::Bytes(start..end))
    }

    fn field(&mut self) -> Result<(u64, Value)> {
        let tag = self.number()?;
        let value = match tag & 7 {
            0 => Value::Number(self.number()?),
            1 => self.piece(8)?,
            2 => {
                let length = self.number()?;
                self.piece(length)?
            }
            5 => self.piece(4)?,
            kind => {
                return Err(Error::invalid(format!(
                    "a protobuf message has a field of the unknown kind {kind}"
                )));
            }
        };
        Ok((tag >> 3, value))
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<(u64, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.end;
        }
        Some(field)
    }
}

/// The integers of a packed field.
///
/// # Errors
/// Bytes that end within one.
pub(super) fn packed(bytes: &[u8], range: Range<usize>) -> Result<Vec<i64>> {
    let mut numbers = Fields::new(bytes, range);
    let mut found = Vec::new();
    while numbers.at < numbers.end {
        found.push(numbers.number()? as i64);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u64, Value)>> {
        Fields::new(bytes, 0..bytes.len()).collect()
    }

    #[test]
    fn fields_are_found_where_they_are() {
        let message = [8, 0x96, 1, 0x12, 2, 7, 8, 0x1D, 1, 2, 3, 4, 0x21, 1, 2, 3, 4, 5, 6, 7, 8];
        let wanted = [
            (1, Value::Number(150)),
            (2, Value::Bytes(5..7)),
            (3, Value::Bytes(8..12)),
            (4, Value::Bytes(13..21)),
        ];
        assert_eq!(all(&message).unwrap(), wanted);
        assert_eq!(
            packed(&[3, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1], 0..11).unwrap(),
            [3, -1]
        );
    }

    #[test]
    fn messages_that_are_cut_or_wrong_are_errors() {
        for message in [
            &[0x80][..],
            &[8],
            &[0x12, 3, 1, 2],
            &[0x12, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1],
            &[0x12, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1],
            &[0x1D, 1],
            &[0x21, 1],
            &[0x0B],
            &[0xFF; 11],
        ] {
            assert!(all(message).is_err(), "{message:?}");
        }
        assert!(all(&[]).unwrap().is_empty());
        assert!(packed(&[0x80], 0..1).is_err());
    }
}
