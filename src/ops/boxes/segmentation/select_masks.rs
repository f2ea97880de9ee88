//! `segmentation__SelectMasks`: the polygons of some masks.

use crate::error::{Error, Result};
use crate::operator::shared::dtypes;
use crate::operator::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct SelectMasks {
    /// Whether masks are numbered anew, in the order in which they were selected.
    reindex: bool,
    /// Per sample.
    answers: Vec<Answer>,
}

/// What is selected of one sample.
#[derive(Debug, Default)]
struct Answer {
    polygons: Vec<Polygon>,
    vertices: usize,
    /// Numbers of a vertex.
    coordinates: usize,
}

/// A polygon of the output, and where its vertices are in the input.
#[derive(Debug)]
struct Polygon {
    mask: i32,
    start: usize,
    end: usize,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "segmentation__SelectMasks",
    doc: "The polygons of some masks, and their vertices",
    devices: &[Device::Cpu],
    inputs: (3, 3),
    args: &[ArgSpec::bool("reindex_masks", "whether masks are numbered in the order of their selection")
        .or_bool(false)],
    build: &build,
    outputs: &|_, _| Ok(2),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(SelectMasks { reindex: args.bool("reindex_masks")?, answers: Vec::new() }))
}

impl SelectMasks {
    fn answer(&self, sample: &SampleInputs<'_>) -> Result<Answer> {
        let (ids, polygons, vertices) = (sample.input(0)?, sample.input(1)?, sample.input(2)?);
        let (&[_], &[_, 3], &[count, coordinates]) =
            (&ids.shape[..], &polygons.shape[..], &vertices.shape[..])
        else {
            return Err(Error::invalid(format!(
                "masks, polygons and vertices of shapes {}, {} and {}, expected 1, 2 and 2 dimensions, and 3 numbers a polygon",
                ids.shape, polygons.shape, vertices.shape
            )));
        };
        let ids = ids.as_slice::<i32>()?;
        let known: std::collections::HashMap<i32, &[i32; 3]> = polygons
            .as_slice::<i32>()?
            .as_chunks::<3>()
            .0
            .iter()
            .map(|polygon| (polygon[0], polygon))
            .collect();
        let mut seen = std::collections::HashSet::new();
        let mut answer = Answer { coordinates, ..Answer::default() };
        for (i, &id) in ids.iter().enumerate() {
            if !seen.insert(id) {
                return Err(Error::invalid(format!("mask {id} is selected twice")));
            }
            // Of a mask with several polygons DALI takes the last.
            let Some(&&[_, start, end]) = known.get(&id) else {
                return Err(Error::invalid(format!("mask {id} is selected, which has no polygon")));
            };
            let (Ok(start), Ok(end)) = (usize::try_from(start), usize::try_from(end)) else {
                return Err(Error::invalid(format!("vertices {start} to {end} of {count}")));
            };
            if start > end || end > count {
                return Err(Error::invalid(format!("vertices {start} to {end} of {count}")));
            }
            let mask = if self.reindex { i as i32 } else { id };
            answer.vertices += end - start;
            answer.polygons.push(Polygon { mask, start, end });
        }
        Ok(answer)
    }
}

impl Operator for SelectMasks {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let coordinates = inputs[2].dims.as_ref().and_then(|dims| *dims.get(1)?);
        let ty = |dtype, dims| ValueType { dtype, dims: Some(dims), layout: Some(Layout::NONE) };
        Ok(vec![ty(Some(DType::I32), vec![None, Some(3)]), ty(inputs[2].dtype, vec![None, coordinates])])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        for (i, what) in ["numbers of masks", "polygons"].into_iter().enumerate() {
            dtypes::accepted(what, inputs.desc(i)?.dtype, &[DType::I32])?;
        }
        self.answers = inputs.map(|sample| self.answer(&sample));
        let shapes = |shape: &dyn Fn(&Answer) -> Shape| self.answers.iter().map(shape).collect::<Vec<_>>();
        let polygons = shapes(&|answer| Shape::from([answer.polygons.len(), 3]));
        let vertices = shapes(&|answer| Shape::from([answer.vertices, answer.coordinates]));
        Ok(vec![
            BatchDesc::new(DType::I32, Layout::NONE, polygons),
            BatchDesc::new(inputs.desc(2)?.dtype, Layout::NONE, vertices),
        ])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let answer = &self.answers[sample.index()];
            let mut next = 0;
            let polygons = sample.output(0)?.as_slice_mut::<i32>()?;
            for (to, polygon) in polygons.as_chunks_mut::<3>().0.iter_mut().zip(&answer.polygons) {
                let count = (polygon.end - polygon.start) as i32;
                *to = [polygon.mask, next, next + count];
                next += count;
            }
            let vertices = sample.input(2)?;
            let size = answer.coordinates * vertices.dtype.size();
            let mut to = &mut *sample.output(1)?.bytes;
            for polygon in &answer.polygons {
                let from = &vertices.bytes[polygon.start * size..polygon.end * size];
                let (own, rest) = to.split_at_mut(from.len());
                own.copy_from_slice(from);
                to = rest;
            }
            Ok(())
        })
    }
}
