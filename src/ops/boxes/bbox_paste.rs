//! `BBoxPaste`: relative bounding boxes that move with their image onto a larger canvas.

use super::bb_flip::{check, check_shape};
use crate::error::{Error, Result};
use crate::operator::shared::dtypes;
use crate::operator::{Arg, ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, ValueType};

struct BBoxPaste {
    ratio: Arg,
    /// Where the image is, from 0 for the start to 1 for the end: x, then y.
    position: [Arg; 2],
    /// Whether a box is left, top, right, bottom; else left, top, width, height.
    has_ends: bool,
    moves: Vec<Move>,
}

/// What becomes of the boxes of one sample.
#[derive(Debug, Clone, Copy, Default)]
struct Move {
    scale: f32,
    offset: [f32; 2],
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "BBoxPaste",
    doc: "Moves relative bounding boxes with their image onto a larger canvas",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("ratio", "size of the canvas over that of the image").tensor().required(),
        ArgSpec::float("paste_x", "place of the image from 0 (left) to 1 (right)").tensor().or_float(0.5),
        ArgSpec::float("paste_y", "place of the image from 0 (top) to 1 (bottom)").tensor().or_float(0.5),
        ArgSpec::bool("ltrb", "whether boxes hold right and bottom instead of width and height")
            .or_bool(false),
    ],
    build: &build,
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(BBoxPaste {
        ratio: args.arg("ratio")?,
        position: [args.arg("paste_x")?, args.arg("paste_y")?],
        has_ends: args.bool("ltrb")?,
        moves: Vec::new(),
    }))
}

impl Operator for BBoxPaste {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        dtypes::like_input(inputs, check)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        self.moves = inputs.map(|sample| {
            check_shape(sample.input(0)?.shape)?;
            let ratio = self.ratio.float(&sample)?;
            let margin = (ratio - 1.0) / ratio;
            let [x, y] = &self.position;
            // DALI bounds a place at its end alone.
            let place = |arg: &Arg| Ok::<_, Error>(arg.float(&sample)?.min(1.0));
            Ok(Move { scale: 1.0 / ratio, offset: [place(x)? * margin, place(y)? * margin] })
        });
        Ok(vec![desc.clone()])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (moves, has_ends) = (&self.moves, self.has_ends);
        io.for_each_sample(cx, |sample| {
            let Move { scale, offset: [x, y] } = moves[sample.index()];
            let [right, bottom] = if has_ends { [x, y] } else { [0.0; 2] };
            let (input, output) = sample.unary()?;
            let (src, dst) = (input.as_slice::<f32>()?, output.as_slice_mut::<f32>()?);
            for (to, from) in dst.as_chunks_mut::<4>().0.iter_mut().zip(src.as_chunks::<4>().0) {
                let offsets = [x, y, right, bottom];
                *to = std::array::from_fn(|i| from[i] * scale + offsets[i]);
            }
            Ok(())
        })
    }
}
