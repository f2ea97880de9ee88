//! `DumpImage`: images as they are, each also written to a file, to look at while a pipeline is made.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::operator::shared::dtypes;
use crate::operator::{ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

struct DumpImage {
    suffix: String,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "DumpImage",
    doc: "Writes each image of the batch to a file in the folder where the process runs, a PPM called after its place; for tests",
    devices: &[Device::Cpu],
    args: &[
        ArgSpec::string("suffix", "part of the files' names: 2-SUFFIX-0.ppm for the third image")
            .or_string(""),
        ArgSpec::layout("input_layout", "that of the images: `HWC`").or_string("HWC"),
    ],
    build: &build,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let layout = args.string("input_layout")?;
    if layout != "HWC" {
        return Err(Error::unsupported(format!("argument `input_layout` is `{layout}`, expected `HWC`")));
    }
    let suffix = args.string("suffix")?;
    // The name of a file is all that a pipeline chooses: not where it goes.
    if suffix.contains(['/', '\0']) {
        let text =
            format!("argument `suffix` is `{}`, expected part of a file's name", suffix.escape_debug());
        return Err(Error::invalid(text));
    }
    Ok(Box::new(DumpImage { suffix: suffix.to_owned() }))
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8])
}

/// Writes an image as a text that many programs show: of gray values or of red, green and blue.
fn write_image(
    to: &mut impl Write,
    pixels: &[u8],
    [height, width, channels]: [usize; 3],
) -> std::io::Result<()> {
    writeln!(to, "P{}\n{width} {height}\n255", if channels == 1 { 2 } else { 3 })?;
    for row in pixels.chunks_exact((width * channels).max(1)) {
        for value in row {
            write!(to, "{value} ")?;
        }
        writeln!(to)?;
    }
    to.flush()
}

fn dump(path: &Path, pixels: &[u8], shape: [usize; 3]) -> Result<()> {
    let write = || write_image(&mut BufWriter::new(File::create(path)?), pixels, shape);
    write().map_err(|error| Error::invalid(format!("cannot write {}: {error}", path.display())))
}

impl Operator for DumpImage {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        dtypes::like_input(inputs, check)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let shapes = inputs.map_shapes(3, |sample| match sample.input(0)?.shape {
            shape if matches!(shape[..], [_, _, 1 | 3]) => Ok(shape.clone()),
            shape => Err(Error::invalid(format!(
                "an image of shape {shape}, expected height, width and 1 or 3 channels"
            ))),
        });
        Ok(vec![BatchDesc { shapes, ..desc.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let suffix = &self.suffix;
        io.for_each_sample(cx, |sample| {
            let path = PathBuf::from(format!("{}-{suffix}-0.ppm", sample.index()));
            let (input, output) = sample.unary()?;
            output.bytes.copy_from_slice(input.bytes);
            let [height, width, channels] = input.shape[..] else {
                return Err(Error::internal("a planned image has three dimensions"));
            };
            dump(&path, output.as_slice_mut()?, [height, width, channels])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing;

    #[test]
    fn files_are_those_of_dali() {
        let text = |pixels: &[u8], shape| {
            let mut text = Vec::new();
            write_image(&mut text, pixels, shape).unwrap();
            String::from_utf8(text).unwrap()
        };
        assert_eq!(text(&[1, 2, 3, 40, 50, 255], [2, 1, 3]), "P3\n1 2\n255\n1 2 3 \n40 50 255 \n");
        assert_eq!(text(&[1, 2], [1, 2, 1]), "P2\n2 1\n255\n1 2 \n");
    }

    #[test]
    fn a_pipeline_does_not_choose_the_folder() {
        let build = |suffix: &str| {
            let args = testing::args(&[("suffix", Value::Strings(vec![suffix.to_owned()]))], &[]);
            DEF.instantiate(&args, 1).err().map(|error| error.to_string())
        };
        assert!(build("../../etc/x").unwrap().contains("`suffix`"));
        assert_eq!(build("..x"), None);
    }
}
