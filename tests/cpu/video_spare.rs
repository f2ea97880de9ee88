//! Frames that no other is made of are passed over on the way to others: what is wrong with them is no error of these,
//! and a header that is wrong about them costs no pixel.

use std::ops::Range;

use gesso::cpu::video::{Budget, Video};
use gesso::error::Result;

use crate::video::bytes;

/// Frame `frame` alone.
fn one(file: &[u8], frame: usize) -> Result<Vec<u8>> {
    let video = Video::open(file)?;
    let mut pixels = vec![0; video.height() * video.width() * 3];
    video.decode(&[frame], &Budget::default(), &mut |_, frame| frame.write(&mut pixels))?;
    Ok(pixels)
}

/// Where the units of an MP4's packets are, behind their lengths.
fn units(file: &[u8]) -> Vec<Range<usize>> {
    let mut at = file.windows(4).position(|name| name == b"mdat").unwrap() + 4;
    let mut found = Vec::new();
    while let Some(length) = file.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        if length == 0 || at + 4 + length > file.len() {
            break;
        }
        found.push(at + 4..at + 4 + length);
        at += 4 + length;
    }
    found
}

fn is_spare_h264(head: u8) -> bool {
    head & 0x7F == 1
}

fn is_spare_h265(head: u8) -> bool {
    let kind = head >> 1 & 0x3F;
    kind < 16 && kind.is_multiple_of(2)
}

#[test]
fn damage_in_a_frame_that_is_passed_over_is_no_error() {
    for (name, is_spare) in [
        ("h264.mp4", is_spare_h264 as fn(u8) -> bool),
        ("h265.mp4", is_spare_h265),
        ("large_h264.mp4", is_spare_h264),
    ] {
        let file = bytes(name);
        let mut damaged = file.clone();
        let mut spares = 0;
        for unit in units(&file).into_iter().filter(|unit| is_spare(file[unit.start])) {
            spares += 1;
            let behind = unit.start + unit.len().min(10);
            damaged[behind..unit.end].fill(0x55);
        }
        let frames = Video::open(&file).unwrap().frames();
        let same =
            |&frame: &usize| one(&damaged, frame).is_ok_and(|found| found == one(&file, frame).unwrap());
        let intact = (0..frames).filter(same).count();
        assert!(spares > 0 && intact >= frames - spares, "{name}: {intact} of {frames}, {spares} damaged");
    }
}

#[test]
fn frames_that_others_are_made_of_although_headers_deny_it_are_decoded() {
    for name in ["h265.mp4", "large_h265.mp4"] {
        let file = bytes(name);
        let mut wrong = file.clone();
        let mut changed = 0;
        for unit in units(&file) {
            // A picture that others may be made of becomes one that none are.
            if file[unit.start] >> 1 & 0x3F == 1 {
                wrong[unit.start] &= 0x81;
                changed += 1;
            }
        }
        assert!(changed > 0, "{name}");
        for frame in 0..Video::open(&file).unwrap().frames() {
            assert!(one(&wrong, frame).unwrap() == one(&file, frame).unwrap(), "{name}: frame {frame}");
        }
    }
}
