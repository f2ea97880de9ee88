//! `OpticalFlow`: how far the content of each frame of a sequence has moved, by the device's optical flow engine.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::gpu::flow::{Engine, Plane, Session, Settings, Speed};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// Layouts of the sequences.
const LAYOUTS: [&str; 1] = ["FHWC"];

/// A vector: along x and along y.
const COMPONENTS: usize = 2;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "OpticalFlow",
    doc: "For each frame of a sequence but the first, where its content was in the frame before: a vector for each block, \
          in pixels along x and y, as (frames - 1, blocks, blocks, 2) float32; by the GPU's optical flow engine",
    devices: &[Device::Gpu],
    inputs: (1, 2),
    args: &[
        ArgSpec::float("preset", "0 the best flow and the slowest, to 1 the fastest: slow below 0.375, fast from 0.75 on, medium between them").or_float(0.0),
        ArgSpec::int("output_grid", "pixels of a block that has one vector, along each side: 1, 2 or 4").or_int(4),
        ArgSpec::int("output_format", "an older name of `output_grid`").deprecated(),
        ArgSpec::int("hint_grid", "the same of the second input, if it is used: 1, 2, 4 or 8, not less than `output_grid`").or_int(4),
        ArgSpec::bool("enable_temporal_hints", "the search begins where it ended for the frame before").or_bool(false),
        ArgSpec::bool("enable_external_hints", "the search begins at the vectors of the second input: (frames - 1, rows / `hint_grid`, columns / `hint_grid`, 2) float32").or_bool(false),
        ArgSpec::image_type("image_type", "RGB, BGR or gray").or_int(0),
    ],
    build: &build,
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// What frames are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Color {
    Rgb,
    Bgr,
    Gray,
}

impl Color {
    fn channels(self) -> usize {
        if self == Color::Gray { 1 } else { 3 }
    }

    /// The channel that is red.
    fn red(self) -> u32 {
        if self == Color::Bgr { 2 } else { 0 }
    }
}

struct OpticalFlow {
    settings: Settings,
    color: Color,
    temporal_hints: bool,
    /// On a device.
    engine: Option<Engine>,
}

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let color = match args.int("image_type")? {
        0 => Color::Rgb,
        1 => Color::Bgr,
        2 => Color::Gray,
        other => {
            return Err(Error::unsupported(format!(
                "argument `image_type` is {other}, expected 0 (RGB), 1 (BGR) or 2 (gray)"
            )));
        }
    };
    let is_older = args.has("output_format") && !args.has("output_grid");
    let name = if is_older { "output_format" } else { "output_grid" };
    let output_grid = grid(args, name, &[1, 2, 4])?;
    let hint_grid = grid(args, "hint_grid", &[1, 2, 4, 8])?;
    let takes_hints = args.bool("enable_external_hints")?;
    if takes_hints && inputs != 2 {
        return Err(Error::invalid(format!(
            "argument `enable_external_hints` is true, so expected 2 inputs, frames and hints, found {inputs}"
        )));
    }
    if takes_hints && hint_grid < output_grid {
        return Err(Error::invalid(format!(
            "argument `hint_grid` is {hint_grid}, expected no less than `output_grid`, which is {output_grid}"
        )));
    }
    let settings = Settings {
        speed: speed(args.float("preset")?)?,
        output_grid,
        hint_grid: takes_hints.then_some(hint_grid),
        is_gray: color == Color::Gray,
    };
    let temporal_hints = args.bool("enable_temporal_hints")?;
    Ok(Box::new(OpticalFlow { settings, color, temporal_hints, engine: None }))
}

/// A grid among `allowed`.
fn grid(args: &Args, name: &str, allowed: &[u32]) -> Result<u32> {
    let given = args.int(name)?;
    let found = allowed.iter().copied().find(|&size| i64::from(size) == given);
    found.ok_or_else(|| Error::invalid(format!("argument `{name}` is {given}, expected one of {allowed:?}")))
}

fn speed(preset: f32) -> Result<Speed> {
    match preset {
        0.0..0.375 => Ok(Speed::Slow),
        0.375..0.75 => Ok(Speed::Medium),
        0.75..=1.0 => Ok(Speed::Fast),
        _ => Err(Error::invalid(format!("argument `preset` is {preset}, expected 0 to 1"))),
    }
}

fn layout() -> Layout {
    Layout::from_letters(LAYOUTS[0].as_bytes())
}

/// The shape of fields of blocks of `grid` pixels between `frames` frames.
fn fields([frames, height, width]: [usize; 3], grid: u32) -> [usize; 4] {
    let blocks = |side: usize| side.div_ceil(grid as usize);
    [frames - 1, blocks(height), blocks(width), COMPONENTS]
}

impl OpticalFlow {
    /// Frames, rows and columns of a sample.
    fn extents(&self, sample: &SampleInputs<'_>) -> Result<[usize; 3]> {
        let shape = sample.input(0)?.shape;
        let [frames, height, width, channels] = shape[..] else {
            return Err(Error::invalid(format!("a sequence of shape {shape}, expected FHWC")));
        };
        if channels != self.color.channels() {
            return Err(Error::invalid(format!(
                "frames of {channels} channels, expected {} as argument `image_type` says",
                self.color.channels()
            )));
        }
        if frames < 2 {
            return Err(Error::invalid(format!("a sequence of {frames} frames, expected 2 or more")));
        }
        let extents = [frames, height, width];
        if let Some(grid) = self.settings.hint_grid {
            let (hints, expected) = (sample.input(1)?.shape, Shape::from(fields(extents, grid)));
            if *hints != expected {
                return Err(Error::invalid(format!("hints of shape {hints}, expected {expected}")));
            }
        }
        Ok(extents)
    }

    fn check(&self, mut dtypes: impl Iterator<Item = Option<DType>>) -> Result<()> {
        if let Some(dtype) = dtypes.next().flatten() {
            dtypes::accepted("frames", dtype, &[DType::U8])?;
        }
        match dtypes.next().flatten() {
            Some(dtype) if self.settings.hint_grid.is_some() => {
                dtypes::accepted("hints", dtype, &[DType::F32])
            }
            _ => Ok(()),
        }
    }

    /// Records the flow of a sequence: a frame goes up beside the one before, the engine looks at both, the field comes
    /// out.
    fn record(&self, cx: &mut GpuCx<'_>, job: &Job) -> Result<()> {
        let Job { session, extents: [frames, height, width], from, to, hints } = job;
        let params = Params { red: self.color.red() };
        let frame_bytes = (height * width * self.color.channels()) as u64;
        for frame in 0..*frames {
            let place = session.frame(frame);
            let source = from + frame as u64 * frame_bytes;
            run(cx, &frame_kernel(self.color), params, (place.address, source), place)?;
            let Some(pair) = frame.checked_sub(1) else { continue };
            if let (Some(hints), Some(place)) = (hints, session.hints()) {
                run(
                    cx,
                    &kernel("flow_hints"),
                    params,
                    (place.address, hints + field_bytes(place) * pair as u64),
                    place,
                )?;
            }
            let (of_call, forgets) = (Arc::clone(session), !self.temporal_hints || pair == 0);
            cx.recorder.call(Box::new(move |stream| of_call.execute(stream, frame, forgets)));
            let place = session.field();
            run(
                cx,
                &kernel("flow_field"),
                params,
                (to + field_bytes(place) * pair as u64, place.address),
                place,
            )?;
        }
        Ok(())
    }
}

/// What is recorded for one sequence.
struct Job {
    session: Arc<Session>,
    /// Frames, rows and columns.
    extents: [usize; 3],
    from: u64,
    to: u64,
    hints: Option<u64>,
}

/// Bytes of a field as float32 without gaps.
fn field_bytes(place: Plane) -> u64 {
    u64::from(place.width) * u64::from(place.height) * (COMPONENTS * size_of::<f32>()) as u64
}

/// Records a kernel that writes to `to` what it reads from `from`; one of the two is the session's `place`.
fn run(
    cx: &mut GpuCx<'_>,
    spec: &KernelSpec,
    params: Params,
    (to, from): (u64, u64),
    place: Plane,
) -> Result<()> {
    let Plane { width, height, pitch, .. } = place;
    let elements = width as usize * height as usize;
    cx.launch(spec, elements, &params, &[Row { to, from, elements: elements as u64, width, pitch }])
}

impl Operator for OpticalFlow {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        self.check(inputs.iter().map(|input| input.dtype))?;
        layouts::of_type(&inputs[0], &LAYOUTS)?;
        let known = |d: usize| inputs[0].dims.as_ref().and_then(|dims| *dims.get(d)?);
        let frames = match known(0) {
            Some(frames @ 0..2) => {
                return Err(Error::invalid(format!("a sequence of {frames} frames, expected 2 or more")));
            }
            frames => frames.map(|frames| frames - 1),
        };
        let blocks = |d: usize| known(d).map(|side| side.div_ceil(self.settings.output_grid as usize));
        let dims = Some(vec![frames, blocks(1), blocks(2), Some(COMPONENTS)]);
        Ok(vec![ValueType { dtype: Some(DType::F32), dims, layout: Some(layout()) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        layouts::of_batch(inputs.desc(0)?, &LAYOUTS)?;
        let dtypes = (0..inputs.len()).map(|i| inputs.desc(i).map(|desc| Some(desc.dtype)));
        self.check(dtypes.collect::<Result<Vec<_>>>()?.into_iter())?;
        let grid = self.settings.output_grid;
        let shapes =
            inputs.map_shapes(4, |sample| self.extents(&sample).map(|extents| fields(extents, grid).into()));
        Ok(vec![BatchDesc::new(DType::F32, layout(), shapes)])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::unsupported("optical flow is computed by an engine of a GPU, not on the host"))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, _inputs: &[ValueType]) -> Result<()> {
        self.engine = Some(Engine::open(gpu, self.settings)?);
        gpu.kernel(&frame_kernel(self.color))?;
        gpu.kernel(&kernel("flow_field"))?;
        self.settings.hint_grid.map_or(Ok(()), |_| gpu.kernel(&kernel("flow_hints")).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let mut engine = self.engine.take().ok_or_else(|| Error::internal("the device was not prepared"))?;
        let stream = Arc::clone(cx.recorder.stream());
        let jobs = io.rows(|sample| {
            let extents @ [_, height, width] = self.extents(&sample.inputs)?;
            Ok(Job {
                session: engine.session([width, height], &stream)?,
                extents,
                from: sample.source(0)?,
                to: sample.target(0)?,
                hints: self.settings.hint_grid.map(|_| sample.source(1)).transpose()?,
            })
        });
        self.engine = Some(engine);
        jobs.iter().try_for_each(|job| self.record(cx, job))
    }
}

device_struct! {
    /// A frame or a field, as `kernels/optical_flow.cu` sees it.
    struct Row as Row {
        to: u64,
        from: u64,
        /// pixels of a frame, vectors of a field
        elements: u64,
        /// elements of a row
        width: u32,
        /// bytes from a row to the next one, where the engine has them
        pitch: u32,
    }
}

device_struct! {
    struct Params as Params {
        /// which channel of a frame is red
        red: u32,
    }
}

fn kernel(entry: &'static str) -> KernelSpec {
    KernelSpec::of::<Row, Params>("optical_flow", entry).define("CHANNELS", 3)
}

fn frame_kernel(color: Color) -> KernelSpec {
    KernelSpec::of::<Row, Params>("optical_flow", "flow_frame").define("CHANNELS", color.channels())
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    vec![frame_kernel(Color::Rgb), frame_kernel(Color::Gray), kernel("flow_field"), kernel("flow_hints")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::{Failures, testing};
    use crate::tensor::{Batch, Sample};

    fn instance(values: &[(&str, Value)], inputs: usize) -> Result<Box<dyn Operator>> {
        DEF.instantiate(&testing::args(values, &[]), inputs)
    }

    fn ints(value: i64) -> Value {
        Value::Ints(vec![value])
    }

    /// The shapes for sequences of these shapes, with hints of those; or errors.
    fn shapes(
        values: &[(&str, Value)],
        frames: &[&[usize]],
        hints: &[&[usize]],
    ) -> Vec<Result<Shape, String>> {
        let batch = |dtype: DType, shapes: &[&[usize]]| {
            let samples = shapes.iter().map(|_| Sample::Missing).collect();
            let shapes = shapes.iter().map(|shape| Shape::new(*shape)).collect();
            Batch::new(BatchDesc::new(dtype, Layout::NONE, shapes), samples).unwrap()
        };
        let batches = [batch(DType::U8, frames), batch(DType::F32, hints)];
        let regular: Vec<&Batch<'_>> = batches.iter().take(1 + usize::from(!hints.is_empty())).collect();
        let failures = Failures::none(frames.len());
        let name = "OpticalFlow".into();
        let inputs = Inputs::new(&name, &regular, &[], &failures);
        let desc = instance(values, regular.len()).unwrap().setup(&inputs).unwrap().remove(0);
        assert_eq!((desc.dtype, desc.layout.as_str()), (DType::F32, "FHWC"));
        let outcome = |(i, shape): (usize, Shape)| failures.get(i).map_or(Ok(shape), |e| Err(e.to_string()));
        desc.shapes.into_iter().enumerate().map(outcome).collect()
    }

    #[test]
    fn a_field_has_a_vector_for_each_block() {
        let frames: [&[usize]; 2] = [&[3, 101, 67, 3], &[2, 64, 64, 3]];
        for (grid, first, second) in [
            (1, [2, 101, 67, 2], [1, 64, 64, 2]),
            (2, [2, 51, 34, 2], [1, 32, 32, 2]),
            (4, [2, 26, 17, 2], [1, 16, 16, 2]),
        ] {
            for name in ["output_grid", "output_format"] {
                let found = shapes(&[(name, ints(grid))], &frames, &[]);
                assert_eq!(found, [Ok(Shape::from(first)), Ok(Shape::from(second))]);
            }
        }
        assert_eq!(shapes(&[], &frames[1..], &[]), [Ok(Shape::from([1, 16, 16, 2]))]);
    }

    #[test]
    fn sequences_that_do_not_fit_fail_alone() {
        let found = shapes(&[], &[&[1, 64, 64, 3], &[2, 64, 64, 1], &[2, 64, 64, 3], &[0, 64, 64, 3]], &[]);
        let text = |i: usize| found[i].clone().unwrap_err();
        assert!(text(0).contains("a sequence of 1 frames, expected 2 or more"), "{}", text(0));
        assert!(text(1).contains("1 channels, expected 3"), "{}", text(1));
        assert!(text(3).contains("0 frames"), "{}", text(3));
        assert!(found[2].is_ok());
        let gray = shapes(&[("image_type", ints(2))], &[&[2, 9, 9, 1], &[2, 9, 9, 3]], &[]);
        assert_eq!(gray[0], Ok(Shape::from([1, 3, 3, 2])));
        assert!(gray[1].is_err());
    }

    #[test]
    fn hints_are_fields_of_their_own_grid() {
        let values = [("enable_external_hints", ints(1)), ("hint_grid", ints(8)), ("output_grid", ints(1))];
        let found = shapes(&values, &[&[3, 20, 30, 3], &[3, 20, 30, 3]], &[&[2, 3, 4, 2], &[3, 3, 4, 2]]);
        assert_eq!(found[0], Ok(Shape::from([2, 20, 30, 2])));
        assert!(found[1].clone().unwrap_err().contains("hints of shape"), "{:?}", found[1]);
        // As in DALI, a second input that is not asked for is not looked at.
        assert!(shapes(&[], &[&[2, 20, 30, 3]], &[&[7, 7]])[0].is_ok());
    }

    #[test]
    fn wrong_arguments_are_named() {
        for (values, inputs, text) in [
            (vec![("output_grid", ints(3))], 1, "`output_grid` is 3, expected one of [1, 2, 4]"),
            (vec![("hint_grid", ints(3))], 1, "`hint_grid` is 3, expected one of [1, 2, 4, 8]"),
            (vec![("preset", Value::Floats(vec![1.5]))], 1, "`preset` is 1.5, expected 0 to 1"),
            (vec![("image_type", ints(3))], 1, "`image_type` is 3"),
            (vec![("enable_external_hints", ints(1))], 1, "expected 2 inputs"),
            (
                vec![("enable_external_hints", ints(1)), ("hint_grid", ints(2))],
                2,
                "no less than `output_grid`",
            ),
        ] {
            let error = instance(&values, inputs).err().unwrap().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn presets_are_dalis() {
        let speeds = [0.0, 0.374, 0.375, 0.5, 0.749, 0.75, 1.0].map(|preset| speed(preset).unwrap());
        use Speed::{Fast, Medium, Slow};
        assert_eq!(speeds, [Slow, Slow, Medium, Medium, Medium, Fast, Fast]);
        assert!(speed(f32::NAN).is_err() && speed(-0.1).is_err());
    }

    #[test]
    fn it_does_not_run_on_the_host() {
        let pixels = [0_u8; 2 * 4 * 4 * 3];
        let frames = testing::batch::<u8>(&[(&[2, 4, 4, 3], &pixels)]);
        let error = testing::run(&DEF, &testing::args(&[], &[]), &[frames], &[]).err().unwrap();
        assert!(error.to_string().contains("not on the host"), "{error}");
    }
}
