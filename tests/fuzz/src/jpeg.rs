//! JPEGs: our own decoder on the host against libjpeg-turbo, and what a device's decoders read of a file on the host.

use gesso::cpu::decode::{DecodeOptions, Decoder, JpegDecoder, Vectors};
use gesso::gpu::jpeg::sm::{Coded, read_file};
use gesso::gpu::jpeg::{Header, Picture};
use gesso::tensor::DType;

use crate::bytes::Bytes;
use crate::image;

/// The same pixels or the same refusal.
pub(crate) fn run(input: &[u8]) {
    let mut bytes = Bytes::new(input);
    let options = DecodeOptions { dtype: DType::U8, ..image::options(&mut bytes) };
    let rest = bytes.rest();
    let by = |decoder: JpegDecoder| {
        let decoder = Decoder::with_jpeg(decoder, Vectors::best());
        image::decode(Bytes::new(rest), options, &decoder)
    };
    let (own, libjpeg) = (by(JpegDecoder::Own), by(JpegDecoder::LibjpegTurbo));
    assert!(own == libjpeg, "our own decoder and libjpeg-turbo do not agree, {options:?}");
}

/// Headers, tables and scans as a device needs them; no device is there.
pub(crate) fn on_device(file: &[u8]) {
    let _ = Header::ends_within(file);
    let _ = Picture::read(file);
    let Some(coded) = Coded::read(file) else { return };
    let mut to = vec![0; coded.room()];
    let _ = read_file(&coded, true, &mut to, None);
    let _ = read_file(&coded, false, &mut to, None);
}
