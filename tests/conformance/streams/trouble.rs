//! What sources do wrong, and streams that nobody wants any more.

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use gesso::error::{Error, ErrorKind, Result};
use gesso::memory::HostPool;
use gesso::pipeline::{Pipeline, Stream};
use gesso::source::{MakeSource, Pulled};
use gesso::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, Shape};
use parking_lot::Mutex;

use super::{IMAGE, Scripted, file, images, noises, scripted, settings, up_to};

/// What came of each batch: how many samples were before it, or why there is none.
fn came(stream: &mut Stream) -> Vec<Result<u64, String>> {
    stream.map(|delivered| delivered.map(|d| d.first).map_err(|error| error.to_string())).collect()
}

/// Ten batches of one image, but batch `number` is what `odd` makes of it.
fn but(number: usize, odd: fn(&Arc<HostPool>) -> Result<Option<Pulled>>) -> MakeSource {
    scripted(move || {
        let mut next = 0;
        move |_, memory: &Arc<HostPool>| {
            next += 1;
            match next - 1 {
                10 => Ok(None),
                now if now == number => odd(memory),
                now => images(now..now + 1, memory).map(Some),
            }
        }
    })
}

#[test]
fn an_error_of_a_source_is_one_of_its_batch() {
    let pipeline = noises(but(3, |_| Err(Error::new(ErrorKind::Unavailable, "the disk is gone"))));
    for lanes in [1, 2, 4] {
        let mut expected: Vec<Result<u64, String>> = (0..9).map(Ok).collect();
        expected.insert(3, Err("source 0 (`X`): the disk is gone".to_owned()));
        assert_eq!(came(&mut pipeline.stream(&settings(4, lanes), None).unwrap()), expected, "{lanes} lanes");
    }
}

#[test]
fn after_a_panic_of_a_source_there_is_nothing_more() {
    let pipeline = noises(but(3, |_| panic!("as the test wants")));
    for lanes in [1, 2, 4] {
        let mut stream = pipeline.stream(&settings(4, lanes), None).unwrap();
        let found = came(&mut stream);
        assert_eq!(found[..3], [Ok(0), Ok(1), Ok(2)]);
        assert!(found[3].as_ref().unwrap_err().contains("a fault of the program"), "{found:?}");
        assert_eq!(found.len(), 4);
        assert!(stream.resume().is_err() && stream.next().is_none());
    }
}

#[test]
fn a_sample_that_cannot_be_had_fails_alone() {
    let source = but(0, |memory| {
        let two = images(0..2, memory)?.batches.remove(0);
        let shapes = vec![Shape::from(IMAGE), Shape::from([0, 0, 0]), Shape::from(IMAGE)];
        let samples = vec![two.sample(0).unwrap().clone(), Sample::Missing, two.sample(1).unwrap().clone()];
        let batch = Batch::new(BatchDesc::new(DType::U8, Layout::hwc(), shapes), samples)?;
        let failures = vec![(1, Error::not_found("no file `cat.jpg`"))];
        Ok(Some(Pulled { batches: vec![batch], failures, origins: Vec::new() }))
    });
    let mut stream = noises(source).stream(&settings(4, 1), None).unwrap();
    let outcome = stream.next().unwrap().unwrap().outcome;
    assert_eq!(outcome.failures.get(1).unwrap().to_string(), "source 0 (`X`): no file `cat.jpg`");
    assert!(outcome.failures.get(0).is_none() && outcome.failures.get(2).is_none());
    let size = IMAGE.iter().product::<usize>();
    assert_eq!([0, 2].map(|i| outcome.outputs[0].view(i).bytes.len()), [size; 2]);
}

#[test]
fn what_a_source_did_not_promise_is_an_error_of_the_batch() {
    type Odd = fn(&Arc<HostPool>) -> Result<Option<Pulled>>;
    let odd: [(&str, Odd); 5] = [
        ("at most 4", |memory| images(0..5, memory).map(Some)),
        ("without samples", |memory| images(0..0, memory).map(Some)),
        ("gives 2 batches, expected 1", |memory| {
            let mut pulled = images(0..1, memory)?;
            pulled.batches.extend(images(0..1, memory)?.batches);
            Ok(Some(pulled))
        }),
        ("expected uint8", |_| {
            let desc = BatchDesc::new(DType::I8, Layout::hwc(), vec![Shape::from([1, 1, 0])]);
            Ok(Some(vec![Batch::new(desc, vec![Sample::Borrowed(&[])])?].into()))
        }),
        ("expected `HWC`", |_| {
            let desc = BatchDesc::new(DType::U8, Layout::NONE, vec![Shape::from([1, 1, 0])]);
            Ok(Some(vec![Batch::new(desc, vec![Sample::Borrowed(&[])])?].into()))
        }),
    ];
    for (text, odd) in odd {
        let found = came(&mut noises(but(2, odd)).stream(&settings(4, 2), None).unwrap());
        assert_eq!(found.len(), 10, "{text}");
        assert!(found[2].as_ref().unwrap_err().contains(text), "{text}: {:?}", found[2]);
    }
}

#[test]
fn sources_that_do_not_fit_fail_the_load() {
    let file = file("batches/several_batches.zip", "noises");
    let load = |names: &[&[&str]]| {
        let sources: Vec<_> =
            names.iter().map(|names| (names.iter().map(|&n| n.to_owned()).collect(), up_to(1))).collect();
        Pipeline::load_with_sources(&file, Device::Cpu, &sources)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default()
    };
    assert_eq!(load(&[&["X"]]), "");
    assert!(load(&[&["Z"]]).contains("input `Z`: the pipeline has no such input"));
    assert!(load(&[&["X"], &["X"]]).contains("two sources"));
    assert!(load(&[&["X", "Z"]]).contains("1 outputs feeds 2 inputs"));
    let numbers = crate::streams::file("data/random.zip", "crop_windows");
    let sources = [(vec!["S".to_owned()], up_to(1))];
    let error = Pipeline::load_with_sources(&numbers, Device::Cpu, &sources).err().unwrap().to_string();
    assert!(error.contains("declared as int64, but its source gives uint8"), "{error}");
    // Who feeds is known to both sides.
    let error = noises(up_to(1)).instance(Some(1), None).err().unwrap().to_string();
    assert!(error.contains("`X` is fed by a source"), "{error}");
    let error = Pipeline::load(&file, Device::Cpu).unwrap().stream(&settings(1, 1), None).err().unwrap();
    assert!(error.to_string().contains("`X` is fed by no source"), "{error}");
}

#[test]
fn a_stream_can_be_dropped_at_any_time() {
    let pipeline = noises(up_to(20));
    for lanes in [1, 2, 4] {
        for taken in 0..8 {
            let mut stream = pipeline.stream(&settings(3, lanes), None).unwrap();
            assert_eq!(stream.by_ref().take(taken).count(), taken.min(7));
        }
        let mut stream = pipeline.stream(&settings(3, lanes), None).unwrap();
        stream.resume().unwrap();
    }
}

/// As a queue that another thread fills.
#[test]
fn a_source_that_waits_is_woken_when_its_stream_is_dropped() {
    let (say, waits) = channel();
    let waiting: MakeSource = Arc::new(move || {
        let (hold, held) = channel::<()>();
        let hold = Arc::new(Mutex::new(Some::<Sender<()>>(hold)));
        let (say, mut is_first) = (say.clone(), true);
        let next = move |_: usize, memory: &Arc<HostPool>| {
            if std::mem::take(&mut is_first) {
                return images(0..1, memory).map(Some);
            }
            say.send(()).unwrap();
            // Ends when the sender is dropped.
            let _ = held.recv();
            Ok(None)
        };
        Ok(Box::new(Scripted { next, interrupt: Some(Arc::new(move || drop(hold.lock().take()))) }))
    });
    let mut stream = noises(waiting).stream(&settings(1, 2), None).unwrap();
    assert_eq!(stream.next().unwrap().unwrap().first, 0);
    waits.recv().unwrap();
    drop(stream);
}
