//! AU, also called SND, with numbers of either order. It must not know how samples are coded.

use super::fields::{Fields, Order};
use super::stored::{Encoding, Format, Length, Sound, stored};
use crate::error::{Error, Result};

/// Bytes of the header without its text.
const HEADER: usize = 24;

/// Opens an AU; `None` for what does not begin as one.
pub(crate) fn open(bytes: &[u8]) -> Option<Result<Sound<'_>>> {
    let order = match bytes.first_chunk::<4>()? {
        b".snd" => Order::Big,
        b"dns." => Order::Little,
        _ => return None,
    };
    Some(open_header(bytes, order))
}

fn open_header(bytes: &[u8], order: Order) -> Result<Sound<'_>> {
    let mut fields = Fields::new(bytes.get(4..).unwrap_or_default(), order);
    let mut next = || fields.u32().ok_or_else(|| Error::invalid("the audio's header is cut off"));
    let [start, length, code, rate, channels] = [next()?, next()?, next()?, next()?, next()?];
    let encoding = match code {
        1 => Encoding::MuLaw,
        2..=5 => Encoding::Signed(code as usize - 1),
        6 => Encoding::Float,
        7 => Encoding::Double,
        27 => Encoding::ALaw,
        code => {
            return Err(Error::unsupported(format!(
                "AU with samples of kind {code}, expected integers of 8 to 32 bits, floats of 32 or 64, A-law or mu-law"
            )));
        }
    };
    let start = (start as usize).max(HEADER);
    let data = bytes.get(start..).ok_or_else(|| Error::invalid("the audio's header is cut off"))?;
    // 0 is what programs leave that were ended.
    let length = if length == 0 { Length::Rest } else { Length::of(length.into()) };
    stored(encoding, order, Format { channels: channels as usize, rate }, data, length)
}
