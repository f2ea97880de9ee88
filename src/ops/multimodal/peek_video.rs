//! `gesso__PeekVideo`: the extents and the rate of a video, without decoding it.

use crate::cpu::encoded::Encoded;
use crate::cpu::video::Video;
use crate::error::{Error, Result};
use crate::operator::{Args, CpuCx, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

#[derive(Default)]
struct PeekVideo {
    /// Per sample: frames, height, width and channels, and frames a second.
    found: Vec<([i64; EXTENTS], f64)>,
}

/// Numbers of the first output.
const EXTENTS: usize = 4;

/// Channels of what a decoder makes.
const CHANNELS: i64 = 3;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__PeekVideo",
    doc: "Frames, height, width and channels of what `decoders.video` makes of a file, int64, and frames a second, on \
          average, float64. Only headers and tables are read; a file that does not say when frames are shown has 25 a \
          second",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    build: &build,
    outputs: &|_, _| Ok(2),
    encoded: Some(Encoded::Video),
    ..OpDef::BASE
};

fn build(_args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(PeekVideo::default()))
}

impl Operator for PeekVideo {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        if input.dtype.is_some_and(|dtype| dtype != DType::U8) || input.ndim().is_some_and(|ndim| ndim != 1) {
            return Err(Error::invalid("expected video files as uint8 with 1 dimension"));
        }
        let of = |dtype, dims| ValueType { dtype: Some(dtype), dims: Some(dims), layout: Some(Layout::NONE) };
        Ok(vec![of(DType::I64, vec![Some(EXTENTS)]), of(DType::F64, Vec::new())])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.found = inputs.map(|sample| {
            let input = sample.input(0)?;
            if input.dtype != DType::U8 || input.shape.len() != 1 {
                return Err(Error::invalid(format!(
                    "a sample of {} and shape {}, expected a video's file as uint8 with 1 dimension",
                    input.dtype, input.shape
                )));
            }
            let video = Video::open(input.as_slice::<u8>()?)?;
            let extents = [video.frames(), video.height(), video.width()].map(|extent| extent as i64);
            Ok(([extents[0], extents[1], extents[2], CHANNELS], video.rate()))
        });
        let samples = inputs.batch_size();
        Ok(vec![
            BatchDesc::new(DType::I64, Layout::NONE, vec![Shape::from([EXTENTS]); samples]),
            BatchDesc::new(DType::F64, Layout::NONE, vec![Shape::new(Vec::new()); samples]),
        ])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (extents, rate) = self.found.get(sample.index()).copied().unwrap_or_default();
            sample.output(0)?.as_slice_mut::<i64>()?.copy_from_slice(&extents);
            sample.output(1)?.as_slice_mut::<f64>()?.fill(rate);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::testing::{args, batch, run};

    #[test]
    fn what_is_no_video_is_an_error() {
        let made = |shape: &[usize], bytes: &[u8]| {
            let made = run(&DEF, &args(&[], &[]), &[batch(&[(shape, bytes)])], &[]).unwrap();
            made.error(0)
        };
        assert!(made(&[3], b"abc").contains("expected MP4"));
        assert!(made(&[0], b"").contains("no bytes"));
        assert!(made(&[1, 3], b"abc").contains("1 dimension"));
    }
}
