//! Resizing against the recorded answers of DALI's CPU `Resize` (`tests/data/resample/make.py`), and its properties.

use std::fs::File;
use std::io::BufReader;

use npyz::npz::NpzArchive;
use triton_gesso::cpu::convert::ConvertSat;
use triton_gesso::cpu::resample::{Filter, FilterSpec, Output, Plan, Scratch};

type Recorded = NpzArchive<BufReader<File>>;

fn array<T: npyz::Deserialize>(recorded: &mut Recorded, name: &str) -> (Vec<usize>, Vec<T>) {
    let array = recorded.by_name(name).unwrap().unwrap_or_else(|| panic!("no array `{name}`"));
    let shape = array.shape().iter().map(|&n| n as usize).collect();
    (shape, array.into_vec().unwrap())
}

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
        S: ConvertSat<f32> + ConvertSat<T>,
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

impl<T: npyz::Deserialize> Answers<T> {
    fn new(recorded: &mut Recorded, name: &str) -> Self {
        Self(array(recorded, name).1.into_iter())
    }

    fn take(&mut self, n: usize) -> Vec<T> {
        let taken: Vec<T> = self.0.by_ref().take(n).collect();
        assert_eq!(taken.len(), n);
        taken
    }
}

#[test]
fn agrees_with_dali() {
    let recorded = &mut Recorded::open("tests/data/resample/resize.npz").unwrap();
    let (shape, table) = array::<f64>(recorded, "cases");
    let mut floats = Answers::<f32>::new(recorded, "float32");
    let mut bytes = Answers::<u8>::new(recorded, "uint8");
    let mut words = Answers::<u16>::new(recorded, "uint16");
    let mut shorts = Answers::<i16>::new(recorded, "int16");
    let scratch = &mut Scratch::default();
    let (mut exact, mut near) = (0, 0);
    let mut failures = vec![];

    for (number, row) in table.chunks_exact(shape[1]).enumerate() {
        let case = Case::read(row);
        let name = format!("in{}", case.input);
        // The element types of make.py's inputs.
        macro_rules! check {
            ($S:ty, $same:expr) => {{
                let input = array::<$S>(recorded, &name);
                if case.to_float {
                    let found: Vec<f32> = case.run(&input, scratch);
                    let expected = floats.take(found.len());
                    let worst = found.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                    let range = input.1.iter().map(|&x| (x as f32).abs()).fold(0.0, f32::max);
                    let tolerance = if case.transcendental() { 1e-4 * range } else { 0.0 };
                    if found == expected {
                        exact += 1
                    } else {
                        near += 1
                    }
                    if !(worst <= tolerance) {
                        failures.push(format!("case {number} {row:?}: differs by {worst}, not {tolerance}"));
                    }
                } else {
                    let found: Vec<$S> = case.run(&input, scratch);
                    let expected = $same.take(found.len());
                    let different = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
                    if different == 0 {
                        exact += 1
                    } else {
                        near += 1
                    }
                    let far = found.iter().zip(&expected).any(|(&a, &b)| (a as f32 - b as f32).abs() > 1.0);
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
    println!("{exact} cases bit for bit, {near} within tolerance");
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), exact + near, failures.join("\n"));
    assert!(floats.0.next().is_none() && bytes.0.next().is_none());
    assert!(words.0.next().is_none() && shorts.0.next().is_none());
}
