//! What the device's SMs get of a file: its header, its tables, its data. Needs no device.

use gesso::cpu::decode::{ColorSpace, DecodeOptions, Decoder};
use gesso::gpu::jpeg::sm::{self, Coded, Lookup, Scan, Segment};

use crate::coder::{Colour, Encoded, Recipe, damaged};

/// Files that a test without a device makes.
const FILES: u64 = 1_000;

/// What libjpeg-turbo makes of a file when chroma is replicated.
pub(crate) fn expected(file: &[u8], color: ColorSpace, length: usize) -> gesso::error::Result<Vec<u8>> {
    let options =
        DecodeOptions { color, smooth_chroma: false, adjust_orientation: false, ..DecodeOptions::default() };
    let mut pixels = vec![0; length];
    Decoder::new().decode_into(file, &options, &mut pixels)?;
    Ok(pixels)
}

/// The coder is right: an exact decoder and libjpeg-turbo see the same.
#[test]
fn libjpeg_decodes_what_the_coder_writes() {
    let (mut sum, mut count, mut largest) = (0_u64, 0, 0);
    for seed in 0..FILES {
        let recipe = Recipe::random(seed, 120);
        let Encoded { file, pixels } = recipe.encode();
        let found = expected(&file, ColorSpace::Any, pixels.len())
            .unwrap_or_else(|error| panic!("{recipe:?}: {error}"));
        let differences = || pixels.iter().zip(&found).map(|(a, b)| a.abs_diff(*b));
        let most = differences().max().unwrap_or_default();
        // Each of three components is a level off at most, and chroma counts up to 1.8 times.
        assert!(most <= 4, "{recipe:?}: {most} levels off");
        largest = largest.max(most);
        sum += differences().map(u64::from).sum::<u64>();
        count += pixels.len();
    }
    let mean = sum as f64 / count as f64;
    println!("{FILES} files: mean difference {mean:.4}, largest {largest}");
    assert!(mean < 0.1, "mean difference {mean}");
}

/// The data of a file, as the device gets it.
fn scan(coded: &Coded<'_>) -> Option<(Vec<u8>, Scan)> {
    let mut bytes = vec![0; coded.room()];
    let scan = Scan::read(coded.data, &coded.layout(), &mut bytes)?;
    bytes.truncate(scan.bytes());
    Some((bytes, scan))
}

/// The entry for the next 16 bits, found as a device finds it in the bytes of a table.
fn entry(table: &Lookup, next: u32) -> u32 {
    let words: &[u16] = bytemuck::cast_slice(bytemuck::bytes_of(table));
    let (short, rest) = words.split_at(1_024);
    let (tail, rest) = rest.split_at(512);
    let (sorted, rest) = rest.split_at(256);
    let word = |i: usize| u32::from(rest[2 * i]) | u32::from(rest[2 * i + 1]) << 16;
    let found = match next.checked_sub(65_536 - 512) {
        Some(last) => tail[last as usize],
        None => short[(next >> 6) as usize],
    };
    if found != 0 {
        return u32::from(found);
    }
    let long = (0..6).find(|&i| next < word(i)).unwrap();
    u32::from(sorted[((next >> (5 - long)) as i32 + word(6 + long) as i32) as usize])
}

/// Where a segment ends when it is decoded from its start.
fn end(coded: &Coded<'_>, bytes: &[u8], segment: &Segment, mcus: usize) -> u32 {
    let tables: Vec<[Lookup; 2]> = coded.pairs.iter().map(|pair| pair.each_ref().map(Lookup::new)).collect();
    let mut at = segment.first_bit;
    for _ in 0..mcus {
        for component in &coded.components {
            for _ in 0..component.across * component.down {
                let mut place = 0;
                while place < 64 {
                    let start = (at / 8) as usize;
                    let next =
                        bytes[start..start + 3].iter().fold(0, |next, &byte| next << 8 | u32::from(byte));
                    let table = &tables[component.pair][usize::from(place > 0)];
                    let entry = entry(table, next >> (8 - at % 8) & 0xFFFF);
                    let (code, value) = (entry & 31, entry >> 5 & 15);
                    assert!(value <= 11 && code > 0);
                    at += code + value;
                    place += entry >> 9;
                }
            }
        }
    }
    at
}

/// Tables, segments and the order of blocks: whoever follows them arrives where a segment ends.
#[test]
fn what_the_device_gets_leads_through_every_file() {
    for seed in 0..FILES {
        let recipe = Recipe::random(seed, 120);
        let file = recipe.encode().file;
        let coded = Coded::read(&file).unwrap_or_else(|| panic!("refused: {recipe:?}"));
        assert_eq!((coded.width, coded.height), (recipe.width, recipe.height));
        let colour = match recipe.colour {
            Colour::Gray => sm::Colour::Gray,
            Colour::YCbCr => sm::Colour::YCbCr,
            Colour::Rgb => sm::Colour::Rgb,
        };
        assert_eq!((coded.colour, coded.restart_interval), (colour, recipe.restart));
        let (bytes, scan) = scan(&coded).unwrap_or_else(|| panic!("no scan: {recipe:?}"));
        let starts = scan.segments().iter().map(|segment| segment.first_block as usize / coded.blocks());
        let ends = starts.clone().skip(1).chain([coded.mcus()]);
        for (segment, (start, stop)) in scan.segments().iter().zip(starts.zip(ends)) {
            let end = end(&coded, &bytes, segment, stop - start);
            let last = segment.first_bit + segment.bits;
            assert!(end <= last && last < end + 8, "{recipe:?}: {segment:?} ends at {end}");
        }
    }
}

/// Whatever a file is changed to, nothing panics, and what is taken is as large as it says.
#[test]
fn damaged_files_are_read_or_refused() {
    let mut taken = 0;
    for seed in 0..20 * FILES {
        let file = Recipe::random(seed % 50, 40).encode().file;
        let file = damaged(&file, seed);
        let Some(coded) = Coded::read(&file) else { continue };
        assert!(coded.room() <= 8 * file.len() + 32, "{} bytes for a file of {}", coded.room(), file.len());
        assert!(coded.mcus() * coded.blocks() <= 4 * file.len());
        if let Some((bytes, scan)) = scan(&coded) {
            taken += 1;
            let inside = |s: &Segment| (s.first_bit + s.bits) as usize + 128 <= 8 * bytes.len();
            assert!(scan.segments().iter().all(inside));
        }
    }
    println!("{taken} of {} damaged files are taken", 20 * FILES);
    assert!(taken > 5_000);
}
