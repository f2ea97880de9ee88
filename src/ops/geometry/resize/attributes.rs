//! The arguments that say how large a resized image is and where it is sampled from: shared by the resizing operators.
//! Rules and examples are those of DALI's resize attributes; all sizes are float32 until the last step.

use super::Job;
use super::exact::{Exact, Ranges, ResizeRequest};
use super::geometry::Geometry;
use super::sizes::{Mode, adjust, all_or_each, bounded, rescale, sides, swapped, widened};
use crate::cpu::exact::Task;
use crate::cpu::resample::{Filter, FilterSpec};
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, Args, SampleInputs};
use crate::tensor::{DType, Layout};

/// Names of the spatial dimensions' arguments, in the order D, H, W.
const SEPARATE: [&str; 3] = ["resize_z", "resize_y", "resize_x"];

/// Largest extent of an output: float32 holds every integer up to here.
const MAX_EXTENT: f32 = 16_777_216.0;

/// Whether filters are stretched, which operators do or do not when the file does not say it.
pub(in crate::ops) const fn antialias(default: bool) -> ArgSpec {
    ArgSpec::bool("antialias", "stretch the filter when the image gets smaller").or_bool(default)
}

/// The table of these arguments.
pub(in crate::ops) const ARGS: &[ArgSpec] = &[
    ArgSpec::floats(
        "size",
        "height and width, of volumes depth before, or one for all; 0 is not given, negative flips",
    )
    .tensor(),
    ArgSpec::float("resize_x", "width; 0 is not given, negative flips").tensor().or_float(0.0),
    ArgSpec::float("resize_y", "height; 0 is not given, negative flips").tensor().or_float(0.0),
    ArgSpec::float("resize_z", "depth of volumes; 0 is not given, negative flips").tensor().or_float(0.0),
    ArgSpec::float("resize_shorter", "size of the shorter side, the aspect ratio is kept")
        .tensor()
        .or_float(0.0),
    ArgSpec::float("resize_longer", "size of the longer side, the aspect ratio is kept")
        .tensor()
        .or_float(0.0),
    ArgSpec::string("mode", "`default`, `stretch`, `not_larger` or `not_smaller`").or_string("default"),
    ArgSpec::floats("max_size", "largest size, one for all sides or one each"),
    ArgSpec::bool("subpixel_scale", "keep the exact scale when a size is rounded").or_bool(true),
    ArgSpec::floats("roi_start", "start of the source region: y and x, of volumes z before, or one for all")
        .tensor(),
    ArgSpec::floats("roi_end", "end of the source region: y and x, of volumes z before, or one for all")
        .tensor(),
    ArgSpec::bool("roi_relative", "whether the region is in fractions of the size").or_bool(false),
    ArgSpec::interp_type("interp_type", "0 nearest, 1 linear, 2 cubic, 3 Lanczos, 4 triangular, 5 Gaussian")
        .tensor()
        .or_int(1),
    ArgSpec::interp_type("min_filter", "filter when the image gets smaller")
        .tensor()
        .or_computed("`interp_type`"),
    ArgSpec::interp_type("mag_filter", "filter when the image gets larger")
        .tensor()
        .or_computed("`interp_type`"),
    ArgSpec::dtype("dtype", "element type of the output: the input's or float32").or_computed("the input's"),
    ArgSpec::image_type("image_type", "the channels are resized alike").no_effect().deprecated(),
    ArgSpec::int("minibatch_size", "a hint for DALI's GPU kernel").no_effect().or_int(32),
    ArgSpec::int("temp_buffer_hint", "a hint for DALI's memory").no_effect().or_int(0),
];

enum Requested {
    /// All sides in one argument, or one for all.
    Size(Arg),
    /// All of them as multiples of the region's.
    Scales(Arg),
    /// Depth, height and width, each may be absent.
    Separate([Option<Arg>; 3]),
    /// The same size for all sides.
    Same(Arg),
}

/// The arguments, read.
pub(in crate::ops) struct ResizeAttributes {
    requested: Requested,
    mode: Mode,
    /// One for all sides or one each.
    max_size: Option<Vec<f32>>,
    subpixel_scale: bool,
    /// Which point of the region stays where it is when a size is rounded, from 0 to 1: one for all sides or one each.
    alignment: Option<Arg>,
    rounding: fn(f32) -> f32,
    roi: Option<(Arg, Arg)>,
    roi_relative: bool,
    interp: Option<Arg>,
    min_filter: Option<Arg>,
    mag_filter: Option<Arg>,
    antialias: bool,
    dtype: Option<DType>,
    /// Another library's arithmetic.
    pub(super) exact: Option<Exact>,
}

/// What one image or volume becomes: output size and the source region it shows, both (D then) H then W.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ops) struct Target<const N: usize = 2> {
    /// Pixels of the output.
    pub(in crate::ops) size: [usize; N],
    /// Start and end in source pixels; the end before the start flips.
    pub(in crate::ops) roi: [(f32, f32); N],
    /// Filters of every axis.
    pub(in crate::ops) filter: FilterSpec,
}

impl ResizeAttributes {
    /// Reads the arguments.
    ///
    /// # Errors
    /// When the size is given in no way or in two, or a value is not one of those listed.
    pub(in crate::ops) fn new(args: &Args) -> Result<Self> {
        let mode = match args.given_string("mode")? {
            None => None,
            Some("default") => Some(Mode::Default),
            Some("stretch") => Some(Mode::Stretch),
            Some("not_larger") => Some(Mode::NotLarger),
            Some("not_smaller") => Some(Mode::NotSmaller),
            Some(other) => {
                return Err(Error::invalid(format!(
                    "argument `mode` is `{other}`, expected `default`, `stretch`, `not_larger` or `not_smaller`"
                )));
            }
        };
        let ways = [
            args.has("size") || args.has("scales"),
            SEPARATE.iter().any(|name| args.has(name)),
            args.has("resize_shorter"),
            args.has("resize_longer"),
        ];
        if ways.iter().filter(|&&given| given).count() != 1 {
            return Err(Error::invalid(
                "expected exactly one of `size`, `resize_x` / `resize_y`, `resize_shorter` and `resize_longer`",
            ));
        }
        let one_side = args.given_arg("resize_shorter")?.map(|arg| (arg, Mode::NotSmaller));
        let one_side = args.given_arg("resize_longer")?.map(|arg| (arg, Mode::NotLarger)).or(one_side);
        let (requested, mode) = match (one_side, args.given_arg("size")?) {
            (Some(_), _) if mode.is_some() => {
                return Err(Error::invalid(
                    "`mode` cannot be combined with `resize_shorter` or `resize_longer`",
                ));
            }
            (Some((arg, mode)), _) => (Requested::Same(arg), mode),
            (None, Some(arg)) => (Requested::Size(arg), mode.unwrap_or(Mode::Default)),
            (None, None) if args.has("scales") => {
                let scales = args.arg("scales")?;
                (Requested::Scales(scales), mode.unwrap_or(Mode::Default))
            }
            (None, None) => {
                let [z, y, x] = SEPARATE;
                let sides = [args.given_arg(z)?, args.given_arg(y)?, args.given_arg(x)?];
                (Requested::Separate(sides), mode.unwrap_or(Mode::Default))
            }
        };
        let max_size = args.given_floats("max_size")?;
        if let Some(max) = max_size.as_ref().filter(|max| max.iter().any(|m| m.is_nan())) {
            return Err(Error::invalid(format!("argument `max_size` is {max:?}, expected sizes")));
        }
        let roi = match (args.given_arg("roi_start")?, args.given_arg("roi_end")?) {
            (Some(start), Some(end)) => Some((start, end)),
            (None, None) => None,
            _ => return Err(Error::invalid("expected both `roi_start` and `roi_end`, or neither")),
        };
        let dtype = args.given_dtype("dtype")?;
        Ok(Self {
            requested,
            mode,
            max_size,
            subpixel_scale: args.bool("subpixel_scale")?,
            alignment: args.given_arg("alignment")?,
            rounding: rounding(args)?,
            roi,
            roi_relative: args.bool("roi_relative")?,
            interp: args.given_arg("interp_type")?,
            min_filter: args.given_arg("min_filter")?,
            mag_filter: args.given_arg("mag_filter")?,
            antialias: args.bool("antialias")?,
            dtype,
            exact: Exact::new(args)?,
        })
    }

    /// Element type of the output for an input of `dtype`.
    ///
    /// # Errors
    /// Unsupported for types that cannot be resized.
    pub(in crate::ops) fn output_dtype(&self, dtype: DType) -> Result<DType> {
        if !matches!(dtype, DType::U8 | DType::I16 | DType::U16 | DType::F32) {
            return Err(Error::unsupported(format!(
                "{dtype} cannot be resized, expected uint8, int16, uint16 or float32"
            )));
        }
        if let Some(exact) = &self.exact {
            return exact.output_dtype(dtype, self.dtype);
        }
        match self.dtype {
            None => Ok(dtype),
            Some(wanted) if wanted == dtype || wanted == DType::F32 => Ok(wanted),
            Some(wanted) => Err(Error::unsupported(format!(
                "{dtype} cannot be resized to {wanted}, expected {dtype} or float32"
            ))),
        }
    }

    /// The sides that every image gets, as far as they do not depend on the image.
    pub(in crate::ops) fn known_size<const N: usize>(&self) -> [Option<usize>; N] {
        let bounds_both = self.exact.is_some() && self.max_size.is_some();
        if !matches!(self.mode, Mode::Default | Mode::Stretch) || bounds_both {
            return [None; N];
        }
        let Ok(max_size) = self.max_size::<N>() else { return [None; N] };
        let known = |d: usize| match &self.requested {
            Requested::Size(arg) => match arg.known()? {
                [all] => Some(*all),
                each => each.get(d).copied().filter(|_| each.len() == N),
            },
            Requested::Separate(args) => {
                args.get(SEPARATE.len() - N + d)?.as_ref()?.known()?.first().copied()
            }
            Requested::Same(_) | Requested::Scales(_) => None,
        };
        std::array::from_fn(|d| {
            let size = known(d).filter(|&size| size != 0.0 && size.is_finite())?.abs() as f32;
            let size = bounded(size, max_size, d);
            (size < MAX_EXTENT).then(|| (self.rounding)(size).max(1.0) as usize)
        })
    }

    /// The height and width that every image gets which is seen whole, when they are known: larger images may be made
    /// smaller before. With another library's arithmetic they may not.
    pub(in crate::ops) fn whole_image_size(&self) -> Option<[usize; 2]> {
        let [height, width] = self.known_size::<2>();
        Some([height?, width?]).filter(|_| self.roi.is_none() && self.exact.is_none())
    }

    /// What becomes of an image, or of its pixels in `part` as if the others were not there.
    ///
    /// # Errors
    /// Those of [`ResizeAttributes::target`] and [`Job::new`].
    pub(in crate::ops) fn job(
        &self,
        sample: &SampleInputs<'_>,
        geometry: Geometry,
        dtype: DType,
        layout: Layout,
        part: Option<Ranges>,
    ) -> Result<Job> {
        match (self.task(sample, &geometry, dtype, layout, part)?, part) {
            (Some(task), _) => Ok(Job::exact(geometry, task)),
            (None, None) => Job::new(geometry, self.target(sample, geometry.size)?),
            (None, Some(part)) => {
                let region = part.map(|(start, end)| (start as f32, end as f32));
                Job::new(geometry, self.target_of(sample, region)?)
            }
        }
    }

    /// What another library's arithmetic does with it, where one is asked for.
    ///
    /// # Errors
    /// Where the library has no such filter, size or region.
    pub(in crate::ops) fn task(
        &self,
        sample: &SampleInputs<'_>,
        geometry: &Geometry,
        dtype: DType,
        layout: Layout,
        part: Option<Ranges>,
    ) -> Result<Option<Task>> {
        let Some(exact) = &self.exact else { return Ok(None) };
        let planar = layout.find(b'C').filter(|&axis| axis < geometry.axis);
        let planes = planar.map(|axis| Ok(sample.input(0)?.shape.get(axis).copied().unwrap_or(1)));
        let asked = ResizeRequest {
            elements: exact.elements(dtype)?,
            planes: planes.transpose()?,
            sides: self.requested_size(sample)?,
            mode: self.mode,
            max_size: self.max_size()?,
            region: self.asked_region(sample, geometry.size)?,
            interp: self.interp(sample)?,
        };
        exact.task(&asked, geometry, part).map(Some)
    }

    /// How another library's programs round the place of a window in the middle.
    pub(in crate::ops) fn rounding_of_windows(&self) -> Option<&'static str> {
        self.exact.as_ref().map(Exact::rounding_of_windows)
    }

    fn max_size<const N: usize>(&self) -> Result<Option<[f32; N]>> {
        match self.max_size.as_deref() {
            None => Ok(None),
            Some(max) => all_or_each("max_size", max).map(Some),
        }
    }

    /// Size, region and filters for one image of `image` pixels ((D,) H, W).
    ///
    /// # Errors
    /// When an argument of the sample has a wrong number of values or asks for an impossible size.
    pub(in crate::ops) fn target<const N: usize>(
        &self,
        sample: &SampleInputs<'_>,
        image: [usize; N],
    ) -> Result<Target<N>> {
        if image.contains(&0) {
            return Err(Error::invalid(format!("cannot resize an image of {image:?} pixels")));
        }
        self.target_of(sample, self.region(sample, image)?)
    }

    /// [`ResizeAttributes::target`] for the region `roi` of an image.
    ///
    /// # Errors
    /// As there.
    pub(in crate::ops) fn target_of<const N: usize>(
        &self,
        sample: &SampleInputs<'_>,
        roi: [(f32, f32); N],
    ) -> Result<Target<N>> {
        // Images have a task, so what comes here is a volume.
        if let Some(exact) = &self.exact {
            return Err(exact.no_volumes());
        }
        let (mut requested, (mut roi, turned)) = (self.requested_size(sample)?, swapped(roi));
        for (request, _) in requested.iter_mut().zip(turned).filter(|(_, turned)| *turned) {
            *request = -*request;
        }
        let extent = roi.map(|(start, end)| end - start);
        if extent.contains(&0.0) {
            return Err(Error::invalid("cannot resize a region without pixels"));
        }
        if let Requested::Scales(_) = self.requested {
            requested = std::array::from_fn(|d| requested[d] * extent[d]);
        }
        let wanted = adjust(requested, extent, self.mode, self.max_size()?);
        let alignment = match &self.alignment {
            None => [0.5; N],
            Some(arg) => all_or_each("alignment", &arg.floats(sample)?)?,
        };
        let mut size = [0; N];
        for d in 0..N {
            let rounded = (self.rounding)(wanted[d].abs()).max(1.0);
            if rounded.is_nan() || rounded >= MAX_EXTENT {
                return Err(Error::invalid(format!(
                    "a size of {} pixels is too large to resize to",
                    wanted[d]
                )));
            }
            size[d] = rounded as usize;
            if self.subpixel_scale && rounded != wanted[d].abs() {
                let ratio = f64::from(rounded) / f64::from(wanted[d].abs());
                roi[d] = rescale(roi[d], f64::from(alignment[d]), ratio);
            }
            if wanted[d] < 0.0 {
                roi[d] = (roi[d].1, roi[d].0);
            }
        }
        Ok(Target { size, roi, filter: self.filter(sample)? })
    }

    /// The sides that are asked for: 0 is not given, negative flips.
    fn requested_size<const N: usize>(&self, sample: &SampleInputs<'_>) -> Result<[f32; N]> {
        let size = match &self.requested {
            Requested::Size(arg) => all_or_each("size", &arg.floats(sample)?)?,
            Requested::Scales(arg) => all_or_each("scales", &arg.floats(sample)?)?,
            Requested::Separate(args) => {
                let side = |arg: &Option<Arg>| arg.as_ref().map_or(Ok(0.0), |arg| arg.float(sample));
                let all = args.iter().map(side).collect::<Result<Vec<_>>>()?;
                sides("resize_x`, `resize_y`, `resize_z", &all[SEPARATE.len() - N..])?
            }
            Requested::Same(arg) => [arg.float(sample)?; N],
        };
        if size.iter().all(|s| s.is_finite()) {
            return Ok(size);
        }
        Err(Error::invalid(format!("expected a finite size, found {size:?}")))
    }

    fn region<const N: usize>(
        &self,
        sample: &SampleInputs<'_>,
        image: [usize; N],
    ) -> Result<[(f32, f32); N]> {
        let full = image.map(|extent| (0.0, extent as f32));
        Ok(self.asked_region(sample, image)?.unwrap_or(full))
    }

    /// The region, if one is given; its ends may have changed places.
    fn asked_region<const N: usize>(
        &self,
        sample: &SampleInputs<'_>,
        image: [usize; N],
    ) -> Result<Option<[(f32, f32); N]>> {
        let Some((start, end)) = &self.roi else { return Ok(None) };
        let start: [f32; N] = all_or_each("roi_start", &start.floats(sample)?)?;
        let end: [f32; N] = all_or_each("roi_end", &end.floats(sample)?)?;
        let scale = if self.roi_relative { image.map(|extent| extent as f32) } else { [1.0; N] };
        let place = |value: f32, d: usize| f64::from(value) * f64::from(scale[d]);
        let roi = std::array::from_fn(|d| widened(place(start[d], d), place(end[d], d)));
        if roi.iter().all(|(start, end)| start.is_finite() && end.is_finite()) {
            return Ok(Some(roi));
        }
        Err(Error::invalid(format!("expected a finite region, found {roi:?}")))
    }

    /// The filter that `interp_type` names.
    fn interp(&self, sample: &SampleInputs<'_>) -> Result<Filter> {
        Ok(named_filter(&self.interp, sample)?.unwrap_or(Filter::Linear))
    }

    fn filter(&self, sample: &SampleInputs<'_>) -> Result<FilterSpec> {
        let read = |arg| named_filter(arg, sample);
        let both = self.interp(sample)?;
        Ok(FilterSpec {
            min: read(&self.min_filter)?.unwrap_or(both),
            mag: read(&self.mag_filter)?.unwrap_or(both),
            antialias: self.antialias,
        })
    }
}

fn named_filter(arg: &Option<Arg>, sample: &SampleInputs<'_>) -> Result<Option<Filter>> {
    let Some(arg) = arg else { return Ok(None) };
    let id = arg.int(sample)?;
    let filter = Filter::from_dali(id);
    filter
        .map(Some)
        .ok_or_else(|| Error::invalid(format!("interpolation {id} is not known, expected 0 to 5")))
}

/// How sizes become whole.
fn rounding(args: &Args) -> Result<fn(f32) -> f32> {
    // Operators without the argument round.
    match args.given_string("size_rounding")?.filter(|&name| name != "round") {
        None => Ok(f32::round),
        Some("truncate") => Ok(f32::trunc),
        Some("ceil") => Ok(f32::ceil),
        Some(other) => Err(Error::invalid(format!(
            "argument `size_rounding` is `{other}`, expected `round`, `truncate` or `ceil`"
        ))),
    }
}
