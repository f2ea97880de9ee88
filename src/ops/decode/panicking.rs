//! A decoder that panics fails the request that it works for: it neither ends the process nor harms the other samples
//! of a batch. Each test process has one place that panics ([`crate::faults`]).

use std::path::Path;
use std::process::Command;

use super::{decoders_image, decoders_video};
use crate::operator::OpDef;
use crate::operator::testing::{args, batch, run};

/// Says to the test that it is the process of one place.
const ALONE: &str = "GESSO_TEST_PANICKING";

/// Files by the place that panics: crates that are young or that have unsafe code, and our own decoders.
const IMAGES: &[(&str, &str, &str)] = &[
    ("jpeg", "pictures", "jpeg_420"),
    ("png", "pictures", "png_rgb"),
    ("bmp", "kinds", "bmp_os2_24"),
    ("gif", "pictures", "gif"),
    ("tiff", "tiff", "tiff_fill_rgb"),
    ("webp", "pictures", "webp_lossy"),
    ("jpeg2000", "kinds", "jp2_gray_alpha"),
    ("jpegxl", "jxl", "jxl_lossy"),
    ("pnm", "pictures", "pnm_p6"),
    ("avif", "avif", "avif_420"),
    ("av1 from C", "avif", "avif_420"),
];
const VIDEOS: &[(&str, &str)] = &[
    ("h264", "h264.mp4"),
    ("h265", "h265.mp4"),
    ("vp8", "vp8.webm"),
    ("vp9", "large_vp9.webm"),
    ("av1", "av1.mp4"),
    ("av1 from C", "av1.mp4"),
    ("mjpeg", "mjpeg.avi"),
];

/// Threads of AV1 that may be lost: see `src/cpu/av1/apart.rs`.
const MOST_LOST: usize = 8;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// An image of an archive, or the first whose name begins so.
fn image(archive: &str, name: &str) -> Vec<u8> {
    let file = std::fs::File::open(data("decode").join(format!("{archive}.npz"))).unwrap();
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let mut names: Vec<String> = archive.file_names().map(|name| name.unwrap().into_owned()).collect();
    names.sort();
    let is_image = |found: &&String| found.starts_with(name) && !found.ends_with("_pixels.npy");
    let found = names.iter().find(is_image).unwrap_or_else(|| panic!("no `{name}` in {names:?}"));
    let mut bytes = Vec::new();
    std::io::copy(&mut archive.by_name(found).unwrap(), &mut bytes).unwrap();
    // Before the elements: "\x93NUMPY", version 1.0, length of the header, header.
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes.split_off(start)
}

/// Runs the operator on a file whose decoder panics and on one that another decodes.
fn fails_alone(def: &OpDef, file: &[u8], other: &[u8]) -> String {
    let files = batch::<u8>(&[(&[file.len()], file), (&[other.len()], other)]);
    let outcome = run(def, &args(&[], &[]), &[files], &[]).unwrap();
    assert!(!outcome.values::<u8>(1).is_empty());
    outcome.error(0)
}

/// In a process of its own.
fn check(place: &str) {
    let (png, jpeg) = (image("pictures", "png_rgb"), image("pictures", "jpeg_420"));
    let (h264, mjpeg) =
        (std::fs::read(data("video/h264.mp4")).unwrap(), std::fs::read(data("video/mjpeg.avi")).unwrap());
    let mut errors = Vec::new();
    for (_, archive, name) in IMAGES.iter().filter(|(own, ..)| *own == place) {
        let other = if place == "png" { &jpeg } else { &png };
        errors.push(fails_alone(&decoders_image::DEF, &image(archive, name), other));
    }
    for (_, name) in VIDEOS.iter().filter(|(own, _)| *own == place) {
        let other = if place == "h264" { &mjpeg } else { &h264 };
        let file = std::fs::read(data("video").join(name)).unwrap();
        errors.push(fails_alone(&decoders_video::DEF, &file, other));
    }
    assert!(!errors.is_empty());
    for error in errors {
        assert!(error.contains("a fault of the program") && !error.contains("on purpose"), "{error}");
    }
    if place == "av1 from C" {
        let errors: Vec<String> = (0..MOST_LOST)
            .map(|_| fails_alone(&decoders_image::DEF, &image("avif", "avif_420"), &png))
            .collect();
        assert!(errors.last().unwrap().contains("AV1 is not decoded any more"), "{errors:?}");
    }
}

#[test]
fn a_panic_of_a_decoder_is_an_error_of_its_sample_alone() {
    if let Ok(place) = std::env::var(ALONE) {
        check(&place);
        // Who runs tests would wait for threads that are lost.
        std::process::exit(0);
    }
    let mut places: Vec<&str> = IMAGES.iter().map(|(place, ..)| *place).collect();
    places.extend(VIDEOS.iter().map(|(place, _)| *place));
    places.sort_unstable();
    places.dedup();
    let name = "ops::decode::panicking::a_panic_of_a_decoder_is_an_error_of_its_sample_alone";
    for place in places {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(ALONE, place).env("GESSO_FAULT", place);
        let ended = command.output().unwrap();
        assert!(ended.status.success(), "{place}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}
