//! An operator whose functions are those of a library. It must not know where the library comes from.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::Arc;

use super::operator::{Argument, ArgumentKind, Message, OperatorSample, OperatorTable};
use super::sample::Described;
use super::status::{self, c_text};
use super::types::{self, ElementType, GESSO_MAX_NDIM, Tensor, TensorInfo};
use crate::error::{Error, Result};
use crate::gpu::Stream;
use crate::limits;
use crate::operator::args::Value;
use crate::operator::{Args, CpuCx, DeviceSample, GpuCx, GpuIo, Inputs, Io, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType, View};

/// Makes an instance of the operator that `table` describes.
///
/// # Errors
/// What its `create` fails with.
pub(super) fn build(table: &'static OperatorTable, args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let state = State::new(table, args, inputs)?;
    Ok(Box::new(Foreign { inputs, arguments: args.tensor_count(), state: Arc::new(state) }))
}

/// Calls a function of the library, which may say why it failed.
pub(super) fn call(function: impl FnOnce(*mut Message) -> i32) -> Result<()> {
    let mut text = [0u8; limits::MAX_PRINTED_BYTES];
    let mut message =
        Message { struct_size: size_of::<Message>(), text: text.as_mut_ptr().cast(), capacity: text.len() };
    let code = function(&raw mut message);
    let Some(kind) = status::kind(code) else { return Ok(()) };
    let said = CStr::from_bytes_until_nul(&text).map(CStr::to_string_lossy).unwrap_or_default();
    let said = if said.is_empty() { format!("it failed with status {code}") } else { said.into_owned() };
    Err(Error::new(kind, said))
}

/// What `create` of the library made.
struct State {
    table: &'static OperatorTable,
    pointer: *mut c_void,
}

// SAFETY: the interface asks of the library that a state may be used by any thread, one at a time, and by several in
// `run_cpu`.
unsafe impl Send for State {}
// SAFETY: as above.
unsafe impl Sync for State {}

impl State {
    fn new(table: &'static OperatorTable, args: &Args, inputs: usize) -> Result<Self> {
        let mut state = Self { table, pointer: std::ptr::null_mut() };
        let Some(create) = table.create else { return Ok(state) };
        let given: Vec<Given> = args.values().map(|(name, value)| Given::new(name, Some(value))).collect();
        let mut tensors: Vec<(usize, &str)> = args.tensors().map(|(name, index)| (index, name)).collect();
        tensors.sort_unstable();
        let tensors = tensors.iter().map(|(_, name)| Given::new(name, None));
        let given: Vec<Given> = given.into_iter().chain(tensors).collect();
        let arguments: Vec<Argument> = given.iter().map(Given::argument).collect();
        let (first, count) = (arguments.as_ptr(), arguments.len());
        // SAFETY: a function of the interface with arguments as it asks for them; all live during the call.
        call(|message| unsafe { create(first, count, inputs, &raw mut state.pointer, message) })?;
        Ok(state)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(destroy) = self.table.destroy {
            // SAFETY: what `create` made, or null after it failed, is given back once.
            unsafe { destroy(self.pointer) };
        }
    }
}

/// An argument with its texts and numbers as C has them.
struct Given {
    name: CString,
    kind: ArgumentKind,
    count: usize,
    ints: Vec<i64>,
    floats: Vec<f32>,
    /// Kept for the pointers.
    _texts: Vec<CString>,
    texts: Vec<*const c_char>,
}

impl Given {
    fn new(name: &str, value: Option<&Value>) -> Self {
        let (mut ints, mut floats, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        let (kind, count) = match value {
            None => (ArgumentKind::Tensor, 0),
            Some(Value::Ints(v)) => {
                ints.clone_from(v);
                (ArgumentKind::Int, v.len())
            }
            Some(Value::Bools(v)) => {
                ints.extend(v.iter().map(|&b| i64::from(b)));
                (ArgumentKind::Bool, v.len())
            }
            Some(Value::Floats(v)) => {
                floats.clone_from(v);
                (ArgumentKind::Float, v.len())
            }
            Some(Value::Strings(v)) => {
                texts.extend(v.iter().map(|text| c_text(text)));
                (ArgumentKind::Text, v.len())
            }
        };
        let pointers = texts.iter().map(|text| text.as_ptr()).collect();
        Self { name: c_text(name), kind, count, ints, floats, _texts: texts, texts: pointers }
    }

    fn argument(&self) -> Argument {
        let values: *const c_void = match self.kind {
            ArgumentKind::Int | ArgumentKind::Bool => self.ints.as_ptr().cast(),
            ArgumentKind::Float => self.floats.as_ptr().cast(),
            ArgumentKind::Text => self.texts.as_ptr().cast(),
            ArgumentKind::Tensor => std::ptr::null(),
        };
        let struct_size = size_of::<Argument>();
        Argument { struct_size, name: self.name.as_ptr(), kind: self.kind as i32, count: self.count, values }
    }
}

struct Foreign {
    inputs: usize,
    /// Arguments that are tensors.
    arguments: usize,
    state: Arc<State>,
}

impl Foreign {
    /// What the outputs are for these inputs.
    fn ask(&self, inputs: &[ValueType], arguments: &[Tensor]) -> Result<Vec<ValueType>> {
        let state = &*self.state;
        let infer = state.table.infer.ok_or_else(|| Error::internal("an operator without `infer`"))?;
        let layouts: Vec<Option<CString>> =
            inputs.iter().map(|ty| ty.layout.map(|layout| c_text(layout.as_str()))).collect();
        let infos: Vec<TensorInfo> =
            inputs.iter().zip(&layouts).map(|(ty, layout)| info(ty, layout.as_deref())).collect();
        let mut outputs: Vec<TensorInfo> =
            (0..state.table.output_count).map(|_| info(&ValueType::default(), None)).collect();
        let arguments = if arguments.is_empty() { std::ptr::null() } else { arguments.as_ptr() };
        let (infos, made) = (infos.as_ptr(), outputs.as_mut_ptr());
        // SAFETY: a function of the interface; as many inputs, arguments and outputs as it was told of, all alive
        // during the call.
        call(|message| unsafe { infer(state.pointer, infos, arguments, made, message) })?;
        // SAFETY: layouts are texts of the library, which stay.
        outputs.iter().map(|output| unsafe { value_type(output) }).collect()
    }

    /// The tensors that feed arguments of a sample.
    fn arguments(&self, sample: &SampleInputs<'_>) -> Result<Vec<Held>> {
        (0..self.arguments).map(|i| Held::on_host(&sample.argument(i)?)).collect()
    }

    fn run(&self, sample: &OperatorSample) -> Result<()> {
        let run = self.state.table.run_cpu.ok_or_else(|| Error::internal("an operator without `run_cpu`"))?;
        // SAFETY: a function of the interface; the sample and what it points at live during the call.
        call(|message| unsafe { run(self.state.pointer, sample, message) })
    }
}

fn info(ty: &ValueType, layout: Option<&CStr>) -> TensorInfo {
    let mut shape = [-1; GESSO_MAX_NDIM];
    let dims = ty.dims.as_ref().filter(|dims| dims.len() <= GESSO_MAX_NDIM);
    for (extent, known) in shape.iter_mut().zip(dims.into_iter().flatten()) {
        *extent = known.and_then(|known| i64::try_from(known).ok()).unwrap_or(-1);
    }
    TensorInfo {
        struct_size: size_of::<TensorInfo>(),
        name: std::ptr::null(),
        layout: layout.map_or(std::ptr::null(), CStr::as_ptr),
        dtype: types::number(ty.dtype),
        device: types::CPU,
        ndim: dims.map_or(-1, |dims| dims.len() as i32),
        shape,
    }
}

/// # Safety
/// The layout is null or a text.
unsafe fn value_type(info: &TensorInfo) -> Result<ValueType> {
    let dtype = if info.dtype == ElementType::Any as i32 { None } else { Some(types::dtype(info.dtype)?) };
    let layout = if info.layout.is_null() {
        None
    } else {
        // SAFETY: as the caller says.
        Some(Layout::new(unsafe { types::text("layout", info.layout) }?)?)
    };
    let dims = match usize::try_from(info.ndim) {
        Err(_) => None,
        Ok(ndim) => {
            let shape = info.shape.get(..ndim).filter(|_| ndim <= limits::MAX_NDIM).ok_or_else(|| {
                Error::invalid(format!(
                    "an output of {ndim} dimensions, expected at most {}",
                    limits::MAX_NDIM
                ))
            })?;
            Some(shape.iter().map(|&extent| usize::try_from(extent).ok()).collect())
        }
    };
    Ok(ValueType { dtype, dims, layout })
}

/// A tensor's description and where its elements are.
struct Held {
    described: Described,
    address: usize,
    bytes: usize,
    device: Device,
    ordinal: i32,
}

impl Held {
    fn on_host(view: &View<'_>) -> Result<Self> {
        let described = described(view.dtype, view.layout, view.shape)?;
        let address = view.bytes.as_ptr().expose_provenance();
        Ok(Self { described, address, bytes: view.bytes.len(), device: Device::Cpu, ordinal: 0 })
    }

    /// For C; points into `self`.
    fn tensor(&self) -> Tensor {
        let data = std::ptr::with_exposed_provenance_mut(self.address);
        self.described.tensor(data, self.bytes, self.device, self.ordinal)
    }
}

fn described(dtype: DType, layout: Layout, shape: &Shape) -> Result<Described> {
    Described::new(&BatchDesc::new(dtype, layout, vec![shape.clone()]), 0)
}

/// What is known of a sample's input: everything.
fn known(view: &View<'_>) -> ValueType {
    let dims = view.shape.iter().map(|&extent| Some(extent)).collect();
    ValueType { dtype: Some(view.dtype), dims: Some(dims), layout: Some(view.layout) }
}

/// One sample of one output as `infer` describes it, which has to be all there is.
fn complete(output: usize, ty: ValueType) -> Result<(DType, Layout, Shape)> {
    let dims = ty.dims.and_then(|dims| dims.into_iter().collect::<Option<Vec<usize>>>());
    match (ty.dtype, dims) {
        (Some(dtype), Some(dims)) => {
            let layout = ty.layout.unwrap_or(Layout::NONE);
            if !layout.is_none() && layout.letters().len() != dims.len() {
                return Err(Error::invalid(format!(
                    "output {output} has {} dimensions and layout `{layout}`",
                    dims.len()
                )));
            }
            let shape = Shape::new(dims);
            shape.bytes(dtype.size())?;
            Ok((dtype, layout, shape))
        }
        _ => Err(Error::invalid(format!("its `infer` left type or extents of output {output} open"))),
    }
}

/// A sample with everything that it points at.
struct HeldSample {
    index: usize,
    /// Inputs, arguments, outputs.
    parts: [Vec<Held>; 3],
    /// Bytes of the arguments, where the batch's do not live long enough.
    _kept: Vec<Box<[u64]>>,
}

impl HeldSample {
    fn tensors(&self) -> [Vec<Tensor>; 3] {
        self.parts.each_ref().map(|part| part.iter().map(Held::tensor).collect())
    }
}

fn operator_sample(index: usize, [inputs, arguments, outputs]: &[Vec<Tensor>; 3]) -> OperatorSample {
    let (inputs, arguments, outputs) = (inputs.as_ptr(), arguments.as_ptr(), outputs.as_ptr());
    OperatorSample { struct_size: size_of::<OperatorSample>(), index, inputs, arguments, outputs }
}

impl Operator for Foreign {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        self.ask(inputs, &[])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let asked = inputs.map(|sample| {
            let types = (0..self.inputs).map(|i| sample.input(i).map(|view| known(&view)));
            let arguments = self.arguments(&sample)?;
            let arguments: Vec<Tensor> = arguments.iter().map(Held::tensor).collect();
            let made = self.ask(&types.collect::<Result<Vec<_>>>()?, &arguments)?;
            made.into_iter().enumerate().map(|(i, ty)| complete(i, ty)).collect::<Result<Vec<_>>>().map(Some)
        });
        let first = asked.iter().flatten().next().cloned();
        let outputs = (0..self.state.table.output_count).map(|output| {
            let of = |made: &Option<Vec<_>>| made.as_ref().and_then(|made| made.get(output).cloned());
            let (dtype, layout, shape) = of(&first).unwrap_or((DType::U8, Layout::NONE, Shape::new(vec![])));
            let shapes = asked.iter().enumerate().map(|(index, made)| {
                let Some(made) = of(made) else { return Shape::new(vec![0; shape.len()]) };
                if (made.0, made.1, made.2.len()) == (dtype, layout, shape.len()) {
                    return made.2;
                }
                inputs.fail(index, Error::invalid(format!(
                    "output {output} is {} `{}` of {} dimensions, expected {dtype} `{layout}` of {} as in the batch's first sample",
                    made.0, made.1, made.2.len(), shape.len()
                )));
                Shape::new(vec![0; shape.len()])
            });
            BatchDesc::new(dtype, layout, shapes.collect())
        });
        Ok(outputs.collect())
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        io.for_each_sample(cx, |sample| {
            let inputs = (0..this.inputs).map(|i| Held::on_host(&sample.input(i)?)).collect::<Result<_>>()?;
            let arguments = this.arguments(&sample.inputs)?;
            let outputs = (0..this.state.table.output_count).map(|i| {
                let output = sample.output(i)?;
                let described = described(output.dtype, output.layout, output.shape)?;
                let address = output.bytes.as_mut_ptr().expose_provenance();
                Ok(Held { described, address, bytes: output.bytes.len(), device: Device::Cpu, ordinal: 0 })
            });
            let parts = [inputs, arguments, outputs.collect::<Result<_>>()?];
            let held = HeldSample { index: sample.index(), parts, _kept: Vec::new() };
            this.run(&operator_sample(held.index, &held.tensors()))
        })
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let run = self.state.table.run_gpu.ok_or_else(|| Error::internal("an operator without `run_gpu`"))?;
        let ordinal = i32::try_from(cx.recorder.gpu().ordinal()).unwrap_or_default();
        let samples = io.rows(|sample| self.on_device(sample, ordinal));
        let state = Arc::clone(&self.state);
        cx.recorder.call(Box::new(move |stream: &Stream| {
            let tensors: Vec<_> = samples.iter().map(HeldSample::tensors).collect();
            let table: Vec<OperatorSample> = samples
                .iter()
                .zip(&tensors)
                .map(|(held, tensors)| operator_sample(held.index, tensors))
                .collect();
            let (first, count) = (table.as_ptr(), table.len());
            // SAFETY: a function of the interface; the samples live during the call, and their memory until the stream
            // was waited for.
            call(|message| unsafe { run(state.pointer, first, count, stream.handle(), message) })
        }));
        Ok(())
    }
}

impl Foreign {
    /// A sample for later, when its work is put into a stream.
    fn on_device(&self, sample: &DeviceSample<'_, '_>, ordinal: i32) -> Result<HeldSample> {
        let device = |described, address: u64, bytes| Held {
            described,
            address: address as usize,
            bytes,
            device: Device::Gpu,
            ordinal,
        };
        let inputs = (0..self.inputs).map(|i| {
            let view = sample.input(i)?;
            let bytes = view.shape.bytes(view.dtype.size())?;
            Ok(device(described(view.dtype, view.layout, view.shape)?, sample.source(i)?, bytes))
        });
        let outputs = (0..self.state.table.output_count).map(|i| {
            let desc = sample.output_desc(i)?;
            let shape = sample.output_shape(i)?;
            Ok(device(described(desc.dtype, desc.layout, shape)?, sample.target(i)?, sample.output(i)?.len()))
        });
        let mut kept = Vec::with_capacity(self.arguments);
        let arguments = (0..self.arguments).map(|i| {
            let view = sample.inputs.argument(i)?;
            let mut words = vec![0u64; view.bytes.len().div_ceil(8)].into_boxed_slice();
            bytemuck::cast_slice_mut(&mut words)[..view.bytes.len()].copy_from_slice(view.bytes);
            let mut held = Held::on_host(&view)?;
            held.address = words.as_ptr().expose_provenance();
            kept.push(words);
            Ok(held)
        });
        let arguments = arguments.collect::<Result<_>>()?;
        let parts = [inputs.collect::<Result<_>>()?, arguments, outputs.collect::<Result<_>>()?];
        Ok(HeldSample { index: sample.index(), parts, _kept: kept })
    }
}
