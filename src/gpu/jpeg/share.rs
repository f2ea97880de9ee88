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

    /// Seconds that the engines need.
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
    let cores = CORES_START + total as f64 / speeds.cores;
    let following = (total - largest) as f64 / (FOLLOWING * speeds.engines);
    cores < speeds.engines_time(largest, largest) + following
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
mod tests {
    use super::*;

    const SMALL: usize = 69_000;

    fn batch(sizes: &[usize]) -> Vec<Candidate> {
        sizes
            .iter()
            .map(|&bytes| Candidate { bytes, pixels: 8 * bytes, engines: true, cores: None })
            .collect()
    }

    fn on_threads(paths: &[Path]) -> usize {
        paths.iter().filter(|path| **path == Path::Threads).count()
    }

    #[test]
    fn small_batches_are_for_the_engines_alone() {
        let speeds = Speeds::new(7, 132);
        for size in [1, 2, 7, 32] {
            let paths = assign(&batch(&vec![SMALL; size]), 16, &speeds, None);
            assert_eq!(on_threads(&paths), 0, "{size}");
        }
    }

    #[test]
    fn a_large_batch_gives_each_thread_what_it_can_finish() {
        let speeds = Speeds::new(7, 132);
        for size in [128, 256] {
            let moved = on_threads(&assign(&batch(&vec![SMALL; size]), 16, &speeds, None));
            let rounds = moved.div_ceil(16) as f64;
            let threads = THREADS_START + rounds * SMALL as f64 / THREAD_SPEED;
            let upload = (moved * 8 * SMALL) as f64 / UPLOAD_SPEED;
            assert!(moved >= 16, "{moved} of {size}");
            // The threads are done first.
            assert!(
                threads + upload <= speeds.engines_time((size - moved) * SMALL, SMALL),
                "{moved} of {size}"
            );
        }
        assert_eq!(on_threads(&assign(&batch(&[SMALL; 128]), 0, &speeds, None)), 0);
    }

    #[test]
    fn what_the_engines_cannot_do_fills_the_threads_first() {
        let speeds = Speeds::new(7, 132);
        let mut images = batch(&[SMALL; 128]);
        for image in &mut images[..16] {
            image.engines = false;
        }
        let paths = assign(&images, 16, &speeds, None);
        assert!(paths[..16].iter().all(|path| *path == Path::Threads));
        assert!((16..32).contains(&on_threads(&paths)), "{}", on_threads(&paths));
        for image in &mut images {
            image.engines = false;
        }
        assert_eq!(on_threads(&assign(&images, 16, &speeds, None)), 128);
        assert_eq!(on_threads(&assign(&images, 16, &speeds, Some(Wish::Load(1.0)))), 128);
    }

    #[test]
    fn small_files_follow_where_large_ones_do_not_fit() {
        let speeds = Speeds { thread: 30e6, ..Speeds::new(7, 132) };
        let mut sizes = vec![500_000; 60];
        sizes.extend([30_000; 8]);
        let paths = assign(&batch(&sizes), 4, &speeds, None);
        // A large file takes a thread 17 ms and the engines 11 ms for all of them: none moves, but all small ones do.
        assert_eq!(on_threads(&paths[..60]), 0);
        assert_eq!(on_threads(&paths[60..]), 8);
    }

    #[test]
    fn the_authors_load_is_a_part_of_what_the_engines_can_do() {
        let speeds = Speeds::new(7, 132);
        let sizes: Vec<usize> = (1..=20).map(|i| i * 1_000).collect();
        let mut images = batch(&sizes);
        let share =
            |images: &[Candidate], load| on_threads(&assign(images, 4, &speeds, Some(Wish::Load(load))));
        assert_eq!([0.0, 0.65, 1.0, 7.0, f32::NAN].map(|load| share(&images, load)), [20, 7, 0, 0, 20]);
        images[0].engines = false;
        images[1].engines = false;
        assert_eq!(share(&images, 0.5), 11);
    }

    #[test]
    fn nothing_is_assigned_of_an_empty_batch() {
        assert!(assign(&[], 4, &Speeds::new(7, 132), None).is_empty());
        assert!(assign(&[], 0, &Speeds::new(0, 0), Some(Wish::Load(0.5))).is_empty());
    }

    #[test]
    fn a_thread_is_as_fast_as_it_was_lately() {
        let mut speeds = Speeds::new(7, 132);
        for _ in 0..40 {
            speeds.threads_took(160_000_000, Duration::from_secs(1));
        }
        assert!((speeds.thread / 160e6 - 1.0).abs() < 0.01);
        speeds.threads_took(0, Duration::from_secs(1));
        speeds.threads_took(1_000, Duration::ZERO);
        assert!((speeds.thread / 160e6 - 1.0).abs() < 0.01);
        // Twice as fast threads take more images.
        let moved = |speeds: &Speeds| on_threads(&assign(&batch(&[SMALL; 128]), 16, speeds, None));
        assert!(moved(&speeds) > moved(&Speeds::new(7, 132)));
        for _ in 0..100 {
            speeds.threads_took(1, Duration::from_secs(9));
        }
        assert_eq!(speeds.thread, THREAD_SPEED / RANGE);
    }

    #[test]
    fn engines_are_as_fast_as_bounds_on_their_time_say() {
        let mut speeds = Speeds::new(7, 132);
        let total = 128 * SMALL;
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        let first = speeds;
        // 3.4 ms are predicted.
        speeds.engines_took(total, SMALL, ms(2.0), None);
        speeds.engines_took(total, SMALL, ms(2.0), Some(ms(5.0)));
        speeds.engines_took(0, 0, ms(2.0), Some(ms(5.0)));
        assert_eq!(speeds, first);
        for _ in 0..60 {
            speeds.engines_took(total, SMALL, ms(6.8), None);
        }
        assert!((speeds.engines_time(total, SMALL) / 6.8e-3 - 1.0).abs() < 0.02);
        for _ in 0..60 {
            speeds.engines_took(total, SMALL, ms(0.0), Some(ms(3.0)));
        }
        assert!((speeds.engines_time(total, SMALL) / 3.0e-3 - 1.0).abs() < 0.02);
        for _ in 0..200 {
            speeds.engines_took(total, SMALL, ms(0.0), Some(ms(0.0)));
        }
        assert!(speeds.engines <= ENGINE_SPEED * 7.0 * RANGE);
    }

    #[test]
    fn one_large_image_takes_one_engine() {
        let speeds = Speeds::new(7, 132);
        let alone = speeds.engines_time(500_000, 500_000);
        assert!((alone - 500_000.0 / ENGINE_SPEED).abs() < 2.0 * ENGINES_OVERHEAD);
        assert!(speeds.engines_time(7 * 500_000, 500_000) - alone < 1e-6);
    }

    fn for_all(sizes: &[usize]) -> Vec<Candidate> {
        batch(sizes).into_iter().map(|image| Candidate { cores: Some(10 * image.bytes), ..image }).collect()
    }

    #[test]
    fn cores_take_large_batches_and_large_images() {
        let speeds = Speeds::new(7, 132);
        let paths = |sizes: &[usize]| assign(&for_all(sizes), 16, &speeds, None);
        assert_eq!(paths(&[SMALL]), [Path::Engines]);
        assert_eq!(paths(&[SMALL, SMALL]), [Path::Engines; 2]);
        assert_eq!(paths(&[SMALL; 8]), [Path::Cores; 8]);
        assert_eq!(paths(&[500_000]), [Path::Cores]);
        assert_eq!(paths(&[SMALL; 128]), [Path::Cores; 128]);
        // A device with few multiprocessors leaves more to its engines.
        let slow = assign(&for_all(&[SMALL; 128]), 0, &Speeds::new(7, 20), None);
        assert_eq!(slow, [Path::Engines; 128]);
    }

    #[test]
    fn a_path_is_taken_by_all_that_can() {
        let mut images = for_all(&[SMALL; 4]);
        images[1].engines = false;
        images[2].cores = None;
        (images[3].engines, images[3].cores) = (false, None);
        let on = |path| assign(&images, 16, &Speeds::new(7, 132), Some(Wish::Path(path)));
        use Path::{Cores, Engines, Threads};
        assert_eq!(on(Engines), [Engines, Cores, Engines, Threads]);
        assert_eq!(on(Cores), [Cores, Cores, Engines, Threads]);
        assert_eq!(on(Threads), [Threads; 4]);
        // What an author's part for the engines leaves.
        let half = assign(&for_all(&[SMALL; 4]), 16, &Speeds::new(7, 132), Some(Wish::Load(0.5)));
        assert_eq!(half, [Engines, Engines, Cores, Cores]);
    }

    #[test]
    fn cores_take_no_more_than_there_is_memory_for() {
        let mut images = for_all(&[SMALL; 128]);
        for image in &mut images {
            image.cores = Some(limits::MAX_CORES_SCRATCH_BYTES / 100);
        }
        let paths = assign(&images, 0, &Speeds::new(7, 132), None);
        assert_eq!(paths.iter().filter(|path| **path == Path::Cores).count(), 100);
        assert!(paths[100..].iter().all(|path| *path == Path::Engines));
    }
}
