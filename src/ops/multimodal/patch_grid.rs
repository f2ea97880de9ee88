//! `gesso__PatchGrid`: how many patches an image or a clip becomes along frames, rows and columns.

use super::sides::{count, height_and_width, list_shape, list_type, write};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, ValueType};

struct PatchGrid {
    side: u64,
    depth: u64,
    frames: Arg,
}

/// Numbers of a grid.
const GRID: usize = 3;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__PatchGrid",
    doc: "The patches that `gesso.patchify` makes along frames, rows and columns, int64. The input is a list that \
          begins with the height and width of what is cut",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::int("patch_size", "rows and columns of a patch").or_int(14),
        ArgSpec::int("temporal_patch_size", "frames of a patch").or_int(2),
        ArgSpec::int("frames", "frames of a clip").tensor().or_int(1),
    ],
    build: &build,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let number = |name: &str, most| count(name, args.int(name)?, most);
    Ok(Box::new(PatchGrid {
        side: number("patch_size", limits::MAX_PATCH_SIDE)?,
        depth: number("temporal_patch_size", limits::MAX_PATCH_GROUP)?,
        frames: args.arg("frames")?,
    }))
}

impl Operator for PatchGrid {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![list_type(GRID)])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        Ok(vec![BatchDesc::new(DType::I64, Layout::NONE, vec![list_shape(GRID); inputs.batch_size()])])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let size = height_and_width(&sample.input(0)?)?;
            let frames = count("frames", self.frames.int(&sample.inputs)?, limits::MAX_VIDEO_FRAMES)?;
            if size.iter().any(|side| !side.is_multiple_of(self.side)) {
                return Err(Error::invalid(format!(
                    "a size of {} x {} pixels, expected multiples of `patch_size`, {}",
                    size[0], size[1], self.side
                )));
            }
            let [rows, columns] = size.map(|side| side / self.side);
            write(sample.output(0)?, &[frames.div_ceil(self.depth), rows, columns])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    fn grid(values: &[(&str, i64)], list: &[i64]) -> Result<Vec<i64>, String> {
        let values: Vec<_> = values.iter().map(|&(name, value)| (name, Value::Ints(vec![value]))).collect();
        let made = run(&DEF, &args(&values, &[]), &[batch(&[(&[list.len()], list)])], &[]);
        let made = made.map_err(|error| error.to_string())?;
        made.words(0)?;
        Ok(made.values::<i64>(0))
    }

    #[test]
    fn patches_are_counted() {
        assert_eq!(grid(&[], &[28, 42, 3]), Ok(vec![1, 2, 3]));
        assert_eq!(grid(&[("frames", 5), ("patch_size", 7)], &[28, 42]), Ok(vec![3, 4, 6]));
    }

    #[test]
    fn hostile_numbers_are_errors() {
        assert!(grid(&[], &[28, 27]).unwrap_err().contains("multiples of `patch_size`"));
        assert!(grid(&[], &[0, 14]).is_err() && grid(&[], &[14]).is_err());
        for (name, value) in
            [("patch_size", 0), ("temporal_patch_size", 65), ("frames", 0), ("frames", 1 << 40)]
        {
            assert!(grid(&[(name, value)], &[28, 28]).unwrap_err().contains(name), "{name}");
        }
    }
}
