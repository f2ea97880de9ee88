//! `gesso run` with pipelines whose input is a video.

use crate::recorded::{Folder, root};
use crate::{errors, gesso, json, out};

fn clip(name: &str) -> String {
    root().join("tests/data/video").join(name).display().to_string()
}

#[test]
fn a_video_becomes_batches_and_sheets() {
    let folder = Folder::new("videos");
    let to = folder.path("out").display().to_string();
    let arguments =
        ["run", &clip("streams/partial.dali"), "--input", &clip("vp8.webm"), "--out", &to, "--json"];
    let told = json(&gesso(&arguments));
    let shapes: Vec<&str> =
        told["outputs"].as_array().unwrap().iter().map(|output| output["shape"].as_str().unwrap()).collect();
    assert_eq!(shapes, ["[7, 32, 48, 3]", "[5, 32, 48, 3]"], "{told}");
    // Seven frames, three of them in a row; the sheet is as wide as they are.
    let picture = image::open(told["outputs"][0]["picture"].as_str().unwrap()).unwrap();
    assert_eq!((picture.width(), picture.height()), (3 * 48, 3 * 32));
    let frames =
        std::fs::read(folder.path("out").join(told["outputs"][0]["file"].as_str().unwrap())).unwrap();
    let pixels = &frames[frames.len() - 7 * 32 * 48 * 3..];
    let second = picture.to_rgb8().get_pixel(48, 0).0;
    assert_eq!(second, pixels[32 * 48 * 3..][..3], "the first pixel of the second frame");
}

#[test]
fn videos_come_one_after_the_other_and_a_damaged_one_fails_alone() {
    let folder = Folder::new("damaged videos");
    let damaged = folder.write("damaged.webm", &std::fs::read(clip("vp9.webm")).unwrap()[..200]);
    let files = format!("{},{damaged},{}", clip("vp9.webm"), clip("vp8.ivf"));
    let output = gesso(&["run", &clip("streams/partial.dali"), "--input", &files]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(text.contains("4 of 5 samples") && text.contains("damaged.webm"), "{text}");
    // What stands beside a video is the same for all of it.
    let number = folder.path("number.npy");
    let array = [
        &b"\x93NUMPY\x01\0\x47\0{'descr': '<i4', 'fortran_order': False, 'shape': (1,), }             \n"[..],
        &[9, 0, 0, 0],
    ]
    .concat();
    std::fs::write(&number, array).unwrap();
    let text = out(&gesso(&[
        "run",
        &clip("streams/beside.dali"),
        "--input",
        &format!("VIDEO={}", clip("vp9.webm")),
        "--input",
        &format!("NUMBER={}", number.display()),
    ]));
    assert!(text.contains("3 of 3 samples"), "{text}");
}
