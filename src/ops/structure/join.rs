//! `Cat` and `Stack`: several tensors as one, along a dimension that they have or along a new one.
//!
//! ```text
//! outer   every position of the dimensions before the axis
//! run     what each input has behind such a position, one after the other in the output
//! ```

use crate::error::{Error, Result};
use crate::limits;
use crate::operator::gpu_io::{self, Runs};
use crate::operator::{
    ArgSpec, Args, CpuCx, DeviceSample, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs,
    SampleIo, one_output,
};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

/// Arguments of both operators.
const ARGS: &[ArgSpec] = &[
    ArgSpec::int("axis", "number of the dimension in the output, negative from the back").or_int(0),
    ArgSpec::string("axis_name", "`Cat`: letter of the dimension; `Stack`: letter of the new dimension"),
];

/// Joins of a dimension that the inputs have.
pub(in crate::ops) const CAT: OpDef = OpDef {
    name: "Cat",
    doc: "Joins tensors along a dimension",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, limits::MAX_EDGES_PER_OPERATOR),
    args: ARGS,
    build: &|args, _| Join::operator(args, false),
    outputs: &one_output,
    kernels: &[gpu_io::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// Joins along a new dimension.
pub(in crate::ops) const STACK: OpDef = OpDef {
    name: "Stack",
    doc: "Joins tensors of equal shapes along a new dimension",
    build: &|args, _| Join::operator(args, true),
    ..CAT
};

struct Join {
    axis: i64,
    name: Option<u8>,
    /// Whether the axis is a new one.
    stacks: bool,
}

impl Join {
    fn operator(args: &Args, stacks: bool) -> Result<Box<dyn Operator>> {
        let name = match args.given_string("axis_name")?.map(str::as_bytes) {
            None => None,
            Some(&[letter]) => Some(letter),
            Some(_) => return Err(Error::invalid("argument `axis_name` is not one letter")),
        };
        if name.is_some() && !stacks && args.has("axis") {
            return Err(Error::invalid("arguments `axis` and `axis_name` are both given, expected one"));
        }
        Ok(Box::new(Join { axis: args.int("axis")?, name, stacks }))
    }

    /// The dimension of the output for inputs of `ndim` dimensions.
    fn axis(&self, ndim: usize, layout: Layout) -> Result<usize> {
        if let (Some(letter), false) = (self.name, self.stacks) {
            return layout.find(letter).filter(|&axis| axis < ndim).ok_or_else(|| {
                Error::invalid(format!("layout `{layout}` has no dimension `{}`", char::from(letter)))
            });
        }
        let dims = (ndim + usize::from(self.stacks)) as i64;
        let axis = if self.axis < 0 { self.axis + dims } else { self.axis };
        if (0..dims).contains(&axis) && dims <= limits::MAX_NDIM as i64 {
            return Ok(axis as usize);
        }
        Err(Error::invalid(format!("axis {} of an output of {dims} dimensions", self.axis)))
    }

    fn layout(&self, layout: Layout, ndim: usize, axis: usize) -> Layout {
        let mut letters = layout.letters().to_vec();
        match self.name {
            _ if !self.stacks => layout,
            Some(letter) if letters.len() == ndim => {
                letters.insert(axis, letter);
                Layout::from_letters(&letters)
            }
            _ => Layout::NONE,
        }
    }

    fn shape(&self, inputs: &[usize], axis: usize, sample: &SampleInputs<'_>) -> Result<Shape> {
        let first = sample.input(inputs.first().copied().unwrap_or(0))?.shape;
        // The axis is one of input 0, which is not among these when it is empty in the whole batch.
        if axis + usize::from(!self.stacks) > first.len() {
            return Err(Error::invalid(format!("axis {axis} of an input of shape {first}")));
        }
        let mut joined = 0usize;
        for &i in inputs {
            let shape = sample.input(i)?.shape;
            let differs = |(d, (a, b)): (usize, (&usize, &usize))| a != b && (self.stacks || d != axis);
            if shape.len() != first.len() || shape.iter().zip(first.iter()).enumerate().any(differs) {
                return Err(Error::invalid(format!(
                    "input {i} has shape {shape}, which does not fit {first} of another"
                )));
            }
            joined = joined.saturating_add(if self.stacks { 1 } else { shape[axis] });
        }
        let mut dims = first.to_vec();
        if self.stacks {
            dims.insert(axis, joined);
        } else {
            dims[axis] = joined;
        }
        Ok(Shape::from(dims))
    }

    /// Copies the inputs' runs; those that are left out have none.
    fn join(&self, inputs: usize, axis: usize, sample: &mut SampleIo<'_>) -> Result<()> {
        let parts = (0..inputs).map(|i| sample.input(i)).collect::<Result<Vec<_>>>()?;
        let output = sample.output(0)?;
        let outer: usize = output.shape[..axis].iter().product();
        if output.bytes.is_empty() {
            return Ok(());
        }
        let stride = output.bytes.len() / outer;
        let mut offset = 0;
        for part in parts {
            let run = part.bytes.len() / outer;
            if run == 0 {
                continue;
            }
            for (to, from) in output.bytes.chunks_exact_mut(stride).zip(part.bytes.chunks_exact(run)) {
                to[offset..offset + run].copy_from_slice(from);
            }
            offset += run;
        }
        Ok(())
    }

    /// The same as copies on the device, for elements of `size` bytes.
    fn runs(
        &self,
        inputs: usize,
        axis: usize,
        size: usize,
        sample: &DeviceSample<'_, '_>,
    ) -> Result<Vec<Runs>> {
        let shape = sample.output_shape(0)?;
        let outer: usize = shape[..axis].iter().product();
        let bytes = shape.volume()? * size;
        let (mut to, mut rows) = (sample.target(0)?, Vec::with_capacity(inputs));
        for i in 0..if bytes > 0 { inputs } else { 0 } {
            let run = (sample.input(i)?.shape.volume()? * size / outer) as u64;
            if run > 0 {
                let pitch = (bytes / outer) as u64;
                rows.push(Runs { to, from: sample.source(i)?, bytes: run, count: outer as u64, pitch });
                to += run;
            }
        }
        Ok(rows)
    }
}

/// Whether any sample of input `i` has elements. In DALI, what has none in the whole batch need not fit to be joined.
fn has_elements(inputs: &Inputs<'_>, i: usize) -> Result<bool> {
    let shapes = inputs.desc(i)?.shapes.iter().enumerate();
    let mut live = shapes.filter(|&(sample, _)| inputs.failures().get(sample).is_none());
    Ok(live.any(|(_, shape)| !shape.contains(&0)))
}

impl Operator for Join {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let first = &inputs[0];
        for (i, input) in inputs.iter().enumerate() {
            if let (Some(expected), Some(found)) = (first.dtype, input.dtype)
                && expected != found
            {
                return Err(Error::invalid(format!("input {i} is {found}, expected {expected} as input 0")));
            }
        }
        let dtype = inputs.iter().find_map(|input| input.dtype);
        let (Some(dims), Some(layout)) = (&first.dims, first.layout) else {
            return Ok(vec![ValueType { dtype, dims: None, layout: None }]);
        };
        let axis = self.axis(dims.len(), layout)?;
        let layout = Some(self.layout(layout, dims.len(), axis));
        let mut dims = dims.clone();
        if self.stacks {
            dims.insert(axis, Some(inputs.len()));
        } else {
            let extents = inputs.iter().map(|input| input.dims.as_ref()?.get(axis).copied()?);
            dims[axis] = extents.sum();
        }
        Ok(vec![ValueType { dtype, dims: Some(dims), layout }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        for i in 1..inputs.len() {
            let found = inputs.desc(i)?.dtype;
            if found != desc.dtype {
                return Err(Error::invalid(format!(
                    "input {i} is {found}, expected {} as input 0",
                    desc.dtype
                )));
            }
        }
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let axis = self.axis(ndim, desc.layout)?;
        let mut joined = Vec::with_capacity(inputs.len());
        for i in 0..inputs.len() {
            if self.stacks || has_elements(inputs, i)? {
                joined.push(i);
            }
        }
        if joined.is_empty() {
            joined.push(0);
        }
        let shapes =
            inputs.map_shapes(ndim + usize::from(self.stacks), |sample| self.shape(&joined, axis, &sample));
        Ok(vec![BatchDesc::new(desc.dtype, self.layout(desc.layout, ndim, axis), shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (inputs, desc) = (io.inputs().len(), io.inputs().desc(0)?);
        let axis = self.axis(desc.shapes.first().map_or(0, |shape| shape.len()), desc.layout)?;
        io.for_each_sample(cx, |sample| self.join(inputs, axis, sample))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let (inputs, desc) = (io.inputs().len(), io.inputs().desc(0)?);
        let axis = self.axis(desc.shapes.first().map_or(0, |shape| shape.len()), desc.layout)?;
        let rows = io.rows(|sample| self.runs(inputs, axis, desc.dtype.size(), sample));
        cx.copy_runs(&rows.concat())
    }
}
