//! Resizing against the recorded answers of DALI's CPU `Resize` (`tests/data/resample/make.py`), and its properties.

use gesso::cpu::convert::ConvertSat;
use gesso::cpu::resample::{Filter, FilterSpec, Output, Plan, Scratch};
use proptest::prelude::*;

use crate::npz::Npz;

struct Case {
    input: usize,
    output: [usize; 2],
    roi: [(f32, f32); 2],
    spec: FilterSpec,
    to_float: bool,
    planes: bool,
}

impl Case {
    fn read(row: &[f64]) -> Self {
        let filter = |n: f64| Filter::from_dali(n as i64).unwrap();
        Self {
            input: row[0] as usize,
            output: [row[1] as usize, row[2] as usize],
            roi: [(row[3] as f32, row[4] as f32), (row[5] as f32, row[6] as f32)],
            spec: FilterSpec { min: filter(row[7]), mag: filter(row[8]), antialias: row[9] != 0.0 },
            to_float: row[10] != 0.0,
            planes: row[11] != 0.0,
        }
    }

    /// Whether the filter's table needs `exp` or `sin`, which libraries round differently.
    fn transcendental(&self) -> bool {
        [self.spec.min, self.spec.mag].iter().any(|f| matches!(f, Filter::Lanczos3 | Filter::Gaussian))
    }

    fn run<S, T>(&self, (shape, src): &(Vec<usize>, Vec<S>), scratch: &mut Scratch) -> Vec<T>
    where
        S: ConvertSat<f32> + ConvertSat<T> + bytemuck::Pod,
        T: Output,
    {
        let (planes, image, channels) = if self.planes {
            (shape[0], [shape[1], shape[2]], 1)
        } else {
            (1, [shape[0], shape[1]], shape[2])
        };
        let plan = Plan::new(image, channels, self.output, self.roi, [self.spec; 2]).unwrap();
        let mut dst = vec![T::default(); planes * self.output[0] * self.output[1] * channels];
        let (from, to) = (src.len() / planes, dst.len() / planes);
        for (src, dst) in src.chunks_exact(from).zip(dst.chunks_exact_mut(to)) {
            plan.run(src, dst, scratch).unwrap();
        }
        dst
    }
}

/// What is left of a flat array of recorded answers.
struct Answers<T>(std::vec::IntoIter<T>);

impl<T: bytemuck::Pod> Answers<T> {
    fn new(recorded: &mut Npz, name: &str) -> Self {
        Self(recorded.array(name).1.into_iter())
    }

    fn take(&mut self, n: usize) -> Vec<T> {
        let taken: Vec<T> = self.0.by_ref().take(n).collect();
        assert_eq!(taken.len(), n);
        taken
    }
}

#[test]
fn agrees_with_dali() {
    let recorded = &mut Npz::open("tests/data/resample/resize.npz");
    let (shape, table) = recorded.array::<f64>("cases");
    let mut floats = Answers::<f32>::new(recorded, "float32");
    let mut bytes = Answers::<u8>::new(recorded, "uint8");
    let mut words = Answers::<u16>::new(recorded, "uint16");
    let mut shorts = Answers::<i16>::new(recorded, "int16");
    let scratch = &mut Scratch::default();
    let (mut exact, mut near) = (0, 0);
    let (mut integers, mut other_integers, mut worst_share) = (0, 0, 0f32);
    let mut failures = vec![];

    for (number, row) in table.chunks_exact(shape[1]).enumerate() {
        let case = Case::read(row);
        let name = format!("in{}", case.input);
        // The element types of make.py's inputs.
        macro_rules! check {
            ($S:ty, $same:expr) => {{
                let input = recorded.array::<$S>(&name);
                let float = |x: $S| -> f32 { x.convert_sat() };
                if case.to_float {
                    let found: Vec<f32> = case.run(&input, scratch);
                    let expected = floats.take(found.len());
                    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    let range = input.1.iter().map(|&x| float(x).abs()).fold(0.0, f32::max);
                    worst_share = worst_share.max(worst / range);
                    let tolerance = if case.transcendental() { 1e-4 * range } else { 0.0 };
                    if found == expected {
                        exact += 1
                    } else {
                        near += 1
                    }
                    if worst.is_nan() || worst > tolerance {
                        failures.push(format!("case {number} {row:?}: differs by {worst}, not {tolerance}"));
                    }
                } else {
                    let found: Vec<$S> = case.run(&input, scratch);
                    let expected = $same.take(found.len());
                    let different = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
                    integers += found.len();
                    other_integers += different;
                    if different == 0 {
                        exact += 1
                    } else {
                        near += 1
                    }
                    let far = found.iter().zip(&expected).any(|(&a, &b)| (float(a) - float(b)).abs() > 1.0);
                    if far || different > 0 && !case.transcendental() {
                        failures
                            .push(format!("case {number} {row:?}: {different} of {} differ", found.len()));
                    }
                }
            }};
        }
        match case.input {
            0 | 4 | 6 | 7 | 8 => check!(u8, bytes),
            1 | 9 => check!(i16, shorts),
            2 | 10 => check!(u16, words),
            _ => check!(f32, floats),
        }
    }
    println!(
        "{exact} cases bit for bit, {near} within tolerance; floats off by up to {worst_share:e} of the range"
    );
    println!("{other_integers} of {integers} integers differ, by one");
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), exact + near, failures.join("\n"));
    assert!(floats.0.next().is_none() && bytes.0.next().is_none());
    assert!(words.0.next().is_none() && shorts.0.next().is_none());
}

fn filter() -> impl Strategy<Value = Filter> {
    (0i64..6).prop_map(|id| Filter::from_dali(id).unwrap())
}

fn spec() -> impl Strategy<Value = FilterSpec> {
    (filter(), filter(), any::<bool>()).prop_map(|(min, mag, antialias)| FilterSpec { min, mag, antialias })
}

/// A region of `length` pixels: within, around, beside or far from an image of that length, forwards or backwards.
fn region(length: usize) -> impl Strategy<Value = (f32, f32)> {
    let end = move || {
        prop_oneof![
            4 => -0.5f32..1.5,
            1 => -20f32..20.0,
            1 => prop::sample::select(vec![0.0, 1.0, -1e4, 1e4]),
        ]
        .prop_map(move |x| x * length as f32)
    };
    (end(), end())
}

fn geometry() -> impl Strategy<Value = ([usize; 2], [usize; 2], [(f32, f32); 2])> {
    (prop::array::uniform2(1usize..40), prop::array::uniform2(1usize..40))
        .prop_flat_map(|(image, output)| (Just(image), Just(output), [region(image[0]), region(image[1])]))
}

/// Asserts that each channel equals the resized plane of its own.
fn check_channels(
    image: [usize; 2],
    output: [usize; 2],
    roi: [(f32, f32); 2],
    filters: [FilterSpec; 2],
    channels: usize,
) {
    let scratch = &mut Scratch::default();
    let src: Vec<f32> = (0..image[0] * image[1] * channels).map(|i| (i * 7919 % 1009) as f32).collect();
    let plan = Plan::new(image, channels, output, roi, filters).unwrap();
    let mut together = vec![0f32; output[0] * output[1] * channels];
    plan.run(&src, &mut together, scratch).unwrap();
    let plan = Plan::new(image, 1, output, roi, filters).unwrap();
    for c in 0..channels {
        let plane: Vec<f32> = src.iter().skip(c).step_by(channels).copied().collect();
        let mut alone = vec![0f32; output[0] * output[1]];
        plan.run(&plane, &mut alone, scratch).unwrap();
        assert!(together.iter().skip(c).step_by(channels).eq(&alone));
    }
}

proptest! {
    /// A constant image stays constant: weights sum to one, and no tap reads anything but the image. Regions may be so
    /// large that hundreds of thousands of weights are summed up in float32: then a level is lost.
    #[test]
    fn constants_stay(
        (image, output, roi) in geometry(), filters in prop::array::uniform2(spec()), channels in 1usize..7, value: u8,
    ) {
        let plan = Plan::new(image, channels, output, roi, filters).unwrap();
        let src = vec![value; image[0] * image[1] * channels];
        let mut dst = vec![!value; output[0] * output[1] * channels];
        plan.run(&src, &mut dst, &mut Scratch::default()).unwrap();
        prop_assert!(dst.iter().all(|&v| v.abs_diff(value) <= 1));
    }

    /// Channels do not mix, whatever their number, although some numbers take ways of their own.
    #[test]
    fn channels_are_independent(
        (image, output, roi) in geometry(), filters in prop::array::uniform2(spec()), channels in 1usize..7,
    ) {
        check_channels(image, output, roi, filters, channels);
    }

    /// Rows that come one by one make what all of them make at once.
    #[test]
    fn rows_may_come_one_by_one(
        (image, output, roi) in geometry(), filters in prop::array::uniform2(spec()), channels in 1usize..5,
    ) {
        let plan = Plan::new(image, channels, output, roi, filters).unwrap();
        let scratch = &mut Scratch::default();
        let src: Vec<u8> = (0..image[0] * image[1] * channels).map(|i| (i * 7919 % 251) as u8).collect();
        let mut whole = vec![0u8; output[0] * output[1] * channels];
        plan.run(&src, &mut whole, scratch).unwrap();
        let mut rows = vec![!0u8; whole.len()];
        let stream = plan.takes_rows().then(|| plan.stream(&mut rows, scratch).unwrap());
        let is_nearest = filters.iter().any(|f| f.min == Filter::Nearest || f.mag == Filter::Nearest);
        // An output pixel stands for much of the image, or more.
        let is_far = (0..2).any(|axis| (roi[axis].1 - roi[axis].0).abs() / output[axis] as f32 > image[axis] as f32 / 3.0);
        prop_assert!(stream.is_some() || is_nearest || is_far || roi[0].1 < roi[0].0);
        if let Some(mut stream) = stream {
            prop_assert_eq!(stream.size(), (image[0], image[1] * channels));
            for (y, row) in src.chunks_exact(image[1] * channels).enumerate() {
                stream.row(y).copy_from_slice(row);
                stream.done(y);
            }
            prop_assert!(stream.is_complete());
            prop_assert_eq!(rows, whole);
        }
    }
}

#[test]
fn rows_are_the_image() {
    let plan = Plan::new([9, 11], 3, [4, 5], [(0.0, 9.0), (0.0, 11.0)], [FilterSpec::default(); 2]).unwrap();
    let src: Vec<u8> = (0..9 * 11 * 3).map(|i| (i * 37) as u8).collect();
    let (scratch, mut whole) = (&mut Scratch::default(), vec![0u8; 4 * 5 * 3]);
    plan.run(&src, &mut whole, scratch).unwrap();
    let mut rows = vec![];
    plan.run_rows(&src, scratch, |y, row| {
        assert_eq!(y * plan.row_len(), rows.len());
        rows.resize(rows.len() + row.len(), 0u8);
        plan.store_row(row, &mut rows[y * plan.row_len()..]);
    })
    .unwrap();
    assert_eq!(rows, whole);
}

#[test]
fn extreme_scales_work_and_hostile_ones_are_refused() {
    let aa = |filter| [FilterSpec { min: filter, mag: filter, antialias: true }; 2];
    let plan = |image: [usize; 2], output, roi, filter| Plan::new(image, 1, output, roi, aa(filter));
    let whole = |[h, w]: [usize; 2]| [(0.0, h as f32), (0.0, w as f32)];
    let scratch = &mut Scratch::default();
    for (image, output) in
        [([1, 100_000], [1, 1]), ([100_000, 1], [1, 1]), ([1, 1], [1, 100_000]), ([1, 1], [100_000, 1])]
    {
        for id in 0..6 {
            let filter = Filter::from_dali(id).unwrap();
            let mut dst = vec![0u8; output[0] * output[1]];
            let src = vec![200u8; image[0] * image[1]];
            plan(image, output, whole(image), filter).unwrap().run(&src, &mut dst, scratch).unwrap();
            // 100,000 weights that sum to one in float32 may miss it by a little.
            assert!(dst.iter().all(|v| (199..=201).contains(v)), "{filter:?} {image:?} {output:?}");
        }
    }
    let far = [(0.0, 1e30), (0.0, 4.0)];
    assert!(plan([4, 4], [4, 4], far, Filter::Triangular).err().unwrap().to_string().contains("limit"));
    assert!(plan([4, 4], [4, 4], far, Filter::Nearest).is_ok());
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(plan([4, 4], [4, 4], [(bad, 1.0), (0.0, 4.0)], Filter::Nearest).is_err());
    }
    assert!(plan([4, 4], [4, 4], [(f32::MIN, f32::MAX), (0.0, 4.0)], Filter::Nearest).is_err());
    assert!(plan([0, 4], [4, 4], whole([4, 4]), Filter::Linear).is_err());
    assert!(plan([4, 4], [4, 0], whole([4, 4]), Filter::Linear).is_err());
    assert!(plan([4, 4], [usize::MAX, 2], whole([4, 4]), Filter::Linear).is_err());
    assert!(Plan::new([4, 4], 0, [4, 4], whole([4, 4]), aa(Filter::Linear)).is_err());
    let plan = plan([4, 4], [2, 2], whole([4, 4]), Filter::Linear).unwrap();
    assert!(plan.run(&[0u8; 15], &mut [0u8; 4], scratch).is_err());
    assert!(plan.run(&[0u8; 16], &mut [0u8; 5], scratch).is_err());
}
