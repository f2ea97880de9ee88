//! Bytes in which a zero is stuffed behind each `FF`: taken out while they are copied. It must not know what they mean,
//! nor what an `FF` begins that has no zero behind it.
//!
//! With AVX-512 a block of 64 bytes is one load, two comparisons, and one instruction that leaves out the zeros,
//! whatever is in it. Where a search has to find each `FF` first, of which photographs have one in 200 bytes, the
//! processor guesses wrong for each how far it is.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "intrinsics behind a safe function; each block says what it relies on")
)]

use memchr::memchr;

/// How far a copy came.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unstuffed {
    /// Bytes that were read, with the zeros.
    pub(crate) read: usize,
    /// Bytes that were written.
    pub(crate) written: usize,
}

/// Copies `from` to `to` without the zero behind each `FF`, up to an `FF` that has something else behind it, or
/// nothing. `None`: there is not enough room. What is in `to` behind the bytes that were written has no meaning.
pub(crate) fn unstuff(from: &[u8], to: &mut [u8]) -> Option<Unstuffed> {
    let mut done = unstuff_blocks(from, to);
    loop {
        let rest = from.get(done.read..)?;
        let plain = memchr(0xFF, rest).unwrap_or(rest.len());
        let stuffed = usize::from(rest.get(plain + 1) == Some(&0));
        let bytes = rest.get(..plain + stuffed)?;
        to.get_mut(done.written..done.written + bytes.len())?.copy_from_slice(bytes);
        done.read += bytes.len() + stuffed;
        done.written += bytes.len();
        if stuffed == 0 {
            return Some(done);
        }
    }
}

/// Whether this processor takes zeros out block by block, several times as fast as others.
pub(crate) fn unstuffs_by_blocks() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("popcnt");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The same of whole blocks, as many as this processor has instructions for, up to one that holds an `FF` with
/// something else behind it. Each byte of a block decides but about where it and those behind it go, and is read once
/// for that: somebody else may write to `from` meanwhile.
pub(crate) fn unstuff_blocks(from: &[u8], to: &mut [u8]) -> Unstuffed {
    #[cfg(target_arch = "x86_64")]
    if unstuffs_by_blocks() {
        // SAFETY: this processor has the instructions.
        return unsafe { avx512::unstuff_blocks(from, to) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (from, to);
    Unstuffed::default()
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        _mm512_cmpeq_epi8_mask, _mm512_loadu_epi8, _mm512_maskz_compress_epi8, _mm512_set1_epi8,
        _mm512_storeu_epi8, _mm512_testn_epi8_mask,
    };

    use super::Unstuffed;

    const BLOCK: usize = 64;

    #[target_feature(enable = "avx512bw,avx512vbmi2,popcnt")]
    pub(super) fn unstuff_blocks(from: &[u8], to: &mut [u8]) -> Unstuffed {
        let mut done = Unstuffed::default();
        // Whether the last byte is an FF.
        let mut open = 0;
        loop {
            let block = from.get(done.read..).and_then(<[u8]>::first_chunk::<BLOCK>);
            let room = to.get_mut(done.written..).and_then(<[u8]>::first_chunk_mut::<BLOCK>);
            let (Some(block), Some(room)) = (block, room) else { break };
            // SAFETY: there are so many bytes.
            let bytes = unsafe { _mm512_loadu_epi8(block.as_ptr().cast()) };
            let ff = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(-1));
            let behind_ff = ff << 1 | open;
            if behind_ff & !_mm512_testn_epi8_mask(bytes, bytes) != 0 {
                break;
            }
            let kept = _mm512_maskz_compress_epi8(!behind_ff, bytes);
            // SAFETY: there is room for so many bytes.
            unsafe { _mm512_storeu_epi8(room.as_mut_ptr().cast(), kept) };
            open = ff >> (BLOCK - 1);
            done.read += BLOCK;
            done.written += behind_ff.count_zeros() as usize;
        }
        // What is behind that FF is not known here.
        let open = usize::from(open != 0);
        Unstuffed { read: done.read - open, written: done.written - open }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As [`unstuff`], byte by byte.
    fn naive(from: &[u8]) -> (usize, Vec<u8>) {
        let (mut read, mut written) = (0, Vec::new());
        while let Some(&byte) = from.get(read) {
            let stuffed = byte == 0xFF;
            if stuffed && from.get(read + 1) != Some(&0) {
                break;
            }
            written.push(byte);
            read += 1 + usize::from(stuffed);
        }
        (read, written)
    }

    /// Runs of bytes, of which most end with a stuffed FF.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        const ENDS: &[&[u8]] = &[&[0xFF], &[0xFF, 0xFF, 0], &[0xFF, 0xD0]];
        let end = prop_oneof![9 => Just(&[0xFF, 0][..]), 1 => prop::sample::select(ENDS)];
        let run = (0..90_usize, 0..0xFF_u8, end);
        prop::collection::vec(run, 0..9).prop_map(|runs| {
            runs.into_iter().flat_map(|(length, byte, end)| [&vec![byte; length][..], end].concat()).collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn zeros_are_taken_out_up_to_what_is_none(
            from in bytes(),
            more in 0..70_usize,
        ) {
            let (read, written) = naive(&from);
            let mut to = vec![0x5A; written.len() + more];
            prop_assert_eq!(unstuff(&from, &mut to), Some(Unstuffed { read, written: written.len() }));
            prop_assert_eq!(&to[..written.len()], &written[..]);
            // Of whole blocks a part of that.
            let blocks = unstuff_blocks(&from, &mut to);
            prop_assert!(blocks.read <= read && naive(&from[..blocks.read]) == (blocks.read, written[..blocks.written].to_vec()));
            if let Some(less) = written.len().checked_sub(1) {
                prop_assert_eq!(unstuff(&from, &mut to[..less]), None);
            }
        }
    }
}
