//! Loops over the pixels of one row. Those that normalise know the source's type, those that store know the output's.
//! They must not know where rows lie.

use std::any::TypeId;
use std::ops::Range;

use multiversion::multiversion;

use super::{Channel, Normalized};

/// Pixels that are normalised before they are converted and stored.
const BLOCK: usize = 128;

/// What is normalised and not stored yet. Loops of one side know the source's type, those of the other the output's:
/// loops for every pair of types, for each kind of vectors, would be a megabyte, and the compiler makes vector code of
/// either side, but not of both in one.
pub(super) struct Stage([[f32; BLOCK]; 3]);

impl Stage {
    pub(super) fn new() -> Self {
        Self([[0.0; BLOCK]; 3])
    }
}

/// The output as floats, if it takes normalised values as they are.
fn floats<T: Normalized>(dst: &mut [T]) -> Result<&mut [f32], &mut [T]> {
    if TypeId::of::<T>() == TypeId::of::<f32>() { Ok(bytemuck::cast_slice_mut(dst)) } else { Err(dst) }
}

/// The part of `len` elements that those after the first `done` become.
fn place(len: usize, done: usize, count: usize, mirror: bool) -> Range<usize> {
    if mirror { len - done - count..len - done } else { done..done + count }
}

/// Three interleaved channels to three planes.
pub(super) fn split3<S: Copy, A, T>(
    src: &[S],
    mut planes: [&mut [T]; 3],
    channels: [A; 3],
    mirror: bool,
    stage: &mut Stage,
) where
    A: Channel<S>,
    T: Normalized,
{
    if let [Ok(p), Ok(q), Ok(r)] = planes.each_mut().map(|plane| floats(plane)) {
        normalize_split(src, [&mut *p, &mut *q, &mut *r], channels);
        if mirror {
            [p, q, r].into_iter().for_each(<[f32]>::reverse);
        }
        return;
    }
    let ([p, q, r], mut done) = (planes, 0);
    for pixels in src.chunks(3 * BLOCK) {
        let n = pixels.len() / 3;
        normalize_split(pixels, stage.0.each_mut().map(|values| &mut values[..n]), channels);
        let place = place(p.len(), done, n, mirror);
        store3(&stage.0, [&mut p[place.clone()], &mut q[place.clone()], &mut r[place]], mirror);
        done += n;
    }
}

/// Three interleaved channels to three interleaved channels.
pub(super) fn keep3<S: Copy, A, T>(
    src: &[S],
    dst: &mut [T],
    channels: [A; 3],
    mirror: bool,
    stage: &mut Stage,
) where
    A: Channel<S>,
    T: Normalized,
{
    let dst = match floats(dst) {
        Ok(dst) => return normalize_kept(src, dst, channels, mirror),
        Err(dst) => dst,
    };
    let (values, mut done) = (stage.0.as_flattened_mut(), 0);
    for pixels in src.chunks(3 * BLOCK) {
        let n = pixels.len();
        normalize_kept(pixels, &mut values[..n], channels, mirror);
        let place = place(dst.len(), done, n, mirror);
        store(values, &mut dst[place], false);
        done += n;
    }
}

/// One channel, dense on both sides.
pub(super) fn contiguous<S: Copy, A, T>(src: &[S], dst: &mut [T], channel: A, mirror: bool, stage: &mut Stage)
where
    A: Channel<S>,
    T: Normalized,
{
    let dst = match floats(dst) {
        Ok(dst) => {
            normalize(src, dst, channel);
            if mirror {
                dst.reverse();
            }
            return;
        }
        Err(dst) => dst,
    };
    let (values, len) = (stage.0.as_flattened_mut(), dst.len());
    for (i, src) in src[..len.min(src.len())].chunks(3 * BLOCK).enumerate() {
        normalize(src, values, channel);
        store(values, &mut dst[place(len, i * 3 * BLOCK, src.len(), mirror)], mirror);
    }
}

/// One channel, elements any distance apart on either side.
pub(super) fn strided<S: Copy, A, T>(
    (src, src_step): (&[S], usize),
    (dst, dst_step): (&mut [T], usize),
    channel: A,
    mirror: bool,
    stage: &mut Stage,
) where
    A: Channel<S>,
    T: Normalized,
{
    let (values, len) = (stage.0.as_flattened_mut(), dst.len().div_ceil(dst_step));
    for done in (0..len).step_by(3 * BLOCK) {
        let values = &mut values[..(len - done).min(3 * BLOCK)];
        normalize_apart(&src[done * src_step..], src_step, values, channel);
        let place = place(len, done, values.len(), mirror);
        let dst = &mut dst[place.start * dst_step..][..(place.len() - 1) * dst_step + 1];
        store_apart(values, dst, dst_step, mirror);
    }
}

/// Three interleaved channels to a plane each.
#[multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+f16c",
    "x86_64+avx+avx2+f16c"
))]
fn normalize_split<S: Copy, A: Channel<S>>(src: &[S], planes: [&mut [f32]; 3], channels: [A; 3]) {
    let src = src.as_chunks::<3>().0;
    let len = planes.iter().fold(src.len(), |len, plane| len.min(plane.len()));
    // By number: of four iterators at once the compiler makes a call for each pixel.
    let (src, [a, b, c]) = (&src[..len], planes.map(|plane| &mut plane[..len]));
    for i in 0..len {
        a[i] = channels[0].apply(src[i][0]);
        b[i] = channels[1].apply(src[i][1]);
        c[i] = channels[2].apply(src[i][2]);
    }
}

/// Three interleaved channels to as many, pixels in reverse when `mirror`.
#[multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+f16c",
    "x86_64+avx+avx2+f16c"
))]
fn normalize_kept<S: Copy, A: Channel<S>>(src: &[S], values: &mut [f32], channels: [A; 3], mirror: bool) {
    // Arrays, not slices of three: of those the compiler makes no vector code.
    let ((values, _), (src, _)) = (values.as_chunks_mut(), src.as_chunks());
    let [a, b, c] = channels;
    let normalized = |&[x, y, z]: &[S; 3]| [a.apply(x), b.apply(y), c.apply(z)];
    if mirror {
        values.iter_mut().rev().zip(src).for_each(|(to, from)| *to = normalized(from));
    } else {
        values.iter_mut().zip(src).for_each(|(to, from)| *to = normalized(from));
    }
}

/// One channel; of unequal lengths the shorter counts.
#[multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+f16c",
    "x86_64+avx+avx2+f16c"
))]
fn normalize<S: Copy, A: Channel<S>>(src: &[S], values: &mut [f32], channel: A) {
    values.iter_mut().zip(src).for_each(|(to, &from)| *to = channel.apply(from));
}

/// One channel, elements of the source `step` apart.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn normalize_apart<S: Copy, A: Channel<S>>(src: &[S], step: usize, values: &mut [f32], channel: A) {
    values.iter_mut().zip(src.iter().step_by(step)).for_each(|(to, &from)| *to = channel.apply(from));
}

/// The first values of each plane of `stage`, as many as there is room for, in reverse when `mirror`.
#[multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+f16c",
    "x86_64+avx+avx2+f16c"
))]
fn store3<T: Normalized>(stage: &[[f32; BLOCK]; 3], planes: [&mut [T]; 3], mirror: bool) {
    for (values, plane) in stage.iter().zip(planes) {
        write(values, plane, mirror);
    }
}

/// The same of one plane.
#[multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+f16c",
    "x86_64+avx+avx2+f16c"
))]
fn store<T: Normalized>(values: &[f32], dst: &mut [T], mirror: bool) {
    write(values, dst, mirror);
}

/// All of `values` to elements that are `step` apart.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn store_apart<T: Normalized>(values: &[f32], dst: &mut [T], step: usize, mirror: bool) {
    let dst = dst.iter_mut().step_by(step);
    if mirror {
        dst.rev().zip(values).for_each(|(to, &from)| *to = T::from_pixel(from));
    } else {
        dst.zip(values).for_each(|(to, &from)| *to = T::from_pixel(from));
    }
}

#[inline(always)]
fn write<T: Normalized>(values: &[f32], dst: &mut [T], mirror: bool) {
    if mirror {
        dst.iter_mut().rev().zip(values).for_each(|(to, &from)| *to = T::from_pixel(from));
    } else {
        dst.iter_mut().zip(values).for_each(|(to, &from)| *to = T::from_pixel(from));
    }
}
