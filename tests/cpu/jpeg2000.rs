//! How the codestream of a JPEG 2000 ends: parts of tiles that do not say how long they are, no end marker, and files
//! that were cut.

use gesso::cpu::decode::{DecodeOptions, Decoder};

use crate::decode::{PICTURES, decode};

/// Codestreams of one tile, without boxes.
const FILES: [&str; 2] = ["jp2_bare_four", "jp2_bare_420"];

/// Where the header of its only part of a tile is.
fn part(file: &[u8]) -> usize {
    file.windows(4).position(|bytes| bytes == [0xFF, 0x90, 0, 10]).unwrap()
}

/// The same file, whose part of a tile says how long it is, or not.
fn with_length(file: &[u8], length: usize) -> Vec<u8> {
    let (mut file, part) = (file.to_vec(), part(file));
    file[part + 6..part + 10].copy_from_slice(&(length as u32).to_be_bytes());
    file
}

fn pixels(file: &[u8]) -> Result<(Vec<usize>, Vec<f64>), String> {
    decode(&Decoder::new(), file, &DecodeOptions::default()).map_err(|error| error.to_string())
}

#[test]
fn the_last_part_may_go_to_the_end() {
    for name in FILES {
        let file = &PICTURES[name];
        let expected = pixels(file).unwrap();
        let untold = with_length(file, 0);
        assert_eq!(pixels(&untold).unwrap(), expected, "{name}");
        // What is behind the end marker is nothing.
        assert_eq!(pixels(&[&untold[..], &[0, 1, 2]].concat()).unwrap(), expected, "{name}");
        for file in [file, &untold] {
            assert_eq!(pixels(&file[..file.len() - 2]).unwrap(), expected, "{name}");
        }
        let twice = [&untold[..untold.len() - 2], &file[part(file)..]].concat();
        assert!(pixels(&twice).unwrap_err().contains("packets of a tile do not fit"), "{name}");
    }
}

/// A file that ends where a packet does looks whole, but for its end marker.
#[test]
fn a_file_that_is_cut_is_an_error_wherever_it_is() {
    for name in FILES {
        let file = &PICTURES[name];
        let untold = with_length(file, 0);
        let (data, end) = (part(file) + 14, file.len() - 2);
        let mut between_packets = 0;
        for length in data..end {
            let error = pixels(&file[..length]).unwrap_err();
            assert!(error.contains("ends too early"), "{name}, {length}: {error}");
            let told = with_length(&file[..length], length - part(file));
            for cut in [&untold[..length], &told] {
                let error = pixels(cut).unwrap_err();
                let lacks = error.contains("without its end marker");
                assert!(lacks || error.contains("do not fit"), "{name}, {length}: {error}");
                between_packets += usize::from(lacks);
            }
        }
        assert!(between_packets > 4, "{name}: {between_packets}");
        let odd = [&untold[..end], &[0xFF]].concat();
        assert!(pixels(&odd).unwrap_err().contains("do not fit"), "{name}");
    }
}
