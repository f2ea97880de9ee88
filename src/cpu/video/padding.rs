//! What stands in place of frames that a video does not have. It must not know how frames are decoded.

use crate::error::{Error, Result};

/// What stands in place of frames that a video does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// Nothing: there are no such frames.
    None,
    /// A fill value.
    Constant,
    /// The frame at the border.
    Edge,
    /// Frames backwards; does the one at the border come twice?
    Reflect {
        /// Whether it does.
        twice: bool,
    },
}

impl Padding {
    /// The one of this name in DALI.
    ///
    /// # Errors
    /// Invalid for another name.
    pub fn new(name: &str) -> Result<Self> {
        Ok(match name {
            "none" | "" => Self::None,
            "constant" => Self::Constant,
            "edge" | "repeat" => Self::Edge,
            "reflect_1001" | "symmetric" => Self::Reflect { twice: true },
            "reflect_101" | "reflect" => Self::Reflect { twice: false },
            other => {
                return Err(Error::invalid(format!(
                    "argument `pad_mode` is `{other}`, expected `none`, `constant`, `edge`, `reflect_1001` or `reflect_101`"
                )));
            }
        })
    }

    /// The frame for place `index` of a video of `count` frames; `None`: the fill value.
    ///
    /// # Errors
    /// Invalid for a place outside of it, where nothing stands for that.
    pub fn frame(self, index: i64, count: usize) -> Result<Option<usize>> {
        let last = count as i64 - 1;
        let frame = match self {
            _ if (0..=last).contains(&index) => index,
            Self::Constant => return Ok(None),
            Self::None => return Err(Error::invalid(format!("frame {index} of a video of {count} frames"))),
            Self::Edge => index.clamp(0, last),
            Self::Reflect { twice } => {
                let period = if twice { 2 * (last + 1) } else { (2 * last).max(1) };
                let place = index.rem_euclid(period);
                let back = if twice { period - 1 - place } else { period - place };
                if place <= last { place } else { back }
            }
        };
        Ok(usize::try_from(frame).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_dalis() {
        let frames = |padding: Padding, indices: std::ops::Range<i64>| -> Vec<usize> {
            indices.map(|index| padding.frame(index, 4).unwrap().unwrap()).collect()
        };
        assert_eq!(frames(Padding::Edge, -2..6), [0, 0, 0, 1, 2, 3, 3, 3]);
        let twice = Padding::Reflect { twice: true };
        assert_eq!(frames(twice, -2..10), [1, 0, 0, 1, 2, 3, 3, 2, 1, 0, 0, 1]);
        let once = Padding::Reflect { twice: false };
        assert_eq!(frames(once, -2..9), [2, 1, 0, 1, 2, 3, 2, 1, 0, 1, 2]);
        assert_eq!(once.frame(7, 1).unwrap(), Some(0));
        assert_eq!(twice.frame(i64::MIN, 1).unwrap(), Some(0));
        assert_eq!(Padding::Constant.frame(4, 4).unwrap(), None);
        assert!(Padding::None.frame(-1, 4).is_err());
        assert!(Padding::new("bogus").is_err());
    }
}
