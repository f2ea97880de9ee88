//! `ExpandDims`: puts dimensions of extent 1 in. A view: no byte moves.

use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

struct ExpandDims {
    /// Places in the output in ascending order, each with the letter of the new dimension if there is one.
    axes: Vec<(usize, Option<u8>)>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "ExpandDims",
    doc: "Puts dimensions of extent 1 in, without a copy",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints("axes", "places of the new dimensions in the output").required(),
        ArgSpec::layout("new_axis_names", "letters of the new dimensions; empty: the output has no layout")
            .or_string(""),
    ],
    build: &build,
    outputs: &one_output,
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let places = args.ints("axes")?;
    let names = Layout::new(args.string("new_axis_names")?)?;
    if !names.is_none() && names.letters().len() != places.len() {
        return Err(Error::invalid(format!(
            "`new_axis_names` is `{names}`, expected {} letters",
            places.len()
        )));
    }
    let mut axes = Vec::with_capacity(places.len());
    for (i, &place) in places.iter().enumerate() {
        let place = usize::try_from(place)
            .ok()
            .filter(|&place| place < limits::MAX_NDIM)
            .ok_or_else(|| Error::invalid(format!("axis {place}, expected 0 to {}", limits::MAX_NDIM - 1)))?;
        axes.push((place, names.letters().get(i).copied()));
    }
    axes.sort_unstable();
    if axes.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::invalid(format!("an axis of {places:?} is given twice")));
    }
    Ok(Box::new(ExpandDims { axes }))
}

impl ExpandDims {
    /// `old` with `new(letter)` at the new places.
    fn expanded<T: Clone>(&self, old: &[T], new: impl Fn(Option<u8>) -> T) -> Result<Vec<T>> {
        let ndim = old.len() + self.axes.len();
        if ndim > limits::MAX_NDIM {
            return Err(Error::invalid(format!("{ndim} dimensions, expected at most {}", limits::MAX_NDIM)));
        }
        let mut all = old.to_vec();
        for &(place, letter) in &self.axes {
            if place > all.len() {
                return Err(Error::invalid(format!(
                    "axis {place} is put into a tensor of {} dimensions",
                    old.len()
                )));
            }
            all.insert(place, new(letter));
        }
        Ok(all)
    }

    fn layout(&self, layout: Layout, ndim: usize) -> Result<Layout> {
        if self.axes.iter().any(|(_, letter)| letter.is_none()) {
            return Ok(Layout::NONE);
        }
        if layout.letters().len() != ndim {
            return Err(Error::invalid("`new_axis_names` is given for an input without a layout"));
        }
        Ok(Layout::from_letters(&self.expanded(layout.letters(), Option::unwrap_or_default)?))
    }
}

impl Operator for ExpandDims {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        let dims = input.dims.as_ref().map(|dims| self.expanded(dims, |_| Some(1))).transpose()?;
        let layout = match (input.layout, input.ndim()) {
            (Some(layout), Some(ndim)) => Some(self.layout(layout, ndim)?),
            _ => None,
        };
        Ok(vec![ValueType { dtype: input.dtype, dims, layout }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let layout = self.layout(desc.layout, ndim)?;
        let shapes = inputs.map_shapes(ndim + self.axes.len(), |sample| {
            self.expanded(sample.input(0)?.shape, |_| 1).map(Shape::from)
        });
        Ok(vec![BatchDesc::new(desc.dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("a view has nothing to run"))
    }

    fn is_view(&self) -> bool {
        true
    }
}
