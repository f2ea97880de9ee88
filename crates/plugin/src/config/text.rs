//! The one thing that the server's JSON does not say: whether `config.pbtxt` has a field at all. Scans protobuf's text
//! format for a field outside of any braces, and knows nothing else about it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gesso::limits;

/// What the author wrote for `max_batch_size` in the `config.pbtxt` of `directory`; `None` when it is not there, is no
/// integer, or when there is no such file to read.
pub fn written_max_batch_size(directory: &Path) -> Option<i64> {
    let path = directory.join("config.pbtxt");
    // Before it is opened: opening a pipe would wait for somebody to write.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(limits::MAX_CONFIG_BYTES).read_to_end(&mut bytes).ok()?;
    integer_field(&bytes, "max_batch_size")
}

/// The integer of field `name` at the outermost level; the last one counts, as in protobuf.
fn integer_field(text: &[u8], name: &str) -> Option<i64> {
    let mut tokens = Tokens { rest: text };
    let mut depth = 0usize;
    let mut found = None;
    let mut named = false;
    while let Some(token) = tokens.next() {
        match token {
            Token::Word(word) if depth == 0 && named => {
                found = integer(word).or(found);
                named = false;
            }
            Token::Word(word) => named = depth == 0 && word == name.as_bytes(),
            Token::Mark(b':') => {}
            Token::Mark(b'-') if named => {
                // A sign may stand apart from its number.
                if let Some(Token::Word(word)) = tokens.next() {
                    found = integer(word).map(i64::wrapping_neg).or(found);
                }
                named = false;
            }
            Token::Mark(mark) => {
                named = false;
                match mark {
                    b'{' | b'[' | b'<' => depth += 1,
                    b'}' | b']' | b'>' => depth = depth.saturating_sub(1),
                    _ => {}
                }
            }
            Token::Text => named = false,
        }
    }
    found
}

/// A number as the text format has them: decimal, `0x` hexadecimal, octal with a leading zero.
fn integer(word: &[u8]) -> Option<i64> {
    let word = std::str::from_utf8(word).ok()?;
    let digits = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    match (digits, word.strip_prefix('0')) {
        (Some(digits), _) => i64::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) if !digits.is_empty() => i64::from_str_radix(digits, 8).ok(),
        _ => word.parse().ok(),
    }
}

enum Token<'t> {
    /// A name or a number.
    Word(&'t [u8]),
    /// A quoted text; what it holds does not matter.
    Text,
    /// Any other character.
    Mark(u8),
}

struct Tokens<'t> {
    rest: &'t [u8],
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            let (&first, tail) = self.rest.split_first()?;
            match first {
                b'#' => self.rest = after(tail, |byte| byte == b'\n'),
                b'"' | b'\'' => {
                    let mut escaped = false;
                    self.rest = after(tail, |byte| {
                        let ends = byte == first && !escaped;
                        escaped = byte == b'\\' && !escaped;
                        ends
                    });
                    return Some(Token::Text);
                }
                _ if is_word(first) => {
                    let length = self.rest.iter().position(|&byte| !is_word(byte)).unwrap_or(self.rest.len());
                    let (word, rest) = self.rest.split_at(length);
                    self.rest = rest;
                    return Some(Token::Word(word));
                }
                _ => {
                    self.rest = tail;
                    if !first.is_ascii_whitespace() {
                        return Some(Token::Mark(first));
                    }
                }
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.' || byte == b'+'
}

/// What follows the first byte that `ends`.
fn after(text: &[u8], mut ends: impl FnMut(u8) -> bool) -> &[u8] {
    text.iter().position(|&byte| ends(byte)).and_then(|at| text.get(at + 1..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size(text: &str) -> Option<i64> {
        integer_field(text.as_bytes(), "max_batch_size")
    }

    #[test]
    fn a_field_is_found_in_every_spelling() {
        for text in [
            "max_batch_size: 0",
            "max_batch_size:0",
            "max_batch_size\n :\t0;",
            "max_batch_size: 00",
            "a:1 max_batch_size: 0x0, b: 2",
        ] {
            assert_eq!(size(text), Some(0), "{text}");
        }
        assert_eq!(size("max_batch_size: 0x10"), Some(16));
        assert_eq!(size("max_batch_size: 010"), Some(8));
        assert_eq!(size("max_batch_size: - 3"), Some(-3));
        assert_eq!(size("max_batch_size: 1\nmax_batch_size: 0"), Some(0), "the last one counts");
    }

    #[test]
    fn what_only_looks_like_the_field_is_not_it() {
        for text in [
            "",
            "name: \"m\"",
            "# max_batch_size: 0",
            "name: \"max_batch_size: 0\"",
            "name: 'it\\'s max_batch_size: 0'",
            "input { max_batch_size: 0 }",
            "input [ { name: \"}\" } , { max_batch_size: 0 } ]",
            "x < max_batch_size: 0 >",
            "my_max_batch_size: 0",
            "max_batch_size_: 0",
            "max_batch_size: many",
            "max_batch_size: \"0\"",
            "max_batch_size { value: 0 }",
            "max_batch_size:",
        ] {
            assert_eq!(size(text), None, "{text}");
        }
    }

    #[test]
    fn it_is_found_behind_everything_else() {
        let text = "# a model }\nname: \"{\\\"\" input [ { dims: [ -1 ] } ]\nparameters { key: '}' }\nmax_batch_size: 0 # none";
        assert_eq!(size(text), Some(0));
    }

    proptest! {
        #[test]
        fn any_bytes_are_scanned_to_their_end(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = integer_field(&text, "max_batch_size");
        }
    }
}
