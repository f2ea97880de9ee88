//! Decisions and predictions for batches of every kind.

use super::*;

const SMALL: usize = 69_000;

fn batch(sizes: &[usize]) -> Vec<Candidate> {
    sizes.iter().map(|&bytes| Candidate { bytes, pixels: 8 * bytes, engines: true, cores: None }).collect()
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
        assert!(threads + upload <= speeds.engines_time((size - moved) * SMALL, SMALL), "{moved} of {size}");
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

#[test]
fn what_is_predicted_decides() {
    let speeds = Speeds::new(7, 132);
    for sizes in [&[SMALL; 1][..], &[SMALL; 4], &[SMALL; 64], &[500_000]] {
        let images = for_all(sizes);
        let Predicted { engines, cores, threads } = speeds.predict(&images, 16);
        let chosen = assign(&images, 16, &speeds, None);
        assert_eq!(chosen.contains(&Path::Cores), cores < engines, "{} files", sizes.len());
        assert!(threads >= THREADS_START + SMALL as f64 / THREAD_SPEED);
    }
    assert_eq!(speeds.predict(&[], 0).engines, 0.0);
}
