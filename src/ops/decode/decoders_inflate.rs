//! `decoders__Inflate`: tensors that were compressed as blocks of LZ4, one or several to a sample.

use std::ops::Range;
use std::sync::Arc;

use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::layout::{Header, device_constants, device_struct, text_with};
use crate::gpu::{Gpu, KernelSpec, NoParams, Recorder, Report};
use crate::limits;
use crate::operator::shared::dtypes;
use crate::operator::shared::majority::of_one_rank;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, Deferred, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, SampleInputs,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct DecodersInflate {
    /// Of what becomes of one chunk.
    shape: Arg,
    dtype: DType,
    layout: Layout,
    offsets: Option<Arg>,
    sizes: Option<Arg>,
    /// Where the chunks of each sample lie in it.
    chunks: Vec<Vec<Range<usize>>>,
    /// Bytes of each sample that are read and written: chunks may lie over one another.
    bytes: Vec<usize>,
    /// What a device has yet to say about the chunks of a batch.
    asked: Option<Asked>,
}

/// Where a device says what became of chunks, and which these are.
struct Asked {
    report: Report,
    chunks: Vec<Chunk>,
}

/// A chunk on a device: its sample, its number there, and the bytes it is to become.
#[derive(Clone, Copy)]
struct Chunk {
    sample: usize,
    number: usize,
    bytes: usize,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "decoders__Inflate",
    aliases: &["experimental__Inflate"],
    doc: "Decompresses tensors: blocks of LZ4",
    devices: &[Device::Cpu, Device::Gpu],
    args: &[
        ArgSpec::ints("shape", "shape of what becomes of a chunk").tensor().required(),
        ArgSpec::dtype("dtype", "element type of the output").or_dtype(DType::U8),
        ArgSpec::string("algorithm", "of the compression: `LZ4`").or_string("LZ4"),
        ArgSpec::ints(
            "chunk_offsets",
            "where the chunks of a sample begin; its outputs become one tensor with a dimension more",
        )
        .tensor(),
        ArgSpec::ints("chunk_sizes", "bytes of the chunks, which without offsets lie one behind the other")
            .tensor(),
        ArgSpec::layout("layout", "layout of what becomes of a chunk").or_string(""),
        ArgSpec::layout("sequence_axis_name", "letter of the dimension of the chunks").or_string("F"),
        ArgSpec::bool("check_output_size", "that a chunk fits is always checked").no_effect().or_bool(false),
    ],
    build: &build,
    kernels: &[kernels],
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let algorithm = args.string("algorithm")?;
    if algorithm != "LZ4" {
        return Err(Error::unsupported(format!("argument `algorithm` is `{algorithm}`, expected `LZ4`")));
    }
    let axis = args.string("sequence_axis_name")?;
    if axis.chars().count() != 1 {
        return Err(Error::invalid(format!(
            "argument `sequence_axis_name` is `{axis}`, expected one letter"
        )));
    }
    let (offsets, sizes) = (args.given_arg("chunk_offsets")?, args.given_arg("chunk_sizes")?);
    let layout = args.string("layout")?;
    let is_sequence = offsets.is_some() || sizes.is_some();
    let layout =
        if is_sequence && !layout.is_empty() { format!("{axis}{layout}") } else { layout.to_owned() };
    let shape = args.arg("shape")?;
    if let Some(extents) = shape.known() {
        extents_of(extents)?;
    }
    Ok(Box::new(DecodersInflate {
        shape,
        dtype: args.dtype("dtype")?,
        layout: Layout::new(&layout)?,
        offsets,
        sizes,
        chunks: Vec::new(),
        bytes: Vec::new(),
        asked: None,
    }))
}

/// The extents of a chunk's tensor.
fn extents_of(numbers: &[f64]) -> Result<Vec<usize>> {
    // One dimension is left for the chunks.
    if numbers.len() >= limits::MAX_NDIM {
        return Err(Error::invalid(format!(
            "argument `shape` has {} extents, expected less than {}",
            numbers.len(),
            limits::MAX_NDIM
        )));
    }
    let extent = |&extent: &f64| {
        if (0.0..=limits::MAX_COORDINATE).contains(&extent) {
            return Ok(extent as usize);
        }
        Err(Error::invalid(format!("argument `shape` holds {extent}, expected 0 or more")))
    };
    numbers.iter().map(extent).collect()
}

/// Where chunks lie in `len` bytes.
fn ranges(len: usize, offsets: Option<&[i64]>, sizes: Option<&[i64]>) -> Result<Vec<Range<usize>>> {
    let count = offsets.or(sizes).map_or(0, <[i64]>::len);
    if let Some(sizes) = sizes.filter(|sizes| sizes.len() != count) {
        return Err(Error::invalid(format!("{count} offsets and {} sizes of chunks", sizes.len())));
    }
    let mut next = 0;
    let range = |i: usize| {
        let start = offsets.map_or(next, |offsets| offsets[i]);
        let end = match (sizes, offsets) {
            (Some(sizes), _) => start.saturating_add(sizes[i]),
            (None, Some(offsets)) => offsets.get(i + 1).copied().unwrap_or(len as i64),
            (None, None) => len as i64,
        };
        next = end;
        if start < 0 || end <= start || end > len as i64 {
            return Err(Error::invalid(format!("chunk {i} lies from {start} to {end} of {len} bytes")));
        }
        Ok(start as usize..end as usize)
    };
    (0..count).map(range).collect()
}

/// Decompresses `chunk`; what it leaves of `to` is 0.
fn inflate(chunk: &[u8], to: &mut [u8]) -> Result<()> {
    let len = lz4_flex::block::decompress_into(chunk, to).map_err(|error| {
        Error::invalid(format!("a chunk that does not become {} bytes: {error}", to.len()))
    })?;
    if let Some(rest) = to.get_mut(len..) {
        rest.fill(0);
    }
    Ok(())
}

/// Nanoseconds of a byte that is read or written.
const BYTE_TIME: f64 = 0.7;

impl DecodersInflate {
    fn is_sequence(&self) -> bool {
        self.offsets.is_some() || self.sizes.is_some()
    }

    /// Fails the samples of whose chunks the device said that they are damaged.
    fn fail_damaged(&mut self, recorder: &Recorder, inputs: &Inputs<'_>) {
        let Some(Asked { report, chunks }) = self.asked.take() else { return };
        let outcomes = recorder.reported(report);
        for (i, Chunk { sample, number, bytes }) in chunks.into_iter().enumerate() {
            let fault = outcomes.get(i).map_or(Some("the device did not say"), |&outcome| fault(outcome));
            if let Some(fault) = fault {
                let error = format!("chunk {number}: a chunk that does not become {bytes} bytes: {fault}");
                inputs.fail(sample, Error::invalid(error));
            }
        }
    }

    /// The shape of the output, and where its chunks lie in the input.
    fn plan(&self, sample: &SampleInputs<'_>) -> Result<(Shape, Vec<Range<usize>>)> {
        let input = sample.input(0)?;
        let [len] = input.shape[..] else {
            return Err(Error::invalid(format!(
                "a sample of shape {}, expected a list of bytes",
                input.shape
            )));
        };
        if let Some(shape) = self.shape.tensor(sample)?
            && shape.shape.len() > 1
        {
            return Err(Error::invalid(format!("the shape is a tensor of shape {}", shape.shape)));
        }
        let mut extents = extents_of(&self.shape.numbers(sample)?)?;
        let mut chunks: Vec<Range<usize>> = std::iter::once(0..len).collect();
        if self.is_sequence() {
            let list = |arg: &Option<Arg>| arg.as_ref().map(|arg| arg.ints(sample)).transpose();
            chunks = ranges(len, list(&self.offsets)?.as_deref(), list(&self.sizes)?.as_deref())?;
            extents.insert(0, chunks.len());
        }
        let letters = self.layout.letters().len();
        if letters > 0 && letters != extents.len() {
            return Err(Error::invalid(format!(
                "an output of {} dimensions with the layout `{}`",
                extents.len(),
                self.layout
            )));
        }
        let shape = Shape::from(extents);
        shape.bytes_of_input(self.dtype.size())?;
        Ok((shape, chunks))
    }
}

impl Operator for DecodersInflate {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), check)?;
        let known = self.shape.known().map(extents_of).transpose()?;
        let dims = known.map(|extents| {
            let chunks = self.is_sequence().then_some(None);
            chunks.into_iter().chain(extents.into_iter().map(Some)).collect()
        });
        Ok(vec![ValueType { dtype: Some(self.dtype), dims, layout: Some(self.layout) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        check(inputs.desc(0)?.dtype)?;
        let planned = inputs.map(|sample| self.plan(&sample).map(Some));
        let (shapes, chunks): (Vec<_>, Vec<_>) = planned.into_iter().map(Option::unzip).unzip();
        self.chunks = chunks.into_iter().map(Option::unwrap_or_default).collect();
        let shapes = of_one_rank(inputs, shapes);
        let bytes = self.chunks.iter().zip(&shapes).map(|(chunks, shape)| {
            let written = shape.bytes(self.dtype.size()).unwrap_or(0);
            chunks.iter().map(Range::len).fold(written, usize::saturating_add)
        });
        self.bytes = bytes.collect();
        Ok(vec![BatchDesc::new(self.dtype, self.layout, shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        Effort::new(self.bytes.get(sample).copied().unwrap_or(0) as f64 * BYTE_TIME, 0)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (chunks, failures) = (&self.chunks, io.inputs().failures());
        io.for_each_sample(cx, |sample| {
            let chunks = chunks.get(sample.index()).map(Vec::as_slice).unwrap_or_default();
            let watch = cx.watch(failures, sample.index());
            let (input, output) = sample.unary()?;
            let len = output.bytes.len() / chunks.len().max(1);
            for (i, chunk) in chunks.iter().enumerate() {
                let from = input
                    .bytes
                    .get(chunk.clone())
                    .ok_or_else(|| Error::internal("a chunk lies outside of its sample"))?;
                inflate(from, &mut output.bytes[i * len..(i + 1) * len])
                    .map_err(|error| error.context(format!("chunk {i}")))?;
                watch.charge(len.saturating_add(chunk.len()))?;
            }
            Ok(())
        })
    }

    fn deferred(&mut self) -> Option<&mut dyn Deferred> {
        Some(self)
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        gpu.kernel(&kernel()).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let report = cx.recorder.report(self.chunks.iter().map(Vec::len).sum::<usize>().max(1))?;
        let mut asked: Vec<Chunk> = Vec::new();
        let rows: Vec<Vec<Row>> = io.rows(|sample| {
            let chunks = self.chunks.get(sample.index()).map(Vec::as_slice).unwrap_or_default();
            let (to, from) = (sample.output(0)?, sample.source(0)?);
            let to_bytes = to.len() / chunks.len().max(1);
            let row = |(number, chunk): (usize, &Range<usize>)| {
                let outcome = report.address() + 4 * asked.len() as u64;
                asked.push(Chunk { sample: sample.index(), number, bytes: to_bytes });
                Row {
                    to: to.address() + (number * to_bytes) as u64,
                    from: from + chunk.start as u64,
                    to_bytes: to_bytes as u64,
                    from_bytes: chunk.len() as u64,
                    outcome,
                }
            };
            Ok(chunks.iter().enumerate().map(row).collect())
        });
        cx.launch_blocks(&kernel(), (1, WARP), &NoParams::default(), &rows.concat())?;
        self.asked = (!asked.is_empty()).then_some(Asked { report, chunks: asked });
        if !cx.may_settle {
            cx.recorder.flush(&[])?;
            self.fail_damaged(cx.recorder, &io.inputs());
        }
        Ok(())
    }
}

impl Deferred for DecodersInflate {
    fn is_unsettled(&self) -> bool {
        self.asked.is_some()
    }

    fn settle(&mut self, cx: &mut GpuCx<'_>, io: &GpuIo<'_>) -> Result<bool> {
        self.fail_damaged(cx.recorder, &io.inputs());
        Ok(false)
    }
}

device_constants! {
    fn constants;

    /// Threads that inflate a chunk.
    const WARP: u32 = 32;
    /// What the kernel says of a chunk: it was inflated, ends early, becomes more, repeats what is 0 bytes before or
    /// what lies before its beginning.
    const INFLATED: u32 = 0;
    const ENDS_EARLY: u32 = 1;
    const TOO_LONG: u32 = 2;
    const ZERO_OFFSET: u32 = 3;
    const OFFSET_OUTSIDE: u32 = 4;
}

const HEADER: Header = Header { name: "inflate", text: || text_with::<Row, NoParams>(&constants()) };

/// What is wrong with a chunk of which the kernel says `outcome`. `None`: it was inflated.
fn fault(outcome: u32) -> Option<&'static str> {
    match outcome {
        INFLATED => None,
        ENDS_EARLY => Some("it ends early"),
        TOO_LONG => Some("it becomes more"),
        ZERO_OFFSET => Some("it repeats what is 0 bytes before"),
        OFFSET_OUTSIDE => Some("it repeats what lies before its beginning"),
        _ => Some("the device said what is not known"),
    }
}

device_struct! {
    /// A chunk, as `kernels/inflate.cu` sees it.
    struct Row as Row {
        to: u64 = "uint8_t *",
        from: u64 = "const uint8_t *",
        to_bytes: u64,
        from_bytes: u64,
        /// INFLATED or what is wrong
        outcome: u64 = "uint32_t *",
    }
}

fn kernel() -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("inflate", "inflate").header(HEADER)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    vec![kernel()]
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("compressed samples", dtype, &[DType::U8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing;

    #[test]
    fn chunks_lie_where_arguments_say() {
        assert_eq!(ranges(9, Some(&[0, 4]), None).unwrap(), [0..4, 4..9]);
        assert_eq!(ranges(9, None, Some(&[4, 3])).unwrap(), [0..4, 4..7]);
        assert_eq!(ranges(9, Some(&[5, 0]), Some(&[2, 9])).unwrap(), [5..7, 0..9]);
        assert!(ranges(9, Some(&[]), None).unwrap().is_empty());
        let wrong = [
            (None, Some(&[10][..])),
            (None, Some(&[5, 5])),
            (None, Some(&[0])),
            (None, Some(&[3, -1])),
            (Some(&[0, 9][..]), None),
            (Some(&[1, 1]), None),
            (Some(&[0, 1]), Some(&[1])),
            (Some(&[-5]), Some(&[i64::MAX])),
        ];
        for (offsets, sizes) in wrong {
            assert!(ranges(9, offsets, sizes).is_err(), "{offsets:?} {sizes:?}");
        }
    }

    #[test]
    fn damaged_chunks_fail_alone_and_short_ones_end_in_zeros() {
        let plain: Vec<u8> = (0..200u32).map(|i| (i / 9) as u8).collect();
        let whole = lz4_flex::block::compress(&plain);
        let broken = &whole[..whole.len() / 2];
        let input = testing::batch::<u8>(&[(&[whole.len()], &whole), (&[broken.len()], broken)]);
        let run = |bytes: i64, input| {
            testing::run(&DEF, &testing::args(&[("shape", Value::Ints(vec![bytes]))], &[]), &[input], &[])
                .unwrap()
        };
        let done = run(203, input);
        assert_eq!(done.values::<u8>(0), [&plain[..], &[0; 3]].concat());
        assert!(done.error(1).contains("chunk 0"), "{}", done.error(1));
        let done = run(199, testing::batch::<u8>(&[(&[whole.len()], &whole)]));
        assert!(done.error(0).contains("199 bytes"), "{}", done.error(0));
    }
}
