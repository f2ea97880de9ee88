//! `gesso__TileGrid`: the grid of tiles that a model cuts an image into, and the sizes for it.

use super::grids::Rule;
use super::sides::{count, height_and_width, list_shape, list_type, write};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, ValueType};

struct TileGrid {
    rule: Rule,
    tile: [u64; 2],
}

/// Its outputs: two numbers each.
const OUTPUTS: usize = 3;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__TileGrid",
    doc: "The grid of tiles that a vision-language model cuts an image into. The input is a list that begins with the \
          image's height and width. Outputs are pairs, int64: height and width that the image is resized to; height \
          and width of what is cut; rows and columns of tiles. What is cut is the image with a border around it \
          (`llava-next`), with one below or at its right (`llama4`), the image itself (`internvl`), what that is \
          resized to then (`idefics3`), or beside it (`minicpm-v`, whose grid is 0 x 0 if nothing is cut)",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::string(
            "rule",
            "how the grid is chosen: `llava-next`, `internvl`, `idefics3`, `llama4` or `minicpm-v`",
        )
        .required(),
        ArgSpec::ints(
            "tile_size",
            "height and width of a tile, or one number for both; of the last three rules one number, of `minicpm-v` the \
             side of a square of a tile's area",
        )
        .required(),
        ArgSpec::ints(
            "canvases",
            "of `llava-next`: heights and widths of what is chosen from, one after the other",
        ),
        ArgSpec::int("min_tiles", "of `internvl`: tiles of the smallest grid").or_int(1),
        ArgSpec::int("max_tiles", "of `internvl`, `llama4` and `minicpm-v`: tiles of the largest grid").or_int(12),
        ArgSpec::int("longest_side", "of `idefics3`: the longer side of what the image is resized to").or_int(1456),
        ArgSpec::bool("fills_canvas", "of `llama4`: whether an image is enlarged as far as a canvas allows").or_bool(false),
        ArgSpec::int("factor", "of `minicpm-v`: what sides are multiples of").or_int(56),
    ],
    build: &build,
    outputs: &|_, _| Ok(OUTPUTS),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let tile = tile_size(args)?;
    let tiles = |name: &str| count(name, args.int(name)?, limits::MAX_IMAGE_TILES);
    let name = args.string("rule")?;
    if matches!(name, "idefics3" | "llama4" | "minicpm-v") && tile[0] != tile[1] {
        return Err(Error::invalid(format!(
            "argument `tile_size` is {} x {}, expected a square with the rule `{name}`",
            tile[0], tile[1]
        )));
    }
    let rule = match name {
        "llava-next" => Rule::Canvases(canvases(args, tile)?),
        "internvl" => {
            let (least, most) = (tiles("min_tiles")?, tiles("max_tiles")?);
            if least > most {
                return Err(Error::invalid(format!(
                    "argument `min_tiles` is {least}, expected at most `max_tiles`, {most}"
                )));
            }
            Rule::Ratio { least, most }
        }
        "idefics3" => {
            Rule::LongestSide(count("longest_side", args.int("longest_side")?, limits::MAX_IMAGE_SIDE)?)
        }
        "llama4" => Rule::LeastScaling { most: tiles("max_tiles")?, fills: args.bool("fills_canvas")? },
        "minicpm-v" => {
            let unit = count("factor", args.int("factor")?, limits::MAX_PATCH_SIDE)?;
            Rule::Slices { most: tiles("max_tiles")?, unit }
        }
        other => {
            return Err(Error::invalid(format!(
                "argument `rule` is `{other}`, expected `llava-next`, `internvl`, `idefics3`, `llama4` or `minicpm-v`"
            )));
        }
    };
    Ok(Box::new(TileGrid { rule, tile }))
}

/// The argument `tile_size`.
///
/// # Errors
/// When it is not one or two sides.
pub(super) fn tile_size(args: &Args) -> Result<[u64; 2]> {
    let side = |value: i64| count("tile_size", value, limits::MAX_TILE_SIDE);
    match args.ints("tile_size")?[..] {
        [both] => Ok([side(both)?; 2]),
        [height, width] => Ok([side(height)?, side(width)?]),
        ref other => Err(Error::invalid(format!(
            "argument `tile_size` has {} numbers, expected a height and a width, or one for both",
            other.len()
        ))),
    }
}

/// The argument `canvases`, which tiles fill.
fn canvases(args: &Args, tile: [u64; 2]) -> Result<Vec<[u64; 2]>> {
    let sides = args.ints("canvases")?;
    let (pairs, rest) = sides.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() || pairs.len() > limits::MAX_IMAGE_TILES {
        return Err(Error::invalid(format!(
            "argument `canvases` has {} numbers, expected a height and a width for each of 1 to {} canvases",
            sides.len(),
            limits::MAX_IMAGE_TILES
        )));
    }
    let canvas = |&[height, width]: &[i64; 2]| {
        let largest = limits::MAX_TILE_SIDE * limits::MAX_IMAGE_TILES;
        let canvas = [count("canvases", height, largest)?, count("canvases", width, largest)?];
        let fits = canvas.iter().zip(tile).all(|(side, of_tile)| side.is_multiple_of(of_tile));
        let tiles = canvas[0] / tile[0] * (canvas[1] / tile[1]);
        if !fits || tiles > limits::MAX_IMAGE_TILES as u64 {
            return Err(Error::invalid(format!(
                "argument `canvases` has one of {height} x {width}, expected one of 1 to {} tiles of {} x {}",
                limits::MAX_IMAGE_TILES,
                tile[0],
                tile[1]
            )));
        }
        Ok(canvas)
    };
    pairs.iter().map(canvas).collect()
}

impl Operator for TileGrid {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![list_type(2); OUTPUTS])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let pairs = vec![list_shape(2); inputs.batch_size()];
        Ok(vec![BatchDesc::new(DType::I64, Layout::NONE, pairs); OUTPUTS])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let found = self.rule.choose(height_and_width(&sample.input(0)?)?, self.tile)?;
            write(sample.output(0)?, &found.content)?;
            write(sample.output(1)?, &found.canvas)?;
            write(sample.output(2)?, &found.grid)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::args;

    fn error(values: &[(&str, Value)]) -> String {
        DEF.instantiate(&args(values, &[]), 1).err().unwrap().to_string()
    }

    #[test]
    fn hostile_arguments_are_errors() {
        let rule = |name: &str| ("rule", Value::Strings(vec![name.into()]));
        let ints = |name, values: &[i64]| (name, Value::Ints(values.to_vec()));
        assert!(error(&[rule("x"), ints("tile_size", &[8])]).contains("expected `llava-next`, `internvl`"));
        assert!(error(&[rule("internvl")]).contains("`tile_size` is missing"));
        for tile in [&[0][..], &[1, 2, 3], &[-1, 4], &[i64::MAX], &[]] {
            assert!(error(&[rule("internvl"), ints("tile_size", tile)]).contains("tile_size"), "{tile:?}");
        }
        let tiles = |least, most| {
            error(&[
                rule("internvl"),
                ints("tile_size", &[8]),
                ints("min_tiles", &[least]),
                ints("max_tiles", &[most]),
            ])
        };
        assert!(tiles(1, 10_000).contains("`max_tiles` is 10000"));
        assert!(tiles(3, 2).contains("at most `max_tiles`"));
        for (name, argument, value) in
            [("idefics3", "longest_side", 0), ("llama4", "max_tiles", 10_000), ("minicpm-v", "factor", -1)]
        {
            let given = [rule(name), ints("tile_size", &[8]), ints(argument, &[value])];
            assert!(error(&given).contains(&format!("`{argument}` is {value}")), "{name}");
            assert!(error(&[rule(name), ints("tile_size", &[8, 9])]).contains("expected a square"), "{name}");
        }
        for canvases in [&[][..], &[8], &[8, 8, 8], &[8, 9], &[0, 8], &[8, 1 << 40], &[8, 8 * 513]] {
            let given = [rule("llava-next"), ints("tile_size", &[8]), ints("canvases", canvases)];
            assert!(error(&given).contains("canvases"), "{canvases:?}");
        }
    }
}
