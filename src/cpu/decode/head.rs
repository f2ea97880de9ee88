//! What the first bytes of a file tell of what decoding it takes. It must not decode.

use super::effort::effort_of;
use super::{DecodeOptions, Format, jpeg, probe};
use crate::deadline::Effort;

/// What decoding a file of `length` bytes is expected to take, of which `head` are the first. `None`: these do not
/// tell.
pub fn effort_of_head(head: &[u8], length: usize, options: &DecodeOptions) -> Option<Effort> {
    let info = probe(head, options.adjust_orientation).ok()?;
    let tells = info.format == Format::Jpeg && jpeg::is_sequential(head);
    tells.then(|| effort_of(head, length, &info, options))
}

#[cfg(test)]
mod tests {
    use super::super::effort;
    use super::*;
    use crate::cpu::encode::{Image, Jpeg, Subsampling, jpeg, png};

    #[test]
    fn a_jpeg_of_one_pass_is_told_by_its_head() {
        let options = DecodeOptions::default();
        let pixels = vec![7; 3 * 64 * 48];
        let image = Image { bytes: &pixels, height: 48, width: 64, channels: 3, width_of_sample: 1 };
        let how = Jpeg { quality: 90, subsampling: Subsampling::S420, optimize: false, progressive: false };
        let whole = jpeg(&image, &how).unwrap();
        let of_all = effort(&whole, &probe(&whole, true).unwrap(), &options).time;
        let of_head = |head: &[u8], length| effort_of_head(head, length, &options).map(|effort| effort.time);
        assert_eq!(of_head(&whole, whole.len()), Some(of_all));
        assert!(of_head(&whole, 100 * whole.len()).unwrap() > of_all);
        assert_eq!(of_head(&whole[..100], whole.len()), None, "the frame is behind that");
        for other in [jpeg(&image, &Jpeg { progressive: true, ..how }), png(&image, 1)] {
            let other = other.unwrap();
            assert_eq!(of_head(&other, other.len()), None);
        }
    }
}
