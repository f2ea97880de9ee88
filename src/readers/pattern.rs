//! Patterns of names, such as `*.jpg` and `[a-c]?`. The C library's, which DALI asks, too: both take the same files,
//! down to `[^a]`, `\*`, `[[:digit:]]` and what is one character in the language of the process.
#![expect(unsafe_code, reason = "`fnmatch` is a function of C")]

use std::ffi::CString;

use crate::error::{Error, Result};

/// Which names are wanted.
pub(super) struct Filter {
    patterns: Vec<CString>,
    flags: libc::c_int,
}

impl Filter {
    /// Names that one of the patterns says.
    ///
    /// # Errors
    /// Invalid for a pattern with a zero in it.
    pub(super) fn new(patterns: impl IntoIterator<Item = String>, is_case_sensitive: bool) -> Result<Self> {
        let patterns = patterns.into_iter().map(|pattern| {
            CString::new(pattern).map_err(|error| {
                let pattern = String::from_utf8_lossy(&error.into_vec()).escape_debug().to_string();
                Error::invalid(format!("the pattern `{pattern}` has a zero in it, expected a text"))
            })
        });
        let flags = if is_case_sensitive { 0 } else { libc::FNM_CASEFOLD };
        Ok(Self { patterns: patterns.collect::<Result<_>>()?, flags })
    }

    /// All names.
    pub(super) fn all() -> Self {
        Self { patterns: vec![c"*".to_owned()], flags: 0 }
    }

    pub(super) fn takes(&self, name: &str) -> bool {
        // No file has a zero in its name.
        let Ok(name) = CString::new(name) else { return false };
        self.patterns.iter().any(|pattern| {
            // SAFETY: both are texts that end with a zero, and live during the call, which keeps neither.
            let matched = unsafe { libc::fnmatch(pattern.as_ptr(), name.as_ptr(), self.flags) };
            matched == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(pattern: &str, name: &str, is_case_sensitive: bool) -> bool {
        Filter::new([pattern.to_owned()], is_case_sensitive).unwrap().takes(name)
    }

    /// What DALI 2.4 answers for files of these names.
    #[test]
    fn patterns_take_what_dali_takes() {
        for (pattern, name) in [
            ("*.jpg", "a.jpg"),
            ("*", ".hidden"),
            ("**.jpg", "a.jpg"),
            ("a?c", "abc"),
            ("[a-c]x*", "bx1"),
            ("[!a]b", "cb"),
            ("[^a]", "b"),
            ("[^a]", "*"),
            ("a*b*c", "aXbYbZc"),
            ("[a", "[a"),
            (r"\*", "*"),
            ("[[:digit:]]", "5"),
            ("[]a]", "]"),
            ("[a-]", "-"),
            ("{a,b}", "{a,b}"),
        ] {
            assert!(takes(pattern, name, true), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.jpg", "a.jpeg"),
            ("*.jpg", "a.JPG"),
            ("a?c", "ac"),
            ("[a-c]x", "dx"),
            ("[!a]b", "ab"),
            ("[^a]", "a"),
            ("[a", "a"),
            (r"\*", "a"),
            ("{a,b}", "a"),
            ("[[:digit:]]", "a"),
            ("", "a"),
            ("a", "a\0b"),
        ] {
            assert!(!takes(pattern, name, true), "{pattern} {name}");
        }
        assert!(takes("*.jpg", "a.JPG", false) && takes("*.JPG", "a.jpg", false));
    }

    #[test]
    fn a_pattern_is_a_text_and_many_stars_take_no_time() {
        let error = Filter::new(["a\0*".to_owned()], true).err().unwrap().to_string();
        assert!(error.contains(r"`a\0*`"), "{error}");
        assert!(!takes(&("*a".repeat(2_000) + "b"), &"a".repeat(250), true));
        assert!(!takes(&("*[ab]".repeat(1_000) + "c"), &"ab".repeat(120), false));
        assert!(Filter::all().takes("any"));
    }
}
