//! A decompressor of libjpeg-turbo, by the functions of C: crate `turbojpeg` decodes samples of one byte alone. It must
//! not know what is asked of it.

#![expect(unsafe_code, reason = "libjpeg-turbo is a library of C; each block says what it relies on")]

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;

use turbojpeg::{PixelFormat, raw};

/// What libjpeg-turbo has to say instead: of its errors and warnings the first one.
pub(super) type Told<T> = Result<T, String>;

/// Where samples go, in the type that libjpeg-turbo has for so many bits.
pub(super) enum Samples<'a> {
    /// Up to 8 bits.
    U8(&'a mut [u8]),
    /// 9 to 12 bits.
    U12(&'a mut [i16]),
    /// 13 to 16 bits.
    U16(&'a mut [u16]),
}

impl Samples<'_> {
    /// The same ones, for another attempt.
    pub(super) fn again(&mut self) -> Samples<'_> {
        match self {
            Self::U8(samples) => Samples::U8(samples),
            Self::U12(samples) => Samples::U12(samples),
            Self::U16(samples) => Samples::U16(samples),
        }
    }

    /// How many there are, and the bits of a file's samples that they are for.
    fn room(&self) -> (usize, std::ops::RangeInclusive<c_int>) {
        match self {
            Self::U8(samples) => (samples.len(), 2..=8),
            Self::U12(samples) => (samples.len(), 9..=12),
            Self::U16(samples) => (samples.len(), 13..=16),
        }
    }
}

/// A decompressor.
pub(super) struct Handle {
    // An instance of libjpeg-turbo's that is ours alone until it is dropped.
    raw: NonNull<std::ffi::c_void>,
    /// How often sides are halved.
    shrink: u32,
}

impl Handle {
    /// Sides are halved so many times, if the file is one of cosine transforms.
    pub(super) fn new(shrink: u32) -> Told<Self> {
        // SAFETY: it takes a number alone, and any is allowed.
        let raw = unsafe { raw::tj3Init(raw::TJINIT_TJINIT_DECOMPRESS as c_int) };
        let raw = NonNull::new(raw).ok_or("no decompressor can be made")?;
        let handle = Self { raw, shrink };
        let factor = raw::tjscalingfactor { num: 1, denom: 1 << shrink };
        // SAFETY: the instance is ours, and the factor is a value.
        let refused = unsafe { raw::tj3SetScalingFactor(handle.raw.as_ptr(), factor) } != 0;
        if refused { Err(handle.error()) } else { Ok(handle) }
    }

    /// More scans are an error.
    pub(super) fn limit_scans(&mut self, limit: u32) -> Told<()> {
        self.set(raw::TJPARAM_TJPARAM_SCANLIMIT, limit as c_int)
    }

    /// Whether chroma is repeated instead of interpolated.
    pub(super) fn repeat_chroma(&mut self, repeat: bool) -> Told<()> {
        self.set(raw::TJPARAM_TJPARAM_FASTUPSAMPLE, c_int::from(repeat))
    }

    fn set(&mut self, parameter: raw::TJPARAM, value: c_int) -> Told<()> {
        // SAFETY: the instance is ours; numbers that it does not know are refused.
        let refused = unsafe { raw::tj3Set(self.raw.as_ptr(), parameter as c_int, value) } != 0;
        if refused { Err(self.error()) } else { Ok(()) }
    }

    fn get(&self, parameter: raw::TJPARAM) -> c_int {
        // SAFETY: the instance is ours; of numbers that it does not know it says -1.
        unsafe { raw::tj3Get(self.raw.as_ptr(), parameter as c_int) }
    }

    /// What it said last.
    fn error(&self) -> String {
        // SAFETY: the instance is ours.
        let text = unsafe { raw::tj3GetErrorStr(self.raw.as_ptr()) };
        // SAFETY: it is a text of the instance, which ends with a zero and stays as it is until the next call.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into_owned()
    }

    /// Reads the header of a file.
    pub(super) fn read_header(&mut self, file: &[u8]) -> Told<()> {
        // SAFETY: the instance is ours, and of the file no more is read than its length says.
        let failed =
            unsafe { raw::tj3DecompressHeader(self.raw.as_ptr(), file.as_ptr(), file.len() as raw::size_t) }
                != 0;
        if failed { Err(self.error()) } else { Ok(()) }
    }

    /// Decodes a file of `width` x `height` pixels, as reduced, row by row without gaps.
    pub(super) fn decode(
        &mut self,
        file: &[u8],
        format: PixelFormat,
        (width, height): (usize, usize),
        to: Samples<'_>,
    ) -> Told<()> {
        self.read_header(file)?;
        let is_reduced = self.get(raw::TJPARAM_TJPARAM_LOSSLESS) == 0;
        let shrink = if is_reduced { self.shrink } else { 0 };
        let side = |parameter| usize::try_from(self.get(parameter)).unwrap_or(0).div_ceil(1 << shrink);
        let found = (side(raw::TJPARAM_TJPARAM_JPEGWIDTH), side(raw::TJPARAM_TJPARAM_JPEGHEIGHT));
        let bits = self.get(raw::TJPARAM_TJPARAM_PRECISION);
        let pitch = width * format.size();
        let (room, all) = to.room();
        if found != (width, height) || !all.contains(&bits) || room != pitch * height {
            return Err(format!(
                "a file of {} x {} pixels of {bits} bits, expected {width} x {height} of {} to {}",
                found.0,
                found.1,
                all.start(),
                all.end()
            ));
        }
        let pitch = c_int::try_from(pitch).map_err(|_| format!("rows of {pitch} samples"))?;
        let (raw, bytes, length, format) =
            (self.raw.as_ptr(), file.as_ptr(), file.len() as raw::size_t, format as c_int);
        // The same file's header was read just now with the same factor, so that as many rows and columns are written
        // as were counted, each with the samples of a pixel of `format`: `room` is all of them.
        let code = match to {
            Samples::U8(to) => {
                // SAFETY: the instance is ours; no more is read than `length` says, nor written than `to` has room for.
                unsafe { raw::tj3Decompress8(raw, bytes, length, to.as_mut_ptr(), pitch, format) }
            }
            Samples::U12(to) => {
                // SAFETY: as above.
                unsafe { raw::tj3Decompress12(raw, bytes, length, to.as_mut_ptr(), pitch, format) }
            }
            Samples::U16(to) => {
                // SAFETY: as above.
                unsafe { raw::tj3Decompress16(raw, bytes, length, to.as_mut_ptr(), pitch, format) }
            }
        };
        if code == 0 { Ok(()) } else { Err(self.error()) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the instance is ours, and nobody uses it any more.
        unsafe { raw::tj3Destroy(self.raw.as_ptr()) };
    }
}
