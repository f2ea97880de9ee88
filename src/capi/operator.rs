//! What a library with operators of its own offers: a table of functions for each, in C.

use std::ffi::{c_char, c_void};

use super::size::Versioned;
use super::types::{Tensor, TensorInfo};

/// The version of the interface to operators in libraries: what `gesso_operators` is called with.
pub const GESSO_OPERATOR_ABI_VERSION: u32 = 1;

/// What the values of an argument are.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum ArgumentKind {
    /// `int64_t`.
    Int = 0,
    /// `float`.
    Float = 1,
    /// `int64_t`, 0 or 1.
    Bool = 2,
    /// `const char *`.
    Text = 3,
    /// Others for each sample, see `gesso_operator_sample`.
    Tensor = 4,
}

/// An argument of an operator, as the pipeline file gives it. Lives during the call.
#[repr(C)]
pub struct Argument {
    /// `sizeof(gesso_argument)` of the library.
    pub struct_size: usize,
    /// Its name.
    pub name: *const c_char,
    /// A `gesso_argument_kind`. Numbers come as the file has them: a 1 may be an integer where a float is meant.
    pub kind: i32,
    /// How many values; 0 for a tensor.
    pub count: usize,
    /// The values.
    pub values: *const c_void,
}

/// One sample of a batch. Lives during the call.
#[repr(C)]
pub struct OperatorSample {
    /// `sizeof(gesso_operator_sample)` of the library.
    pub struct_size: usize,
    /// Which one of the batch.
    pub index: usize,
    /// As many as the operator has inputs.
    pub inputs: *const Tensor,
    /// As many as tensors feed arguments, in the order in which `create` was told of them; always in host memory.
    pub arguments: *const Tensor,
    /// As many as the operator has outputs; to be written.
    pub outputs: *const Tensor,
}

/// Where a function that fails writes why: at most `capacity` bytes, the zero at the end included.
#[repr(C)]
pub struct Message {
    /// `sizeof(gesso_message)` of the library.
    pub struct_size: usize,
    /// Empty before.
    pub text: *mut c_char,
    /// Bytes there.
    pub capacity: usize,
}

/// An operator. It lives as long as its library, which is never unloaded; so do all its texts. Functions return 0, or
/// the `gesso_status` to fail with, and must not throw. `state` is what `create` made. Each instance of a pipeline has
/// states of its own, and uses one from one thread at a time; but `run_cpu` is called by several at once, for samples
/// of one batch.
///
/// The structs that functions get are as large as they say, which may be more or less than in the operator's header:
/// elements of arrays are reached by `GESSO_AT`, and a struct is copied by its `struct_size`.
#[repr(C)]
pub struct OperatorTable {
    /// `sizeof(gesso_operator)`.
    pub struct_size: usize,
    /// Its name in pipeline files.
    pub name: *const c_char,
    /// One sentence on what it does.
    pub doc: *const c_char,
    /// Fewest inputs.
    pub min_inputs: usize,
    /// Most inputs.
    pub max_inputs: usize,
    /// Outputs, at least one.
    pub output_count: usize,
    /// Names of the arguments that it knows, behind them a null pointer. A file with another argument does not load.
    /// Null: none.
    pub arguments: *const *const c_char,
    /// Makes the state of one instance of the operator from its arguments, those that are tensors last. May be null.
    pub create: Option<
        unsafe extern "C" fn(
            arguments: *const Argument,
            argument_count: usize,
            input_count: usize,
            state: *mut *mut c_void,
            message: *mut Message,
        ) -> i32,
    >,
    /// Frees it. May be null.
    pub destroy: Option<unsafe extern "C" fn(state: *mut c_void)>,
    /// Says what the outputs are, from what the inputs are: once when a pipeline loads, where types and extents may be
    /// unknown (`GESSO_DTYPE_ANY`, -1, a null `layout`) and `arguments` is null, and once for each sample, where
    /// everything is known and has to be said. `outputs` come with everything unknown. Type, number of dimensions and
    /// layout must be the same for all samples of a batch.
    pub infer: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            inputs: *const TensorInfo,
            arguments: *const Tensor,
            outputs: *mut TensorInfo,
            message: *mut Message,
        ) -> i32,
    >,
    /// Computes one sample in host memory. An error fails this sample alone.
    pub run_cpu: Option<
        unsafe extern "C" fn(
            state: *const c_void,
            sample: *const OperatorSample,
            message: *mut Message,
        ) -> i32,
    >,
    /// Puts the work for `count` samples in memory of the GPU into `stream`, a `CUstream` whose context is current,
    /// without waiting for it. May be called twice for a batch, with the same samples. An error fails the batch. Null:
    /// pipelines that want the operator on a GPU run it on the host.
    pub run_gpu: Option<
        unsafe extern "C" fn(
            state: *mut c_void,
            samples: *const OperatorSample,
            count: usize,
            stream: *mut c_void,
            message: *mut Message,
        ) -> i32,
    >,
}

// SAFETY: numbers, pointers and functions that may be null, the first of which is the size.
unsafe impl Versioned for OperatorTable {
    const NAME: &'static str = "gesso_operator";
    const FIRST: usize = 96;
}

// SAFETY: nobody changes a table.
unsafe impl Sync for OperatorTable {}
// SAFETY: as above.
unsafe impl Send for OperatorTable {}

/// What a library exports as `gesso_operators`: the operators that it has for version `abi_version` of this interface
/// (`GESSO_OPERATOR_ABI_VERSION`), behind them a null pointer; null if it has none for that version. Called once.
pub type Operators = Option<unsafe extern "C" fn(abi_version: u32) -> *const *const OperatorTable>;
