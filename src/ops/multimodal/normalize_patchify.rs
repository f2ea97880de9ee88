//! `CropMirrorNormalize` and the `gesso__Patchify` behind it as one operator on a host: of the normalized image only as
//! many rows exist at a time as a row of merged patches has, so they stay in a core's cache. The graph puts it in
//! place of the two (`graph/fuse.rs`); it stands in no file. It computes what the two compute.

use std::sync::Arc;

use super::patchify::{self, Patchify};
use crate::cpu::normalize::Channel;
use crate::cpu::patches::Patches;
use crate::error::{Error, Result};
use crate::memory::zeroed;
use crate::operator::shared::layouts;
use crate::operator::{Args, CpuCx, Fusion, GpuCx, GpuIo, Inputs, Io, Operator};
use crate::ops::geometry::crop_mirror_normalize::{self, CropMirrorNormalize, Job, Order, Recent};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// `CropMirrorNormalize` and `gesso__Patchify` in one.
pub(in crate::ops) const FUSION: Fusion = Fusion {
    name: "CropMirrorNormalize + gesso__Patchify",
    device: Device::Cpu,
    of: &[&crop_mirror_normalize::DEF, &patchify::DEF],
    can,
    kernels: Vec::new,
    make: |args| Ok(Box::new(NormalizePatchify::new(args)?)),
};

/// Whether the two can be one: for images of bytes that become planes of floats.
fn can(_args: &[&Args], types: &[&ValueType]) -> bool {
    let &[image, planes] = types else { return false };
    image.dtype == Some(DType::U8)
        && image.layout == Some(Layout::hwc())
        && image.ndim() == Some(3)
        && planes.dtype == Some(DType::F32)
        && planes.layout.is_some_and(|layout| layout.letters() == b"CHW")
}

struct NormalizePatchify {
    normalize: CropMirrorNormalize,
    patchify: Patchify,
    /// How each sample is normalized and cut, and what it becomes; `None` for one that failed.
    jobs: Vec<Option<(Arc<Job>, Patches, Shape)>>,
}

impl NormalizePatchify {
    fn new(args: &[Args]) -> Result<Self> {
        let [first, second] = args else {
            return Err(Error::internal(format!("{} operators, expected 2", args.len())));
        };
        Ok(Self {
            normalize: CropMirrorNormalize::new(first)?,
            patchify: Patchify::new(second)?,
            jobs: Vec::new(),
        })
    }
}

impl Operator for NormalizePatchify {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        self.patchify.infer(&self.normalize.infer(inputs)?)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        layouts::accepted(desc.layout, 3, &["HWC"])?;
        let order: Order = self.normalize.order_of(desc.layout, 3)?;
        let mut recent = Recent::default();
        self.jobs = inputs.map(|sample| {
            let job = self.normalize.job(&sample, sample.input(0)?.shape, &order, &mut recent)?;
            let planes = job.output_shape(&order);
            // A window has any size. Nothing here multiplies extents whose product no number holds.
            planes.bytes_of_input(DType::F32.size())?;
            let cut = self.patchify.patches(&planes, order.layout())?;
            Ok(Some((job, cut, patchify::shape(&cut)?)))
        });
        let shapes = self.jobs.iter().map(|job| match job {
            Some((_, _, shape)) => shape.clone(),
            None => Shape::from([0, 0]),
        });
        Ok(vec![BatchDesc::new(DType::F32, Layout::NONE, shapes.collect())])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let Some(Some((job, cut, _))) = self.jobs.get(sample.index()) else { return Ok(()) };
            let (input, output) = sample.unary()?;
            let (src, dst) = (input.as_slice::<u8>()?, output.as_slice_mut::<f32>()?);
            match job.channels() {
                (affine, []) => patches(job, affine, cut, input.shape, src, dst),
                (_, tables) => patches(job, &tables.iter().collect::<Vec<_>>(), cut, input.shape, src, dst),
            }
        })
    }

    fn run_gpu(&mut self, _cx: &mut GpuCx<'_>, _io: &mut GpuIo<'_>) -> Result<()> {
        Err(Error::internal("normalize and patchify are one operator on a host only"))
    }
}

/// Writes the patches of an image: some rows are normalized and cut, then those below them.
fn patches<A: Channel<u8>>(
    job: &Job,
    channels: &[A],
    cut: &Patches,
    shape: &[usize],
    src: &[u8],
    dst: &mut [f32],
) -> Result<()> {
    let strip = Patches { height: cut.side * cut.merge, ..*cut };
    let mut rows = zeroed(strip.channels * strip.height * strip.width)?;
    let len = strip.grid().iter().product::<usize>() * strip.patch_len();
    for (number, dst) in dst.chunks_exact_mut(len).enumerate() {
        job.rows(channels, shape, number * strip.height..(number + 1) * strip.height, src, &mut rows)?;
        strip.cut(&rows, dst);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run, run_operator};
    use crate::tensor::{Batch, Sample};

    /// Beside the two operators: windows that leave the image, mirrors, both arithmetics.
    #[test]
    fn it_computes_what_the_two_compute() {
        let pixels: Vec<u8> = (0..40 * 50 * 3).map(|i| (i * 37 % 251) as u8).collect();
        let desc = || BatchDesc::new(DType::U8, Layout::hwc(), vec![Shape::from([40, 50, 3])]);
        let images = || Batch::new(desc(), vec![Sample::Borrowed(&pixels)]).unwrap();
        let cuts = [("patch_size", 3), ("merge_size", 2), ("temporal_patch_size", 2)];
        let cuts = args(&cuts.map(|(name, value)| (name, Value::Ints(vec![value]))), &[]);
        for ([height, width], name, value) in [
            ([24.0, 48.0], "mirror", Value::Ints(vec![0])),
            ([48.0, 72.0], "mirror", Value::Ints(vec![1])),
            ([36.0, 12.0], "arithmetic", Value::Strings(vec!["transformers-fast".to_owned()])),
        ] {
            let first = args(
                &[
                    ("crop", Value::Floats(vec![height, width])),
                    ("mean", Value::Floats(vec![0.5, 0.4, 0.3])),
                    ("out_of_bounds_policy", Value::Strings(vec!["pad".to_owned()])),
                    (name, value),
                ],
                &[],
            );
            let planes = run(&crop_mirror_normalize::DEF, &first, &[images()], &[]).unwrap();
            let (shape, planes) = (planes.desc.shapes[0].clone(), planes.values::<f32>(0));
            let expected = run(&patchify::DEF, &cuts, &[batch(&[(&shape, &planes)])], &[]).unwrap();
            let own = [
                first.with_defaults(crop_mirror_normalize::DEF.arg_table()),
                cuts.with_defaults(patchify::DEF.arg_table()),
            ];
            let fused = FUSION.build(&own).unwrap();
            let made = run_operator(FUSION.name, fused, &[images()], &[]).unwrap();
            assert_eq!(made.desc.shapes, expected.desc.shapes);
            assert_eq!(made.values::<f32>(0), expected.values::<f32>(0));
        }
    }

    /// Windows may come with requests: one that is too large is an error of its sample alone.
    #[test]
    fn a_window_of_any_size_fails_its_own_sample() {
        let pixels = [0u8; 12 * 12 * 3];
        let shapes = vec![Shape::from([12, 12, 3]); 3];
        let desc = BatchDesc::new(DType::U8, Layout::hwc(), shapes);
        let images = Batch::new(desc, vec![Sample::Borrowed(&pixels); 3]).unwrap();
        let sides = [[6.0f32], [6.0 * (1u64 << 40) as f32], [12.0]];
        let sides = batch(&[(&[1], &sides[0]), (&[1], &sides[1]), (&[1], &sides[2])]);
        let pad = ("out_of_bounds_policy", Value::Strings(vec!["pad".to_owned()]));
        let first = args(&[pad], &["crop_h", "crop_w"]).with_defaults(crop_mirror_normalize::DEF.arg_table());
        let cuts = args(&[("patch_size", Value::Ints(vec![3]))], &[]);
        let fused = FUSION.build(&[first, cuts.with_defaults(patchify::DEF.arg_table())]).unwrap();
        let made = run_operator(FUSION.name, fused, &[images], &[sides.clone(), sides]).unwrap();
        assert_eq!(
            (made.values::<f32>(0).len(), made.values::<f32>(2).len()),
            (2 * 6 * 6 * 3, 2 * 12 * 12 * 3)
        );
        assert!(!made.error(1).is_empty());
    }
}
