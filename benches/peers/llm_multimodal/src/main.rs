//! Makes Qwen's patches of JPEG files by the crate llm-multimodal, as many files at the same time as there are threads.
//!
//!     llm-multimodal-peer FIELDS THREADS FILE...
//!
//! FIELDS are those of `preprocessor_config.json`. JPEGs are decoded by libjpeg-turbo where the crate finds it, as it
//! does itself, else by the crate image. It prints the number of tokens, and which of the two it was.

use std::error::Error;

use llm_multimodal::jpeg_turbo::{decode_jpeg_rgb, turbojpeg_available};
use llm_multimodal::vision::{PreProcessorConfig, Qwen2VLProcessor, VisionPreProcessor};
use llm_multimodal::{Parallelism, configure_parallelism};
use rayon::prelude::*;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [fields, threads, files @ ..] = &arguments[..] else {
        return Err("expected FIELDS THREADS FILE...".into());
    };
    // A thread a file, and none beside it.
    configure_parallelism(Parallelism::Inline).map_err(|other| format!("it runs as {other:?} already"))?;
    let config = PreProcessorConfig::from_value(serde_json::from_str(fields)?)?;
    let processor = Qwen2VLProcessor::from_preprocessor_config(&config);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build()?;
    let tokens = |file: &String| -> Result<usize, Failure> {
        let bytes = std::fs::read(file)?;
        let image = match decode_jpeg_rgb(&bytes) {
            Some(image) => image,
            None => image::load_from_memory(&bytes)?,
        };
        let made = processor.preprocess(&[image], &config)?;
        Ok(made.feature_token_counts.iter().sum())
    };
    let counts: Vec<usize> = pool.install(|| files.par_iter().map(tokens).collect::<Result<_, _>>())?;
    let decoder = if turbojpeg_available() { "libjpeg-turbo" } else { "the crate image" };
    println!("{} tokens, JPEGs by {decoder}", counts.iter().sum::<usize>());
    Ok(())
}
