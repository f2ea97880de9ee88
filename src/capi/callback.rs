//! Functions of the program as operators of a pipeline. It must not know what they do.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use super::failure::Failure;
use super::foreign;
use super::input;
use super::operator::Message;
use super::result::ResultHandle;
use super::sample::{Data, Destination, Exports, Made};
use super::size::{self, Versioned};
use super::types::{self, InputTensor};
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::HostPool;
use crate::pipeline::{Answer, Callback, Callbacks, Input, Inputs};
use crate::tensor::{Batch, DType, Device, Layout, Sample};

/// A function of the program: an operator `Callback` or a source `CallbackSource` of a pipeline's file, by its name
/// there.
#[repr(C)]
pub struct CallbackTable {
    /// `sizeof(gesso_callback)`.
    pub struct_size: usize,
    /// The operator's name in the pipeline. It is read while the pipeline is loaded, not later.
    pub name: *const c_char,
    /// Called once for a batch, in the thread that runs it, for one batch after the other. `inputs` is the callee's, to
    /// give to `gesso_result_free`: its outputs are the operator's inputs, then the tensors that feed arguments, in the
    /// order of their names. Samples that are in memory of the caller's, as inputs of the batch are, are there until
    /// the run returns. Fills `outputs`, as many as the operator has, with as many samples each as `inputs` has, in
    /// host memory that stays until `release` is called; those of samples that failed are not looked at. Returns 0, or
    /// the `gesso_status` to fail the batch with, and must not throw.
    ///
    /// That of a source is called by a thread of the stream, ahead of who takes the batches, also for a batch that
    /// comes after one that failed. `inputs` has no outputs, but as many samples as the batch is to have. A source that
    /// leaves the `samples` of its first output null has no more: the stream ends there.
    pub call: Option<
        unsafe extern "C-unwind" fn(
            user: *mut c_void,
            inputs: *mut ResultHandle,
            outputs: *mut InputTensor,
            message: *mut Message,
        ) -> i32,
    >,
    /// Called when the memory of the outputs of the last `call` is not needed any more, by any thread. May be null.
    pub release: Option<unsafe extern "C-unwind" fn(user: *mut c_void)>,
    /// What both are called with. It must stay as long as the pipeline, its instances and streams.
    pub user: *mut c_void,
}

// SAFETY: numbers, pointers and functions that may be null, the first of which is the size.
unsafe impl Versioned for CallbackTable {
    const NAME: &'static str = "gesso_callback";
    const FIRST: usize = 40;
}

/// The functions that a caller gives.
///
/// # Safety
/// `tables` points at `count` structs of the size that they say, which keep the promises of `gesso_callback`.
pub(super) unsafe fn callbacks(tables: *const CallbackTable, count: usize) -> Result<Callbacks> {
    if count > limits::MAX_OPERATORS {
        let most = limits::MAX_OPERATORS;
        return Err(Error::invalid(format!("{count} callbacks, expected at most {most}")));
    }
    // SAFETY: the caller vouches for so many.
    let tables = unsafe { size::read_all("callbacks", tables, count) }?;
    let mut found = Callbacks::new();
    for table in tables {
        // SAFETY: the caller vouches for the text.
        let name = unsafe { types::text("name", table.name) }?.to_owned();
        if table.call.is_none() {
            return Err(Error::invalid(format!("the callback `{name}` has no `call`")));
        }
        let function: Arc<dyn Callback> = Arc::new(Function { table, pool: Arc::default() });
        if found.insert(name.clone(), function).is_some() {
            return Err(Error::invalid(format!("there are two callbacks `{name}`")));
        }
    }
    Ok(found)
}

/// A caller's function.
struct Function {
    table: CallbackTable,
    /// Memory for what cannot be shown where it is.
    pool: Arc<HostPool>,
}

// SAFETY: the interface asks of the program that its functions may be called by any thread that runs a batch.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Callback for Function {
    fn call(&self, inputs: &Inputs<'_>, layouts: &[Option<Layout>]) -> Result<Box<dyn Answer>> {
        let outputs = self.called(self.shown(inputs)?, layouts)?;
        Ok(Box::new(outputs.read(inputs.batch_size(), layouts)?))
    }

    fn next(&self, samples: usize, layouts: &[Option<Layout>]) -> Result<Option<Box<dyn Answer>>> {
        let failures = (0..samples).map(|_| None).collect();
        let asked = Data {
            exports: Exports::default(),
            outputs: Vec::new(),
            failures,
            ordinal: 0,
            branch_samples: Vec::new(),
        };
        let outputs = self.called(asked, layouts)?;
        if outputs.filled.first().is_some_and(|output| output.samples.is_null()) {
            return Ok(None);
        }
        Ok(Some(Box::new(outputs.read(samples, layouts)?)))
    }
}

impl Function {
    /// What the function fills its outputs with, for a batch that is `shown` to it.
    fn called(&self, shown: Data, layouts: &[Option<Layout>]) -> Result<Outputs> {
        let call = self.table.call.ok_or_else(|| Error::internal("a callback without `call`"))?;
        let shown = Box::into_raw(Box::new(ResultHandle(Arc::new(shown))));
        let mut filled: Vec<InputTensor> = layouts.iter().map(|_| empty()).collect();
        let (first, user) = (filled.as_mut_ptr(), self.table.user);
        let answer = Released { batches: Vec::new(), release: self.table.release, user };
        foreign::call(|message| {
            let unwound = Unwound;
            // SAFETY: a function of the interface; as many outputs as the operator has, which live during the call.
            let code = unsafe { call(user, shown, first, message) };
            std::mem::forget(unwound);
            code
        })?;
        Ok(Outputs { filled, answer })
    }

    /// The inputs as the outputs of a result.
    fn shown(&self, inputs: &Inputs<'_>) -> Result<Data> {
        let regular = (0..inputs.len()).map(|i| inputs.batch(i)).collect::<Result<Vec<_>>>()?;
        let failures: Vec<_> =
            (0..inputs.batch_size()).map(|i| inputs.failures().get(i).map(Failure::of)).collect();
        let made = |batch: &Batch<'_>, i: usize| {
            // What others own is shown where it is.
            let place = match batch.sample(i) {
                Some(Sample::Borrowed(bytes)) => {
                    Some(Destination { address: bytes.as_ptr().expose_provenance(), device: Device::Cpu })
                }
                _ => None,
            };
            match failures.get(i) {
                Some(None) => Made::new(batch, i, place, &self.pool).map(Some),
                _ => Ok(None),
            }
        };
        let all = regular.iter().chain(inputs.arguments());
        let outputs = all.map(|batch| (0..batch.len()).map(|i| made(batch, i)).collect::<Result<_>>());
        let outputs = outputs.collect::<Result<_>>()?;
        Ok(Data { exports: Exports::default(), outputs, failures, ordinal: 0, branch_samples: Vec::new() })
    }
}

/// What a function has filled, and what releases it.
struct Outputs {
    filled: Vec<InputTensor>,
    answer: Released,
}

impl Outputs {
    /// The batches that they are, of so many samples.
    ///
    /// # Errors
    /// Invalid for what is no batch, or has another layout than is known.
    fn read(self, samples: usize, layouts: &[Option<Layout>]) -> Result<Released> {
        let Self { filled, mut answer } = self;
        for (i, (output, &known)) in filled.iter().zip(layouts).enumerate() {
            let (name, layout) = (String::new(), known.unwrap_or_default());
            let declared = Input { name, dtype: None, ndim: None, layout, device: Device::Cpu };
            // SAFETY: the callee vouches for the samples until it is told to release them, by `answer`.
            let batch: Result<Batch<'static>> = unsafe { input::batch(&declared, output, samples) };
            let batch = batch.map_err(|error| error.context(format!("output {i}")))?;
            if known.is_some() && batch.desc().layout != layout {
                let found = batch.desc().layout;
                return Err(Error::invalid(format!("output {i} has layout `{found}`, expected `{layout}`")));
            }
            answer.batches.push(batch);
        }
        Ok(answer)
    }
}

/// An output before it is filled.
fn empty() -> InputTensor {
    InputTensor {
        struct_size: size_of::<InputTensor>(),
        name: std::ptr::null(),
        dtype: types::number(Some(DType::U8)),
        device: types::CPU,
        samples: std::ptr::null(),
        layout: std::ptr::null(),
        origins: std::ptr::null(),
    }
}

/// What a function gave, released when it goes.
struct Released {
    batches: Vec<Batch<'static>>,
    release: Option<unsafe extern "C-unwind" fn(user: *mut c_void)>,
    user: *mut c_void,
}

// SAFETY: the interface asks of the program that any thread may read the outputs, and release them.
unsafe impl Send for Released {}
// SAFETY: as above.
unsafe impl Sync for Released {}

impl Answer for Released {
    fn outputs(&self) -> &[Batch<'_>] {
        &self.batches
    }
}

impl Drop for Released {
    fn drop(&mut self) {
        self.batches.clear();
        if let Some(release) = self.release {
            let unwound = Unwound;
            // SAFETY: a function of the interface; nothing of the outputs is read any more.
            unsafe { release(self.user) };
            std::mem::forget(unwound);
        }
    }
}

/// Waits for ever in a thread that is ended inside of a function of the program, as an interpreter does at its end: our
/// own frames cannot be unwound by that.
pub(super) struct Unwound;

impl Drop for Unwound {
    fn drop(&mut self) {
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}
