//! JPEG 2000 on a device: by nvJPEG2000 where it is installed, else by the host; beside the host's decoder. The files
//! are from data/jpeg2000/make.py. `GESSO_JPEG2000=file.jp2` measures a file of one's own.

use std::collections::BTreeMap;
use std::time::Instant;

use gesso::gpu::Library;

use crate::decoders::{instance_on, run};
use crate::gpu;

/// Levels by which a sample of a lossy file may differ: its transform is computed in floats.
const LARGEST: f64 = 1.0;

fn files() -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(crate::file("tests/gpu/data/jpeg2000")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() != "py");
    paths
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

/// How many of the files the library takes for a pipeline: those that have the channels it stores, 8 bits each.
const TAKEN: [(&str, usize); 5] = [("rgb", 4), ("rgb_float", 4), ("crop", 4), ("any", 4), ("gray", 1)];

#[test]
fn pixels_are_those_of_the_host() {
    let Some(gpu) = gpu() else { return };
    let library = Library::NVJPEG2000.open();
    println!(
        "{}",
        library.as_ref().map_or_else(ToString::to_string, |found| found.path.display().to_string())
    );
    let (names, files): (Vec<_>, Vec<_>) = files().into_iter().unzip();
    for (pipeline, taken) in TAKEN {
        let mut on_device = instance_on(Some(&gpu), pipeline, None);
        let found = run(&mut on_device, &files);
        let by_library = on_device.tally().decoded.sms;
        let expected = run(&mut instance_on(None, pipeline, None), &files);
        for ((name, found), expected) in names.iter().zip(found).zip(expected) {
            let ((shape, found), (same, expected)) = (found.unwrap(), expected.unwrap());
            assert_eq!(shape, same, "{pipeline} {name}");
            let level = if pipeline == "rgb_float" { 1.0 / 255.0 } else { 1.0 };
            let apart = found.iter().zip(&expected).map(|(a, b)| (a - b).abs() / level);
            let largest = apart.fold(0.0, f64::max);
            println!("{pipeline} {name}: largest difference {largest:.3}");
            let most = if name == "lossy.jp2" { LARGEST + 0.001 } else { 0.001 };
            assert!(largest <= most, "{pipeline} {name}: {largest}");
        }
        assert_eq!(by_library, if library.is_ok() { taken } else { 0 }, "{pipeline}");
    }
}

#[test]
fn what_is_cut_off_or_damaged_fails_alone() {
    let Some(gpu) = gpu() else { return };
    let good = files().remove("lossless.jp2").unwrap();
    let (cut, mut header) = (good[..good.len() / 2].to_vec(), good.clone());
    let codestream = good.windows(4).position(|part| part == [0xFF, 0x4F, 0xFF, 0x51]).unwrap();
    // The number of components.
    header[codestream + 41] = 200;
    let batch = [good.clone(), cut, header, good.clone()];
    let mut on_device = instance_on(Some(&gpu), "rgb", None);
    let (found, alone) = (run(&mut on_device, &batch), run(&mut on_device, &batch[..1]));
    assert!(found[1].is_err() && found[2].is_err());
    let pixels = &alone[0].as_ref().unwrap().1;
    assert!([0, 3].iter().all(|&i| &found[i].as_ref().unwrap().1 == pixels));
}

/// Bytes between the markers are damaged one by one: whoever decodes, it ends, and the next file is whole.
#[test]
fn damage_ends() {
    let Some(gpu) = gpu() else { return };
    let good = files().remove("lossy.jp2").unwrap();
    let mut on_device = instance_on(Some(&gpu), "rgb", None);
    let expected = run(&mut on_device, std::slice::from_ref(&good)).remove(0).unwrap().1;
    for at in (40..good.len()).step_by(7) {
        let mut bad = good.clone();
        bad[at] ^= 0x5A;
        let found = run(&mut on_device, &[bad, good.clone()]);
        assert!(found[1].as_ref().unwrap().1 == expected, "damage at byte {at}");
    }
}

#[test]
fn a_file_of_ones_own_is_measured() {
    let (Some(gpu), Some(path)) = (gpu(), std::env::var_os("GESSO_JPEG2000")) else { return };
    let files = vec![std::fs::read(path).unwrap(); 32];
    for (label, gpu) in [("device", Some(&gpu)), ("host", None)] {
        let mut instance = instance_on(gpu, "rgb", None);
        run(&mut instance, &files[..8]);
        let begun = Instant::now();
        let rounds = 3;
        for _ in 0..rounds {
            assert!(run(&mut instance, &files).iter().all(Result::is_ok));
        }
        println!("{label}: {:.0} images/s", (rounds * files.len()) as f64 / begun.elapsed().as_secs_f64());
    }
}
