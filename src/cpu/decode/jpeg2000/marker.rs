//! Markers of a codestream of JPEG 2000: the second of their bytes. It must not know what follows them.

use crate::error::Error;

pub(super) const SOC: u8 = 0x4F;
pub(super) const CAP: u8 = 0x50;
pub(super) const SIZ: u8 = 0x51;
pub(super) const COD: u8 = 0x52;
pub(super) const COC: u8 = 0x53;
pub(super) const TLM: u8 = 0x55;
pub(super) const PLT: u8 = 0x58;
pub(super) const QCD: u8 = 0x5C;
pub(super) const QCC: u8 = 0x5D;
pub(super) const RGN: u8 = 0x5E;
pub(super) const POC: u8 = 0x5F;
pub(super) const PPM: u8 = 0x60;
pub(super) const PPT: u8 = 0x61;
pub(super) const CRG: u8 = 0x63;
pub(super) const COM: u8 = 0x64;
pub(super) const SOT: u8 = 0x90;
pub(super) const SOD: u8 = 0x93;
pub(super) const EOC: u8 = 0xD9;

/// The error of bytes that are damaged.
pub(super) fn damaged(what: &str) -> Error {
    Error::invalid(format!("damaged: {what}"))
}
