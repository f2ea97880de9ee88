//! `Reshape`: the same elements under another shape or layout. A view: no byte moves.

use crate::error::{Error, Result};
use crate::limits;
use crate::operator::args::numbers;
use crate::operator::shared::majority::of_one_rank;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, gpu_io,
    one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType, View};

struct Reshape {
    /// The type as which the bytes are read, where that is another one.
    dtype: Option<DType>,
    extents: Extents,
    /// Input dimension that each output dimension is taken from; `None`: a new one of extent 1.
    source_dims: Option<Vec<Option<usize>>>,
    layout: Option<Layout>,
}

/// Where the shape comes from.
enum Extents {
    /// `shape`, in the file or as a tensor.
    Absolute(Arg),
    /// The second input.
    Input,
    /// `rel_shape`, in the file or as a tensor.
    Relative(Arg),
    /// `src_dims` alone, or the input's own shape.
    Source,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Reshape",
    doc: "The same elements under another shape or layout, without a copy",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 2),
    args: ARGS,
    build: &build,
    outputs: &one_output,
    kernels: &[gpu_io::kernels],
    host_inputs: Some(1),
    sequences: true,
    reads_in_place: InputSet::First,
    ..OpDef::BASE
};

/// Arguments that say what the new shape is.
pub(super) const ARGS: &[ArgSpec] = &[
    ArgSpec::ints("shape", "extents, at most one of them negative: it takes what is left").tensor(),
    ArgSpec::floats("rel_shape", "extents as factors of the input's, at most one of them negative").tensor(),
    ArgSpec::ints("src_dims", "input dimension of each output dimension, -1 for a new one of extent 1"),
    ArgSpec::layout("layout", "layout of the output").or_computed("the input's if the rank stays, else none"),
];

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    operator(args, inputs, None)
}

/// The operator with these arguments, that reads the bytes as `dtype`.
pub(super) fn operator(args: &Args, inputs: usize, dtype: Option<DType>) -> Result<Box<dyn Operator>> {
    let (shape, relative) = (args.given_arg("shape")?, args.given_arg("rel_shape")?);
    let source_dims = args.given_ints("src_dims")?.map(|dims| source_dims(&dims)).transpose()?;
    let layout = args.given_string("layout")?.map(Layout::new).transpose()?;
    for arg in shape.iter().chain(&relative) {
        if let Some(extents) = arg.known() {
            check_len(extents.len())?;
            if extents.contains(&0.0) {
                return Err(Error::invalid(format!(
                    "an extent of {extents:?} is 0, which the file may not ask for"
                )));
            }
            only_one_negative(extents)?;
        }
    }
    let extents = match (shape, relative, inputs) {
        (Some(shape), None, 1) => Extents::Absolute(shape),
        (None, Some(relative), 1) => {
            if relative.known().is_some_and(<[f64]>::is_empty) {
                return Err(Error::invalid("argument `rel_shape` is empty"));
            }
            Extents::Relative(relative)
        }
        (None, None, 2) => Extents::Input,
        (None, None, _) if source_dims.is_some() || layout.is_some() || dtype.is_some() => Extents::Source,
        (None, None, _) => return Err(Error::invalid("neither a new shape nor a new layout is given")),
        _ => {
            return Err(Error::invalid("a second input, `shape` and `rel_shape` exclude each other"));
        }
    };
    Ok(Box::new(Reshape { dtype, extents, source_dims, layout }))
}

fn source_dims(dims: &[i64]) -> Result<Vec<Option<usize>>> {
    check_len(dims.len())?;
    let source = |&dim: &i64| match usize::try_from(dim) {
        Ok(dim) => Ok(Some(dim)),
        Err(_) if dim == -1 => Ok(None),
        Err(_) => Err(Error::invalid(format!("argument `src_dims` is {dims:?}, expected -1 or a dimension"))),
    };
    dims.iter().map(source).collect()
}

fn check_len(len: usize) -> Result<()> {
    if len > limits::MAX_NDIM {
        return Err(Error::invalid(format!("{len} extents, expected at most {}", limits::MAX_NDIM)));
    }
    Ok(())
}

fn only_one_negative(extents: &[f64]) -> Result<()> {
    if extents.iter().filter(|&&extent| extent < 0.0).count() > 1 {
        return Err(Error::invalid(format!("more than one extent of {extents:?} is negative")));
    }
    Ok(())
}

/// The list that a small tensor holds.
fn list(view: &View<'_>) -> Result<Vec<f64>> {
    let fits = matches!(view.shape[..], [_] | [1, _]);
    if !fits {
        return Err(Error::invalid(format!(
            "the new shape is a tensor of shape {}, expected a list",
            view.shape
        )));
    }
    check_len(view.shape.volume()?)?;
    numbers(view)
}

/// An extent of the output before the negative one is worked out.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Extent {
    Fixed(usize),
    /// What the others leave.
    Open,
    /// Depends on an extent of the input that is not known at load.
    Unknown,
}

/// The extent that a caller asks for by `value`.
fn extent(value: f64) -> Result<Extent> {
    if value < 0.0 {
        return Ok(Extent::Open);
    }
    // Also false for a value that is not a number.
    if value <= limits::MAX_SAMPLE_BYTES as f64 {
        return Ok(Extent::Fixed(value as usize));
    }
    Err(Error::invalid(format!("an extent is {value}, expected at most {}", limits::MAX_SAMPLE_BYTES)))
}

fn absolute(extents: &[f64]) -> Result<Vec<Extent>> {
    only_one_negative(extents)?;
    extents.iter().map(|&value| extent(value)).collect()
}

/// Fills in the extent that is open and checks that no byte is lost. `sizes`: bytes of an element before and after.
fn complete(input: &[usize], wanted: &[Extent], sizes: (usize, usize)) -> Result<Shape> {
    let fixed = |extent: &Extent| if let Extent::Fixed(extent) = extent { Some(*extent) } else { None };
    let mismatch = || {
        let wanted = wanted.iter().map(|e| fixed(e).map_or("-1".to_owned(), |e| e.to_string()));
        Error::invalid(format!(
            "a sample of shape {input:?} does not fit the shape [{}]",
            wanted.collect::<Vec<_>>().join(", ")
        ))
    };
    let bytes = Shape::from(input.to_vec()).bytes(sizes.0)?;
    let volume = bytes / sizes.1;
    let known = Shape::from(wanted.iter().filter_map(fixed).collect::<Vec<_>>()).volume()?;
    let shape = wanted.iter().map(|extent| fixed(extent).or_else(|| volume.checked_div(known)));
    let shape = Shape::from(shape.collect::<Option<Vec<_>>>().ok_or_else(mismatch)?);
    if shape.bytes(sizes.1)? == bytes { Ok(shape) } else { Err(mismatch()) }
}

impl Reshape {
    /// Extent of the input that output dimension `d` is taken from.
    fn source(&self, input: &[Option<usize>], d: usize) -> Result<Extent> {
        let dim = match self.source_dims.as_ref().and_then(|dims| dims.get(d)) {
            Some(None) => return Ok(Extent::Fixed(1)),
            Some(Some(dim)) => *dim,
            None => d,
        };
        let extent = input.get(dim).ok_or_else(|| {
            Error::invalid(format!("dimension {dim} is wanted of an input of {} dimensions", input.len()))
        })?;
        Ok(extent.map_or(Extent::Unknown, Extent::Fixed))
    }

    /// The extents of the input; elements of another size change the innermost one.
    fn source_extents(&self, input: &[Option<usize>], sizes: (usize, usize)) -> Result<Vec<Extent>> {
        let ndim = self.source_dims.as_ref().map_or(input.len(), Vec::len);
        let mut extents = (0..ndim).map(|d| self.source(input, d)).collect::<Result<Vec<_>>>()?;
        match extents.last_mut() {
            None if sizes.0 != sizes.1 => {
                return Err(Error::invalid("a scalar has no elements of another size"));
            }
            Some(Extent::Fixed(extent)) => *extent = extent.saturating_mul(sizes.0) / sizes.1,
            _ => {}
        }
        Ok(extents)
    }

    /// Bytes of an element before and after.
    fn sizes(&self, input: DType) -> (usize, usize) {
        (input.size(), self.dtype.unwrap_or(input).size())
    }

    /// `factors` times the extents of the input.
    fn relative(&self, input: &[Option<usize>], factors: &[f64], in_file: bool) -> Result<Vec<Extent>> {
        only_one_negative(factors)?;
        let open_end = factors.last().is_some_and(|&factor| factor < 0.0);
        match &self.source_dims {
            Some(dims) if dims.len() != factors.len() => {
                return Err(Error::invalid(format!(
                    "`rel_shape` has {} factors, expected {} as `src_dims` has",
                    factors.len(),
                    dims.len()
                )));
            }
            None if factors.len() > input.len() + usize::from(open_end) => {
                return Err(Error::invalid(format!(
                    "`rel_shape` has {} factors for an input of {} dimensions",
                    factors.len(),
                    input.len()
                )));
            }
            _ => {}
        }
        let scaled = |(d, &factor): (usize, &f64)| {
            if factor < 0.0 {
                return Ok(Extent::Open);
            }
            let Extent::Fixed(source) = self.source(input, d)? else { return Ok(Extent::Unknown) };
            // DALI multiplies in float32; a new dimension has the extent `factor` in a file, but 1 in a tensor.
            let is_new = self.source_dims.as_ref().is_some_and(|dims| dims.get(d) == Some(&None));
            let scaled = if is_new && !in_file { 1.0 } else { factor as f32 * source as f32 };
            extent(f64::from(scaled.round()))
        };
        factors.iter().enumerate().map(scaled).collect()
    }

    fn shape(&self, sample: &SampleInputs<'_>) -> Result<Shape> {
        let view = sample.input(0)?;
        let (input, sizes) = (view.shape, self.sizes(view.dtype));
        let known: Vec<Option<usize>> = input.iter().map(|&extent| Some(extent)).collect();
        let wanted = match &self.extents {
            Extents::Source => self.source_extents(&known, sizes)?,
            Extents::Input => absolute(&list(&sample.input(1)?)?)?,
            Extents::Absolute(arg) => match arg.tensor(sample)? {
                Some(view) => absolute(&list(&view)?)?,
                None => absolute(&arg.numbers(sample)?)?,
            },
            Extents::Relative(arg) => match arg.tensor(sample)? {
                Some(view) => self.relative(&known, &list(&view)?, false)?,
                None => self.relative(&known, &arg.numbers(sample)?, true)?,
            },
        };
        complete(input, &wanted, sizes)
    }

    fn output_layout(&self, input: Layout, input_ndim: usize, ndim: usize) -> Result<Layout> {
        match self.layout {
            Some(layout) if !layout.is_none() && layout.letters().len() != ndim => {
                Err(Error::invalid(format!("layout `{layout}` does not fit a shape of {ndim} dimensions")))
            }
            Some(layout) => Ok(layout),
            None if ndim == input_ndim => Ok(input),
            None => Ok(Layout::NONE),
        }
    }

    /// What is known of the output's extents at load.
    fn known_dims(&self, ty: &ValueType) -> Result<Option<Vec<Option<usize>>>> {
        // Extents mean nothing as long as it is not known how large an element is.
        let sizes = match (ty.dtype, self.dtype) {
            (Some(dtype), _) => self.sizes(dtype),
            (None, None) => (1, 1),
            (None, Some(_)) => return Ok(None),
        };
        let input = ty.dims.as_deref();
        let wanted = match (&self.extents, input) {
            (Extents::Input, _) => return Ok(None),
            (Extents::Absolute(arg), _) => match arg.known() {
                Some(extents) => absolute(extents)?,
                None => return Ok(None),
            },
            (Extents::Relative(arg), _) => match (arg.known(), input) {
                (Some(factors), Some(input)) => self.relative(input, factors, true)?,
                (factors, _) => return Ok(factors.map(|factors| vec![None; factors.len()])),
            },
            (Extents::Source, Some(input)) => self.source_extents(input, sizes)?,
            (Extents::Source, None) => {
                return Ok(self.source_dims.as_ref().map(|dims| vec![None; dims.len()]));
            }
        };
        let input: Option<Vec<usize>> = input.and_then(|dims| dims.iter().copied().collect());
        if let Some(input) = input {
            let shape = complete(&input, &wanted, sizes)?;
            return Ok(Some(shape.iter().map(|&extent| Some(extent)).collect()));
        }
        let dim = |extent| if let Extent::Fixed(extent) = extent { Some(extent) } else { None };
        Ok(Some(wanted.into_iter().map(dim).collect()))
    }
}

impl Operator for Reshape {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let input = &inputs[0];
        let dims = self.known_dims(input)?;
        let layout = match (input.layout, input.ndim(), &dims) {
            (Some(layout), Some(input_ndim), Some(dims)) => {
                Some(self.output_layout(layout, input_ndim, dims.len())?)
            }
            // Without a layout before there is none after, unless the file gives one.
            (Some(layout), ..) if layout.is_none() => Some(self.layout.unwrap_or(Layout::NONE)),
            _ => self.layout,
        };
        Ok(vec![ValueType { dtype: self.dtype.or(input.dtype), dims, layout }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = self.dtype.unwrap_or(desc.dtype);
        let shapes = inputs.map(|sample| self.shape(&sample).map(Some));
        if shapes.iter().all(Option::is_none) {
            let none = vec![Shape::from([]); inputs.batch_size()];
            return Ok(vec![BatchDesc::new(dtype, Layout::NONE, none)]);
        }
        let shapes = of_one_rank(inputs, shapes);
        let ndim = shapes.first().map_or(0, |shape| shape.len());
        let layout = self.output_layout(desc.layout, desc.shapes.first().map_or(0, |s| s.len()), ndim)?;
        Ok(vec![BatchDesc::new(dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            output.bytes.copy_from_slice(input.bytes);
            Ok(())
        })
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let pairs = io.rows(|sample| Ok((sample.output(0)?.clone(), sample.inputs.device(0)?.clone())));
        cx.copy(&pairs)
    }

    /// Bytes that are read as larger elements must move to where those may lie.
    fn is_view(&self) -> bool {
        self.dtype.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    #[test]
    fn a_shape_that_does_not_fit_fails_its_sample_alone() {
        let x = [0u8; 6];
        let wanted: [&[f64]; 9] = [
            &[2.0, 3.0],
            &[4.0, -1.0],
            &[-1.0, -1.0],
            &[6.0],
            &[0.0, -1.0],
            &[f64::NAN, 6.0],
            &[1e300, 0.0],
            &[1.0; 17],
            &[2_147_483_648.0, 2_147_483_648.0],
        ];
        let data: Vec<(&[usize], &[u8])> = wanted.iter().map(|_| (&[6][..], &x[..])).collect();
        let lens: Vec<[usize; 1]> = wanted.iter().map(|list| [list.len()]).collect();
        let lists: Vec<(&[usize], &[f64])> =
            lens.iter().zip(wanted).map(|(len, list)| (&len[..], list)).collect();
        let outcome = run(&DEF, &args(&[], &["shape"]), &[batch(&data)], &[batch(&lists)]).unwrap();
        assert_eq!(*outcome.desc.shapes[0], [2, 3]);
        for (i, words) in [
            (1, "does not fit the shape [4, -1]"),
            (2, "more than one extent"),
            (3, "does not have 2 dimensions"),
            (4, "does not fit the shape [0, -1]"),
            (5, "an extent is NaN"),
            (6, "an extent is 1"),
            (7, "17 extents, expected at most 16"),
            (8, "limit"),
        ] {
            assert!(outcome.error(i).contains(words), "{}", outcome.error(i));
        }
    }

    fn infer(values: &[(&str, Value)], input: &ValueType) -> Result<ValueType> {
        let operator = DEF.instantiate(&args(values, &[]), 1)?;
        operator.infer(std::slice::from_ref(input)).map(|mut types| types.remove(0))
    }

    #[test]
    fn inference_says_what_is_certain() {
        let ints = |values: &[i64]| Value::Ints(values.to_vec());
        let image = ValueType {
            dtype: Some(DType::U8),
            dims: Some(vec![None, Some(6), Some(3)]),
            layout: Some(Layout::hwc()),
        };
        let dims = |values: &[(&str, Value)], input: &ValueType| infer(values, input).unwrap().dims;
        assert_eq!(dims(&[("shape", ints(&[4, -1]))], &image), Some(vec![Some(4), None]));
        assert_eq!(dims(&[("src_dims", ints(&[2, -1]))], &image), Some(vec![Some(3), Some(1)]));
        let relative = [("rel_shape", Value::Floats(vec![0.5, 0.5, -1.0]))];
        assert_eq!(dims(&relative, &image), Some(vec![None, Some(3), None]));
        assert_eq!(dims(&relative, &ValueType::default()), Some(vec![None; 3]));
        assert_eq!(dims(&[("layout", Value::Strings(vec!["ABC".into()]))], &ValueType::default()), None);

        let known = ValueType { dims: Some(vec![Some(4), Some(6), Some(3)]), ..image };
        let found = infer(&[("shape", ints(&[9, -1]))], &known).unwrap();
        assert_eq!((found.dims, found.layout), (Some(vec![Some(9), Some(8)]), Some(Layout::NONE)));
        assert_eq!(infer(&[("shape", ints(&[9, 1, -1]))], &known).unwrap().layout, Some(Layout::hwc()));
        let error = infer(&[("shape", ints(&[7, -1]))], &known).unwrap_err().to_string();
        assert!(error.contains("[4, 6, 3] does not fit the shape [7, -1]"), "{error}");
    }

    #[test]
    fn contradictions_are_errors_at_load() {
        let ints = |values: &[i64]| Value::Ints(values.to_vec());
        for (values, words) in [
            (vec![], "neither a new shape nor a new layout"),
            (vec![("shape", ints(&[0, 2]))], "may not ask for"),
            (vec![("shape", ints(&[-1, -1]))], "more than one extent"),
            (vec![("shape", ints(&[1; 17]))], "at most 16"),
            (vec![("shape", ints(&[6])), ("rel_shape", ints(&[1]))], "exclude each other"),
            (vec![("rel_shape", Value::Floats(vec![]))], "`rel_shape` is empty"),
            (vec![("src_dims", ints(&[-2]))], "expected -1 or a dimension"),
        ] {
            let error = infer(&values, &ValueType::default()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        let image = ValueType::ranked(DType::U8, 3, Layout::NONE);
        assert!(infer(&[("layout", Value::Strings(vec!["HW".into()]))], &image).is_err());
        assert!(infer(&[("src_dims", ints(&[3]))], &image).is_err());
    }
}
