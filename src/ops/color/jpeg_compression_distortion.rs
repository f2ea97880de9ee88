//! `JpegCompressionDistortion`: an image as it comes back from a JPEG file.

use std::sync::Arc;

use crate::cpu::convert::ConvertSat;
use crate::cpu::decode::{DecodeOptions, Decoder};
use crate::cpu::encode::{self, Jpeg, Subsampling};
use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

/// Layouts of the images, the one of samples without a layout first.
const LAYOUTS: [&str; 2] = ["HWC", "FHWC"];

struct JpegCompressionDistortion {
    quality: Arg,
    qualities: Vec<i32>,
    decoder: Decoder,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "JpegCompressionDistortion",
    doc: "RGB images as they come back from a JPEG file",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[ArgSpec::int("quality", "of the file, 1 to 100; what is beyond counts as the nearest")
        .tensor()
        .or_int(50)],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let quality = args.arg("quality")?;
    Ok(Box::new(JpegCompressionDistortion { quality, qualities: Vec::new(), decoder: Decoder::new() }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8])
}

impl Operator for JpegCompressionDistortion {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), check)?;
        let layout = layouts::of_type(&inputs[0], &LAYOUTS)?;
        Ok(vec![ValueType { dtype: Some(DType::U8), layout, dims: inputs[0].dims.clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout = layouts::of_batch(desc, &LAYOUTS)?;
        self.qualities = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            if shape.last() != Some(&3) || shape.contains(&0) {
                return Err(Error::invalid(format!(
                    "an image of shape {shape}, expected pixels of 3 channels"
                )));
            }
            // As libjpeg takes it.
            Ok(self.quality.int(&sample)?.clamp(1, 100) as i32)
        });
        Ok(vec![BatchDesc { layout, ..desc.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (qualities, decoder) = (&self.qualities, &self.decoder);
        io.for_each_sample(cx, |sample| {
            let quality = qualities.get(sample.index()).copied().unwrap_or_default();
            let (input, output) = sample.unary()?;
            let [.., height, width, _] = input.shape[..] else {
                return Err(Error::internal("an image without height and width"));
            };
            let frame = height * width * 3;
            for (src, dst) in input.bytes.chunks_exact(frame).zip(output.bytes.chunks_exact_mut(frame)) {
                let image = encode::Image { bytes: src, height, width, channels: 3, width_of_sample: 1 };
                let how =
                    Jpeg { quality, subsampling: Subsampling::S420, optimize: false, progressive: false };
                let file = encode::jpeg(&image, &how)?;
                let options = DecodeOptions { adjust_orientation: false, ..DecodeOptions::default() };
                decoder.decode_into(&file, &options, dst)?;
            }
            Ok(())
        })
    }
    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel()).map(drop)
    }

    /// DALI's operator on a GPU makes no file either: it loses what a file would.
    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let mut most = 0;
        let samples = io.rows(|sample| {
            let [ref outer @ .., height, width, _] = sample.output_shape(0)?[..] else {
                return Err(Error::internal("an image without height and width"));
            };
            let (to, from, frame) = (sample.target(0)?, sample.source(0)?, (height * width * 3) as u64);
            let quality = self.qualities.get(sample.index()).copied().unwrap_or_default();
            most = most.max(height.div_ceil(SIDE) * width.div_ceil(SIDE));
            let frames = 0..outer.iter().product::<usize>() as u64;
            let rows = frames.map(move |i| Row {
                to: to + i * frame,
                from: from + i * frame,
                steps: 0,
                width: width as u32,
                height: height as u32,
            });
            Ok((quality, rows))
        });
        let mut rows = Vec::new();
        let mut staged = None;
        for (quality, frames) in samples {
            // Most batches have one quality for all samples: its tables go up once.
            let steps = match staged {
                Some((known, address)) if known == quality => address,
                _ => cx.recorder.stage(bytemuck::cast_slice(&steps(quality)))?.address(),
            };
            staged = Some((quality, steps));
            rows.extend(frames.map(|row| Row { steps, ..row }));
        }
        let blocks = most.div_ceil(SQUARES);
        cx.launch_blocks(&kernel(), (blocks, THREADS), &NoParams::default(), &rows)
    }
}

device_constants! {
    fn constants;

    /// Pixels along the side of what shares blocks of chroma.
    const SIDE: usize = 16;
    /// Threads of a block.
    const THREADS: u32 = 256;
    /// Such squares that they work on at once.
    const SQUARES: usize = 4;
}

const HEADER: Header = Header { name: "distort", text: || text_with::<Row, NoParams>(&constants()) };

device_struct! {
    /// An image, as `kernels/distort.cu` sees it.
    struct Row as Row {
        to: u64 = "uint8_t *",
        from: u64 = "const uint8_t *",
        /// of quantisation: 64 of luma, 64 of chroma, frequencies along x next to each other
        steps: u64 = "const float *",
        width: u32,
        height: u32,
    }
}

fn kernel() -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("distort", "distort").header(HEADER)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    vec![kernel()]
}

/// Steps of quantisation at quality 50, as the JPEG standard suggests them (annex K): of luma, then of chroma.
#[rustfmt::skip]
const STEPS: [u8; 128] = [
    16, 11, 10, 16, 24, 40, 51, 61,
    12, 12, 14, 19, 26, 58, 60, 55,
    14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62,
    18, 22, 37, 56, 68, 109, 103, 77,
    24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101,
    72, 92, 95, 98, 112, 100, 103, 99,

    17, 18, 24, 47, 99, 99, 99, 99,
    18, 21, 26, 66, 99, 99, 99, 99,
    24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
    99, 99, 99, 99, 99, 99, 99, 99,
];

/// The steps at `quality`, in float32 as DALI computes them on a GPU.
fn steps(quality: i32) -> [f32; 128] {
    let scale = if quality < 50 { 50.0 / quality.max(1) as f32 } else { 2.0 - (2 * quality) as f32 / 100.0 };
    STEPS.map(|step| {
        let step: u8 = (scale * f32::from(step)).convert_sat();
        f32::from(step.max(1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_as_the_quality_falls() {
        assert_eq!(steps(50)[..3], [16.0, 11.0, 10.0]);
        assert_eq!(steps(100), [1.0; 128]);
        assert_eq!((steps(1)[0], steps(25)[1], steps(95)[64]), (255.0, 22.0, 2.0));
    }
}
