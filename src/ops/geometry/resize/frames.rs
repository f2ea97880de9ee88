//! The resize of a sequence whose frames come one by one, each perhaps row by row: what [`Job::run`] makes of all of
//! them. It must not know who makes frames.

use super::{Job, Scratch};
use crate::cpu::resample::{Output, Plan};
use crate::cpu::video::TakeRow;
use crate::deadline::Watch;
use crate::error::Result;
use crate::tensor::{DType, Layout, Shape, View, ViewMut};

/// How each frame of a sequence is resized.
pub(in crate::ops) struct FrameResize<'a> {
    job: &'a Job,
    /// `None` with another library's arithmetic.
    plan: Option<Plan>,
    /// What is made.
    dtype: DType,
    shapes: [Shape; 2],
}

/// Makes rows, which it hands over; false: it does not make them one by one.
pub(in crate::ops) type MakeRows<'m> = dyn FnMut(&mut TakeRow<'_>) -> Result<bool> + 'm;

impl<'a> FrameResize<'a> {
    /// Of the frames of `job`, which become `dtype`.
    ///
    /// # Errors
    /// Those of [`Plan::new`].
    pub(in crate::ops) fn new(job: &'a Job, dtype: DType) -> Result<Self> {
        let (geometry, target) = (&job.geometry, &job.target);
        let plan =
            || Plan::new(geometry.size, geometry.channels, target.size, target.roi, [target.filter; 2]);
        let plan = if job.task.is_none() { Some(plan()?) } else { None };
        let shapes = [geometry.size, target.size].map(|[h, w]| Shape::from([h, w, geometry.channels]));
        Ok(Self { job, plan, dtype, shapes })
    }

    /// Bytes of a frame.
    ///
    /// # Errors
    /// When they cannot be counted.
    pub(in crate::ops) fn source_bytes(&self) -> Result<usize> {
        self.shapes[0].volume()
    }

    /// Bytes of what becomes of it.
    ///
    /// # Errors
    /// When they cannot be counted.
    pub(in crate::ops) fn made_bytes(&self) -> Result<usize> {
        Ok(self.shapes[1].volume()? * self.dtype.size())
    }

    /// Resizes a frame of bytes whose rows `make` makes from the top. False: it did not, or they cannot come one by
    /// one; then `out` holds anything.
    ///
    /// # Errors
    /// Those of `make`; internal, when `out` does not have the planned size.
    pub(in crate::ops) fn run_rows(
        &self,
        out: &mut [u8],
        scratch: &mut Scratch,
        make: &mut MakeRows<'_>,
    ) -> Result<bool> {
        let Some(plan) = self.plan.as_ref().filter(|plan| plan.takes_rows()) else { return Ok(false) };
        let mut made = self.made(out);
        match self.dtype {
            DType::F32 => fill(plan, made.as_slice_mut::<f32>()?, scratch, make),
            _ => fill(plan, made.as_slice_mut::<u8>()?, scratch, make),
        }
    }

    /// Resizes a frame.
    ///
    /// # Errors
    /// Those of [`Job::run`].
    pub(in crate::ops) fn run(
        &self,
        frame: &[u8],
        out: &mut [u8],
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let mut made = self.made(out);
        let Some(plan) = &self.plan else {
            let frame =
                View { dtype: DType::U8, layout: Layout::hwc(), shape: &self.shapes[0], bytes: frame };
            return self.job.run(&frame, &mut made, scratch, watch);
        };
        match self.dtype {
            DType::F32 => plan.run_watched(frame, made.as_slice_mut::<f32>()?, &mut scratch.dali, watch),
            _ => plan.run_watched(frame, made.as_slice_mut::<u8>()?, &mut scratch.dali, watch),
        }
    }

    fn made<'o>(&'o self, out: &'o mut [u8]) -> ViewMut<'o> {
        ViewMut { dtype: self.dtype, layout: Layout::hwc(), shape: &self.shapes[1], bytes: out }
    }
}

fn fill<T: Output>(
    plan: &Plan,
    out: &mut [T],
    scratch: &mut Scratch,
    make: &mut MakeRows<'_>,
) -> Result<bool> {
    let mut stream = plan.stream(out, &mut scratch.dali)?;
    let made = make(&mut |y, write| {
        write(stream.row(y));
        stream.done(y);
    })?;
    Ok(made && stream.is_complete())
}
