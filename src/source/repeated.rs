//! What a caller brings once and every batch gets: what stands beside a video. It must not know what that is.

use std::sync::Arc;

use super::{Pulled, Source};
use crate::error::{Error, Result};
use crate::memory::HostPool;
use crate::tensor::{Batch, BatchDesc, Sample, ValueType};

/// Gives the samples that it was fed with, over and over. One sample stands for all of a batch; of more, each batch
/// gets the first ones.
pub struct Repeated {
    ty: ValueType,
    memory: Arc<HostPool>,
    fed: Option<Batch<'static>>,
}

impl Repeated {
    /// A source of values that are of type `ty`.
    pub fn new(ty: ValueType) -> Self {
        Self { ty, memory: Arc::default(), fed: None }
    }
}

impl Source for Repeated {
    fn infer(&self) -> Result<Vec<ValueType>> {
        Ok(vec![self.ty.clone()])
    }

    fn feed(&mut self, input: &Batch<'_>) -> Result<()> {
        let own = |i: usize| {
            let bytes = input.view(i).bytes;
            let mut buffer = self.memory.take(bytes.len())?;
            buffer.bytes_mut().get_mut(..bytes.len()).unwrap_or_default().copy_from_slice(bytes);
            Ok(Sample::Pooled(Arc::new(buffer), 0..bytes.len()))
        };
        let samples = (0..input.len()).map(own).collect::<Result<_>>()?;
        self.fed = Some(Batch::new(input.desc().clone(), samples)?);
        Ok(())
    }

    fn next(&mut self, most: usize, _memory: &Arc<HostPool>) -> Result<Option<Pulled>> {
        let fed = self.fed.as_ref().ok_or_else(|| Error::invalid("nothing was fed to it"))?;
        let (desc, count) = (fed.desc(), fed.len());
        if count != 1 && count < most {
            return Err(Error::invalid(format!(
                "{count} samples were fed for batches of {most}, expected one for all, or at least as many"
            )));
        }
        let places = || (0..most).map(|i| if count == 1 { 0 } else { i });
        let shapes = places().filter_map(|i| desc.shapes.get(i).cloned()).collect();
        let samples = places().filter_map(|i| fed.sample(i).cloned()).collect();
        Ok(Some(vec![Batch::new(BatchDesc::new(desc.dtype, desc.layout, shapes), samples)?].into()))
    }
}
