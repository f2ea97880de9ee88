//! HEIC on a device: by its video engines what they take, else by the host; beside the host's decoder. The files are
//! those of tests/data/decode/make_heif.py. `GESSO_HEIC=file.heic` measures a file of one's own.

use std::collections::BTreeMap;
use std::time::Instant;

use gesso::gpu::video::Engines;
use gesso::pipeline::Instance;
use gesso::tensor::Shape;

use crate::decoders::{instance_on, run};
use crate::gpu;
use crate::npz::Npz;

fn files() -> BTreeMap<String, Vec<u8>> {
    let mut archive = Npz::open(crate::file("tests/data/decode/heif.npz"));
    let names =
        archive.names().into_iter().filter(|name| name.starts_with("heic_") && !name.ends_with("_pixels"));
    names.collect::<Vec<_>>().into_iter().map(|name| (name.clone(), archive.array::<u8>(&name).1)).collect()
}

/// What becomes of files: shapes and numbers, or the texts of errors.
fn outcomes(instance: &mut Instance, files: &[Vec<u8>]) -> Vec<Result<(Shape, Vec<f64>), String>> {
    run(instance, files).into_iter().map(|found| found.map_err(|error| error.to_string())).collect()
}

/// Files that are as phones write them and large enough for the engines.
const TAKEN: [&str; 4] = ["heic_tiles", "heic_tiles_10", "heic_tiles_one", "heic_tiles_turned"];

#[test]
fn pixels_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    let engines = Engines::open(&gpu);
    let (names, files): (Vec<_>, Vec<_>) = files().into_iter().unzip();
    for (pipeline, taken) in [("rgb", &TAKEN[..]), ("crop", &TAKEN), ("rgb_float", &TAKEN), ("gray", &[])] {
        let mut on_device = instance_on(Some(&gpu), pipeline, None);
        let found = outcomes(&mut on_device, &files);
        let by_engines = on_device.tally().decoded.engine;
        let expected = outcomes(&mut instance_on(None, pipeline, None), &files);
        for ((name, found), expected) in names.iter().zip(found).zip(expected) {
            assert!(found == expected, "{pipeline} {name}");
        }
        let expected = if engines.is_ok() { taken.len() } else { 0 };
        assert_eq!(by_engines, expected, "{pipeline}: {:?}", engines.as_ref().err());
    }
}

/// Of a grid the bytes of each tile are damaged: whoever decodes, it ends, the next file is whole, and what is no error
/// shows nothing of another file.
#[test]
fn damage_ends() {
    let Some(gpu) = gpu() else { return };
    let good = files().remove("heic_tiles").unwrap();
    let mut on_device = instance_on(Some(&gpu), "rgb", None);
    let expected = outcomes(&mut on_device, std::slice::from_ref(&good)).remove(0);
    assert!(expected.is_ok());
    for at in (40..good.len()).step_by(11) {
        let mut bad = good.clone();
        bad[at] ^= 0x5A;
        let found = outcomes(&mut on_device, &[bad, good.clone()]);
        assert!(found[1] == expected, "damage at byte {at}");
    }
    let cut = good[..good.len() - 100].to_vec();
    let found = outcomes(&mut on_device, &[cut, good]);
    assert!(found[0].is_err() && found[1] == expected);
}

#[test]
fn a_file_of_ones_own_is_measured() {
    let (Some(gpu), Some(path)) = (gpu(), std::env::var_os("GESSO_HEIC")) else { return };
    let files = vec![std::fs::read(path).unwrap(); 32];
    for (label, gpu) in [("device", Some(&gpu)), ("host", None)] {
        let mut instance = instance_on(gpu, "rgb", None);
        run(&mut instance, &files);
        let start = Instant::now();
        run(&mut instance, &files);
        println!("{label}: {:.1} files/s", files.len() as f64 / start.elapsed().as_secs_f64());
    }
}
