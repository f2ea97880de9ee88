//! Runs a serialized pipeline on image files by the Rust API, and prints what comes out and what it took.
//!
//! ```text
//! cargo run --release --example run_pipeline -- model.dali a.jpg b.jpg
//! ```

use std::process::ExitCode;

use gesso::error::{Error, Result};
use gesso::pipeline::{Keep, Pipeline};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Sample, Shape};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, images @ ..] = arguments.as_slice() else {
        eprintln!("usage: run_pipeline PIPELINE IMAGE...");
        return ExitCode::from(2);
    };
    match run(model, images) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &str) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|error| Error::not_found(format!("cannot read `{path}`: {error}")))
}

/// Whether every image came through.
fn run(model: &str, images: &[String]) -> Result<bool> {
    // Planned once; instances share it. With `Device::Gpu` operators run where the file puts them.
    let pipeline = Pipeline::load(&read(model)?, Device::Cpu)?;
    let mut instance = pipeline.instance(None, None)?;
    let files = images.iter().map(|path| read(path)).collect::<Result<Vec<_>>>()?;

    // A batch borrows its samples: nothing is copied. Every input of the pipeline needs one, in its order.
    let shapes = files.iter().map(|file| Shape::from([file.len()])).collect();
    let samples = files.iter().map(|file| Sample::Borrowed(file)).collect();
    let [input] = pipeline.inputs() else {
        return Err(Error::unsupported(format!(
            "the pipeline has {} inputs, expected one",
            pipeline.inputs().len()
        )));
    };
    let batch = Batch::new(BatchDesc::new(DType::U8, input.layout, shapes), samples)?;
    let outcome = instance.run(files.len(), vec![batch], &mut Keep)?;

    for (output, made) in pipeline.outputs().iter().zip(&outcome.outputs) {
        for (i, image) in images.iter().enumerate() {
            // A sample that failed left the others alone.
            if outcome.failures.get(i).is_none() {
                let view = made.view(i);
                println!("{image} {} {} {} {}", output.name, view.dtype, view.shape, view.layout);
            }
        }
    }
    for (operator, time) in pipeline.operators().iter().zip(&instance.tally().operators) {
        println!("{operator} took {:.2} ms", time.as_secs_f64() * 1e3);
    }
    let failed: Vec<_> =
        (0..files.len()).filter_map(|i| Some((images.get(i)?, outcome.failures.get(i)?))).collect();
    for (image, error) in &failed {
        eprintln!("{image}: {error}");
    }
    Ok(failed.is_empty())
}
