//! Records in files, found by an index of numbers in text. It must not know what a record is.

use std::ops::Range;
use std::sync::Arc;

use super::pieces::{Pieces, text};
use crate::error::{Context, Error, Result};
use crate::limits;
use crate::memory::{HostBuffer, HostPool};

/// A record: the number of its file, where it begins and how many bytes it has.
pub(super) type Span = (usize, u64, u64);

/// Records by their numbers.
pub(super) struct Records {
    files: Pieces,
    places: Vec<Span>,
    groups: Vec<Range<usize>>,
}

impl Records {
    /// The records at `places`, in the order of their files.
    pub(super) fn new(paths: Vec<String>, places: Vec<Span>) -> Self {
        let begin = |number| places.partition_point(|place| place.0 < number);
        let groups = (0..paths.len()).map(|number| begin(number)..begin(number + 1)).collect();
        Self { files: Pieces::new(paths), places, groups }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    /// Those of each file.
    pub(super) fn groups(&self) -> Vec<Range<usize>> {
        self.groups.clone()
    }

    /// What `made` makes of the bytes of record `index`, and where that is.
    ///
    /// # Errors
    /// A record that is not in its file, and what `made` says.
    pub(super) fn read<T>(
        &self,
        index: usize,
        memory: &Arc<HostPool>,
        made: impl FnOnce(&Arc<HostBuffer>, usize) -> Result<T>,
    ) -> Result<(T, String)> {
        let &(number, at, length) =
            self.places.get(index).ok_or_else(|| Error::internal("a sample that is not there"))?;
        let source = format!("{} at index {at}", self.files.path(number));
        let buffer = self.files.read(number, at, length, memory)?;
        // What was read is no longer than a sample may be.
        let made = made(&buffer, length as usize).context(|| format!("the record {source}"))?;
        Ok((made, source))
    }
}

/// The two numbers in each line of an index.
///
/// # Errors
/// What cannot be read or has other lines; too many of them.
pub(super) fn index(path: &str) -> Result<Vec<(u64, u64)>> {
    let mut pairs = Vec::new();
    for (i, line) in text(path)?.lines().enumerate() {
        let mut words = line.split_ascii_whitespace();
        let Some(first) = words.next() else { continue };
        let number =
            |word: &str| word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?;
        let pair = number(first).zip(words.next().and_then(number));
        pairs.push(pair.ok_or_else(|| {
            let line: String = line.chars().take(40).collect();
            Error::invalid(format!(
                "line {} of the index `{path}` is `{}`, expected two whole numbers",
                i + 1,
                line.escape_debug()
            ))
        })?);
    }
    if pairs.len() > limits::MAX_DATASET_SAMPLES {
        return Err(Error::invalid(format!("more than {} records", limits::MAX_DATASET_SAMPLES)));
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_has_two_numbers_in_each_line() {
        let path = std::env::temp_dir().join(format!("gesso-records-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            index(&path.display().to_string())
        };
        assert_eq!(read("0\t16\n\n 9223372036854775808 2 x\n").unwrap(), [(0, 16), (1 << 63, 2)]);
        assert_eq!(read("").unwrap(), []);
        for text in ["1", "a b", "1 -2", "+1 2", "1 18446744073709551616", "1.5 2"] {
            let error = read(&format!("1 1\n{text}\n")).unwrap_err().to_string();
            assert!(
                error.contains("line 2 of the index") && error.contains("expected two whole numbers"),
                "{error}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        assert!(index("/nowhere").is_err());
    }

    #[test]
    fn records_know_their_files() {
        let records = Records::new(
            vec!["/a".to_owned(), "/b".to_owned(), "/c".to_owned()],
            vec![(0, 0, 1), (0, 1, 1), (2, 0, 1)],
        );
        assert_eq!(records.groups(), [0..2, 2..2, 2..3]);
        assert!(records.read(3, &Arc::default(), |_, _| Ok(())).is_err());
        assert!(records.read(0, &Arc::default(), |_, _| Ok(())).is_err());
    }
}
