//! The part of NVDEC's C interface that is called (libnvcuvid, which comes with the driver), loaded at run time.
//! Written from the public documentation; a C `unsigned long` has 64 bits here. It must not know how videos are decoded
//! with it.

use std::ffi::{c_int, c_short, c_uint, c_ulong, c_void};
use std::mem::ManuallyDrop;

use crate::error::{Error, ErrorKind, Result};
use crate::gpu::{Found, Library};

/// `CUresult`.
pub(super) type Status = c_int;
pub(super) type RawParser = *mut c_void;
pub(super) type RawDecoder = *mut c_void;

const SUCCESS: Status = 0;
const OUT_OF_MEMORY: Status = 2;

/// `CUVID_PKT_ENDOFSTREAM`: no packet follows.
pub(super) const END_OF_STREAM: c_ulong = 1;
/// `CUVID_PKT_TIMESTAMP`: the packet has a time.
pub(super) const TIMESTAMP: c_ulong = 2;

/// `cudaVideoCreate_PreferCUVID`: the engines, not the multiprocessors.
pub(super) const PREFER_ENGINES: c_ulong = 4;

/// `cuvidDecodeStatus_Error` and `cuvidDecodeStatus_Error_Concealed`.
pub(super) const DAMAGED: [c_int; 2] = [8, 9];

/// `CUVIDDECODECAPS`: what the engines can do for a codec, chroma format and depth.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct Caps {
    pub(super) codec: c_int,
    pub(super) chroma: c_int,
    pub(super) depth_minus_8: c_uint,
    reserved: [c_uint; 3],
    pub(super) is_supported: u8,
    pub(super) engines: u8,
    pub(super) output_formats: u16,
    pub(super) max_width: c_uint,
    pub(super) max_height: c_uint,
    pub(super) max_macroblocks: c_uint,
    pub(super) min_width: u16,
    pub(super) min_height: u16,
    histogram: [u8; 4],
    reserved_too: [c_uint; 10],
}

impl Caps {
    /// The question.
    pub(super) fn of(codec: c_int, chroma: c_int, depth: c_uint) -> Self {
        Self { codec, chroma, depth_minus_8: depth.saturating_sub(8), ..Self::default() }
    }
}

/// A rectangle of 16 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct ShortRect {
    pub(super) left: c_short,
    pub(super) top: c_short,
    pub(super) right: c_short,
    pub(super) bottom: c_short,
}

/// `CUVIDDECODECREATEINFO`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct CreateInfo {
    pub(super) width: c_ulong,
    pub(super) height: c_ulong,
    pub(super) decode_surfaces: c_ulong,
    pub(super) codec: c_int,
    pub(super) chroma: c_int,
    pub(super) flags: c_ulong,
    pub(super) depth_minus_8: c_ulong,
    pub(super) intra_only: c_ulong,
    pub(super) max_width: c_ulong,
    pub(super) max_height: c_ulong,
    pub(super) reserved: c_ulong,
    pub(super) display_area: ShortRect,
    pub(super) output_format: c_int,
    pub(super) deinterlace: c_int,
    pub(super) target_width: c_ulong,
    pub(super) target_height: c_ulong,
    pub(super) output_surfaces: c_ulong,
    pub(super) lock: *mut c_void,
    pub(super) target_rect: ShortRect,
    pub(super) histogram: c_ulong,
    pub(super) reserved_too: [c_ulong; 4],
}

/// `CUVIDRECONFIGUREDECODERINFO`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct ReconfigureInfo {
    pub(super) width: c_uint,
    pub(super) height: c_uint,
    pub(super) target_width: c_uint,
    pub(super) target_height: c_uint,
    pub(super) decode_surfaces: c_uint,
    pub(super) reserved: [c_uint; 12],
    pub(super) display_area: ShortRect,
    pub(super) target_rect: ShortRect,
    pub(super) reserved_too: [c_uint; 11],
}

/// A rectangle of 32 bits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Rect {
    pub(super) left: c_int,
    pub(super) top: c_int,
    pub(super) right: c_int,
    pub(super) bottom: c_int,
}

/// `CUVIDEOFORMAT`: what a stream says of its pictures.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct VideoFormat {
    pub(super) codec: c_int,
    frame_rate: [c_uint; 2],
    pub(super) is_progressive: u8,
    pub(super) luma_depth_minus_8: u8,
    pub(super) chroma_depth_minus_8: u8,
    pub(super) min_decode_surfaces: u8,
    pub(super) coded_width: c_uint,
    pub(super) coded_height: c_uint,
    pub(super) display_area: Rect,
    pub(super) chroma: c_int,
    bitrate: c_uint,
    aspect_ratio: [c_int; 2],
    /// Bits 0 to 2 say where the video comes from, bit 3 that samples take the whole range.
    pub(super) signal: u8,
    primaries: u8,
    transfer: u8,
    pub(super) matrix: u8,
    header_bytes: c_uint,
}

/// `CUVIDPICPARAMS`: made by the parser for the decoder. Of what is the codec's own nothing is read here.
#[repr(C)]
pub(super) struct PictureParams {
    size: [c_int; 2],
    pub(super) picture: c_int,
    // More follows, which only the library knows.
}

/// `CUVIDPARSERDISPINFO`: a picture that is to be shown.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(super) struct DisplayInfo {
    pub(super) picture: c_int,
    pub(super) is_progressive: c_int,
    pub(super) top_field_first: c_int,
    repeat_first_field: c_int,
    pub(super) timestamp: i64,
}

pub(super) type SequenceCallback = unsafe extern "C" fn(*mut c_void, *mut VideoFormat) -> c_int;
pub(super) type DecodeCallback = unsafe extern "C" fn(*mut c_void, *mut PictureParams) -> c_int;
pub(super) type DisplayCallback = unsafe extern "C" fn(*mut c_void, *mut DisplayInfo) -> c_int;

/// `CUVIDPARSERPARAMS`.
#[repr(C)]
pub(super) struct ParserParams {
    pub(super) codec: c_int,
    pub(super) decode_surfaces: c_uint,
    pub(super) clock_rate: c_uint,
    pub(super) error_threshold: c_uint,
    pub(super) display_delay: c_uint,
    pub(super) flags: c_uint,
    pub(super) reserved: [c_uint; 4],
    pub(super) user: *mut c_void,
    pub(super) sequence: Option<SequenceCallback>,
    pub(super) decode: Option<DecodeCallback>,
    pub(super) display: Option<DisplayCallback>,
    pub(super) operating_point: *mut c_void,
    pub(super) reserved_too: [*mut c_void; 6],
    pub(super) extended: *mut c_void,
}

/// `CUVIDSOURCEDATAPACKET`.
#[repr(C)]
pub(super) struct SourcePacket {
    pub(super) flags: c_ulong,
    pub(super) bytes: c_ulong,
    pub(super) payload: *const u8,
    pub(super) timestamp: i64,
}

/// `CUVIDPROCPARAMS`: how a picture is made readable.
#[repr(C)]
pub(super) struct ProcessParams {
    pub(super) is_progressive: c_int,
    pub(super) second_field: c_int,
    pub(super) top_field_first: c_int,
    pub(super) unpaired_field: c_int,
    pub(super) reserved: [c_uint; 2],
    pub(super) raw: [u64; 4],
    pub(super) stream: *mut c_void,
    pub(super) reserved_too: [c_uint; 46],
    pub(super) histogram: *mut u64,
    pub(super) reserved_last: *mut c_void,
}

impl ProcessParams {
    /// Whole frames, in the order of `stream`, a `CUstream`.
    pub(super) fn new(display: &DisplayInfo, stream: *mut c_void) -> Self {
        Self {
            is_progressive: display.is_progressive,
            second_field: 0,
            top_field_first: display.top_field_first,
            unpaired_field: 0,
            reserved: [0; 2],
            raw: [0; 4],
            stream,
            reserved_too: [0; 46],
            histogram: std::ptr::null_mut(),
            reserved_last: std::ptr::null_mut(),
        }
    }
}

/// `CUVIDGETDECODESTATUS`.
#[repr(C)]
pub(super) struct DecodeStatus {
    pub(super) status: c_int,
    reserved: [c_uint; 31],
    reserved_too: [*mut c_void; 8],
}

impl DecodeStatus {
    pub(super) fn new() -> Self {
        Self { status: 0, reserved: [0; 31], reserved_too: [std::ptr::null_mut(); 8] }
    }
}

/// The library, loaded.
pub(super) struct Functions {
    pub(super) caps: unsafe extern "C" fn(*mut Caps) -> Status,
    pub(super) create_parser: unsafe extern "C" fn(*mut RawParser, *mut ParserParams) -> Status,
    pub(super) parse: unsafe extern "C" fn(RawParser, *mut SourcePacket) -> Status,
    pub(super) destroy_parser: unsafe extern "C" fn(RawParser) -> Status,
    pub(super) create_decoder: unsafe extern "C" fn(*mut RawDecoder, *mut CreateInfo) -> Status,
    pub(super) reconfigure: unsafe extern "C" fn(RawDecoder, *mut ReconfigureInfo) -> Status,
    pub(super) decode: unsafe extern "C" fn(RawDecoder, *mut PictureParams) -> Status,
    pub(super) map:
        unsafe extern "C" fn(RawDecoder, c_int, *mut u64, *mut c_uint, *mut ProcessParams) -> Status,
    pub(super) unmap: unsafe extern "C" fn(RawDecoder, u64) -> Status,
    pub(super) destroy_decoder: unsafe extern "C" fn(RawDecoder) -> Status,
    /// Older drivers lack it.
    pub(super) status: Option<unsafe extern "C" fn(RawDecoder, c_int, *mut DecodeStatus) -> Status>,
    /// Keeps the functions above loaded. Never closed, as the driver that it belongs to is not.
    _library: ManuallyDrop<Found>,
}

impl Functions {
    /// Loads the library.
    ///
    /// # Errors
    /// Unavailable, when it is not there or too old.
    pub(super) fn open() -> Result<Self> {
        let library = Library::NVDEC.open()?;
        Ok(Self {
            // SAFETY: the types of all functions here are those of NVDEC's documentation, with 64 bits for addresses.
            caps: unsafe { library.function("cuvidGetDecoderCaps") }?,
            // SAFETY: as above.
            create_parser: unsafe { library.function("cuvidCreateVideoParser") }?,
            // SAFETY: as above.
            parse: unsafe { library.function("cuvidParseVideoData") }?,
            // SAFETY: as above.
            destroy_parser: unsafe { library.function("cuvidDestroyVideoParser") }?,
            // SAFETY: as above.
            create_decoder: unsafe { library.function("cuvidCreateDecoder") }?,
            // SAFETY: as above.
            reconfigure: unsafe { library.function("cuvidReconfigureDecoder") }?,
            // SAFETY: as above.
            decode: unsafe { library.function("cuvidDecodePicture") }?,
            // SAFETY: as above.
            map: unsafe { library.function("cuvidMapVideoFrame64") }?,
            // SAFETY: as above.
            unmap: unsafe { library.function("cuvidUnmapVideoFrame64") }?,
            // SAFETY: as above.
            destroy_decoder: unsafe { library.function("cuvidDestroyDecoder") }?,
            // SAFETY: as above.
            status: unsafe { library.function("cuvidGetDecodeStatus") }.ok(),
            _library: ManuallyDrop::new(library),
        })
    }
}

/// What the library answers. Without memory it is unavailable: no file is to blame.
///
/// # Errors
/// Whatever is no success.
pub(super) fn check(function: &str, status: Status) -> Result<()> {
    let text = match status {
        SUCCESS => return Ok(()),
        1 => "invalid value",
        OUT_OF_MEMORY => "out of memory",
        100 => "no device",
        201 => "invalid context",
        400 => "invalid handle",
        700 => "illegal address",
        702 => "timeout",
        719 => "launch failed",
        801 => "not supported",
        999 => "unknown error",
        _ => "see `CUresult`",
    };
    let kind = if status == OUT_OF_MEMORY { ErrorKind::Unavailable } else { ErrorKind::Internal };
    Err(Error::new(kind, format!("`{function}`: {text} (status {status})")))
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn structs_have_the_documented_layouts() {
        assert_eq!(size_of::<Caps>(), 88);
        assert_eq!([offset_of!(Caps, is_supported), offset_of!(Caps, engines)], [24, 25]);
        assert_eq!([offset_of!(Caps, output_formats), offset_of!(Caps, max_width)], [26, 28]);
        assert_eq!([offset_of!(Caps, max_macroblocks), offset_of!(Caps, min_width)], [36, 40]);
        assert_eq!(size_of::<CreateInfo>(), 176);
        assert_eq!([offset_of!(CreateInfo, codec), offset_of!(CreateInfo, flags)], [24, 32]);
        assert_eq!([offset_of!(CreateInfo, max_width), offset_of!(CreateInfo, display_area)], [56, 80]);
        assert_eq!([offset_of!(CreateInfo, output_format), offset_of!(CreateInfo, target_width)], [88, 96]);
        assert_eq!([offset_of!(CreateInfo, lock), offset_of!(CreateInfo, target_rect)], [120, 128]);
        assert_eq!(offset_of!(CreateInfo, histogram), 136);
        assert_eq!(size_of::<ReconfigureInfo>(), 128);
        assert_eq!(offset_of!(ReconfigureInfo, decode_surfaces), 16);
        assert_eq!(
            [offset_of!(ReconfigureInfo, display_area), offset_of!(ReconfigureInfo, target_rect)],
            [68, 76]
        );
        assert_eq!(size_of::<VideoFormat>(), 64);
        assert_eq!(
            [offset_of!(VideoFormat, is_progressive), offset_of!(VideoFormat, min_decode_surfaces)],
            [12, 15]
        );
        assert_eq!([offset_of!(VideoFormat, coded_width), offset_of!(VideoFormat, display_area)], [16, 24]);
        assert_eq!([offset_of!(VideoFormat, chroma), offset_of!(VideoFormat, signal)], [40, 56]);
        assert_eq!(offset_of!(VideoFormat, matrix), 59);
        assert_eq!(offset_of!(PictureParams, picture), 8);
        assert_eq!((size_of::<DisplayInfo>(), offset_of!(DisplayInfo, timestamp)), (24, 16));
        assert_eq!(size_of::<ParserParams>(), 136);
        assert_eq!([offset_of!(ParserParams, display_delay), offset_of!(ParserParams, reserved)], [16, 24]);
        assert_eq!([offset_of!(ParserParams, user), offset_of!(ParserParams, sequence)], [40, 48]);
        assert_eq!(offset_of!(ParserParams, extended), 128);
        assert_eq!((size_of::<SourcePacket>(), offset_of!(SourcePacket, payload)), (32, 16));
        assert_eq!(offset_of!(SourcePacket, timestamp), 24);
        assert_eq!(size_of::<ProcessParams>(), 264);
        assert_eq!([offset_of!(ProcessParams, raw), offset_of!(ProcessParams, stream)], [24, 56]);
        assert_eq!(offset_of!(ProcessParams, histogram), 248);
        assert_eq!(size_of::<DecodeStatus>(), 192);
    }

    #[test]
    fn a_status_is_named() {
        assert!(check("f", 0).is_ok());
        assert_eq!(check("f", 2).unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(check("f", 801).unwrap_err().to_string().contains("not supported"));
    }
}
