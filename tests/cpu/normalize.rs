//! Crop, mirror and normalize against the recorded answers of DALI's CPU operator (`tests/data/resample/make.py`).

use gesso::cpu::convert::ConvertSat;
use gesso::cpu::normalize::{Affine, Channels, Normalize, Normalized, affine};
use half::f16;
use proptest::prelude::*;

use crate::npz::Npz;

fn halves(bits: Vec<u16>) -> Vec<f16> {
    bits.into_iter().map(f16::from_bits).collect()
}

/// (H, W, C) to (C, H, W).
fn planes<T: Copy>(src: &[T], channels: usize) -> Vec<T> {
    (0..channels).flat_map(|c| src.iter().skip(c).step_by(channels).copied()).collect()
}

fn run<S: ConvertSat<f32>, T: Normalized + Default>(normalize: &Normalize<'_, Affine>, src: &[S]) -> Vec<T> {
    let mut dst = vec![T::default(); normalize.window[0] * normalize.window[1] * normalize.fill.len()];
    match normalize.input {
        Channels::Interleaved => normalize.run(src, &mut dst).unwrap(),
        Channels::Planar => normalize.run(&planes(src, normalize.channels.len()), &mut dst).unwrap(),
    }
    dst
}

#[test]
fn agrees_with_dali() {
    const SCALE: f32 = 1.7;
    const SHIFT: f32 = 0.3;
    let recorded = &mut Npz::open("tests/data/resample/normalize.npz");
    let (shape, table) = recorded.array::<f64>("cases");
    let mut arguments = recorded.array::<f32>("arguments").1.into_iter();
    let mut floats = recorded.array::<f32>("float32").1.into_iter();
    let mut half_floats = halves(recorded.array("float16").1).into_iter();
    let mut bytes = recorded.array::<u8>("uint8").1.into_iter();
    let mut signed = recorded.array::<i8>("int8").1.into_iter();

    for (number, row) in table.chunks_exact(shape[1]).enumerate() {
        let name = format!("in{}", row[0]);
        let channels = [3, 3, 3, 3, 3, 3, 3, 5, 1][row[0] as usize];
        let mut take = |n: usize| arguments.by_ref().take(n).collect::<Vec<f32>>();
        let (mean, std, fill) = (take(channels), take(channels), take(row[9] as usize));
        let affine: Vec<Affine> =
            mean.iter().zip(&std).map(|(&mean, &std)| affine(mean, std, SCALE, SHIFT)).collect();
        let order = |planar: f64| if planar != 0.0 { Channels::Planar } else { Channels::Interleaved };
        let normalize = Normalize {
            image: [6, 7],
            input: order(row[1]),
            anchor: [row[6] as i64, row[7] as i64],
            window: [row[4] as usize, row[5] as usize],
            output: order(row[2]),
            mirror: row[8] != 0.0,
            channels: &affine,
            fill: &fill,
        };
        macro_rules! check {
            ($src:expr) => {{
                let src = $src;
                match row[3] as u8 {
                    0 => check!(f32, src, floats),
                    1 => check!(f16, src, half_floats),
                    2 => check!(u8, src, bytes),
                    _ => check!(i8, src, signed),
                }
            }};
            ($T:ty, $src:expr, $answers:expr) => {{
                let found: Vec<$T> = run(&normalize, &$src);
                let expected: Vec<$T> = $answers.by_ref().take(found.len()).collect();
                assert_eq!(found, expected, "case {number} {row:?}");
            }};
        }
        match row[0] as u8 {
            1 => check!(recorded.array::<i16>(&name).1),
            2 => check!(recorded.array::<u16>(&name).1),
            3 => check!(recorded.array::<i32>(&name).1),
            4 => check!(recorded.array::<f32>(&name).1),
            5 => check!(halves(recorded.array(&name).1)),
            _ => check!(recorded.array::<u8>(&name).1),
        }
    }
    assert!(floats.next().is_none() && half_floats.next().is_none() && bytes.next().is_none());
    assert!(signed.next().is_none() && arguments.next().is_none());
}

proptest! {
    /// Windows of small images, in all layouts, against one pixel at a time; and row by row.
    #[test]
    fn agrees_with_the_definition(
        image in prop::array::uniform2(0usize..6), window in prop::array::uniform2(0usize..8),
        anchor in prop::array::uniform2(-8i64..8), channels in 1usize..6, surplus in 0usize..3, mirror: bool,
        planar_input: bool, planar_output: bool, wide: bool,
    ) {
        // Rows of more than one block of vectors, too.
        let stretch = if wide { 37 } else { 1 };
        let (image, window) = ([image[0], image[1] * stretch], [window[0], window[1] * stretch]);
        let anchor = [anchor[0], anchor[1] * stretch as i64];
        let order = |planar| if planar { Channels::Planar } else { Channels::Interleaved };
        let fill: Vec<f32> = (0..channels + surplus).map(|c| -1.0 - c as f32).collect();
        let maps: Vec<Affine> = (0..channels).map(|c| affine(c as f32, 0.5, 1.0, 0.0)).collect();
        let normalize = Normalize {
            image, input: order(planar_input), anchor, window, output: order(planar_output), mirror, channels: &maps,
            fill: &fill,
        };
        let ([height, width], [rows, columns], all) = (image, window, channels + surplus);
        let src: Vec<u8> = (0..height * width * channels).map(|i| i as u8).collect();
        let found: Vec<f32> = run(&normalize, &src);
        let mut by_row = vec![f32::NAN; found.len()];
        if width > 0 {
            for (y, row) in src.chunks_exact(width * channels).enumerate() {
                normalize.run_row(y, row, &mut by_row).unwrap();
            }
        }
        for y in 0..rows {
            for x in 0..columns {
                let from_x = anchor[1] + if mirror { columns - 1 - x } else { x } as i64;
                let from_y = anchor[0] + y as i64;
                let inside = (0..height as i64).contains(&from_y) && (0..width as i64).contains(&from_x);
                for c in 0..all {
                    let at = if planar_output { (c * rows + y) * columns + x } else { (y * columns + x) * all + c };
                    let expected = if inside && c < channels {
                        let pixel = from_y as usize * width + from_x as usize;
                        (f32::from(src[pixel * channels + c]) - c as f32) * 2.0
                    } else {
                        fill[c]
                    };
                    prop_assert_eq!(found[at], expected);
                    let row_exists = (0..height as i64).contains(&from_y) && width > 0;
                    prop_assert!(by_row[at] == expected || (!row_exists && by_row[at].is_nan()));
                }
            }
        }
    }
}

#[test]
fn wrong_buffers_and_extreme_anchors_are_no_panic() {
    let maps = [affine(0.0, 1.0, 1.0, 0.0)];
    let normalize = Normalize {
        image: [2, 2],
        input: Channels::Interleaved,
        anchor: [i64::MAX, i64::MIN],
        window: [1, 3],
        output: Channels::Planar,
        mirror: true,
        channels: &maps,
        fill: &[7.0],
    };
    let mut dst = [0f32; 3];
    assert!(normalize.run(&[1u8; 3], &mut dst).is_err());
    assert!(normalize.run(&[1u8; 4], &mut dst[..2]).is_err());
    assert!(normalize.run_row(0, &[1u8; 3], &mut dst).is_err());
    assert!(Normalize { window: [usize::MAX; 2], ..normalize }.run(&[1u8; 4], &mut dst).is_err());
    assert!(Normalize { fill: &[], window: [0, 0], ..normalize }.run(&[1u8; 4], &mut dst[..0]).is_err());
    normalize.run(&[1u8; 4], &mut dst).unwrap();
    assert_eq!(dst, [7.0; 3]);
}
