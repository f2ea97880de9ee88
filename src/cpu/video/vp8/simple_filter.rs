//! The simple filter over the edges of blocks, of luma alone (RFC 6386, section 15.2).

use multiversion::multiversion;

use super::frame::Plane;

/// Filters one macroblock: its left edge, those inside from left to right, its upper edge, those inside from above. The
/// limits are those of its own edges and of those inside.
pub(super) fn macroblock(
    luma: &mut Plane,
    column: usize,
    row: usize,
    [outer_limit, inner_limit]: [i16; 2],
    has_inner: bool,
) {
    let width = luma.width;
    let at = row * 16 * width + column * 16;
    let inner = if has_inner { &[4, 8, 12][..] } else { &[] };
    let edges = |is_first: bool| (!is_first).then_some(0).into_iter().chain(inner.iter().copied());
    for x in edges(column == 0) {
        let limit = if x == 0 { outer_limit } else { inner_limit };
        let Some(samples) = luma.samples.get_mut(at + x - 2..) else { return };
        let mut lanes = [[0; 16]; 4];
        for (i, row) in samples.chunks(width).take(16).enumerate() {
            (0..4).for_each(|lane| lanes[lane][i] = row[lane]);
        }
        simply_filtered(&mut lanes, limit);
        for (i, row) in samples.chunks_mut(width).take(16).enumerate() {
            (1..3).for_each(|lane| row[lane] = lanes[lane][i]);
        }
    }
    for y in edges(row == 0) {
        let limit = if y == 0 { outer_limit } else { inner_limit };
        let Some(samples) = luma.samples.get_mut(at + y * width - 2 * width..) else { return };
        let mut lanes = [[0; 16]; 4];
        for (lane, row) in lanes.iter_mut().zip(samples.chunks(width)) {
            lane.copy_from_slice(&row[..16]);
        }
        simply_filtered(&mut lanes, limit);
        for (lane, row) in lanes.iter().zip(samples.chunks_mut(width)).skip(1).take(2) {
            row[..16].copy_from_slice(lane);
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn simply_filtered(lanes: &mut [[u8; 16]; 4], limit: i16) {
    let clipped = |value: i16| value.clamp(-128, 127);
    let [p1, p0, q0, q1] = *lanes;
    for i in 0..16 {
        let [a1, a0, b0, b1] = [i16::from(p1[i]), i16::from(p0[i]), i16::from(q0[i]), i16::from(q1[i])];
        let soft = -i16::from(2 * (a0 - b0).abs() + (a1 - b1).abs() / 2 <= limit);
        let change = clipped(clipped(a1 - b1) + 3 * (b0 - a0)) & soft;
        lanes[1][i] = (a0 + (clipped(change + 3) >> 3)).clamp(0, 255) as u8;
        lanes[2][i] = (b0 - (clipped(change + 4) >> 3)).clamp(0, 255) as u8;
    }
}
