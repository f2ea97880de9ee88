//! Which image of a batch is decoded where: the one place that decides, from sizes of files and measured speeds. Pure
//! arithmetic: it must not know devices or threads.
//!
//! ```text
//! engines:  overhead + max(largest file on one engine, all their files on all engines)
//! threads:  start + the fullest thread, every file on one + the upload of all their pixels
//! ```
//!
//! Both start together, so the batch is done when the slower one is: images move from the engines to the threads as long as
//! the threads are done first. A batch that the engines finish before a thread has decoded one image stays with them.

use std::time::Duration;

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

/// Weight of the newest measurement.
const NEWEST: f64 = 0.2;

/// How far measured speeds may get from the first ones: a batch that the system held up must not stop a path for good.
const RANGE: f64 = 16.0;

impl Speeds {
    /// What is assumed of `count` engines before anything was measured.
    pub fn new(count: usize) -> Self {
        let count = count.max(1);
        Self { engines: ENGINE_SPEED * count as f64, count, thread: THREAD_SPEED }
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

/// Where each of `images` goes. `load` is the part of the images for the engines that the pipeline's author asked for;
/// without it, both paths shall be done at the same time. `threads` is the number of threads.
pub fn assign(images: &[Candidate], threads: usize, speeds: &Speeds, load: Option<f32>) -> Vec<Path> {
    let mut paths: Vec<Path> =
        images.iter().map(|image| if image.engines { Path::Engines } else { Path::Threads }).collect();
    // The largest first: what does not fit on the threads any more may still do so with a smaller one.
    let pixels = |i: usize| images.get(i).map_or(0.0, |image| image.pixels as f64 / UPLOAD_SPEED);
    let mut order: Vec<(usize, usize)> = images.iter().map(|image| image.bytes).enumerate().collect();
    order.sort_by_key(|&(i, bytes)| (std::cmp::Reverse(bytes), i));
    let (movable, fixed): (Vec<_>, Vec<_>) =
        order.into_iter().partition(|&(i, _)| paths.get(i) == Some(&Path::Engines));
    let mut set = |i: usize| {
        if let Some(path) = paths.get_mut(i) {
            *path = Path::Threads;
        }
    };
    if let Some(load) = load {
        let kept = (f64::from(load.clamp(0.0, 1.0)) * movable.len() as f64).round() as usize;
        movable.iter().skip(kept).for_each(|&(i, _)| set(i));
        return paths;
    }
    if threads == 0 {
        return paths;
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
    paths
}

fn least(loads: &mut [f64]) -> Option<&mut f64> {
    loads.iter_mut().min_by(|a, b| a.total_cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: usize = 69_000;

    fn batch(sizes: &[usize]) -> Vec<Candidate> {
        sizes.iter().map(|&bytes| Candidate { bytes, pixels: 8 * bytes, engines: true }).collect()
    }

    fn on_threads(paths: &[Path]) -> usize {
        paths.iter().filter(|path| **path == Path::Threads).count()
    }

    #[test]
    fn small_batches_are_for_the_engines_alone() {
        let speeds = Speeds::new(7);
        for size in [1, 2, 7, 32] {
            let paths = assign(&batch(&vec![SMALL; size]), 16, &speeds, None);
            assert_eq!(on_threads(&paths), 0, "{size}");
        }
    }

    #[test]
    fn a_large_batch_gives_each_thread_what_it_can_finish() {
        let speeds = Speeds::new(7);
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
        let speeds = Speeds::new(7);
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
        assert_eq!(on_threads(&assign(&images, 16, &speeds, Some(1.0))), 128);
    }

    #[test]
    fn small_files_follow_where_large_ones_do_not_fit() {
        let speeds = Speeds { thread: 30e6, ..Speeds::new(7) };
        let mut sizes = vec![500_000; 60];
        sizes.extend([30_000; 8]);
        let paths = assign(&batch(&sizes), 4, &speeds, None);
        // A large file takes a thread 17 ms and the engines 11 ms for all of them: none moves, but all small ones do.
        assert_eq!(on_threads(&paths[..60]), 0);
        assert_eq!(on_threads(&paths[60..]), 8);
    }

    #[test]
    fn the_authors_load_is_a_part_of_what_the_engines_can_do() {
        let speeds = Speeds::new(7);
        let sizes: Vec<usize> = (1..=20).map(|i| i * 1_000).collect();
        let mut images = batch(&sizes);
        let share = |images: &[Candidate], load| on_threads(&assign(images, 4, &speeds, Some(load)));
        assert_eq!([0.0, 0.65, 1.0, 7.0, f32::NAN].map(|load| share(&images, load)), [20, 7, 0, 0, 20]);
        images[0].engines = false;
        images[1].engines = false;
        assert_eq!(share(&images, 0.5), 11);
    }

    #[test]
    fn nothing_is_assigned_of_an_empty_batch() {
        assert!(assign(&[], 4, &Speeds::new(7), None).is_empty());
        assert!(assign(&[], 0, &Speeds::new(0), Some(0.5)).is_empty());
    }

    #[test]
    fn a_thread_is_as_fast_as_it_was_lately() {
        let mut speeds = Speeds::new(7);
        for _ in 0..40 {
            speeds.threads_took(160_000_000, Duration::from_secs(1));
        }
        assert!((speeds.thread / 160e6 - 1.0).abs() < 0.01);
        speeds.threads_took(0, Duration::from_secs(1));
        speeds.threads_took(1_000, Duration::ZERO);
        assert!((speeds.thread / 160e6 - 1.0).abs() < 0.01);
        // Twice as fast threads take more images.
        let moved = |speeds: &Speeds| on_threads(&assign(&batch(&[SMALL; 128]), 16, speeds, None));
        assert!(moved(&speeds) > moved(&Speeds::new(7)));
        for _ in 0..100 {
            speeds.threads_took(1, Duration::from_secs(9));
        }
        assert_eq!(speeds.thread, THREAD_SPEED / RANGE);
    }

    #[test]
    fn engines_are_as_fast_as_bounds_on_their_time_say() {
        let mut speeds = Speeds::new(7);
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
        let speeds = Speeds::new(7);
        let alone = speeds.engines_time(500_000, 500_000);
        assert!((alone - 500_000.0 / ENGINE_SPEED).abs() < 2.0 * ENGINES_OVERHEAD);
        assert!(speeds.engines_time(7 * 500_000, 500_000) - alone < 1e-6);
    }
}
