//! Sources that tests bring in place of the caller: which inputs they feed, and what that says about types.

use super::{Fed, Feed, Graph, GraphSource};
use crate::error::{Context, Error, Result};
use crate::source::MakeSource;
use crate::tensor::{Device, ValueType};

impl Graph {
    /// Lets the outputs of a source feed the inputs `names`, in that order. Comes before types are inferred.
    ///
    /// # Errors
    /// An input that does not exist or is fed already, a number or a type of outputs that does not fit, and what making
    /// the source fails with.
    pub fn feed(&mut self, names: &[String], make: MakeSource) -> Result<()> {
        let types = make()?.infer()?;
        if types.len() != names.len() {
            return Err(Error::invalid(format!(
                "a source of {} outputs feeds {} inputs",
                types.len(),
                names.len()
            )));
        }
        let source = self.sources.len();
        for (output, (name, ty)) in names.iter().zip(types).enumerate() {
            self.feed_one(name, ty, Feed::Source { source, output }).context(|| format!("input `{name}`"))?;
        }
        self.sources.push(GraphSource { name: String::new(), fed: Fed::Nothing, device: Device::Cpu, make });
        Ok(())
    }

    fn feed_one(&mut self, name: &str, mut ty: ValueType, feed: Feed) -> Result<()> {
        let input = self.inputs.iter_mut().find(|input| input.name == name);
        let input = input.ok_or_else(|| Error::not_found("the pipeline has no such input"))?;
        if input.feed != Feed::Caller {
            return Err(Error::invalid("two sources feed it"));
        }
        if let (Some(declared), Some(found)) = (input.dtype, ty.dtype)
            && declared != found
        {
            return Err(Error::invalid(format!("declared as {declared}, but its source gives {found}")));
        }
        if let (Some(declared), Some(found)) = (input.ndim, ty.ndim())
            && declared != found
        {
            let text = format!("declared with {declared} dimensions, but its source gives {found}");
            return Err(Error::invalid(text));
        }
        if let Some(found) = ty.layout.filter(|&found| !input.layout.is_none() && found != input.layout) {
            let text = format!("declared with layout `{}`, but its source gives `{found}`", input.layout);
            return Err(Error::invalid(text));
        }
        ty.dtype = ty.dtype.or(input.dtype);
        ty.dims = ty.dims.or_else(|| input.ndim.map(|ndim| vec![None; ndim]));
        ty.layout = ty.layout.or(Some(input.layout).filter(|layout| !layout.is_none()));
        input.feed = feed;
        let value = input.value;
        self.values[value.0].ty = ty;
        Ok(())
    }
}
