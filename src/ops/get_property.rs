//! `GetProperty`: what is known of a tensor beside its elements, as bytes of text.

use super::{ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, one_output};
use crate::error::{Error, Result};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

#[derive(Clone, Copy)]
enum Property {
    Layout,
    /// The file that a reader took a sample from. Samples of requests come from none.
    SourceInfo,
}

struct GetProperty {
    property: Property,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "GetProperty",
    doc: "The layout of a tensor as text",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[ArgSpec::string("key", "`layout`, or `source_info`: always empty").required()],
    build: &build,
    outputs: &one_output,
    kernels: &[super::gpu_io::kernels],
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let property = match args.string("key")? {
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
    fn text(&self, layout: Layout) -> Layout {
        match self.property {
            Property::Layout => layout,
            Property::SourceInfo => Layout::NONE,
        }
    }
}

impl Operator for GetProperty {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let length = inputs[0].layout.map(|layout| self.text(layout).letters().len());
        Ok(vec![ValueType { dtype: Some(DType::U8), dims: Some(vec![length]), layout: Some(Layout::NONE) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let shape = Shape::from([self.text(desc.layout).letters().len()]);
        Ok(vec![BatchDesc::new(DType::U8, Layout::NONE, vec![shape; desc.shapes.len()])])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let text = self.text(io.inputs().desc(0)?.layout);
        io.for_each_sample(cx, |sample| {
            sample.output(0)?.bytes.copy_from_slice(text.letters());
            Ok(())
        })
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let text = self.text(io.inputs().desc(0)?.layout);
        if text.is_none() {
            return Ok(());
        }
        let text = cx.recorder.stage(text.letters())?;
        let pairs = io.rows(|sample| Ok((sample.output(0)?.clone(), text.clone())));
        cx.copy(&pairs)
    }
}
