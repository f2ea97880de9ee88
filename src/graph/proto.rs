//! The wire format of a serialized pipeline: the proto2 messages of DALI's `PipelineDef`, and nothing else. Only
//! [`super::import`] reads them, only [`super::author`] writes them.
//!
//! Field numbers and meanings were learned from files that DALI 1.23 to 2.4 wrote. Fields that do not change what a
//! pipeline computes (executor flags, queue depths, memory hints) are only kept for who writes the file again.

use prost::Message;

/// A whole file.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PipelineDef {
    /// Worker threads; a hint.
    #[prost(int64, optional, tag = "1")]
    pub(super) num_threads: Option<i64>,
    /// The largest batch.
    #[prost(int32, optional, tag = "2")]
    pub(super) batch_size: Option<i32>,
    /// Operators, producers first.
    #[prost(message, repeated, tag = "5")]
    pub(super) op: Vec<OpDef>,
    /// Names of inputs that have no operator (files of very old versions).
    #[prost(string, repeated, tag = "6")]
    pub(super) external_inputs: Vec<String>,
    /// Outputs in order.
    #[prost(message, repeated, tag = "7")]
    pub(super) pipe_outputs: Vec<InputOutput>,
    /// The GPU that the pipeline was made on; a large negative number: none.
    #[prost(int32, optional, tag = "8")]
    pub(super) device_id: Option<i32>,
    /// What the seeds of random operators are made from; negative or absent: the time.
    #[prost(int64, optional, tag = "9")]
    pub(super) seed: Option<i64>,
    /// Whether its state was to be saved.
    #[prost(bool, optional, tag = "10")]
    pub(super) enable_checkpointing: Option<bool>,
    /// Which executor was to run it: tells versions of DALI apart.
    #[prost(int32, optional, tag = "11")]
    pub(super) executor_type: Option<i32>,
    /// Wishes for the executor.
    #[prost(int64, optional, tag = "12")]
    pub(super) executor_flags: Option<i64>,
    /// Batches ahead on the host.
    #[prost(int32, optional, tag = "13")]
    pub(super) prefetch_queue_depth_cpu: Option<i32>,
    /// Batches ahead on a device.
    #[prost(int32, optional, tag = "14")]
    pub(super) prefetch_queue_depth_gpu: Option<i32>,
    /// Bytes to expect of a sample.
    #[prost(int64, optional, tag = "15")]
    pub(super) bytes_per_sample_hint: Option<i64>,
}

/// One operator.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OpDef {
    /// Schema name, module path joined by `__`.
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    /// Regular inputs in order, then argument inputs.
    #[prost(message, repeated, tag = "2")]
    pub(super) input: Vec<InputOutput>,
    /// Outputs in order.
    #[prost(message, repeated, tag = "3")]
    pub(super) output: Vec<InputOutput>,
    /// Arguments that were given.
    #[prost(message, repeated, tag = "4")]
    pub(super) args: Vec<Argument>,
    /// Instance name, unique in the file.
    #[prost(string, optional, tag = "5")]
    pub(super) inst_name: Option<String>,
    /// Operators with the same one share a seed.
    #[prost(int32, optional, tag = "6")]
    pub(super) logical_id: Option<i32>,
}

/// One end of an edge. An edge is identified by name and device.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InputOutput {
    /// Name of the producer's output.
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    /// `cpu` or `gpu`: where this end wants or writes the data.
    #[prost(string, optional, tag = "2")]
    pub(super) device: Option<String>,
    /// Whether it feeds a named argument.
    #[prost(bool, optional, tag = "3")]
    pub(super) is_argument_input: Option<bool>,
    /// The argument that it feeds.
    #[prost(string, optional, tag = "4")]
    pub(super) arg_name: Option<String>,
    /// Declared type of a pipeline output, -1 or absent: none.
    #[prost(int32, optional, tag = "5")]
    pub(super) dtype: Option<i32>,
    /// Declared rank of a pipeline output, -1 or absent: none.
    #[prost(int32, optional, tag = "6")]
    pub(super) ndim: Option<i32>,
    /// Declared layout of a pipeline output.
    #[prost(string, optional, tag = "7")]
    pub(super) layout: Option<String>,
}

/// One argument: a scalar in one of the value lists, or a list whose elements are the `extra_args`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Argument {
    /// Keyword.
    #[prost(string, optional, tag = "1")]
    pub(super) name: Option<String>,
    /// `int64`, `float`, `bool` or `string`.
    #[prost(string, optional, tag = "2")]
    pub(super) r#type: Option<String>,
    /// Payload.
    #[prost(float, repeated, packed = "false", tag = "3")]
    pub(super) floats: Vec<f32>,
    /// Payload.
    #[prost(int64, repeated, packed = "false", tag = "4")]
    pub(super) ints: Vec<i64>,
    /// Payload.
    #[prost(string, repeated, tag = "5")]
    pub(super) strings: Vec<String>,
    /// Payload.
    #[prost(bool, repeated, packed = "false", tag = "6")]
    pub(super) bools: Vec<bool>,
    /// Elements of a list.
    #[prost(message, repeated, tag = "7")]
    pub(super) extra_args: Vec<Argument>,
    /// Whether it is a list.
    #[prost(bool, optional, tag = "8")]
    pub(super) is_vector: Option<bool>,
}
