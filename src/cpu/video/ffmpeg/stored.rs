//! How FFmpeg stores the samples of a picture, by the name that it has for that. It must not know FFmpeg's functions.

/// How samples are stored: in planes, of 8 bits in a byte or of more in two, the lower one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) depth: u32,
    /// How often columns and rows of chroma are halved; `None`: there is no chroma.
    pub(super) halved: Option<[u32; 2]>,
}

impl Stored {
    /// That of a format of this name, if it is known.
    pub(super) fn named(name: &str) -> Option<Self> {
        let (halved, rest) = match name.strip_prefix("gray") {
            Some(rest) => (None, rest),
            None => {
                let rest = name.strip_prefix("yuvj").or_else(|| name.strip_prefix("yuv"))?;
                let (kind, rest) = rest.split_once('p')?;
                let halved = match kind {
                    "420" => [1, 1],
                    "422" => [1, 0],
                    "440" => [0, 1],
                    "444" => [0, 0],
                    _ => return None,
                };
                (Some(halved), rest)
            }
        };
        let depth = match rest {
            "" => 8,
            "9le" => 9,
            "10le" => 10,
            "12le" => 12,
            "14le" => 14,
            _ => return None,
        };
        Some(Self { depth, halved })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_known_by_their_names() {
        let stored = |depth, halved| Some(Stored { depth, halved });
        assert_eq!(Stored::named("yuv420p"), stored(8, Some([1, 1])));
        assert_eq!(Stored::named("yuvj422p"), stored(8, Some([1, 0])));
        assert_eq!(Stored::named("yuv444p12le"), stored(12, Some([0, 0])));
        assert_eq!(Stored::named("gray10le"), stored(10, None));
        for other in ["", "yuv420p10be", "yuva420p", "nv12", "gbrp", "yuv411p", "yuv420p16le", "grayf32le"] {
            assert_eq!(Stored::named(other), None, "{other}");
        }
    }
}
