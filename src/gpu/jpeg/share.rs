//! Which image of a batch is decoded where: the one place that decides, from sizes of files and measured speeds. Pure
//! arithmetic: it must not know devices or threads.
//!
//! ```text
//! engines:  overhead + max(largest file on one engine, all their files on all engines)
//! threads:  start + the fullest thread, every file on one + the upload of all their pixels
//! cores:    start + all their files
//! ```
//!
//! A batch that the cores finish sooner than the engines is theirs. Else engines and threads start together, so it is done when
//! the slower one is: images move from the engines to the threads as long as the threads are done first. A batch that the
//! engines finish before a thread has decoded one image stays with them.

use std::time::Duration;

use crate::limits;

/// Where an image is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The device's JPEG engines.
    Engines,
    /// The device's own cores.
    Cores,
    /// Threads of the host.
    Threads,
}

/// An image, as the decision sees it.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Bytes of the file.
    pub bytes: usize,
    /// Bytes of its pixels, which are uploaded when a thread decodes it.
    pub pixels: usize,
    /// Whether the engines can decode it.
    pub engines: bool,
    /// Whether the cores can decode it: how many bytes of scratch memory they need.
    pub cores: Option<usize>,
}

/// What an author asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wish {
    /// The part of the images for the engines.
    Load(f32),
    /// This path for every image that it can decode.
    Path(Path),
}

/// How fast each path decodes, in bytes of files a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speeds {
    /// All engines together.
    engines: f64,
    /// Number of engines; an image is decoded by one.
    count: usize,
    /// One thread of the host.
    thread: f64,
    /// The cores.
    cores: f64,
}

/// Seconds that a batch takes on one path alone.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Predicted {
    pub engines: f64,
    pub cores: f64,
    pub threads: f64,
}

/// Of one engine of an H200, for JPEGs of quality 85 to 95.
const ENGINE_SPEED: f64 = 2.6e9 / 7.0;

/// Of libjpeg-turbo on one thread of a server, for the same.
const THREAD_SPEED: f64 = 80e6;

/// What a batch on the engines takes whatever its size.
const ENGINES_OVERHEAD: f64 = 20e-6;

/// Until all threads of an instance work, once there is work for them.
const THREADS_START: f64 = 500e-6;

/// Bytes of pixels a second, from the end of decoding on a host to the place on the device: half of what the bus can.
const UPLOAD_SPEED: f64 = 25e9;

/// Of one multiprocessor of an H200, from the file to the pixels.
const CORE_SPEED: f64 = 3.3e9 / 132.0;

/// What a batch on the cores takes whatever its size: five kernels, each as long as its slowest thread.
const CORES_START: f64 = 240e-6;

/// How fast the engines decode what follows the first image of a batch, of what they decode when they have enough.
const FOLLOWING: f64 = 0.7;

/// Weight of the newest measurement.
const NEWEST: f64 = 0.2;

/// How far measured speeds may get from the first ones: a batch that the system held up must not stop a path for good.
const RANGE: f64 = 16.0;

impl Speeds {
    /// What is assumed of `count` engines and of as many `multiprocessors` before anything was measured.
    pub fn new(count: usize, multiprocessors: usize) -> Self {
        let count = count.max(1);
        let cores = CORE_SPEED * multiprocessors.max(1) as f64;
        Self { engines: ENGINE_SPEED * count as f64, count, thread: THREAD_SPEED, cores }
    }

    /// Takes in that threads decoded files of `bytes` bytes together in `busy`, added up over the threads.
    pub fn threads_took(&mut self, bytes: usize, busy: Duration) {
        if bytes > 0 && !busy.is_zero() {
            self.thread = follow(self.thread, bytes as f64 / busy.as_secs_f64(), THREAD_SPEED);
        }
    }

    /// Takes in that the engines needed at least and at most so long for files of `total` bytes together, the largest of
    /// `largest`. A time that the speeds predict right teaches nothing: nobody watched more closely.
    pub fn engines_took(&mut self, total: usize, largest: usize, least: Duration, most: Option<Duration>) {
        let predicted = self.engines_time(total, largest);
        let bounded = predicted.max(least.as_secs_f64()).min(most.map_or(f64::INFINITY, |d| d.as_secs_f64()));
        if total == 0 || bounded == predicted {
            return;
        }
        let start = ENGINE_SPEED * self.count as f64;
        let work = (bounded - ENGINES_OVERHEAD).max(predicted / RANGE);
        self.engines = follow(self.engines, self.engines * (predicted - ENGINES_OVERHEAD) / work, start);
    }

    /// What each path would take for all of `images` by itself.
    pub fn predict(&self, images: &[Candidate], threads: usize) -> Predicted {
        let sizes = || images.iter().map(|image| image.bytes);
        let (total, largest) = (sizes().sum(), sizes().max().unwrap_or_default());
        let pixels: usize = images.iter().map(|image| image.pixels).sum();
        let mut loads = vec![THREADS_START; threads.clamp(1, images.len().max(1))];
        for (_, bytes) in by_size(images) {
            if let Some(least) = least(&mut loads) {
                *least += bytes as f64 / self.thread;
            }
        }
        Predicted {
            engines: self.batch_on_engines(total, largest),
            cores: self.cores_time(total),
            threads: loads.into_iter().fold(0.0, f64::max) + pixels as f64 / UPLOAD_SPEED,
        }
    }

    /// Seconds that the cores need.
    fn cores_time(&self, total: usize) -> f64 {
        CORES_START + total as f64 / self.cores
    }

    /// Seconds that the engines need until the last image of a batch is in its place.
    fn batch_on_engines(&self, total: usize, largest: usize) -> f64 {
        let following = (total - largest) as f64 / (FOLLOWING * self.engines);
        self.engines_time(largest, largest) + following
    }

    /// Seconds that the engines need to decode.
    fn engines_time(&self, total: usize, largest: usize) -> f64 {
        if total == 0 {
            return 0.0;
        }
        let one = largest as f64 * self.count as f64;
        ENGINES_OVERHEAD + one.max(total as f64) / self.engines
    }
}

fn follow(old: f64, seen: f64, start: f64) -> f64 {
    (old + NEWEST * (seen - old)).clamp(start / RANGE, start * RANGE)
}

/// Where each of `images` goes. Without a `wish` the batch shall be done soon. `threads` is the number of threads.
pub fn assign(images: &[Candidate], threads: usize, speeds: &Speeds, wish: Option<Wish>) -> Vec<Path> {
    let mut room = limits::MAX_CORES_SCRATCH_BYTES;
    let mut fits = |image: &Candidate| {
        let rest = image.cores.and_then(|scratch| room.checked_sub(scratch));
        rest.inspect(|&rest| room = rest).is_some()
    };
    let prefers_cores = match wish {
        None => are_faster_on_cores(images, speeds),
        Some(wish) => wish == Wish::Path(Path::Cores),
    };
    let mut path = |image: &Candidate| match (wish, image.engines) {
        (Some(Wish::Path(Path::Threads)), _) => Path::Threads,
        (_, true) if !(prefers_cores && fits(image)) => Path::Engines,
        (_, false) if !fits(image) => Path::Threads,
        _ => Path::Cores,
    };
    let mut paths: Vec<Path> = images.iter().map(&mut path).collect();
    match wish {
        None => {}
        Some(Wish::Load(load)) => {
            for i in beyond(load, images, &paths) {
                let image = images.get(i).filter(|image| fits(image));
                if let Some(path) = paths.get_mut(i) {
                    *path = if image.is_some() { Path::Cores } else { Path::Threads };
                }
            }
            return paths;
        }
        Some(Wish::Path(_)) => return paths,
    }
    relieve_engines(images, threads, speeds, &mut paths);
    paths
}

/// Whether the cores are done with the images that engines could take, too, before the engines are. Measured on an H200 with
/// files of 69 kB: the engines take 205, 269, 336, 468 us for 1, 2, 4, 8 of them, the cores 261, 291, 327, 431.
fn are_faster_on_cores(images: &[Candidate], speeds: &Speeds) -> bool {
    let either = || images.iter().filter(|image| image.engines && image.cores.is_some());
    let total: usize = either().map(|image| image.bytes).sum();
    let largest = either().map(|image| image.bytes).max().unwrap_or_default();
    speeds.cores_time(total) < speeds.batch_on_engines(total, largest)
}

/// Which images on the engines are beyond the part of them that stays there: the smaller ones.
fn beyond(load: f32, images: &[Candidate], paths: &[Path]) -> Vec<usize> {
    let mut movable = by_size(images);
    movable.retain(|&(i, _)| paths.get(i) == Some(&Path::Engines));
    let kept = (f64::from(load.clamp(0.0, 1.0)) * movable.len() as f64).round() as usize;
    movable.into_iter().skip(kept).map(|(i, _)| i).collect()
}

/// Places and sizes of files, the largest first.
fn by_size(images: &[Candidate]) -> Vec<(usize, usize)> {
    let mut order: Vec<(usize, usize)> = images.iter().map(|image| image.bytes).enumerate().collect();
    order.sort_by_key(|&(i, bytes)| (std::cmp::Reverse(bytes), i));
    order
}

/// Moves images from the engines to the threads, so that both are done at the same time.
fn relieve_engines(images: &[Candidate], threads: usize, speeds: &Speeds, paths: &mut [Path]) {
    // The largest first: what does not fit on the threads any more may still do so with a smaller one.
    let pixels = |i: usize| images.get(i).map_or(0.0, |image| image.pixels as f64 / UPLOAD_SPEED);
    let on = |wanted: Path| {
        let mut order = by_size(images);
        order.retain(|&(i, _)| paths.get(i) == Some(&wanted));
        order
    };
    let (movable, fixed) = (on(Path::Engines), on(Path::Threads));
    let mut set = |i: usize| {
        if let Some(path) = paths.get_mut(i) {
            *path = Path::Threads;
        }
    };
    if threads == 0 {
        return;
    }
    let mut loads = vec![THREADS_START; threads.min(images.len())];
    let mut upload = 0.0;
    for (i, bytes) in fixed {
        upload += pixels(i);
        if let Some(least) = least(&mut loads) {
            *least += bytes as f64 / speeds.thread;
        }
    }
    let mut total: usize = movable.iter().map(|&(_, bytes)| bytes).sum();
    // What stays: its largest is the first that was not moved.
    let mut largest = None;
    for (place, &(i, bytes)) in movable.iter().enumerate() {
        let next = movable.get(place + 1).map_or(0, |&(_, bytes)| bytes);
        let after = speeds.engines_time(total - bytes, largest.unwrap_or(next));
        let fullest = loads.iter().copied().fold(0.0, f64::max);
        let fits = least(&mut loads).filter(|least| {
            let done = fullest.max(**least + bytes as f64 / speeds.thread);
            done + upload + pixels(i) <= after
        });
        match fits {
            Some(least) => {
                *least += bytes as f64 / speeds.thread;
                upload += pixels(i);
                total -= bytes;
                set(i);
            }
            None => largest = largest.or(Some(bytes)),
        }
    }
}

fn least(loads: &mut [f64]) -> Option<&mut f64> {
    loads.iter_mut().min_by(|a, b| a.total_cmp(b))
}

#[cfg(test)]
mod tests;
