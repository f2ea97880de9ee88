//! `Clahe`: stretches the contrast of an image tile by tile.

use super::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, dtypes, layouts, one_output};
use crate::cpu::clahe::Clahe as Tiles;
use crate::cpu::lab;
use crate::error::{Error, Result};
use crate::limits;
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// Layouts of the images.
const LAYOUTS: [&str; 1] = ["HWC"];

struct Clahe {
    tiles: Tiles,
    /// Whether only the lightness of a colour changes, not each channel.
    luma_only: bool,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "Clahe",
    doc: "Contrast-limited adaptive histogram equalization",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("tiles_x", "tiles along the width").required(),
        ArgSpec::int("tiles_y", "tiles along the height").required(),
        ArgSpec::float("clip_limit", "largest count of a level over the mean, not limited below 0")
            .required(),
        ArgSpec::bool("luma_only", "of colours: whether only the lightness changes").or_bool(true),
        ArgSpec::int("bins", "images of 8 bits have 256 levels, in DALI too").no_effect().or_int(256),
    ],
    build: &build,
    outputs: &one_output,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let missing = |name: &str| Error::invalid(format!("argument `{name}` is missing"));
    let tiles = |name: &str| {
        let tiles = args.int(name)?.ok_or_else(|| missing(name))?;
        usize::try_from(tiles).ok().filter(|tiles| (1..=limits::MAX_TILES).contains(tiles)).ok_or_else(|| {
            Error::invalid(format!("argument `{name}` is {tiles}, expected 1 to {}", limits::MAX_TILES))
        })
    };
    let tiles = Tiles {
        tiles: [tiles("tiles_x")?, tiles("tiles_y")?],
        clip_limit: args.float("clip_limit")?.ok_or_else(|| missing("clip_limit"))?,
    };
    Ok(Box::new(Clahe { tiles, luma_only: args.bool("luma_only")?.unwrap_or(true) }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8])
}

impl Clahe {
    fn run(&self, src: &[u8], dst: &mut [u8], shape: &Shape) -> Result<()> {
        let [height, width, channels] = shape[..] else {
            return Err(Error::internal("a planned image has three dimensions"));
        };
        let size = [width, height];
        if channels == 1 {
            self.tiles.run(src, dst, size);
            return Ok(());
        }
        let (pixels, outputs) = (src.as_chunks::<3>().0, dst.as_chunks_mut::<3>().0);
        let mut pixels = pixels.to_vec();
        if self.luma_only {
            lab::from_rgb(src.as_chunks::<3>().0, &mut pixels);
        }
        let mut equalized = vec![0; pixels.len()];
        for channel in 0..if self.luma_only { 1 } else { 3 } {
            let plane: Vec<u8> = pixels.iter().map(|pixel| pixel[channel]).collect();
            self.tiles.run(&plane, &mut equalized, size);
            pixels.iter_mut().zip(&equalized).for_each(|(pixel, &level)| pixel[channel] = level);
        }
        if self.luma_only {
            lab::to_rgb(&pixels, outputs);
        } else {
            outputs.copy_from_slice(&pixels);
        }
        Ok(())
    }
}

impl Operator for Clahe {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), check)?;
        ty.layout = layouts::of_type(&ty, &LAYOUTS)?;
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout: Layout = layouts::of_batch(desc, &LAYOUTS)?;
        let shapes = inputs.map_shapes(3, |sample| {
            let shape = sample.input(0)?.shape;
            match shape.last() {
                Some(1 | 3) => Ok(shape.clone()),
                _ => Err(Error::invalid(format!("an image of shape {shape}, expected 1 or 3 channels"))),
            }
        });
        Ok(vec![BatchDesc::new(desc.dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            this.run(input.as_slice()?, output.bytes, input.shape)
        })
    }
}
