//! Encoded images of all formats: the first bytes choose what is asked for, the rest is the file.

use gesso::cpu::decode::{
    ColorSpace, Conditions, DecodeOptions, Decoder, Window, output_shape, probe, probe_animation,
};
use gesso::deadline::Watch;
use gesso::tensor::DType;

use crate::bytes::Bytes;

/// Larger images are looked at, not decoded: one takes longer and finds no more.
const MAX_PIXELS: usize = 1 << 20;

pub(crate) fn run(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let options = options(&mut bytes);
    let rest = bytes.rest();
    decode(Bytes::new(rest), options, &Decoder::new());
    animation(Bytes::new(rest));
}

/// All pictures of the file.
fn animation(mut bytes: Bytes<'_>) {
    let alpha = bytes.once_in(2);
    let file = bytes.rest();
    let Ok(info) = probe_animation(file) else { return };
    if info.frames * info.width * info.height > MAX_PIXELS {
        return;
    }
    let mut out = vec![0; info.frames * info.width * info.height * if alpha { 4 } else { 3 }];
    let conditions = Conditions { watch: &Watch::forever(), pool: None };
    let _ = Decoder::new().decode_animation(conditions, file, &info, alpha, &mut out);
}

/// What is asked for.
pub(crate) fn options(bytes: &mut Bytes<'_>) -> DecodeOptions {
    let colors = [ColorSpace::Rgb, ColorSpace::Bgr, ColorSpace::Gray, ColorSpace::YCbCr, ColorSpace::Any];
    let dtypes = [DType::U8, DType::U8, DType::U16, DType::F32, DType::I8];
    let mut options = DecodeOptions {
        color: bytes.pick(&colors).unwrap_or(ColorSpace::Rgb),
        dtype: bytes.pick(&dtypes).unwrap_or(DType::U8),
        adjust_orientation: !bytes.once_in(2),
        smooth_chroma: !bytes.once_in(2),
        ..DecodeOptions::default()
    };
    let rest = bytes.below(8) as u32;
    (options.shrink, options.to_srgb) = (rest % 4, rest > 3);
    options
}

/// Decodes a file as asked, sometimes a window of it. `None`: nothing is decoded.
pub(crate) fn decode(
    mut bytes: Bytes<'_>,
    mut options: DecodeOptions,
    decoder: &Decoder,
) -> Option<Result<Vec<u8>, String>> {
    let windowed = bytes.once_in(4);
    let corners: [usize; 4] = std::array::from_fn(|_| usize::from(bytes.byte()));
    let file = bytes.rest();
    let info = probe(file, options.adjust_orientation).ok()?;
    if info.width * info.height > MAX_PIXELS {
        return None;
    }
    let info = info.reduced(options.shrink);
    if windowed {
        let (x, y) = (corners[0] % info.width, corners[1] % info.height);
        let (width, height) = (1 + corners[2] % (info.width - x), 1 + corners[3] % (info.height - y));
        options.window = Some(Window { x, y, width, height });
    }
    let shape = output_shape(&probe(file, options.adjust_orientation).ok()?, &options);
    let mut out = vec![0_f32; (shape.iter().product::<usize>() * options.dtype.size()).div_ceil(4)];
    let length = shape.iter().product::<usize>() * options.dtype.size();
    let out = bytemuck::cast_slice_mut::<f32, u8>(&mut out);
    let decoded = decoder.decode_into(file, &options, &mut out[..length]);
    Some(decoded.map(|()| out[..length].to_vec()).map_err(|error| error.to_string()))
}
