//! Runs of a video are decoded at the same time; of their errors there is the one of the earliest frame, whichever came
//! first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, yield_now};
use std::time::{Duration, Instant};

use gesso::cpu::video::{Budget, Frame, Video};
use gesso::error::Error;

use crate::video::bytes;

/// Longer than two threads of one pool take to begin.
const PATIENCE: Duration = Duration::from_secs(20);

fn within(threads: usize, work: impl FnOnce() -> String + Send) -> String {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// Waits until `flag` is set, which somebody at work in another thread does.
fn wait(flag: &AtomicBool) {
    let begun = Instant::now();
    while !flag.load(Ordering::SeqCst) && begun.elapsed() < PATIENCE {
        yield_now();
    }
}

#[test]
fn the_error_is_that_of_the_earliest_frame() {
    // Key frames stand at 0, 5 and 10. Who has done the first run takes the last one while another has the middle one.
    let file = bytes("vp9.webm");
    let video = Video::open(&file).unwrap();
    let size = video.height() * video.width() * 3;
    for _ in 0..10 {
        let (has_begun, has_failed) = (AtomicBool::new(false), AtomicBool::new(false));
        let write = |_: &Frame<'_>, target: &mut [u8]| {
            // What a frame is written to says which one it is.
            match target[0] {
                0 => wait(&has_begun),
                6 => {
                    has_begun.store(true, Ordering::SeqCst);
                    wait(&has_failed);
                    // The other thread hands its error on.
                    sleep(Duration::from_millis(20));
                    return Err(Error::invalid("frame 6"));
                }
                10 => {
                    has_failed.store(true, Ordering::SeqCst);
                    return Err(Error::invalid("frame 10"));
                }
                _ => {}
            }
            Ok(())
        };
        let found = within(2, || {
            let mut out: Vec<Vec<u8>> = (0..12).map(|frame| vec![frame; size]).collect();
            let targets = out.iter_mut().enumerate().map(|(frame, out)| (Some(frame), out.as_mut_slice()));
            let nothing = |_: &mut [u8]| Ok(());
            let error = video.write_each(targets.collect(), &nothing, &write, &Budget::default(), 2);
            error.unwrap_err().to_string()
        });
        assert_eq!(found, "frame 6");
        assert!(has_failed.into_inner());
    }
}

#[test]
fn a_damaged_video_has_one_error_however_many_threads_there_are() {
    for name in ["h265_10_bits.mkv", "h265.hevc", "h264.h264"] {
        // Several key frames stand there.
        let mut file = bytes(name);
        let (from, end) = (file.len() / 3, file.len() - file.len() / 8);
        file[from..end].iter_mut().step_by(37).for_each(|byte| *byte ^= 0xA5);
        let Ok(video) = Video::open(&file) else { panic!("{name} does not open") };
        let frames: Vec<_> = (0..video.frames()).map(Some).collect();
        let error = |threads| {
            within(threads, || {
                let mut out = vec![0; frames.len() * video.height() * video.width() * 3];
                let budget = Budget::default().by_own_decoders();
                let done = video.write_all(&frames, [0; 3], &mut out, &budget, threads);
                done.unwrap_err().to_string()
            })
        };
        let one = error(1);
        for round in 0..20 {
            assert_eq!(error(2 + round % 3), one, "{name}");
        }
    }
}
