//! The video engines alone: frames per second of one video, decoded as often at the same time as there are sessions,
//! with every picture thrown away, and with every picture made RGB in device memory. The first is what the engines can
//! do, whatever is done with their pictures.
//!
//! ```text
//! cargo bench --bench video_engines -- clip.mp4 [ROUNDS]
//! ```
//!
//! Prints one line per number of sessions: the best of all rounds. Pictures that are still on their way when the last
//! packet is taken, about twenty of a session, are not waited for where they are thrown away.
use std::sync::Arc;
use std::time::{Duration, Instant};

use gesso::coded_video::{OpenedVideo, Takes, codec_of};
use gesso::cpu::video::{Budget, Video};
use gesso::error::Result;
use gesso::gpu::video::{Engines, decode};
use gesso::gpu::{DeviceBuffer, Event, Gpu, devices};
use gesso::memory::DeviceBytes;

const SESSIONS: [usize; 7] = [1, 2, 3, 4, 6, 7, 8];
const ROUNDS: usize = 3;

/// Takes every frame to the same place, or to none.
struct Sink {
    budget: Budget<'static>,
    target: Option<DeviceBytes<'static>>,
}

impl Takes for Sink {
    fn budget(&self) -> &Budget<'_> {
        &self.budget
    }

    fn targets(&mut self, frames: &[usize]) -> Result<Vec<DeviceBytes<'_>>> {
        Ok(self.target.iter().filter(|_| !frames.is_empty()).cloned().collect())
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    // cargo adds `--bench`.
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let Some(path) = arguments.first() else {
        println!("skipped: no video given");
        return Ok(());
    };
    if let Err(error) = devices() {
        println!("skipped: no GPU ({error})");
        return Ok(());
    }
    let rounds = arguments.get(1).map_or(Ok(ROUNDS), |text| text.parse())?;
    let gpu = Gpu::open(0)?;
    let engines = Arc::new(Engines::open(&gpu)?);
    let video = Arc::new(Video::open(std::fs::read(path)?)?);
    let (width, height) = (video.width(), video.height());
    let takes = video.coding().is_some_and(|coding| engines.takes(codec_of(coding), [width, height]));
    println!(
        "{} frames of {width} x {height}, {} engines of `{}`{}",
        video.frames(),
        engines.count()?,
        gpu.name(),
        if takes { "" } else { ", which do not take it" }
    );
    println!("sessions | frames/s thrown away | frames/s as RGB");
    for sessions in SESSIONS {
        let rate = |converts| -> Result<f64> {
            let times = (0..rounds).map(|_| measure(&gpu, &engines, &video, sessions, converts));
            let times = times.collect::<Result<Vec<Duration>>>()?;
            let best = times.into_iter().min().unwrap_or(Duration::MAX);
            Ok((sessions * video.frames()) as f64 / best.as_secs_f64())
        };
        println!("{sessions:8} | {:20.0} | {:15.0}", rate(false)?, rate(true)?);
    }
    Ok(())
}

/// How long it takes to decode the video in so many threads.
fn measure(
    gpu: &Arc<Gpu>,
    engines: &Arc<Engines>,
    video: &Arc<Video<'static>>,
    sessions: usize,
    converts: bool,
) -> Result<Duration> {
    let stream = gpu.stream()?;
    let bytes = video.width() * video.height() * 3;
    let mut sinks = Vec::new();
    for _ in 0..sessions {
        let target = match converts {
            true => Some(DeviceBytes::of(&Arc::new(DeviceBuffer::new(&stream, bytes)?), 0, bytes)),
            false => None,
        };
        sinks.push(Sink { budget: Budget::default(), target });
    }
    let ready = Arc::new(Event::new(gpu)?);
    ready.record(&stream)?;
    let all: Vec<usize> = (0..video.frames()).collect();
    let begun = Instant::now();
    let play = |sink| decode(engines, OpenedVideo::new(video.coded(&all)?, sink), &ready).map(drop);
    let play = &play;
    std::thread::scope(|scope| {
        let threads: Vec<_> = sinks.into_iter().map(|sink| scope.spawn(move || play(sink))).collect();
        let ended = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(gesso::error::Error::internal("a thread that panicked")))
        });
        ended.collect::<Result<Vec<()>>>().map(drop)
    })?;
    Ok(begun.elapsed())
}
