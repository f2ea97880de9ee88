//! Videos as other decoders than ours take them: packets as streams have them, and which picture is which frame.

use std::sync::Arc;

use gesso::cpu::video::{Budget, Coded, Video};

fn file(name: &str) -> Vec<u8> {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    std::fs::read(std::path::Path::new(&root).join("tests/data/video").join(name)).unwrap()
}

/// Every packet with the number of the picture that it is shown as.
fn packets(coded: &mut Coded<'_>) -> Vec<(usize, Vec<u8>)> {
    let (mut found, mut bytes) = (Vec::new(), Vec::new());
    while let Some(place) = coded.packet(&Budget::default(), &mut bytes).unwrap() {
        found.push((place, bytes.clone()));
    }
    found
}

/// What stands behind each start code, without the zeros of the next one.
fn units(stream: &[u8]) -> Vec<&[u8]> {
    let codes: Vec<usize> =
        (0..stream.len().saturating_sub(2)).filter(|&at| stream[at..at + 3] == [0, 0, 1]).collect();
    let ends = codes.iter().skip(1).copied().chain([stream.len()]);
    let trimmed = |unit: &'_ [u8]| unit.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    codes
        .iter()
        .zip(ends)
        .map(|(&code, end)| &stream[code + 3..code + 3 + trimmed(&stream[code + 3..end])])
        .collect()
}

#[test]
fn units_get_start_codes_and_the_first_packet_the_parameters() {
    let (file, stream) = (file("h264.mp4"), file("h264.h264"));
    let video = Arc::new(Video::open(&file).unwrap());
    let found = packets(&mut video.coded(&[5, 6, 7, 8, 9]).unwrap());
    let places: Vec<usize> = found.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [0, 3, 1, 2, 4], "one is decoded before others that are shown first");
    let kinds = |bytes: &[u8]| units(bytes).into_iter().map(|unit| unit[0] & 0x1F).collect::<Vec<_>>();
    assert_eq!(kinds(&found[0].1)[..2], [7, 8]);
    assert!(kinds(&found[0].1).contains(&5));
    assert_eq!(kinds(&found[1].1), [1]);
    // What a stream without a container has, but for how often it repeats parameters.
    let slices = |bytes: &[u8]| {
        let units = units(bytes).into_iter().filter(|unit| [1, 5].contains(&(unit[0] & 0x1F)));
        units.map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    let all: Vec<u8> = found.into_iter().flat_map(|(_, bytes)| bytes).collect();
    assert_eq!(slices(&all), slices(&stream)[5..10]);
}

#[test]
fn every_picture_counts_with_times_and_without() {
    for (name, wanted) in [
        ("h264.mp4", [2, 3]),
        ("h264_open.mp4", [1, 4]),
        ("large_h265.hevc", [1, 3]),
        ("large_h265.mp4", [1, 3]),
        ("vp8_hidden.mkv", [5, 6]),
        ("vp9.webm", [0, 2]),
    ] {
        let file = file(name);
        let video = Arc::new(Video::open(&file).unwrap());
        let mut coded = video.coded(&wanted).unwrap();
        let mut places: Vec<usize> = packets(&mut coded).into_iter().map(|(place, _)| place).collect();
        places.sort_unstable();
        places.dedup();
        let mut found = Vec::new();
        for place in places {
            if !coded.is_done() {
                found.extend(coded.frames(place).unwrap());
            }
        }
        assert!(coded.is_done(), "{name}");
        assert_eq!(found, wanted, "{name}");
    }
}

/// The pictures of all packets from the first key frame on, as the frames that they are.
fn whole(name: &str) -> Vec<usize> {
    let file = file(name);
    let video = Arc::new(Video::open(&file).unwrap());
    assert!(video.is_ascending(), "{name}");
    let mut coded = video.coded(&(0..video.frames()).collect::<Vec<_>>()).unwrap();
    let mut places: Vec<usize> = packets(&mut coded).into_iter().map(|(place, _)| place).collect();
    places.sort_unstable();
    places.dedup();
    let mut found = Vec::new();
    for place in places {
        if !coded.is_done() {
            found.extend(coded.frames(place).unwrap());
        }
    }
    assert!(coded.is_done(), "{name}");
    found
}

#[test]
fn a_whole_video_is_one_run() {
    for name in [
        "h264.mp4",
        "h264.h264",
        "h264_edited.mp4",
        "h264_open.mp4",
        "large_h265.hevc",
        "vp8_hidden.mkv",
        "vp9.ivf",
        "mpeg4/mpeg4.mp4",
        "mpeg4/mpeg4.avi",
    ] {
        let frames = Video::open(file(name)).unwrap().frames();
        assert_eq!(whole(name), (0..frames).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn mpeg4_has_its_parameters_in_front_and_no_decoder_here() {
    let mut orders = Vec::new();
    for name in ["mpeg4/mpeg4.mp4", "mpeg4/mpeg4.mkv", "mpeg4/mpeg4.avi"] {
        let file = file(name);
        let video = Arc::new(Video::open(&file).unwrap());
        assert_eq!([video.frames(), video.width(), video.height()], [12, 176, 144], "{name}");
        assert_eq!(video.runs(&[0, 1, 11]).unwrap(), [&[0, 1][..], &[11]], "{name}");
        let found = packets(&mut video.coded(&[11]).unwrap());
        let mut all = video.coded(&(0..12).collect::<Vec<_>>()).unwrap();
        orders.push(packets(&mut all).into_iter().map(|(place, _)| place).collect::<Vec<_>>());
        // A visual object's sequence, whatever the container has.
        assert!(found[0].1.starts_with(&[0, 0, 1, 0xB0]), "{name}");
        assert!(found[1..].iter().all(|(_, bytes)| bytes.starts_with(&[0, 0, 1, 0xB6])), "{name}");
        let own = Budget::default().by_own_decoders();
        let error = video.decode(&[0], &own, &mut |_, _| Ok(())).unwrap_err().to_string();
        assert!(error.contains("by the video engines of a GPU alone"), "{name}: {error}");
    }
    // AVI has no times: frames tell their order.
    assert!(orders.iter().all(|order| *order == orders[0]), "{orders:?}");
}

#[test]
fn pictures_in_another_order_or_too_few_are_noticed() {
    let file = file("h264.mp4");
    let video = Arc::new(Video::open(&file).unwrap());
    let mut coded = video.coded(&[0, 1, 2]).unwrap();
    packets(&mut coded);
    coded.frames(0).unwrap();
    assert!(!coded.is_done());
    assert!(coded.frames(2).is_err());
}

#[test]
fn only_vp8_and_vp9_are_bt601_whatever_they_say() {
    for (name, is_limited, is_followed) in [
        ("vp8.ivf", true, false),
        ("vp8_full_range.ivf", false, false),
        ("vp9.ivf", true, false),
        ("vp9_422_full_range.webm", false, false),
        ("h264.mp4", true, true),
    ] {
        let file = file(name);
        let video = Arc::new(Video::open(&file).unwrap());
        let coded = video.coded(&[0]).unwrap();
        let bt709 = coded.factors(1, false);
        assert_eq!(bt709.black > 0, is_limited, "{name}");
        assert_eq!(bt709.red_of_red != coded.factors(6, false).red_of_red, is_followed, "{name}");
    }
}
