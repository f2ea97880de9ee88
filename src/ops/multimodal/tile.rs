//! `gesso__Tile`: an image cut into tiles, and an overview of it beside them.

use std::sync::Arc;

use super::tile_grid::tile_size;
use crate::cpu::window::Span;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::shared::gather::{self, Fill, Gather};
use crate::operator::shared::layouts;
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct Tile {
    tile: [usize; 2],
    overview: Overview,
    /// How each sample is cut; `None` for one that failed.
    cuts: Vec<Option<Cut>>,
}

/// Where the second input goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overview {
    First,
    Last,
    /// Last, and nowhere where the image is one tile.
    LastOfSeveral,
}

/// Rows and columns of tiles of one image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    rows: usize,
    columns: usize,
    channels: usize,
    /// Which of the tiles the overview is, if it is one.
    overview: Option<usize>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__Tile",
    doc: "Cuts an image into tiles, row by row: one after the other as frames of a sequence. A second input, an \
          image of a tile's size, is put before or behind them",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 2),
    args: &[
        ArgSpec::ints("tile_size", "height and width of a tile, or one number for both").required(),
        ArgSpec::string(
            "overview",
            "where the second input is put: `first`, `last`, or `last-of-several`: last, and not at all where the \
             image is one tile",
        )
        .or_string("first"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let overview = match args.string("overview")? {
        "first" => Overview::First,
        "last" => Overview::Last,
        "last-of-several" => Overview::LastOfSeveral,
        other => {
            return Err(Error::invalid(format!(
                "argument `overview` is `{other}`, expected `first`, `last` or `last-of-several`"
            )));
        }
    };
    let tile = tile_size(args)?.map(|side| side as usize);
    Ok(Box::new(Tile { tile, overview, cuts: Vec::new() }))
}

impl Cut {
    /// Elements of a tile.
    fn tile_len(&self, tile: [usize; 2]) -> usize {
        tile[0] * tile[1] * self.channels
    }

    /// Tiles of the image, without its overview.
    fn of_image(&self) -> usize {
        self.rows * self.columns
    }

    fn count(&self) -> usize {
        self.of_image() + usize::from(self.overview.is_some())
    }

    /// Which tile the image's first one is.
    fn first(&self) -> usize {
        usize::from(self.overview == Some(0))
    }
}

impl Tile {
    fn cut(&self, sample: &SampleInputs<'_>, layout: Layout, has_overview: bool) -> Result<Cut> {
        let shape = sample.input(0)?.shape;
        layouts::accepted(layout, shape.len(), &["HWC"])?;
        shape.bytes_of_input(1)?;
        let [height, width, channels] = shape[..] else {
            return Err(Error::internal("a layout has fewer letters than its sample dimensions"));
        };
        let fits = |side: usize, of_tile: usize| side > 0 && side.is_multiple_of(of_tile);
        let (rows, columns) = (height / self.tile[0], width / self.tile[1]);
        let limit = limits::MAX_IMAGE_TILES;
        let is_cut = fits(height, self.tile[0]) && fits(width, self.tile[1]) && channels > 0;
        if !is_cut || rows.saturating_mul(columns) > limit {
            return Err(Error::invalid(format!(
                "an image of shape {shape}, expected 1 to {limit} tiles of {} x {}",
                self.tile[0], self.tile[1]
            )));
        }
        let count = rows * columns;
        let overview = match self.overview {
            _ if !has_overview => None,
            Overview::First => Some(0),
            Overview::Last => Some(count),
            Overview::LastOfSeveral => (count > 1).then_some(count),
        };
        if has_overview && sample.input(1)?.shape[..] != [self.tile[0], self.tile[1], channels] {
            return Err(Error::invalid(format!(
                "an overview of shape {}, expected {} x {} x {channels}",
                sample.input(1)?.shape,
                self.tile[0],
                self.tile[1]
            )));
        }
        Ok(Cut { rows, columns, channels, overview })
    }
}

/// Both inputs are of one type.
fn check_types(first: Option<DType>, second: Option<DType>) -> Result<()> {
    match (first, second) {
        (Some(first), Some(second)) if first != second => {
            Err(Error::invalid(format!("an overview of type {second}, expected the image's, {first}")))
        }
        _ => Ok(()),
    }
}

impl Operator for Tile {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        layouts::of_type(&inputs[0], &["HWC"])?;
        check_types(inputs[0].dtype, inputs.get(1).and_then(|input| input.dtype))?;
        let channels = inputs[0].dims.as_ref().and_then(|dims| dims.get(2).copied().flatten());
        let tiles = ValueType {
            dtype: inputs[0].dtype,
            dims: Some(vec![None, Some(self.tile[0]), Some(self.tile[1]), channels]),
            layout: Some(Layout::from_letters(b"FHWC")),
        };
        Ok(vec![tiles])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let has_overview = inputs.len() > 1;
        if has_overview {
            check_types(Some(desc.dtype), Some(inputs.desc(1)?.dtype))?;
        }
        self.cuts = inputs.map(|sample| self.cut(&sample, desc.layout, has_overview).map(Some));
        let (cuts, [height, width]) = (&self.cuts, self.tile);
        let shapes = inputs.map_shapes(4, |sample| match cuts.get(sample.index) {
            Some(Some(cut)) => Ok(Shape::from([cut.count(), height, width, cut.channels])),
            _ => Err(Error::internal("a sample was not looked at")),
        });
        Ok(vec![BatchDesc::new(desc.dtype, Layout::from_letters(b"FHWC"), shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (cuts, tile, size) = (&self.cuts, self.tile, io.inputs().desc(0)?.dtype.size());
        io.for_each_sample(cx, |sample| {
            let Some(Some(cut)) = cuts.get(sample.index()).copied() else { return Ok(()) };
            let (input, output) = sample.unary()?;
            let (line, bytes) = (tile[1] * cut.channels * size, cut.tile_len(tile) * size);
            let tiles = output.bytes.chunks_exact_mut(bytes.max(1)).skip(cut.first()).take(cut.of_image());
            for (to, number) in tiles.zip(0..) {
                let (row, column) = (number / cut.columns, number % cut.columns);
                let corner = (row * tile[0] * cut.columns + column) * line;
                let lines = input.bytes[corner..].chunks(cut.columns * line);
                for (to, from) in to.chunks_exact_mut(line).zip(lines) {
                    to.copy_from_slice(&from[..line]);
                }
            }
            if let Some(number) = cut.overview {
                let from = sample.input(1)?;
                sample.output(0)?.bytes[number * bytes..][..bytes].copy_from_slice(from.bytes);
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| Gather::copy(dtype.size()).prepare(gpu))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let size = io.inputs().desc(0)?.dtype.size();
        let gather = Gather::copy(size);
        let made = io.rows(|sample| {
            let cut = self.cuts.get(sample.index()).copied().flatten();
            let cut = cut.ok_or_else(|| Error::internal("a sample was not looked at"))?;
            let (line, bytes) = (self.tile[1] * cut.channels, (cut.tile_len(self.tile) * size) as u64);
            let pitch = (cut.columns * line) as i64;
            let spans = [
                Span::whole(cut.rows, pitch * self.tile[0] as i64),
                Span::whole(cut.columns, line as i64),
                Span::whole(self.tile[0], pitch),
                Span::whole(line, 1),
            ];
            let place = |tile: usize| Ok::<_, Error>(sample.target(0)? + tile as u64 * bytes);
            let mut rows =
                vec![gather.row(place(cut.first())?, sample.source(0)?, &spans, Fill::default())?];
            if let Some(number) = cut.overview {
                let whole = [Span::whole(cut.tile_len(self.tile), 1)];
                rows.push(gather.row(place(number)?, sample.source(1)?, &whole, Fill::default())?);
            }
            Ok(rows)
        });
        gather.launch(cx, &made.into_iter().flatten().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    fn error(shape: &[usize], overview: Option<&[usize]>) -> String {
        let (pixels, more) = (vec![0u8; shape.iter().product()], vec![0u8; 4096]);
        let mut inputs = vec![batch(&[(shape, &pixels[..])])];
        if let Some(shape) = overview {
            inputs.push(batch(&[(shape, &more[..shape.iter().product()])]));
        }
        run(&DEF, &args(&[("tile_size", Value::Ints(vec![2]))], &[]), &inputs, &[]).unwrap().error(0)
    }

    #[test]
    fn hostile_shapes_are_errors() {
        for shape in [&[4, 5, 3][..], &[0, 4, 3], &[4, 4], &[200, 200, 3], &[2, 2 * 513, 1]] {
            assert!(error(shape, None).contains("expected"), "{shape:?}");
        }
        for overview in [&[2, 3, 3][..], &[2, 2, 1], &[2, 2], &[0, 2, 3]] {
            assert!(error(&[4, 4, 3], Some(overview)).contains("an overview of shape"), "{overview:?}");
        }
    }
}
