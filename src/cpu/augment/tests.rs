//! Checksums of what Pillow 12.0 and torchvision 0.29 make of a small image.

use super::*;

const SIZE: [usize; 2] = [7, 9];

/// Number of an operation, magnitude, and the sums of Pillow, of torchvision's version 1 and of its version 2.
const ANSWERS: &[(i64, f32, [Option<u32>; 3])] = &[
    (1, 1.25, [Some(0x3d338330), Some(0x3d338330), Some(0x3d338330)]),
    (2, 0.5, [Some(0x8b336aee), Some(0x7fdd2ccd), Some(0x7fdd2ccd)]),
    (2, 1.5, [Some(0x112e121a), Some(0x112e121a), Some(0x112e121a)]),
    (3, 1.75, [Some(0x18cbd386), Some(0x4ae3fd46), Some(0x4ae3fd46)]),
    (4, -0.25, [Some(0xea9fd524), Some(0x8ce423c7), Some(0x8ce423c7)]),
    (5, 1.75, [Some(0x1a6726d0), Some(0x1a6726d0), Some(0x1a6726d0)]),
    (6, 3.0, [Some(0xb0858be0), Some(0xb0858be0), Some(0xb0858be0)]),
    (7, 101.0, [Some(0xfae207fd), Some(0xfae207fd), Some(0xfae207fd)]),
    (8, 0.0, [Some(0x3e16c731), Some(0xca1929b2), Some(0x08e8eb52)]),
    (9, 0.0, [Some(0x77386194), Some(0x77386194), Some(0x77386194)]),
    (10, 0.0, [Some(0x90e65b2b), Some(0x90e65b2b), Some(0x90e65b2b)]),
    (11, 0.0, [Some(0xa6c3496a), Some(0x84384b4d), Some(0x84384b4d)]),
    (12, 0.25, [Some(0x7b813e09), None, None]),
    (13, -0.5, [Some(0x6dd4a8ad), None, None]),
    (14, 3.0, [Some(0xef360d39), None, None]),
    (15, -2.0, [Some(0x88fc903e), None, None]),
    (16, -30.0, [Some(0xd408a513), None, None]),
    (16, 180.0, [Some(0x8aa97594), None, None]),
];

fn image() -> Vec<Rgb> {
    let level = |i: u64| (((i * i * 31 + i * 17) % 256) / 2 + 40) as u8;
    (0..(SIZE[0] * SIZE[1]) as u64)
        .map(|i| std::array::from_fn(|channel| level(i * 3 + channel as u64)))
        .collect()
}

#[test]
fn answers_are_those_of_the_libraries() {
    let moves = Moves { filter: Filter::Linear, fill: [1, 2, 3] };
    for &(number, magnitude, sums) in ANSWERS {
        for (library, expected) in
            [Library::Pillow, Library::Torchvision, Library::TorchvisionV2].into_iter().zip(sums)
        {
            let step = Step::new(Operation::of(number).unwrap(), magnitude, library);
            let Some(expected) = expected else {
                assert!(step.is_err(), "{number} {library:?}");
                continue;
            };
            let (mut image, mut spare) = (image(), image());
            apply(&[step.unwrap()], &mut image, &mut spare, SIZE[1], library, moves);
            let sum = image
                .as_flattened()
                .iter()
                .fold(0u32, |sum, &level| sum.wrapping_mul(31).wrapping_add(level.into()));
            assert_eq!(sum, expected, "{number} {magnitude} {library:?}");
        }
    }
}

#[test]
fn steps_without_an_answer_are_refused() {
    for (number, magnitude) in
        [(1, -0.5), (2, f32::NAN), (4, 0.75), (6, 9.0), (7, f32::INFINITY), (16, f32::NAN)]
    {
        assert!(Step::new(Operation::of(number).unwrap(), magnitude, Library::Pillow).is_err(), "{number}");
    }
    assert_eq!((Operation::of(-1), Operation::of(17)), (None, None));
}

#[test]
fn one_weight_blurs_nothing_and_too_many_are_refused() {
    let image = image();
    let mut blurred = vec![[0; 3]; image.len()];
    blur::blur(&image, &mut blurred, SIZE[1], [&[1.0], &[1.0]]).unwrap();
    assert_eq!(blurred, image);
    assert!(blur::blur(&image, &mut blurred, SIZE[1], [&[1.0], &[0.0; 15]]).is_err());
    blur::blur(&[], &mut [], 0, [&[1.0], &[1.0]]).unwrap();
}
