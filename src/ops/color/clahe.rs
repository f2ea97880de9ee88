//! `Clahe`: stretches the contrast of an image tile by tile.

use std::sync::Arc;

use crate::cpu::clahe::{Clahe as Tiles, LEVELS, scale};
use crate::cpu::lab;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::limits;
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// Layouts of the images.
const LAYOUTS: [&str; 1] = ["HWC"];

struct Clahe {
    tiles: Tiles,
    /// Whether only the lightness of a colour changes, not each channel.
    luma_only: bool,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Clahe",
    doc: "Contrast-limited adaptive histogram equalization",
    devices: &[Device::Cpu, Device::Gpu],
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
    kernels: &[kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let missing = |name: &str| Error::invalid(format!("argument `{name}` is missing"));
    let tiles = |name: &str| {
        let tiles = args.given_int(name)?.ok_or_else(|| missing(name))?;
        usize::try_from(tiles).ok().filter(|tiles| (1..=limits::MAX_TILES).contains(tiles)).ok_or_else(|| {
            Error::invalid(format!("argument `{name}` is {tiles}, expected 1 to {}", limits::MAX_TILES))
        })
    };
    let tiles = Tiles {
        tiles: [tiles("tiles_x")?, tiles("tiles_y")?],
        clip_limit: args.given_float("clip_limit")?.ok_or_else(|| missing("clip_limit"))?,
    };
    Ok(Box::new(Clahe { tiles, luma_only: args.bool("luma_only")? }))
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

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        let kinds = [false, true].into_iter().filter(|&is_luma| self.luma_only || !is_luma);
        kinds.flat_map(both).try_for_each(|kernel| gpu.kernel(&kernel).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let rows = io.rows(|sample| {
            let [height, width, channels] = sample.input(0)?.shape[..] else {
                return Err(Error::internal("a planned image has three dimensions"));
            };
            let is_luma = channels == 3 && self.luma_only;
            let size = [width, height];
            let tile = self.tiles.tile(size);
            let area = tile[0] * tile[1];
            let (to, from) = (sample.target(0)?, sample.source(0)?);
            let row = |channel: usize| Row {
                to: to + channel as u64,
                from: from + channel as u64,
                tables: 0,
                lab: 0,
                step: channels as u64,
                size: size.map(|extent| extent as u32),
                tiles: self.tiles.tiles.map(|tiles| tiles as u32),
                tile: tile.map(|extent| extent as u32),
                limit: self.tiles.limit(area).map_or(0, |limit| u32::try_from(limit).unwrap_or(u32::MAX)),
                scale: scale(area),
            };
            let count = if height * width == 0 {
                0
            } else if is_luma {
                1
            } else {
                channels
            };
            Ok((0..count).map(row).map(|row| (is_luma, row)).collect::<Vec<_>>())
        });
        let mut rows = rows.concat();
        if rows.is_empty() {
            return Ok(());
        }
        let tiles = self.tiles.tiles[0] * self.tiles.tiles[1];
        let tables = cx.recorder.scratch(rows.len() * tiles * LEVELS)?;
        for (i, (_, row)) in rows.iter_mut().enumerate() {
            row.tables = tables + (i * tiles * LEVELS) as u64;
        }
        for is_luma in [false, true] {
            let of_kind = rows.iter().filter(|(kind, _)| *kind == is_luma);
            let mut rows: Vec<Row> = of_kind.map(|(_, row)| *row).collect();
            if rows.is_empty() {
                continue;
            }
            if is_luma {
                let lab = cx.recorder.stage(lab::on_device())?.address();
                rows.iter_mut().for_each(|row| row.lab = lab);
            }
            let most = rows.iter().map(|row| row.size.map(|extent| extent as usize).iter().product());
            let most = most.max().unwrap_or_default();
            let [first, second] = both(is_luma);
            cx.launch_blocks(&first, (tiles, 512), &NoParams::default(), &rows)?;
            cx.launch(&second, most, &NoParams::default(), &rows)?;
        }
        Ok(())
    }
}

device_struct! {
    /// A channel of an image, or its lightness, as `kernels/clahe.cu` sees it.
    struct Row as Row {
        to: u64 = "uint8_t *",
        from: u64 = "const uint8_t *",
        /// 256 levels for each tile, tiles row by row
        tables: u64 = "uint8_t *",
        lab: u64 = "const Lab *",
        /// elements from one pixel to the next
        step: u64,
        /// along x and y: pixels of the image, tiles, pixels of a tile
        size: [u32; 2],
        tiles: [u32; 2],
        tile: [u32; 2],
        /// largest count of a level; 0: any
        limit: u32,
        /// levels for each pixel of a tile
        scale: f32,
    }
}

/// What makes the tables of tiles, and what applies them.
fn both(is_luma: bool) -> [KernelSpec; 2] {
    ["tables", "equalized"]
        .map(|entry| KernelSpec::of::<Row, NoParams>("clahe", entry).define("LUMA", u8::from(is_luma)))
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    [false, true].map(both).concat()
}
