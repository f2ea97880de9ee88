//! Makes an instance of an operator, from its definition and the arguments that a file gave.

use super::{Args, OpDef, Operator, frames};
use crate::error::{Error, Result};

impl OpDef {
    /// Builds an instance after checking every argument that was given against the table.
    ///
    /// # Errors
    /// Unsupported when the file sets an argument that the operator does not know: dropping it silently could change
    /// the result.
    pub fn instantiate(&self, args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
        self.check(args)?;
        if inputs < self.inputs.0 || inputs > self.inputs.1 {
            return Err(Error::invalid(format!(
                "expected {} to {} inputs, found {inputs}",
                self.inputs.0, self.inputs.1
            )));
        }
        let operator = (self.build)(&args.with_defaults(self.arg_table()), inputs)?;
        Ok(frames::wrapped(self, operator, args, inputs))
    }

    /// How many outputs an instance with these arguments and so many regular inputs has.
    ///
    /// # Errors
    /// An argument that counts them has a wrong value.
    pub fn output_count(&self, args: &Args, inputs: usize) -> Result<usize> {
        (self.outputs)(&args.with_defaults(self.arg_table()), inputs)
    }

    /// Whether every argument that was given is in the table.
    ///
    /// # Errors
    /// As for [`OpDef::instantiate`].
    pub fn check(&self, args: &Args) -> Result<()> {
        for name in args.names() {
            let Some(spec) = self.all_args().find(|spec| spec.name == name) else {
                return Err(Error::unsupported(format!(
                    "argument `{name}` is not supported by operator `{}`",
                    self.name
                )));
            };
            if args.is_tensor(name) && !spec.tensor {
                return Err(Error::unsupported(format!(
                    "argument `{name}` is a tensor, expected a fixed value"
                )));
            }
        }
        Ok(())
    }
}
