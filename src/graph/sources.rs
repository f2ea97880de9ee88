//! The sources of a graph: those of a stream, and what stands beside a video.

use std::sync::Arc;

use super::{Fed, Feed, Graph, GraphSource};
use crate::source::{MakeSource, Repeated, Source};
use crate::tensor::Device;

impl Graph {
    /// Whether callers feed a video that becomes many batches.
    pub fn takes_videos(&self) -> bool {
        self.videos().is_some()
    }

    /// The source that videos are fed to.
    pub fn videos(&self) -> Option<usize> {
        self.sources.iter().position(|source| source.fed == Fed::Videos)
    }

    /// Beside a video, which a caller brings once for many batches, what else he brings comes with each of them.
    pub fn feed_beside_videos(&mut self) {
        if !self.takes_videos() {
            return;
        }
        for input in self.inputs.iter_mut().filter(|input| input.feed == Feed::Caller) {
            let (name, ty) = (input.name.clone(), self.values[input.value.0].ty.clone());
            input.feed = Feed::Source { source: self.sources.len(), output: 0 };
            let make: MakeSource =
                Arc::new(move || Ok(Box::new(Repeated::new(ty.clone())) as Box<dyn Source>));
            self.sources.push(GraphSource { name, fed: Fed::Batch, device: Device::Cpu, make });
        }
    }
}
