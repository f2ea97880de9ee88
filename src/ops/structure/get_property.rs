//! `GetProperty`: what is known of a tensor beside its elements, as bytes of text.

use crate::error::{Error, Result};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, gpu_io,
    one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

#[derive(Clone, Copy)]
enum Property {
    Layout,
    /// The file or record that a reader took a sample from; empty for samples of requests.
    SourceInfo,
}

struct GetProperty {
    property: Property,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "GetProperty",
    doc: "The layout of a tensor, or where it comes from, as text",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[ArgSpec::string(
        "key",
        "`layout`, or `source_info`: the file or record that a reader took the sample from",
    )
    .required()],
    build: &build,
    outputs: &one_output,
    kernels: &[gpu_io::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let property = match args.given_string("key")? {
        Some("layout") => Property::Layout,
        Some("source_info") => Property::SourceInfo,
        other => {
            return Err(Error::invalid(format!(
                "argument `key` is `{}`, expected `layout` or `source_info`",
                other.unwrap_or_default()
            )));
        }
    };
    Ok(Box::new(GetProperty { property }))
}

impl GetProperty {
    /// The text of one sample of a batch with layout `layout`.
    fn text<'a>(&self, sample: &SampleInputs<'a>, layout: &'a Layout) -> &'a [u8] {
        match self.property {
            Property::Layout => layout.letters(),
            Property::SourceInfo => sample.origin(0).as_bytes(),
        }
    }
}

impl Operator for GetProperty {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let length = match self.property {
            Property::Layout => inputs[0].layout.map(|layout| layout.letters().len()),
            Property::SourceInfo => None,
        };
        Ok(vec![ValueType { dtype: Some(DType::U8), dims: Some(vec![length]), layout: Some(Layout::NONE) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let layout = inputs.desc(0)?.layout;
        let shapes = inputs.map_shapes(1, |sample| Ok(Shape::from([self.text(&sample, &layout).len()])));
        Ok(vec![BatchDesc::new(DType::U8, Layout::NONE, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let layout = io.inputs().desc(0)?.layout;
        io.for_each_sample(cx, |sample| {
            let inputs = sample.inputs;
            sample.output(0)?.bytes.copy_from_slice(self.text(&inputs, &layout));
            Ok(())
        })
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let layout = io.inputs().desc(0)?.layout;
        let texts: Vec<_> = (0..io.inputs().batch_size())
            .map(|i| self.text(&io.inputs().sample(i), &layout).to_vec())
            .map(|text| (!text.is_empty()).then(|| cx.recorder.stage(&text)).transpose())
            .collect::<Result<_>>()?;
        let pairs = io.rows(|sample| {
            let text = texts.get(sample.index()).cloned().flatten();
            Ok((sample.output(0)?.clone(), text))
        });
        let pairs: Vec<_> = pairs.into_iter().filter_map(|(to, text)| Some((to, text?))).collect();
        cx.copy(&pairs)
    }
}
