//! Vorbis whose floors are filters, against samples of libsndfile (tests/data/sound/make_floor0.py says how).

use std::path::Path;

use gesso::cpu::audio::decode::{decode, header};
use gesso::cpu::audio::sound::Block;
use gesso::deadline::Watch;

use crate::npz::Npz;

/// How far samples may be off, of the root of the mean square: floats are added in another order.
const MOST: f64 = 1e-5;

#[test]
fn floors_that_are_filters_are_those_of_libvorbis() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sound/floor0.npz");
    let mut archive = Npz::open(path);
    for name in archive.names().into_iter().filter(|name| !name.ends_with("_samples")) {
        let (bytes, expected) =
            (archive.array::<u8>(&name).1, archive.array::<f32>(&format!("{name}_samples")).1);
        let (head, mut found) = (header(&bytes).unwrap(), Vec::new());
        decode(&bytes, &head, &Watch::forever(), &mut |block| {
            let Block::Floats(samples) = block else { panic!("{name} has integers") };
            found.extend_from_slice(samples);
            Ok(())
        })
        .unwrap();
        assert_eq!(found.len(), expected.len(), "{name}");
        let square = |value: f64| value * value;
        let power: f64 = expected.iter().map(|&sample| square(f64::from(sample))).sum();
        let off: f64 = found.iter().zip(&expected).map(|(a, b)| square(f64::from(*a) - f64::from(*b))).sum();
        assert!((off / power).sqrt() < MOST, "{name}: {} of {power}", off.sqrt());
    }
}
