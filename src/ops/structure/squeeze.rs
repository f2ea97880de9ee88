//! `Squeeze`: takes dimensions of extent 1 away. A view: no byte moves.

use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

/// The dimensions to take away.
enum Squeeze {
    /// As in DALI, numbers beyond the last dimension mean nothing, and with a negative one nothing goes.
    Numbered(Vec<i64>),
    Named(Layout),
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Squeeze",
    doc: "Takes dimensions of extent 1 away, without a copy",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints("axes", "dimensions to take away; this or `axis_names` is required"),
        ArgSpec::layout("axis_names", "dimensions to take away, as letters of the layout"),
    ],
    build: &build,
    outputs: &one_output,
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    match (args.given_ints("axes")?, args.given_string("axis_names")?) {
        (Some(axes), None) => {
            if axes.iter().enumerate().any(|(i, axis)| axes[..i].contains(axis)) {
                return Err(Error::invalid(format!("an axis of {axes:?} is given twice")));
            }
            let any_negative = axes.iter().any(|&axis| axis < 0);
            Ok(Box::new(Squeeze::Numbered(if any_negative { Vec::new() } else { axes })))
        }
        (None, Some(names)) => Ok(Box::new(Squeeze::Named(Layout::new(names)?))),
        _ => Err(Error::invalid("expected either `axes` or `axis_names`")),
    }
}

impl Squeeze {
    /// The dimensions that stay of `ndim`.
    fn kept(&self, ndim: usize, layout: Layout) -> Result<Vec<usize>> {
        if let Squeeze::Named(names) = self
            && let Some(&missing) = names.letters().iter().find(|&&letter| layout.find(letter).is_none())
        {
            return Err(Error::invalid(format!(
                "layout `{layout}` has no dimension `{}`",
                char::from(missing)
            )));
        }
        let goes = |dim: usize| match self {
            Squeeze::Numbered(axes) => axes.contains(&(dim as i64)),
            Squeeze::Named(names) => layout.letters().get(dim).is_some_and(|&l| names.find(l).is_some()),
        };
        Ok((0..ndim).filter(|&dim| !goes(dim)).collect())
    }
}

fn letters(layout: Layout, kept: &[usize]) -> Layout {
    let letters = kept.iter().filter_map(|&dim| layout.letters().get(dim).copied());
    Layout::from_letters(&letters.collect::<Vec<_>>())
}

impl Operator for Squeeze {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        let (Some(dims), Some(layout)) = (&input.dims, input.layout) else {
            return Ok(vec![ValueType { dtype: input.dtype, dims: None, layout: None }]);
        };
        let kept = self.kept(dims.len(), layout)?;
        let dims = Some(kept.iter().map(|&dim| dims[dim]).collect());
        Ok(vec![ValueType { dtype: input.dtype, dims, layout: Some(letters(layout, &kept)) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let kept = self.kept(desc.shapes.first().map_or(0, |shape| shape.len()), desc.layout)?;
        let shapes = inputs.map_shapes(kept.len(), |sample| {
            let shape = sample.input(0)?.shape;
            let squeezed = |dim: &usize| shape.get(*dim).copied().unwrap_or(1);
            let left = Shape::from(kept.iter().map(squeezed).collect::<Vec<_>>());
            // What has no elements may lose an extent of 0 as well, as long as another one stays.
            if left.volume()? == shape.volume()? {
                return Ok(left);
            }
            Err(Error::invalid(format!(
                "a sample of shape {shape} would become one of {left}, expected extents of 1 to be taken away"
            )))
        });
        Ok(vec![BatchDesc::new(desc.dtype, letters(desc.layout, &kept), shapes)])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("a view has nothing to run"))
    }

    fn is_view(&self) -> bool {
        true
    }
}
