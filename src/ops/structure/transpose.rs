//! `Transpose`: another order of the dimensions.

use std::sync::Arc;

use multiversion::multiversion;

use crate::cpu::window::Span;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::shared::gather::{self, Fill, Gather};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType, elements, elements_mut};

struct Transpose {
    /// Output dimension `i` is input dimension `perm[i]`; `None`: the order is reversed.
    perm: Option<Vec<usize>>,
    layout: OutputLayout,
}

enum OutputLayout {
    Permuted,
    AsInput,
    Fixed(Layout),
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Transpose",
    doc: "Another order of the dimensions",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints("perm", "input dimension of each output dimension").or_computed("reversed"),
        ArgSpec::bool("transpose_layout", "whether the layout's letters move too").or_bool(true),
        ArgSpec::layout("output_layout", "layout of the output, whatever `transpose_layout` says"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let perm = args
        .given_ints("perm")?
        .filter(|perm| !perm.is_empty())
        .map(|perm| permutation(&perm))
        .transpose()?;
    let layout = match args.given_string("output_layout")?.map(Layout::new).transpose()? {
        Some(layout) if layout.is_none() => {
            return Err(Error::invalid("argument `output_layout` is empty, expected one letter a dimension"));
        }
        Some(layout) => OutputLayout::Fixed(layout),
        None if args.bool("transpose_layout")? => OutputLayout::Permuted,
        None => OutputLayout::AsInput,
    };
    Ok(Box::new(Transpose { perm, layout }))
}

fn permutation(perm: &[i64]) -> Result<Vec<usize>> {
    let mut seen = [false; limits::MAX_NDIM];
    let place = |&axis: &i64| {
        let axis = usize::try_from(axis).ok().filter(|&axis| axis < perm.len())?;
        let seen = seen.get_mut(axis)?;
        (!std::mem::replace(seen, true)).then_some(axis)
    };
    perm.iter().map(place).collect::<Option<Vec<_>>>().ok_or_else(|| {
        Error::invalid(format!("argument `perm` is {perm:?}, expected every dimension from 0 on once"))
    })
}

impl Transpose {
    fn perm(&self, ndim: usize) -> Result<Vec<usize>> {
        match &self.perm {
            None => Ok((0..ndim).rev().collect()),
            Some(perm) if perm.len() == ndim => Ok(perm.clone()),
            Some(perm) => Err(Error::invalid(format!(
                "the input has {ndim} dimensions, expected {} as `perm` names",
                perm.len()
            ))),
        }
    }

    fn output_layout(&self, input: Layout, perm: &[usize]) -> Result<Layout> {
        let layout = match self.layout {
            OutputLayout::Fixed(layout) => layout,
            OutputLayout::AsInput => input,
            OutputLayout::Permuted => {
                let letters: Option<Vec<u8>> =
                    perm.iter().map(|&axis| input.letters().get(axis).copied()).collect();
                letters.map_or(Layout::NONE, |letters| Layout::from_letters(&letters))
            }
        };
        if !layout.is_none() && layout.letters().len() != perm.len() {
            return Err(Error::invalid(format!(
                "layout `{layout}` does not fit an output of {} dimensions",
                perm.len()
            )));
        }
        Ok(layout)
    }
}

impl Operator for Transpose {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        let Some(ndim) = input.ndim().or(self.perm.as_ref().map(Vec::len)) else {
            return Ok(vec![ValueType { dtype: input.dtype, ..ValueType::default() }]);
        };
        let perm = self.perm(ndim)?;
        let dims = match &input.dims {
            Some(dims) => perm.iter().map(|&axis| dims[axis]).collect(),
            None => vec![None; ndim],
        };
        let layout = match (&self.layout, input.layout) {
            (OutputLayout::Fixed(_), _) => Some(self.output_layout(Layout::NONE, &perm)?),
            (_, layout) => layout.map(|layout| self.output_layout(layout, &perm)).transpose()?,
        };
        Ok(vec![ValueType { dtype: input.dtype, dims: Some(dims), layout }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let perm = self.perm(ndim)?;
        let layout = self.output_layout(desc.layout, &perm)?;
        let shapes = inputs.map_shapes(ndim, |sample| {
            let shape = sample.input(0)?.shape;
            Ok(Shape::from(perm.iter().map(|&axis| shape[axis]).collect::<Vec<_>>()))
        });
        Ok(vec![BatchDesc::new(desc.dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let size = io.inputs().desc(0)?.dtype.size();
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            if output.bytes.is_empty() {
                return Ok(());
            }
            let dims = merged(input.shape, &self.perm(input.shape.len())?);
            match size {
                1 => transpose(input.bytes, output.bytes, &dims),
                2 => transpose::<u16>(elements(input.bytes)?, elements_mut(output.bytes)?, &dims),
                4 => transpose::<u32>(elements(input.bytes)?, elements_mut(output.bytes)?, &dims),
                _ => transpose::<u64>(elements(input.bytes)?, elements_mut(output.bytes)?, &dims),
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| Gather::copy(dtype.size()).prepare(gpu))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let gather = Gather::copy(io.inputs().desc(0)?.dtype.size());
        let rows = io.rows(|sample| {
            let shape = sample.input(0)?.shape;
            let spans: Vec<Span> = if shape.contains(&0) {
                vec![Span::whole(0, 1)]
            } else {
                let dims = merged(shape, &self.perm(shape.len())?);
                dims.iter().map(|dim| Span::whole(dim.extent, dim.stride as i64)).collect()
            };
            gather.row(sample.target(0)?, sample.source(0)?, &spans, Fill::default())
        });
        gather.launch(cx, &rows)
    }
}

/// A dimension of the output: its extent, and how far apart its neighbours are in the input.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Dim {
    extent: usize,
    stride: usize,
}

/// The dimensions of the output, without those of extent 1, and with those joined that stay neighbours.
fn merged(shape: &Shape, perm: &[usize]) -> Vec<Dim> {
    let strides = shape.strides();
    let mut dims: Vec<Dim> = Vec::with_capacity(perm.len());
    for &axis in perm {
        let dim = Dim { extent: shape[axis], stride: strides[axis] };
        match dims.last_mut() {
            _ if dim.extent == 1 => {}
            Some(outer) if outer.stride == dim.extent * dim.stride => {
                *outer = Dim { extent: outer.extent * dim.extent, stride: dim.stride };
            }
            _ => dims.push(dim),
        }
    }
    dims
}

/// Offsets in the input of every position in `dims`, in the order of the output.
fn offsets(dims: &[Dim]) -> impl Iterator<Item = usize> {
    let count: usize = dims.iter().map(|dim| dim.extent).product();
    let mut index = vec![0; dims.len()];
    let mut offset = 0;
    (0..count).map(move |_| {
        let here = offset;
        for (i, dim) in index.iter_mut().zip(dims).rev() {
            *i += 1;
            offset += dim.stride;
            if *i < dim.extent {
                break;
            }
            offset -= dim.extent * dim.stride;
            *i = 0;
        }
        here
    })
}

/// Copies `src` to the dense `dst`, whose dimensions are `dims`.
fn transpose<T: Copy>(src: &[T], dst: &mut [T], dims: &[Dim]) {
    let Some((&inner, outer)) = dims.split_last() else { return dst.copy_from_slice(src) };
    if inner.stride == 1 {
        for (row, from) in dst.chunks_exact_mut(inner.extent).zip(offsets(outer)) {
            row.copy_from_slice(&src[from..][..inner.extent]);
        }
        return;
    }
    // The dimension that is innermost in the input is an outer one here. Together with the innermost one it makes a
    // matrix to transpose, at each position in the other dimensions.
    let mut matrix = Matrix { rows: inner.extent, columns: 1, source: inner.stride, target: 1 };
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    let mut stride = inner.extent;
    for dim in outer.iter().rev() {
        if dim.stride == 1 {
            matrix = Matrix { columns: dim.extent, target: stride, ..matrix };
        } else {
            sources.insert(0, *dim);
            targets.insert(0, Dim { stride, ..*dim });
        }
        stride *= dim.extent;
    }
    for (from, to) in offsets(&sources).zip(offsets(&targets)) {
        matrix.transpose(&src[from..], &mut dst[to..]);
    }
}

/// Elements that are moved at once: few enough for the cache to hold where they come from and where they go.
const BLOCK: usize = 1024;

/// A matrix whose element (row, column) is at `row * source + column` in the input and at `column * target + row` in
/// the output.
#[derive(Debug, Clone, Copy)]
struct Matrix {
    rows: usize,
    columns: usize,
    source: usize,
    target: usize,
}

impl Matrix {
    fn transpose<T: Copy>(&self, src: &[T], dst: &mut [T]) {
        // Colours, from pixels to planes and back.
        if [self.columns, self.source] == [3; 2] {
            return split(src, first_three(dst.chunks_mut(self.target)).map(|plane| &mut plane[..self.rows]));
        }
        if [self.rows, self.target] == [3; 2] {
            return join(first_three(src.chunks(self.source)).map(|plane| &plane[..self.columns]), dst);
        }
        let short = self.rows.min(self.columns).min(BLOCK.isqrt());
        let long = BLOCK / short;
        let (height, width) = if self.rows < self.columns { (short, long) } else { (long, short) };
        for row in (0..self.rows).step_by(height) {
            for column in (0..self.columns).step_by(width) {
                let block = Matrix {
                    rows: height.min(self.rows - row),
                    columns: width.min(self.columns - column),
                    ..*self
                };
                let (from, to) = (row * self.source + column, column * self.target + row);
                block.transpose_block(&src[from..], &mut dst[to..]);
            }
        }
    }

    /// Walks along the longer side, so that the inner loop is worth its start.
    fn transpose_block<T: Copy>(&self, src: &[T], dst: &mut [T]) {
        if self.rows < self.columns {
            for row in 0..self.rows {
                let from = &src[row * self.source..][..self.columns];
                for (to, &from) in dst[row..].iter_mut().step_by(self.target).zip(from) {
                    *to = from;
                }
            }
        } else {
            for column in 0..self.columns {
                let to = &mut dst[column * self.target..][..self.rows];
                for (to, &from) in to.iter_mut().zip(src[column..].iter().step_by(self.source)) {
                    *to = from;
                }
            }
        }
    }
}

/// Of three colours or more, the first three; nothing where there are less.
fn first_three<T: Default>(mut all: impl Iterator<Item = T>) -> [T; 3] {
    std::array::from_fn(|_| all.next().unwrap_or_default())
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn split<T: Copy>(pixels: &[T], [a, b, c]: [&mut [T]; 3]) {
    for (((a, b), c), pixel) in a.iter_mut().zip(b).zip(c).zip(pixels.as_chunks::<3>().0) {
        [*a, *b, *c] = *pixel;
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn join<T: Copy>([a, b, c]: [&[T]; 3], pixels: &mut [T]) {
    for (((&a, &b), &c), pixel) in a.iter().zip(b).zip(c).zip(pixels.as_chunks_mut::<3>().0) {
        *pixel = [a, b, c];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    /// Every permutation of shapes that cross the block size, against the definition.
    #[test]
    fn every_permutation_moves_every_element() {
        for shape in [vec![3, 41, 37], vec![2, 1, 5, 4], vec![70, 1, 3], vec![7], vec![]] {
            let shape = Shape::from(shape);
            let volume = shape.volume().unwrap();
            let src: Vec<u32> = (0..volume as u32).collect();
            for perm in permutations(shape.len()) {
                let mut dst = vec![u32::MAX; volume];
                transpose(&src, &mut dst, &merged(&shape, &perm));
                let strides = shape.strides();
                let dims: Vec<Dim> =
                    perm.iter().map(|&a| Dim { extent: shape[a], stride: strides[a] }).collect();
                let expected: Vec<u32> = offsets(&dims).map(|offset| src[offset]).collect();
                assert_eq!(dst, expected, "{shape} {perm:?}");
            }
        }
    }

    fn permutations(n: usize) -> Vec<Vec<usize>> {
        if n == 0 {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for rest in permutations(n - 1) {
            for at in 0..n {
                let mut perm = rest.clone();
                perm.insert(at, n - 1);
                all.push(perm);
            }
        }
        all
    }

    #[test]
    fn neighbours_are_joined() {
        assert_eq!(merged(&Shape::from([4, 5, 3]), &[2, 0, 1]).len(), 2);
        assert_eq!(merged(&Shape::from([4, 5, 3]), &[0, 1, 2]), [Dim { extent: 60, stride: 1 }]);
    }

    /// A request that costs nothing may name extents whose product no number holds.
    #[test]
    fn huge_extents_of_nothing_are_harmless() {
        let none: [u8; 0] = [];
        let input = batch(&[(&[0, 1 << 40, 1 << 40], &none)]);
        let perm = args(&[("perm", Value::Ints(vec![0, 2, 1]))], &[]);
        let outcome = run(&DEF, &perm, &[input], &[]).unwrap();
        assert_eq!(*outcome.desc.shapes[0], [0, 1 << 40, 1 << 40]);
        assert!(outcome.values::<u8>(0).is_empty());
    }

    #[test]
    fn a_permutation_names_every_dimension_once() {
        assert!(permutation(&[1, 0, 2]).is_ok());
        for bad in [vec![0, 0], vec![-1, 0], vec![1, 2], vec![i64::MAX], (0..17).collect()] {
            assert!(permutation(&bad).is_err(), "{bad:?}");
        }
    }
}
