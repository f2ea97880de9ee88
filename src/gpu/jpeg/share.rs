//! Which image of a batch is decoded where: the one place that decides, from sizes of files and measured speeds. Pure
//! arithmetic: it must not know devices or threads.
//!
//! ```text
//! engines:  overhead + max(the fullest engine, every image on one; what the host does for each)
//! threads:  start + the fullest thread, every image on one + the upload of all their pixels
//! SMs:      start + the longest piece of data that a thread has + the largest file + all images
//! ```
//!
//! An image costs a path something for itself, for each byte of its file and for each pixel; the constants are fitted
//! to what an H200 and its host took (`benches/peers/fit_share.py`), and measured batches say how much faster or slower
//! this device is.
//!
//! A batch that the SMs finish clearly sooner than the engines is theirs. Else engines and threads start together, so
//! it is done when the slower one is: images move from the engines to the threads as long as the threads are done
//! first. A batch that the engines finish before a thread has decoded one image stays with them.

use std::time::Duration;

use super::sm::Cut;
use crate::limits;

/// Where an image is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// The device's JPEG engines.
    Engines,
    /// The device's SMs.
    Sm,
    /// Threads of the host.
    Threads,
}

/// How large a file is.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Its bytes.
    pub bytes: usize,
    /// Pixels of the picture in it.
    pub pixels: usize,
}

impl Size {
    /// How long a thread of the measured machine takes.
    pub fn on_a_thread(self) -> Duration {
        Duration::from_secs_f64(THREAD.of(self))
    }
}

/// An image, as the decision sees it.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Its file.
    pub size: Size,
    /// Bytes that go up when a thread decodes it.
    pub upload: usize,
    /// Whether the engines can decode it.
    pub engines: bool,
    /// What the SMs need to decode it, if they can.
    pub sms: Option<SmNeed>,
}

/// What the SMs need for an image.
#[derive(Debug, Clone, Copy)]
pub struct SmNeed {
    /// Bytes of scratch memory.
    pub scratch: usize,
    /// Bits of an MCU on average.
    pub mcu_bits: usize,
}

/// What an author asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wish {
    /// The part of the images for the engines.
    Load(f32),
    /// This path for every image that it can decode.
    Path(Path),
    /// One that gives the same pixels however busy anybody is: SMs and threads do, to the bit, engines do not.
    Repeatable,
}

/// How fast each path is, of what it is on the machine that the constants were measured on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speeds {
    engines: f64,
    /// Number of engines; an image is decoded by one.
    count: usize,
    thread: f64,
    sms: f64,
    /// Bytes of scratch memory that the SMs may take for an image.
    scratch: usize,
}

/// Seconds that a batch takes on one path alone.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Predicted {
    pub engines: f64,
    pub sms: f64,
    pub threads: f64,
}

/// Seconds that an image takes.
struct Cost {
    image: f64,
    /// For each byte of its file.
    byte: f64,
    pixel: f64,
}

impl Cost {
    fn of(&self, size: Size) -> f64 {
        self.image + self.byte * size.bytes as f64 + self.pixel * size.pixels as f64
    }
}

/// One engine of an H200.
const ENGINE: Cost = Cost { image: 42e-6, byte: 1.4e-9, pixel: 0.34e-9 };

/// What a batch on the engines takes whatever its size, and what the host takes for each image of it.
const ENGINES_OVERHEAD: f64 = 23e-6;
const ENGINES_EACH: f64 = 25e-6;

/// libjpeg-turbo on one thread of a server.
const THREAD: Cost = Cost { image: 5e-6, byte: 14e-9, pixel: 1.4e-9 };

/// Until all threads of an instance work, once there is work for them.
const THREADS_START: f64 = 160e-6;

/// Bytes of pixels a second, from the end of decoding on a host to the place on the device.
const UPLOAD_SPEED: f64 = 14e9;

/// What goes up for the SMs of an H200, whatever part of them works, and what the host takes for each image.
const SM: Cost = Cost { image: 0.0, byte: 40e-12, pixel: 7.3e-12 };
const SM_EACH: f64 = 4.6e-6;

/// So many multiprocessors of them, as kernels in parts of 16 to 64 take it, without the resize behind them.
const KERNELS: Cost = Cost { image: 0.0, byte: 16e-12, pixel: 2.9e-12 };
const MULTIPROCESSORS: f64 = 132.0;

/// How much longer the engines may take before the SMs, which the model behind needs too, take their work.
const SM_MARGIN: f64 = 1.1;

/// What a batch on the SMs takes whatever its size: kernels, each as long as its slowest thread; for each bit of the
/// longest piece that a thread has; for each byte of the largest file, which is linked by one block of threads.
const SM_START: f64 = 71e-6;
const SM_PIECE_BIT: f64 = 0.143e-6;
const SM_LARGEST_BYTE: f64 = 0.176e-9;

/// Weight of the newest measurement.
const NEWEST: f64 = 0.2;

/// What a batch without engines forgets of their speed.
const FORGOTTEN: f64 = 0.01;

/// Limit of measured speeds, as a multiple of the first ones, so that one stalled batch cannot disable a path.
const RANGE: f64 = 16.0;

impl Speeds {
    /// What is assumed of `count` engines and of as many `multiprocessors` before anything was measured.
    pub fn new(count: usize, multiprocessors: usize) -> Self {
        let sms = multiprocessors.max(1) as f64 / MULTIPROCESSORS;
        let scratch = limits::MAX_SM_SCRATCH_BYTES;
        Self { engines: 1.0, count: count.max(1), thread: 1.0, sms, scratch }
    }

    /// The same with `bytes` of scratch memory at most for an image that the SMs decode.
    pub fn within(self, bytes: usize) -> Self {
        Self { scratch: bytes.min(limits::MAX_SM_SCRATCH_BYTES), ..self }
    }

    /// Bytes of scratch memory that the SMs may take for an image, and for a group of them.
    pub fn scratch(&self) -> usize {
        self.scratch
    }

    /// Takes in that a thread would have been `busy` for what it takes `expected` long on the measured machine
    /// ([`Size::on_a_thread`]).
    pub fn threads_took(&mut self, expected: Duration, busy: Duration) {
        if !expected.is_zero() && !busy.is_zero() {
            self.thread = follow(self.thread, expected.as_secs_f64() / busy.as_secs_f64());
        }
    }

    /// Takes in that the engines needed at least and at most so long for `files`. A time that is expected teaches
    /// nothing: nobody watched more closely.
    pub fn engines_took(&mut self, files: &[Size], least: Duration, most: Option<Duration>) {
        let expected = self.engines_time(files.iter().copied());
        let bounded = expected.max(least.as_secs_f64()).min(most.map_or(f64::INFINITY, |d| d.as_secs_f64()));
        if !files.is_empty() && bounded != expected {
            self.engines = follow(self.engines, self.engines * expected / bounded);
        }
    }

    /// Takes in that the engines had nothing to do: what was measured is forgotten slowly, so that they are tried
    /// again.
    pub fn engines_rested(&mut self) {
        self.engines += FORGOTTEN * (1.0 - self.engines);
    }

    /// What each path would take for all of `images` by itself.
    pub fn predict(&self, images: &[Candidate], threads: usize) -> Predicted {
        let mut loads = vec![0.0; threads.clamp(1, images.len().max(1))];
        let by_threads = by_cost(images).into_iter().map(|(_, cost)| cost / self.thread);
        let upload: f64 = images.iter().map(|image| image.upload as f64 / UPLOAD_SPEED).sum();
        Predicted {
            engines: self.engines_time(images.iter().map(|image| image.size)),
            sms: self.sm_time(images),
            threads: THREADS_START + fullest(&mut loads, by_threads) + upload,
        }
    }

    /// Bits of the longest piece of data that a thread of the SMs has.
    pub fn longest_piece(images: &[Candidate]) -> u32 {
        let mcu_bits = images.iter().filter_map(|image| Some(image.sms?.mcu_bits)).max().unwrap_or_default();
        Cut::of(images.iter().map(|image| image.size.bytes).sum()).for_mcus(mcu_bits).bits
    }

    /// Seconds that the SMs need.
    fn sm_time(&self, images: &[Candidate]) -> f64 {
        let largest = images.iter().map(|image| image.size.bytes).max().unwrap_or_default();
        let piece = f64::from(Self::longest_piece(images));
        let latency = SM_PIECE_BIT * piece + SM_LARGEST_BYTE * largest as f64;
        let each = |size: Size| SM_EACH + SM.of(size) + KERNELS.of(size) / self.sms;
        let each: f64 = images.iter().map(|image| each(image.size)).sum();
        SM_START + latency + each
    }

    /// Seconds that the engines need.
    fn engines_time(&self, files: impl Iterator<Item = Size>) -> f64 {
        let mut costs: Vec<f64> = files.map(|size| ENGINE.of(size)).collect();
        if costs.is_empty() {
            return 0.0;
        }
        costs.sort_by(|a, b| b.total_cmp(a));
        let each = ENGINES_EACH * costs.len() as f64;
        (ENGINES_OVERHEAD + fullest(&mut vec![0.0; self.count], costs).max(each)) / self.engines
    }
}

/// The fullest of `loads` once each of `costs`, the largest of which comes first, was put on the emptiest.
fn fullest(loads: &mut [f64], costs: impl IntoIterator<Item = f64>) -> f64 {
    for cost in costs {
        if let Some(least) = least(loads) {
            *least += cost;
        }
    }
    loads.iter().copied().fold(0.0, f64::max)
}

fn follow(old: f64, seen: f64) -> f64 {
    (old + NEWEST * (seen - old)).clamp(1.0 / RANGE, RANGE)
}

/// Where each of `images` goes. Without a `wish` the batch shall be done soon. `threads` is the number of threads.
pub fn assign(images: &[Candidate], threads: usize, speeds: &Speeds, wish: Option<Wish>) -> Vec<Path> {
    let fits = |image: &Candidate| image.sms.is_some_and(|sms| sms.scratch <= speeds.scratch);
    let prefers_sms = match wish {
        None => are_faster_on_sms(images, speeds),
        Some(wish) => wish == Wish::Path(Path::Sm),
    };
    let engines = |image: &Candidate| image.engines && wish != Some(Wish::Repeatable);
    let path = |image: &Candidate| match (wish, engines(image)) {
        (Some(Wish::Path(Path::Threads)), _) => Path::Threads,
        (_, true) if !(prefers_sms && fits(image)) => Path::Engines,
        (_, false) if !fits(image) => Path::Threads,
        _ => Path::Sm,
    };
    let mut paths: Vec<Path> = images.iter().map(path).collect();
    match wish {
        None => {}
        Some(Wish::Load(load)) => {
            for i in beyond(load, images, &paths) {
                if let Some(path) = paths.get_mut(i) {
                    *path = if images.get(i).is_some_and(fits) { Path::Sm } else { Path::Threads };
                }
            }
            return paths;
        }
        Some(_) => return paths,
    }
    relieve_engines(images, threads, speeds, &mut paths);
    paths
}

/// Whether the SMs are done with the images that engines could take, too, clearly before the engines are.
fn are_faster_on_sms(images: &[Candidate], speeds: &Speeds) -> bool {
    let either: Vec<Candidate> =
        images.iter().filter(|image| image.engines && image.sms.is_some()).copied().collect();
    !either.is_empty()
        && SM_MARGIN * speeds.sm_time(&either) < speeds.engines_time(either.iter().map(|image| image.size))
}

/// Which images on the engines are beyond the part of them that stays there: the smaller ones.
fn beyond(load: f32, images: &[Candidate], paths: &[Path]) -> Vec<usize> {
    let mut movable = by_cost(images);
    movable.retain(|&(i, _)| paths.get(i) == Some(&Path::Engines));
    let kept = (f64::from(load.clamp(0.0, 1.0)) * movable.len() as f64).round() as usize;
    movable.into_iter().skip(kept).map(|(i, _)| i).collect()
}

/// Places of images and how long a thread takes for them, the longest first.
fn by_cost(images: &[Candidate]) -> Vec<(usize, f64)> {
    let mut order: Vec<(usize, f64)> = images.iter().map(|image| THREAD.of(image.size)).enumerate().collect();
    order.sort_by(|(i, a), (j, b)| b.total_cmp(a).then(i.cmp(j)));
    order
}

/// Moves images from the engines to the threads, so that both are done at the same time.
fn relieve_engines(images: &[Candidate], threads: usize, speeds: &Speeds, paths: &mut [Path]) {
    if threads == 0 || !paths.contains(&Path::Engines) {
        return;
    }
    let upload_of = |i: usize| images.get(i).map_or(0.0, |image| image.upload as f64 / UPLOAD_SPEED);
    let on_engine = |i: usize| images.get(i).map_or(0.0, |image| ENGINE.of(image.size));
    let on = |wanted: Path| {
        let mut order = by_cost(images);
        order.retain(|&(i, _)| paths.get(i) == Some(&wanted));
        order
    };
    let (movable, fixed) = (on(Path::Engines), on(Path::Threads));
    let mut loads = vec![THREADS_START; threads.min(images.len())];
    let mut upload: f64 = fixed.iter().map(|&(i, _)| upload_of(i)).sum();
    let mut done = fullest(&mut loads, fixed.into_iter().map(|(_, cost)| cost / speeds.thread));
    let mut total: f64 = movable.iter().map(|&(i, _)| on_engine(i)).sum();
    let mut count = movable.len();
    // What stays: its largest is the first that was not moved. The longest for a thread first: what does not fit on the
    // threads any more may still do so with a smaller one.
    let mut largest = None;
    for (place, &(i, cost)) in movable.iter().enumerate() {
        let next = movable.get(place + 1).map_or(0.0, |&(i, _)| on_engine(i));
        let shared = (total - on_engine(i)) / speeds.count as f64;
        let rest = shared.max(largest.unwrap_or(next)).max(ENGINES_EACH * (count - 1) as f64);
        let after = (ENGINES_OVERHEAD + rest) / speeds.engines;
        let fits = least(&mut loads).filter(|least| {
            let done = done.max(**least + cost / speeds.thread);
            done + upload + upload_of(i) <= after
        });
        match fits {
            Some(least) => {
                *least += cost / speeds.thread;
                done = done.max(*least);
                upload += upload_of(i);
                total -= on_engine(i);
                count -= 1;
                if let Some(path) = paths.get_mut(i) {
                    *path = Path::Threads;
                }
            }
            None => largest = largest.or(Some(on_engine(i))),
        }
    }
}

fn least(loads: &mut [f64]) -> Option<&mut f64> {
    loads.iter_mut().min_by(|a, b| a.total_cmp(b))
}

#[cfg(test)]
mod tests;
