//! Decode + resize to 224 x 224 + normalize in process: images per second of one instance.
//!
//! ```text
//! cargo bench --bench pipeline -- FOLDER [BATCH [THREADS [SECONDS]]]
//! ```
//!
//! FOLDER holds JPEGs; `benches/peers/compare.py` makes some and runs the peers beside this. Prints one line of JSON.

use std::path::Path;
use std::time::{Duration, Instant};

use triton_gesso::pipeline::{Keep, Pipeline};
use triton_gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape};

const PIPELINE: &[u8] = include_bytes!("pipeline.dali");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let Some(folder) = arguments.first() else {
        println!("usage: cargo bench --bench pipeline -- FOLDER [BATCH [THREADS [SECONDS]]]");
        return Ok(());
    };
    let number = |i: usize, default: usize| arguments.get(i).map_or(Ok(default), |text| text.parse());
    let (size, threads, seconds) = (number(1, 32)?, number(2, 2)?, number(3, 3)?);

    let files = read(Path::new(folder))?;
    let batch = || {
        let files: Vec<&[u8]> = files.iter().cycle().take(size).map(Vec::as_slice).collect();
        let shapes = files.iter().map(|file| Shape::from([file.len()])).collect();
        let desc = BatchDesc::new(DType::U8, Layout::NONE, shapes);
        Batch::new(desc, files.into_iter().map(Sample::Borrowed).collect())
    };
    let mut instance = Pipeline::load(PIPELINE, Device::Cpu)?.instance(Some(threads), None)?;
    let mut run = || -> Result<(), Box<dyn std::error::Error>> {
        let outcome = instance.run(size, vec![batch()?], &mut Keep)?;
        match (0..size).find_map(|i| outcome.failures.get(i)) {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    };
    run()?;
    let (mut count, start) = (0, Instant::now());
    while start.elapsed() < Duration::from_secs(seconds as u64) {
        run()?;
        count += size;
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("{{\"batch\": {size}, \"threads\": {threads}, \"images_per_second\": {rate:.1}}}");
    Ok(())
}

fn read(folder: &Path) -> Result<Vec<Vec<u8>>, Box<dyn std::error::Error>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(std::fs::read).collect::<Result<_, _>>()?;
    if files.is_empty() { Err(format!("`{}` holds no files", folder.display()).into()) } else { Ok(files) }
}
