//! The defaults in the tables are those that operators work with: an operator that is given all of them does what it does
//! without. Only a test.

use super::OPS;
use crate::operator::args::Value;
use crate::operator::{OpDef, SEED, testing};
use crate::tensor::DType::{self, Bool, F32, I32, U8};
use crate::tensor::{Batch, BatchDesc, Layout, Sample, Shape};

/// What an operator must be given to do something.
fn needed(name: &str) -> Vec<(&'static str, Value)> {
    let ints = |values: &[i64]| Value::Ints(values.to_vec());
    let floats = |values: &[f32]| Value::Floats(values.to_vec());
    let text = |text: &str| Value::Strings(vec![text.to_owned()]);
    match name {
        "ArithmeticGenericOp" => vec![("expression_desc", text("add(&0 &0)"))],
        "AudioResample" => vec![("scale", floats(&[0.5]))],
        "BBoxPaste" => vec![("ratio", floats(&[2.0]))],
        "BBoxRotate" => vec![("angle", floats(&[30.0])), ("input_shape", ints(&[40, 50]))],
        "BoxEncoder" => vec![("anchors", floats(&[0.0, 0.0, 0.5, 0.5]))],
        "Cast" => vec![("dtype", ints(&[9]))],
        "Clahe" => {
            vec![("tiles_x", ints(&[2])), ("tiles_y", ints(&[2])), ("clip_limit", floats(&[2.0]))]
        }
        "ColorSpaceConversion" => vec![("image_type", ints(&[0])), ("output_type", ints(&[2]))],
        "Constant" => vec![("fdata", floats(&[1.0, 2.0]))],
        "decoders__Inflate" => vec![("shape", ints(&[4]))],
        "Debayer" => vec![("blue_position", ints(&[0, 1]))],
        "ElementExtract" => vec![("element_map", ints(&[0]))],
        "ExpandDims" => vec![("axes", ints(&[0]))],
        "GaussianBlur" => vec![("sigma", floats(&[1.0]))],
        "GetProperty" => vec![("key", text("layout"))],
        "OneHot" => vec![("num_classes", ints(&[4]))],
        "Paste" => vec![("ratio", floats(&[2.0])), ("fill_value", ints(&[1, 2, 3]))],
        "PermuteBatch" => vec![("indices", ints(&[0]))],
        "ROIRandomCrop" => {
            vec![("crop_shape", ints(&[2, 3])), ("roi_start", ints(&[0, 1])), ("roi_shape", ints(&[5, 6]))]
        }
        "RandomResizedCrop" => vec![("size", ints(&[4, 4]))],
        "Reshape" => vec![("shape", ints(&[-1]))],
        "FastResizeCropMirror" | "Resize" | "ResizeCropMirror" => vec![("size", floats(&[4.0, 5.0]))],
        "Rotate" | "transforms__Rotation" => vec![("angle", floats(&[30.0]))],
        "Reinterpret" => vec![("dtype", ints(&[4]))],
        "SequenceRearrange" => vec![("new_order", ints(&[1, 0]))],
        "Slice" => vec![("rel_start", floats(&[0.25, 0.0])), ("rel_end", floats(&[0.75, 0.5]))],
        "Squeeze" => vec![("axes", ints(&[0]))],
        "SubscriptDimCheck" | "TensorSubscript" => vec![("num_subscripts", ints(&[1]))],
        "TensorResize" => vec![("sizes", floats(&[4.0, 5.0])), ("axes", ints(&[0, 1]))],
        "experimental__WarpPerspective" => {
            vec![("matrix", floats(&[1.0, 0.5, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0]))]
        }
        "WarpAffine" => vec![("matrix", floats(&[1.0, 0.5, 0.0, 0.0, 1.0, 1.0]))],
        "segmentation__RandomObjectBBox" => vec![("format", text("box"))],
        "transforms__Scale" => vec![("scale", floats(&[2.0, 3.0]))],
        "transforms__Shear" => vec![("shear", floats(&[0.5, 0.25]))],
        "transforms__Translation" => vec![("offset", floats(&[1.0, 2.0]))],
        _ => Vec::new(),
    }
}

/// Arguments whose default stands for "not given". Given with that value they choose something: a way to say a size, a dimension.
const CHOOSE: &[&str] = &[
    "crop_d",
    "crop_h",
    "crop_w",
    "resize_longer",
    "resize_shorter",
    "resize_x",
    "resize_y",
    "resize_z",
    "size",
];

/// Operators that none of the samples here suits: they want files, maps, a tensor for an argument, an engine.
const NOT_RUN: &[&str] = &[
    "BoxEncoder",
    "ExternalSource",
    "NonsilentRegion",
    "OpticalFlow",
    "PeekImageShape",
    "RandomBBoxCrop",
    "RandomCropGenerator",
    "SSDRandomCrop",
    "conditional__Merge",
    "conditional__Split",
    "decoders__Audio",
    "decoders__Image",
    "decoders__ImageCrop",
    "decoders__ImageRandomCrop",
    "decoders__ImageSlice",
    "decoders__Inflate",
    "decoders__Numpy",
    "decoders__Video",
    "experimental__Remap",
    "experimental__inputs__Video",
    "reductions__StdDev",
    "reductions__Variance",
    "segmentation__SelectMasks",
];

/// Samples of many kinds, each with a name for messages.
fn batches<'a>(bytes: &'a [u8], floats: &'a [f32]) -> Vec<Batch<'a>> {
    let floats = |layout: &[u8], shape: &[usize]| {
        let shape = Shape::new(shape);
        let samples = vec![Sample::Borrowed(bytemuck::cast_slice(&floats[..shape.volume().unwrap()]))];
        let desc = BatchDesc::new(F32, Layout::from_letters(layout), vec![shape]);
        Batch::new(desc, samples).unwrap()
    };
    let integers = |dtype: DType, layout: &[u8], shape: &[usize]| {
        let shape = Shape::new(shape);
        let len = shape.bytes(dtype.size()).unwrap();
        let desc = BatchDesc::new(dtype, Layout::from_letters(layout), vec![shape]);
        Batch::new(desc, vec![Sample::Borrowed(&bytes[..len])]).unwrap()
    };
    vec![
        integers(U8, b"HWC", &[6, 8, 3]),
        integers(U8, b"HW", &[6, 8]),
        integers(U8, b"FHWC", &[2, 4, 4, 3]),
        integers(U8, b"", &[1, 12]),
        integers(I32, b"", &[]),
        integers(Bool, b"", &[]),
        floats(b"HWC", &[6, 8, 3]),
        floats(b"", &[64]),
        floats(b"", &[2, 4]),
        floats(b"", &[2, 3]),
        floats(b"", &[3, 3]),
        floats(b"ft", &[9, 8]),
    ]
}

/// What an operator makes of samples, or its error.
fn outcome(op: &OpDef, given: &[(&str, Value)], regular: &[Batch<'_>]) -> Result<String, String> {
    let done =
        testing::run(op, &testing::args(given, &[]), regular, &[]).map_err(|error| error.to_string())?;
    let samples: Vec<&[u64]> =
        (0..done.desc.shapes.len()).map(|i| done.words(i)).collect::<Result<_, _>>()?;
    Ok(format!("{:?} {samples:?}", done.desc))
}

#[test]
fn defaults_given_change_nothing() {
    // Zeros and ones are numbers of every type; some more for what is computed of them.
    let words: Vec<u64> =
        (0..64u64).map(|i| u64::from_le_bytes([1, 0, 0, 0, (i % 2) as u8, 0, 0, 0])).collect();
    let numbers: Vec<f32> = (0..256).map(|i| (i * 37 % 101) as f32 / 101.0).collect();
    let (mut idle, mut wrong) = (Vec::new(), Vec::new());
    // What writes files is not run here.
    for op in OPS.iter().filter(|op| op.name != "DumpImage") {
        let mut plain = needed(op.name);
        if op.is_random() {
            plain.push((SEED, Value::Ints(vec![7])));
        }
        let mut whole = plain.clone();
        for spec in op.all_args().filter(|spec| !plain.iter().any(|(name, _)| *name == spec.name)) {
            if CHOOSE.contains(&spec.name) || spec.name.starts_with("step_") {
                continue;
            }
            whole.extend(spec.default_value().map(|value| (spec.name, value)));
        }
        let mut runs = 0;
        for batch in batches(bytemuck::cast_slice(&words), &numbers) {
            let regular: Vec<Batch<'_>> = (0..op.inputs.0)
                .map(|_| {
                    let samples = (0..batch.len()).map(|i| batch.sample(i).unwrap().clone()).collect();
                    Batch::new(batch.desc().clone(), samples).unwrap()
                })
                .collect();
            let (expected, found) = (outcome(op, &plain, &regular), outcome(op, &whole, &regular));
            if expected != found && (expected.is_ok() || found.is_ok()) {
                wrong.push(format!("{} of {:?}: {found:?}, expected {expected:?}", op.name, batch.desc()));
            }
            runs += usize::from(expected.is_ok());
        }
        if runs == 0 {
            idle.push(op.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(idle, NOT_RUN, "operators that did nothing");
}
