//! Reductions on a device. As DALI's there, they round and saturate results of integer types, where those on the host
//! keep the low bits of their sums.

use super::{Kind, Reduction};
use crate::error::Result;
use crate::gpu::KernelSpec;
use crate::operator::{GpuCx, GpuIo};
use crate::ops::math::folds::{Finish, Fold, Params, Row, Term};
use crate::tensor::{DType, Shape};

fn fold(kind: Kind, from: DType, to: DType) -> Fold {
    let (term, finish) = match kind {
        Kind::Sum => (Term::Sum, Finish::Plain),
        Kind::Mean => (Term::Sum, Finish::Mean),
        Kind::MeanSquare => (Term::Squares, Finish::Mean),
        Kind::Rms => (Term::Squares, Finish::Root),
        Kind::Min => (Term::Least, Finish::Plain),
        Kind::Max => (Term::Most, Finish::Plain),
        Kind::Variance => (Term::Distances, Finish::Mean),
        Kind::StdDev => (Term::Distances, Finish::Root),
    };
    Fold { term, finish, from, to }
}

impl Reduction {
    /// The fold of elements of type `from`.
    pub(super) fn fold(&self, from: DType) -> Result<Fold> {
        Ok(fold(self.kind, from, self.output_dtype(from)?))
    }

    /// Records the work of all live samples.
    pub(super) fn record(&self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let fold = self.fold(io.inputs().desc(0)?.dtype)?;
        let rows = io.rows(|sample| {
            let shape = sample.input(0)?.shape;
            let kept: Vec<usize> =
                shape.iter().zip(&self.reduced).map(|(&d, &reduced)| if reduced { 1 } else { d }).collect();
            let mut row = Row::new(shape, &Shape::new(kept))?;
            (row.from, row.to) = (sample.source(0)?, sample.target(0)?);
            if fold.term == Term::Distances {
                (row.means, row.mean_step) = (sample.source(1)?, 1);
            }
            Ok(row)
        });
        // Where no degree of freedom is left, the kernel answers 0: so also for variances of no dimension.
        let of_none = fold.term == Term::Distances && self.axes.is_none();
        let ddof = if of_none { 1 } else { self.ddof };
        fold.record(cx, &rows, &Params { ddof, ..Params::default() }, false)
    }
}

pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    use DType::{F32, I8, I16, I32, I64, U8, U16, U32, U64};
    let folds = [
        (Kind::Sum, &[(U8, U64), (I8, I8), (U16, F32), (I32, I64), (U32, U32), (U64, U64), (F32, F32)][..]),
        (Kind::Mean, &[(U8, F32), (U8, U8), (I16, F32), (I64, F32), (U64, U64), (F32, F32)]),
        (Kind::MeanSquare, &[(U8, F32), (U16, U16), (U32, F32), (I64, I64), (F32, F32)]),
        (Kind::Rms, &[(I8, I8), (U16, F32), (F32, F32)]),
        (Kind::Min, &[(U8, U8), (I16, I16), (U64, U64), (F32, F32)]),
        (Kind::Max, &[(I8, I8), (U32, U32), (I64, I64), (F32, F32)]),
        (Kind::Variance, &[(U8, F32), (F32, F32)]),
        (Kind::StdDev, &[(I64, F32), (F32, F32)]),
    ];
    let each = folds
        .into_iter()
        .flat_map(|(kind, types)| types.iter().flat_map(move |&(from, to)| fold(kind, from, to).kernels()));
    each.collect()
}
