//! Decode + resize to 224 x 224 + normalize in process: images per second, and how long a batch takes.
//!
//! ```text
//! cargo bench --bench pipeline -- --images FOLDER [--device cpu|gpu] [--batch 32] [--threads 2] [--instances 1]
//!                                 [--seconds 3] [--jpeg auto|engines|sm|threads] [--inputs fixed|shared]
//!                                 [--decoder own|libjpeg-turbo] [--scaled no|yes] [--gpus 1]
//! ```
//!
//! FOLDER holds JPEGs; `benches/peers` makes some and runs the peers beside this. Outputs stay where they are made.
//! Several instances, a thread each, overlap their batches as a server does; they are dealt to `--gpus` GPUs in turn.
//! With `--inputs shared` they are copied first, as in a server, where clients can change them. `--decoder` says who
//! decodes JPEGs on the host, `--scaled` is the parameter `jpeg_scaled_decode`. Each instance is measured while all of
//! them work. Prints one line of JSON.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gesso::cpu::decode::JpegDecoder;
use gesso::gpu::{Gpu, jpeg};
use gesso::pipeline::{Instance, Keep, Pipeline, Preferences};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const ON_CPU: &[u8] = include_bytes!("pipeline.dali");
const ON_GPU: &[u8] = include_bytes!("pipeline_gpu.dali");

fn main() -> Result<()> {
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let options: HashMap<&str, &str> = arguments
        .chunks(2)
        .filter_map(|pair| Some((pair.first()?.as_str(), pair.get(1)?.as_str())))
        .collect();
    let Some(folder) = options.get("--images") else {
        println!("usage: cargo bench --bench pipeline -- --images FOLDER [--device gpu] [--batch 32] ...");
        return Ok(());
    };
    let number = |name, default| options.get(name).map_or(Ok(default), |text| text.parse::<usize>());
    let (batch, threads) = (number("--batch", 32)?, number("--threads", 2)?);
    let (instances, seconds) = (number("--instances", 1)?, number("--seconds", 3)?);
    let on_gpu = options.get("--device") == Some(&"gpu");

    let jpeg_path = match options.get("--jpeg") {
        Some(&"engines") => Some(jpeg::Path::Engines),
        Some(&"sm" | &"cores") => Some(jpeg::Path::Sm),
        Some(&"threads") => Some(jpeg::Path::Threads),
        _ => None,
    };
    let inputs_may_change = options.get("--inputs") == Some(&"shared");
    let jpeg_decoder = match options.get("--decoder") {
        Some(&"libjpeg-turbo") => JpegDecoder::LibjpegTurbo,
        _ => JpegDecoder::Own,
    };
    let jpeg_scaled_decode = options.get("--scaled") == Some(&"yes");
    let preferences = Preferences {
        jpeg_path,
        jpeg_decoder,
        jpeg_scaled_decode,
        inputs_may_change,
        ..Preferences::default()
    };

    let files = read(Path::new(folder))?;
    let count = if on_gpu { number("--gpus", 1)? } else { 0 };
    let gpus = (0..count).map(Gpu::open).collect::<std::result::Result<Vec<_>, _>>()?;
    let pipeline =
        if on_gpu { Pipeline::load(ON_GPU, Device::Gpu)? } else { Pipeline::load(ON_CPU, Device::Cpu)? };
    let before = gpus.first().map_or(Ok(0), |gpu| gpu.memory().map(|(free, _)| free))?;
    let instances: Vec<Instance> = (0..instances)
        .map(|i| pipeline.instance_with(Some(threads), gpus.get(i % count.max(1)), &preferences))
        .collect::<std::result::Result<_, _>>()?;
    let together = Together { begin: Barrier::new(instances.len()), measuring: instances.len().into() };
    let workers: Vec<_> = std::thread::scope(|scope| {
        let runs = instances.into_iter().map(|instance| {
            let (files, together) = (&files, &together);
            scope.spawn(move || run(instance, files, batch, Duration::from_secs(seconds as u64), together))
        });
        let handles: Vec<_> = runs.collect();
        handles
            .into_iter()
            .map(|handle| handle.join().map_err(|_| "a worker panicked")?)
            .collect::<Result<_>>()
    })?;
    let rate: f64 = workers.iter().map(|worker| worker.rate).sum();
    let mut times: Vec<f64> = workers.iter().flat_map(|worker| worker.times.iter().copied()).collect();
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] * 1e6;
    let held: usize =
        workers.iter().map(|worker| worker.free).min().map_or(0, |free| before.saturating_sub(free));
    println!(
        "{}",
        serde_json::json!({
            "device": if on_gpu { "gpu" } else { "cpu" }, "batch": batch, "threads": threads,
            "instances": workers.len(), "images_per_second": rate.round(), "p50_us": at(0.5).round(),
            "p99_us": at(0.99).round(), "gpu_bytes": held, "counters": workers[0].counters,
        })
    );
    Ok(())
}

/// What one instance did.
struct Worker {
    rate: f64,
    /// Seconds of each batch.
    times: Vec<f64>,
    counters: String,
    /// Free bytes of the device while the instance lived.
    free: usize,
}

/// What instances that run at a time wait for, so that each is measured while all of them work.
struct Together {
    begin: Barrier,
    /// How many still are.
    measuring: AtomicUsize,
}

fn run(
    mut instance: Instance,
    files: &[Vec<u8>],
    size: usize,
    duration: Duration,
    together: &Together,
) -> Result<Worker> {
    let mut next = 0;
    let mut once = |instance: &mut Instance| -> Result<f64> {
        let batch: Vec<&[u8]> =
            files.iter().cycle().skip(next % files.len()).take(size).map(Vec::as_slice).collect();
        next += size;
        let shapes = batch.iter().map(|file| Shape::from([file.len()])).collect();
        let desc = BatchDesc::new(DType::U8, Layout::NONE, shapes);
        let input = Batch::new(desc, batch.into_iter().map(Sample::Borrowed).collect())?;
        let start = Instant::now();
        let outcome = instance.run(size, vec![input], &mut Keep)?;
        let elapsed = start.elapsed().as_secs_f64();
        match (0..size).find_map(|i| outcome.failures.get(i)) {
            Some(error) => Err(error.to_string().into()),
            None => Ok(elapsed),
        }
    };
    let warm = (0..5).try_for_each(|_| once(&mut instance).map(drop));
    together.begin.wait();
    let (mut times, start) = (Vec::new(), Instant::now());
    let measured = warm.and_then(|()| {
        while start.elapsed() < duration {
            times.push(once(&mut instance)?);
        }
        Ok(())
    });
    let rate = (times.len() * size) as f64 / start.elapsed().as_secs_f64();
    together.measuring.fetch_sub(1, Ordering::Relaxed);
    measured?;
    while together.measuring.load(Ordering::Relaxed) > 0 {
        once(&mut instance)?;
    }
    let free = instance.device_memory()?.map_or(usize::MAX, |(free, _)| free);
    Ok(Worker { rate, times, counters: format!("{:?}", instance.counters()), free })
}

fn read(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|e| e.path()))
        .collect::<std::result::Result<_, _>>()?;
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(std::fs::read).collect::<std::result::Result<_, _>>()?;
    if files.is_empty() { Err(format!("`{}` holds no files", folder.display()).into()) } else { Ok(files) }
}
