//! A reader that leaves decoding to operators gives, with these, what it gives alone.

use std::collections::BTreeMap;

use super::*;
use crate::operator::testing;
use crate::ops;
use crate::readers::ReaderDef;
use crate::tensor::{Batch, BatchDesc};

fn clip(name: &str) -> String {
    format!("{}/tests/data/video/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn int(value: i64) -> Value {
    Value::Ints(vec![value])
}

fn text(value: &str) -> Value {
    Value::Strings(vec![value.to_owned()])
}

/// A batch of one.
fn batch(tensor: &Tensor, dtype: DType) -> Batch<'static> {
    let desc = BatchDesc::new(dtype, Layout::NONE, vec![tensor.shape.clone()]);
    Batch::new(desc, vec![tensor.bytes.clone()]).unwrap()
}

/// Shape and bytes of what the operators of `undecoded` make of the first two of `tensors`.
fn made(undecoded: &Undecoded, args: &Args, tensors: &[Tensor]) -> (Shape, Vec<u8>) {
    let mut input = batch(&tensors[0], DType::U8);
    let mut made = None;
    for Step { operator, values, argument } in (undecoded.steps)(args).unwrap() {
        let numbers: Vec<Batch<'_>> = argument.map(|_| batch(&tensors[1], DType::I32)).into_iter().collect();
        let args = Args::new(values, argument.map(|name| (name.to_owned(), 0)).into_iter().collect());
        let done = testing::run(ops::find(operator).unwrap(), &args, &[input], &numbers).unwrap();
        let shape = done.desc.shapes[0].clone();
        let bytes = bytemuck::cast_slice(done.words(0).unwrap())
            [..shape.bytes(done.desc.dtype.size()).unwrap()]
            .to_vec();
        let mut own = Arc::<HostPool>::default().take(bytes.len()).unwrap();
        own.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        let dtype = done.desc.dtype;
        let again = Tensor {
            dtype,
            shape: shape.clone(),
            bytes: Sample::Pooled(Arc::new(own), 0..bytes.len()),
            source: String::new(),
        };
        input = batch(&again, done.desc.dtype);
        made = Some((shape, bytes));
    }
    made.unwrap()
}

fn compare(def: &ReaderDef, values: &[(&str, Value)]) -> usize {
    let files = Value::Strings(["vp9.webm", "h264_open.mp4"].map(clip).to_vec());
    let mut all: BTreeMap<String, Value> =
        [("filenames".to_owned(), files), ("labels".to_owned(), Value::Ints(vec![4, 7]))].into();
    all.extend(values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let args = def.arguments(all);
    let undecoded = def.undecoded.unwrap();
    let (whole, parts) = ((def.open)(&args).unwrap(), (undecoded.open)(&args).unwrap());
    assert_eq!((def.outputs)(&args).unwrap()[1..], (undecoded.outputs)(&args).unwrap()[2..]);
    assert_eq!(whole.count(), parts.count());
    let memory = Arc::default();
    for index in 0..whole.count() {
        let (wanted, found) = (whole.read(index, &memory).unwrap(), parts.read(index, &memory).unwrap());
        let (shape, bytes) = made(undecoded, &args, &found);
        assert_eq!(shape, wanted[0].shape);
        assert!(bytes == wanted[0].bytes.bytes(), "the frames of sequence {index} of {values:?} differ");
        for (wanted, found) in wanted[1..].iter().zip(&found[2..]) {
            assert_eq!((&wanted.shape, wanted.bytes.bytes()), (&found.shape, found.bytes.bytes()));
        }
        assert_eq!(wanted.len() + 1, found.len());
    }
    whole.count()
}

#[test]
fn operators_make_the_frames_that_a_reader_leaves_to_them() {
    let length = || ("sequence_length", int(5));
    let newer: [&[(&str, Value)]; 5] = [
        &[length()],
        &[length(), ("stride", int(2)), ("enable_frame_num", text("scalar"))],
        &[
            length(),
            ("pad_mode", text("constant")),
            ("fill_value", Value::Ints(vec![9, 8, 7])),
            ("enable_frame_num", text("sequence")),
        ],
        &[length(), ("pad_mode", text("reflect_101")), ("enable_timestamps", int(1))],
        &[length(), ("uniform_sample", int(1))],
    ];
    for values in newer {
        assert!(compare(&DEF, values) >= 2, "{values:?}");
    }
    let older: [&[(&str, Value)]; 3] = [
        &[length(), ("pad_sequences", int(1))],
        &[length(), ("dtype", int(DType::F32 as i64))],
        &[length(), ("dtype", int(DType::F32 as i64)), ("normalized", int(1))],
    ];
    for values in older {
        assert!(compare(&OLDER, values) >= 2, "{values:?}");
    }
}

#[test]
fn sequences_of_one_file_share_its_bytes() {
    let files = Value::Strings(vec![clip("vp9.webm")]);
    let args =
        DEF.arguments([("filenames".to_owned(), files), ("sequence_length".to_owned(), int(2))].into());
    let dataset = (DEF.undecoded.unwrap().open)(&args).unwrap();
    let memory = Arc::default();
    let address = |index: usize| dataset.read(index, &memory).unwrap()[0].bytes.bytes().as_ptr();
    assert_eq!(address(0), address(1));
}

#[test]
fn what_operators_decode_has_the_name_of_its_file() {
    let names = ["vp9.webm", "h264.mp4"].map(clip);
    let values =
        [("filenames".to_owned(), Value::Strings(names.to_vec())), ("sequence_length".to_owned(), int(6))];
    let args = DEF.arguments(values.into());
    let memory = Arc::default();
    let origins = |undecoded| {
        let mut source = (DEF.source(&args, undecoded).unwrap())().unwrap();
        source.next(4, &memory).unwrap().unwrap().origins
    };
    let [first, second] = names.map(|name| format!("the video `{name}`"));
    assert_eq!(origins(DEF.undecoded), [first.clone(), first, second.clone(), second]);
    assert!(origins(None).is_empty());
}
