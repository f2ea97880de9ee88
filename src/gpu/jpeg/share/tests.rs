//! Decisions and predictions for batches of every kind.

use super::*;

const TINY: usize = 10_000;
const SMALL: usize = 69_000;

/// Files with so many bytes, of quality 90 or so.
fn batch(sizes: &[usize]) -> Vec<Candidate> {
    let candidate = |&bytes| Candidate { size: size(bytes), upload: 8 * bytes, engines: true, sms: None };
    sizes.iter().map(candidate).collect()
}

fn size(bytes: usize) -> Size {
    Size { bytes, pixels: bytes * 8 / 3 }
}

fn on_threads(paths: &[Path]) -> usize {
    paths.iter().filter(|path| **path == Path::Threads).count()
}

#[test]
fn small_batches_are_for_the_engines_alone() {
    let speeds = Speeds::new(7, 132);
    for count in [1, 2, 7, 32] {
        let paths = assign(&batch(&vec![SMALL; count]), 16, &speeds, None);
        assert_eq!(on_threads(&paths), 0, "{count}");
    }
}

#[test]
fn a_large_batch_gives_each_thread_what_it_can_finish() {
    let speeds = Speeds::new(7, 132);
    for count in [128, 256] {
        let moved = on_threads(&assign(&batch(&vec![SMALL; count]), 16, &speeds, None));
        let on_a_thread = size(SMALL).on_a_thread().as_secs_f64();
        let threads = THREADS_START + moved.div_ceil(16) as f64 * on_a_thread;
        let upload = (moved * 8 * SMALL) as f64 / UPLOAD_SPEED;
        assert!(moved >= 16, "{moved} of {count}");
        // The threads are done first.
        assert!(threads + upload <= engines_time(&speeds, count - moved, SMALL), "{moved} of {count}");
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
    let speeds = Speeds { thread: 0.5, ..Speeds::new(7, 132) };
    let mut sizes = vec![500_000; 60];
    sizes.extend([30_000; 8]);
    let paths = assign(&batch(&sizes), 4, &speeds, None);
    // A large file takes a thread 18 ms and the engines 10 ms for all of them: none moves, but all small ones do.
    assert_eq!(on_threads(&paths[..60]), 0);
    assert_eq!(on_threads(&paths[60..]), 8);
}

#[test]
fn the_authors_load_is_a_part_of_what_the_engines_can_do() {
    let speeds = Speeds::new(7, 132);
    let sizes: Vec<usize> = (1..=20).map(|i| i * 1_000).collect();
    let mut images = batch(&sizes);
    let share = |images: &[Candidate], load| on_threads(&assign(images, 4, &speeds, Some(Wish::Load(load))));
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
    let [half, one] = [0.5, 1.0].map(Duration::from_secs_f64);
    for _ in 0..40 {
        speeds.threads_took(one, half);
    }
    assert!((speeds.thread - 2.0).abs() < 0.01);
    speeds.threads_took(Duration::ZERO, one);
    speeds.threads_took(one, Duration::ZERO);
    assert!((speeds.thread - 2.0).abs() < 0.01);
    // Twice as fast threads take more images.
    let moved = |speeds: &Speeds| on_threads(&assign(&batch(&[SMALL; 128]), 16, speeds, None));
    assert!(moved(&speeds) > moved(&Speeds::new(7, 132)));
    for _ in 0..100 {
        speeds.threads_took(Duration::from_nanos(1), one);
    }
    assert_eq!(speeds.thread, 1.0 / RANGE);
}

/// Of `count` files of `bytes` bytes.
fn engines_time(speeds: &Speeds, count: usize, bytes: usize) -> f64 {
    speeds.engines_time(std::iter::repeat_n(size(bytes), count))
}

#[test]
fn engines_are_as_fast_as_bounds_on_their_time_say() {
    let mut speeds = Speeds::new(7, 132);
    let files = [size(SMALL); 128];
    let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
    let first = speeds;
    // 3.8 ms are predicted.
    speeds.engines_took(&files, ms(2.0), None);
    speeds.engines_took(&files, ms(2.0), Some(ms(5.0)));
    speeds.engines_took(&[], ms(2.0), Some(ms(5.0)));
    assert_eq!(speeds, first);
    for _ in 0..60 {
        speeds.engines_took(&files, ms(6.8), None);
    }
    assert!((engines_time(&speeds, 128, SMALL) / 6.8e-3 - 1.0).abs() < 0.02);
    for _ in 0..60 {
        speeds.engines_took(&files, ms(0.0), Some(ms(3.0)));
    }
    assert!((engines_time(&speeds, 128, SMALL) / 3.0e-3 - 1.0).abs() < 0.02);
    for _ in 0..200 {
        speeds.engines_took(&files, ms(0.0), Some(ms(0.0)));
    }
    assert!(speeds.engines <= RANGE);
    // One batch that the system held up says little, and is forgotten.
    speeds = first;
    speeds.engines_took(&files, ms(500.0), None);
    assert!((0.79..0.81).contains(&speeds.engines), "{speeds:?}");
    (0..300).for_each(|_| speeds.engines_rested());
    assert!(speeds.engines > 0.98, "{speeds:?}");
}

#[test]
fn one_large_image_takes_one_engine() {
    let speeds = Speeds::new(7, 132);
    let alone = engines_time(&speeds, 1, 500_000);
    assert!((alone - ENGINES_OVERHEAD - ENGINE.of(size(500_000))).abs() < 1e-9);
    assert!(engines_time(&speeds, 7, 500_000) - alone < 1e-9);
    assert!(engines_time(&speeds, 8, 500_000) > 1.9 * alone);
}

fn for_all(sizes: &[usize]) -> Vec<Candidate> {
    let sms = |bytes| Some(SmNeed { scratch: 10 * bytes, mcu_bits: 768 });
    batch(sizes).into_iter().map(|image| Candidate { sms: sms(image.size.bytes), ..image }).collect()
}

#[test]
fn sms_take_large_batches_and_large_images() {
    let speeds = Speeds::new(7, 132);
    let paths = |sizes: &[usize]| assign(&for_all(sizes), 16, &speeds, None);
    assert_eq!(paths(&[TINY]), [Path::Engines]);
    assert_eq!(paths(&[TINY, TINY]), [Path::Engines; 2]);
    assert_eq!(paths(&[SMALL]), [Path::Sm]);
    assert_eq!(paths(&[SMALL; 8]), [Path::Sm; 8]);
    assert_eq!(paths(&[500_000]), [Path::Sm]);
    assert_eq!(paths(&[SMALL; 128]), [Path::Sm; 128]);
    // A device with few multiprocessors leaves more to its engines.
    let on = |multiprocessors| assign(&for_all(&[SMALL; 128]), 0, &Speeds::new(7, multiprocessors), None);
    assert_eq!(on(8), [Path::Engines; 128]);
    assert_eq!(on(16), [Path::Sm; 128]);
}

#[test]
fn a_path_is_taken_by_all_that_can() {
    let mut images = for_all(&[SMALL; 4]);
    images[1].engines = false;
    images[2].sms = None;
    (images[3].engines, images[3].sms) = (false, None);
    let on = |path| assign(&images, 16, &Speeds::new(7, 132), Some(Wish::Path(path)));
    use Path::{Engines, Sm, Threads};
    assert_eq!(on(Engines), [Engines, Sm, Engines, Threads]);
    assert_eq!(on(Sm), [Sm, Sm, Engines, Threads]);
    assert_eq!(on(Threads), [Threads; 4]);
    let repeatable = assign(&images, 16, &Speeds::new(7, 132), Some(Wish::Repeatable));
    assert_eq!(repeatable, [Sm, Sm, Threads, Threads]);
    // What an author's part for the engines leaves.
    let half = assign(&for_all(&[SMALL; 4]), 16, &Speeds::new(7, 132), Some(Wish::Load(0.5)));
    assert_eq!(half, [Engines, Engines, Sm, Sm]);
}

#[test]
fn sms_take_no_more_than_there_is_memory_for() {
    const SCRATCH: usize = 1 << 20;
    let mut images = for_all(&[SMALL; 128]);
    for (i, image) in images.iter_mut().enumerate() {
        image.sms = Some(SmNeed { scratch: SCRATCH + usize::from(i >= 100), mcu_bits: 768 });
    }
    // Many are decoded in groups, each in the same memory.
    let paths = assign(&images, 0, &Speeds::new(7, 132).within(SCRATCH), None);
    assert_eq!(paths.iter().filter(|path| **path == Path::Sm).count(), 100);
    assert!(paths[100..].iter().all(|path| *path == Path::Engines));
}

#[test]
fn what_is_predicted_decides() {
    let speeds = Speeds::new(7, 132);
    for sizes in [&[SMALL; 1][..], &[SMALL; 4], &[SMALL; 64], &[500_000]] {
        let images = for_all(sizes);
        let Predicted { engines, sms, threads } = speeds.predict(&images, 16);
        let chosen = assign(&images, 16, &speeds, None);
        assert_eq!(chosen.contains(&Path::Sm), SM_MARGIN * sms < engines, "{} files", sizes.len());
        assert!(threads >= THREADS_START + size(SMALL).on_a_thread().as_secs_f64());
    }
    assert_eq!(speeds.predict(&[], 0).engines, 0.0);
}
