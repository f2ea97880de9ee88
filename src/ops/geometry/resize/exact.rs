//! Resizing with another library's arithmetic: what the arguments ask of [`Task`], and sizes as the libraries round
//! them. It must not know how a library computes.

use super::geometry::Geometry;
use super::sizes::{Mode, swapped};
use crate::cpu::exact::{Arithmetic, Elements, Filter, Task};
use crate::cpu::resample;
use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args};
use crate::tensor::DType;

/// The arguments of operators that have it.
pub(in crate::ops) const ARGS: &[ArgSpec] = &[
    ArgSpec::string(
        "arithmetic",
        "whose arithmetic, to the bit: `dali`, `pillow` (before 13), `pillow13`, `torchvision`, `torchvision-float` or `opencv`; of uint8 \
         images, on a CPU of uint16 (Pillow) and float32 ones (Pillow, `torchvision-float`), too",
    )
    .or_string("dali"),
    ArgSpec::string(
        "filter",
        "another library's filter: `nearest`, `nearest-exact`, `box`, `linear`, `hamming`, `cubic`, `lanczos` or `area`",
    )
    .or_computed("`interp_type`"),
    ArgSpec::float(
        "reducing_gap",
        "Pillow's, on a CPU, for uint8 images: the image is reduced by whole factors before, to no less than so many times the output's size",
    )
    .or_computed("nothing is reduced"),
];

/// Arguments that only DALI's arithmetic has.
const DALI_ONLY: [&str; 3] = ["min_filter", "mag_filter", "subpixel_scale"];

/// The arguments, read.
pub(super) struct Exact {
    pub(super) arithmetic: Arithmetic,
    /// `None`: what `interp_type` says.
    filter: Option<Filter>,
    reducing_gap: Option<f32>,
}

/// What the other arguments ask of an image.
pub(super) struct ResizeRequest {
    pub(super) elements: Elements,
    /// Height and width: 0 is not given, negative flips.
    pub(super) sides: [f32; 2],
    pub(super) mode: Mode,
    pub(super) max_size: Option<[f32; 2]>,
    /// Its ends may have changed places.
    pub(super) region: Option<[(f32, f32); 2]>,
    pub(super) interp: resample::Filter,
    /// Channels, where they come before rows.
    pub(super) planes: Option<usize>,
}

/// A part of an image that is resized as if the rest were not there, and what of the result is made.
pub(in crate::ops) type Ranges = [(usize, usize); 2];

impl Exact {
    /// Reads the arguments. `None` is DALI's arithmetic.
    ///
    /// # Errors
    /// When there is no such arithmetic, or it has no such filter or argument.
    pub(super) fn new(args: &Args) -> Result<Option<Self>> {
        let filter = args.given_string("filter")?;
        // Operators without the argument have DALI's arithmetic alone.
        let Some(name) = args.given_string("arithmetic")?.filter(|&name| name != "dali") else {
            if args.has("reducing_gap") {
                return Err(Error::invalid(
                    "argument `reducing_gap` is for Pillow's `arithmetic`, found `dali`",
                ));
            }
            if filter.is_some() {
                return Err(Error::invalid(
                    "argument `filter` is for another `arithmetic` than `dali`, whose argument is `interp_type`",
                ));
            }
            return Ok(None);
        };
        let arithmetic = arithmetic(name)?;
        let (name, library) = (arithmetic.name(), arithmetic.library());
        if let Some(argument) = DALI_ONLY.iter().find(|argument| args.has(argument)) {
            return Err(Error::invalid(format!(
                "argument `{argument}` is DALI's, and {library} (`arithmetic` is `{name}`) has nothing like it"
            )));
        }
        let stretches = arithmetic != Arithmetic::OpenCv;
        if args.given_bool("antialias")?.is_some_and(|antialias| antialias != stretches) {
            return Err(Error::invalid(format!(
                "argument `antialias` is {}: {library} (`arithmetic` is `{name}`) {} its filters for smaller images",
                !stretches,
                if stretches { "always stretches" } else { "never stretches" }
            )));
        }
        if let Some(dtype) = args.given_dtype("dtype")? {
            elements(arithmetic, dtype)
                .ok_or_else(|| unlike(arithmetic, &format!("argument `dtype` is {dtype}")))?;
        }
        if filter.is_some() && args.has("interp_type") {
            return Err(Error::invalid("expected one of `filter` and `interp_type`, found both"));
        }
        let filter = filter.map(|filter| named(arithmetic, filter)).transpose()?;
        let reducing_gap = args.given_float("reducing_gap")?;
        if let Some(gap) = reducing_gap.filter(|&gap| !arithmetic.is_pillow() || gap.is_nan() || gap < 1.0) {
            return Err(Error::invalid(format!(
                "argument `reducing_gap` is {gap} with {library}'s arithmetic (`arithmetic` is `{name}`), expected 1 or more, with Pillow's"
            )));
        }
        Ok(Some(Self { arithmetic, filter, reducing_gap }))
    }

    /// The `rounding` of a window in the middle that is not told otherwise: torchvision's crop, which timm uses with
    /// Pillow's images, too, rounds halves to even; with OpenCV halves are cut off.
    pub(super) fn rounding_of_windows(&self) -> &'static str {
        if self.arithmetic == Arithmetic::OpenCv { "truncate" } else { "even" }
    }

    /// What images of a type are made of.
    ///
    /// # Errors
    /// Unsupported where the library does not resize them.
    pub(super) fn elements(&self, dtype: DType) -> Result<Elements> {
        elements(self.arithmetic, dtype)
            .ok_or_else(|| unlike(self.arithmetic, &format!("the images are {dtype}")))
    }

    /// The type that images of a type become: their own.
    ///
    /// # Errors
    /// Unsupported where the library does not resize them, or another type was asked for.
    pub(super) fn output_dtype(&self, dtype: DType, asked: Option<DType>) -> Result<DType> {
        self.elements(dtype)?;
        match asked.filter(|&asked| asked != dtype) {
            Some(asked) => {
                let found = format!("the images are {dtype}, argument `dtype` is {asked}");
                Err(unlike(self.arithmetic, &found))
            }
            None => Ok(dtype),
        }
    }

    /// What becomes of one image, or of its pixels in `part` alone.
    ///
    /// # Errors
    /// Where the library has no such filter, size or region.
    pub(super) fn task(
        &self,
        asked: &ResizeRequest,
        geometry: &Geometry,
        part: Option<Ranges>,
    ) -> Result<Task> {
        let filter = match self.filter {
            Some(filter) => filter,
            None => of_dali(self.arithmetic, asked.interp)?,
        };
        let mut task = Task::whole(self.arithmetic, filter, geometry.size, geometry.channels, [1; 2]);
        task.elements = asked.elements;
        task.reducing_gap = self.reducing_gap;
        if let Some(part) = part {
            task.crop = part;
            task.region = part.map(|(first, end)| (0.0, (end - first) as f32));
        }
        let mut flips = asked.sides.map(|side| side < 0.0);
        if let Some(region) = asked.region {
            let (region, turned) = swapped(region);
            flips = [0, 1].map(|d| flips[d] != turned[d]);
            self.place(region, &mut task)?;
        }
        let seen = task.region.map(|(start, end)| f64::from(end - start));
        let sides = asked.sides.map(|side| f64::from(side.abs()));
        task.size = size(self.arithmetic, sides, seen, asked.mode, asked.max_size)?;
        task.mirror = flips;
        task.window = task.size.map(|extent| (0, extent));
        self.check_alpha(&task, asked.planes)?;
        task.check()?;
        Ok(task)
    }

    /// A region of the image: Pillow's `box`, which sees the pixels around it; elsewhere pixels that are cut out
    /// before.
    fn place(&self, region: [(f32, f32); 2], task: &mut Task) -> Result<()> {
        if self.arithmetic.is_pillow() {
            task.region = region;
            return Ok(());
        }
        for (d, (start, end)) in region.into_iter().enumerate() {
            let is_whole = start.fract() == 0.0 && end.fract() == 0.0 && 0.0 <= start && start < end;
            if !is_whole || end as usize > task.image[d] {
                return Err(Error::invalid(format!(
                    "{} (`arithmetic` is `{}`) resizes whole pixels inside of the image, found a region of {start} to {end} of {}",
                    self.arithmetic.library(),
                    self.arithmetic.name(),
                    task.image[d]
                )));
            }
            task.crop[d] = (start as usize, end as usize);
            task.region[d] = (0.0, end - start);
        }
        Ok(())
    }

    /// Whether a GPU resizes images of a type.
    ///
    /// # Errors
    /// Unsupported for others than bytes, and with `reducing_gap`.
    pub(super) fn check_on_gpu(&self, dtype: DType) -> Result<()> {
        if self.reducing_gap.is_some() {
            return Err(Error::unsupported(
                "argument `reducing_gap` is for the CPU only: expected the device `cpu`",
            ));
        }
        check_on_gpu(dtype)
    }

    /// That volumes are not resized.
    pub(super) fn no_volumes(&self) -> Error {
        let (name, library) = (self.arithmetic.name(), self.arithmetic.library());
        Error::unsupported(format!("{library} (`arithmetic` is `{name}`) resizes images, found volumes"))
    }

    /// Pillow's colours with alpha are resized together; planes are resized one by one.
    fn check_alpha(&self, task: &Task, planes: Option<usize>) -> Result<()> {
        let has_alpha = planes.is_some_and(|planes| matches!(planes, 2 | 4));
        if has_alpha && self.arithmetic.is_pillow() && task.filter != Filter::Nearest {
            return Err(Error::unsupported(format!(
                "Pillow (`arithmetic` is `{}`) resizes colours with alpha together, found them in planes, expected the layout `HWC`",
                self.arithmetic.name()
            )));
        }
        Ok(())
    }
}

/// That a GPU resizes images of bytes only with another library's arithmetic.
///
/// # Errors
/// Unsupported for others than bytes.
pub(super) fn check_on_gpu(dtype: DType) -> Result<()> {
    if dtype == DType::U8 {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the images are {dtype}: another `arithmetic` than `dali` resizes them on the CPU only, expected the device `cpu` or uint8"
    )))
}

/// Elements of a type, if the library resizes images of them.
fn elements(arithmetic: Arithmetic, dtype: DType) -> Option<Elements> {
    let elements = match dtype {
        DType::U8 => Elements::Bytes,
        DType::U16 => Elements::Words,
        DType::F32 => Elements::Floats,
        _ => return None,
    };
    arithmetic.resizes(elements).then_some(elements)
}

fn unlike(arithmetic: Arithmetic, found: &str) -> Error {
    let (name, library) = (arithmetic.name(), arithmetic.library());
    let resized: Vec<String> = [DType::U8, DType::U16, DType::F32]
        .into_iter()
        .filter(|&dtype| elements(arithmetic, dtype).is_some())
        .map(|dtype| dtype.to_string())
        .collect();
    Error::unsupported(format!(
        "{found}: with {library}'s arithmetic (`arithmetic` is `{name}`) images keep their type, expected {}",
        resized.join(" or ")
    ))
}

fn arithmetic(name: &str) -> Result<Arithmetic> {
    Arithmetic::ALL.into_iter().find(|arithmetic| arithmetic.name() == name).ok_or_else(|| {
        let names: Vec<String> =
            Arithmetic::ALL.iter().map(|arithmetic| format!("`{}`", arithmetic.name())).collect();
        Error::invalid(format!("argument `arithmetic` is `{name}`, expected `dali`, {}", names.join(", ")))
    })
}

fn named(arithmetic: Arithmetic, name: &str) -> Result<Filter> {
    arithmetic.filters().find(|(known, _)| *known == name).map(|(_, filter)| filter).ok_or_else(|| {
        let has: Vec<String> = arithmetic.filters().map(|(name, _)| format!("`{name}`")).collect();
        Error::invalid(format!(
            "argument `filter` is `{name}`, which {} (`arithmetic` is `{}`) does not have, expected {}",
            arithmetic.library(),
            arithmetic.name(),
            has.join(", ")
        ))
    })
}

/// The filters that have the same names in DALI. The library may not have them.
fn of_dali(arithmetic: Arithmetic, filter: resample::Filter) -> Result<Filter> {
    match filter {
        resample::Filter::Nearest => Ok(Filter::Nearest),
        resample::Filter::Linear | resample::Filter::Triangular => Ok(Filter::Linear),
        resample::Filter::Cubic => Ok(Filter::Cubic),
        resample::Filter::Lanczos3 => Ok(Filter::Lanczos),
        resample::Filter::Gaussian => Err(Error::invalid(format!(
            "argument `interp_type` is 5 (Gaussian), which {} (`arithmetic` is `{}`) does not have",
            arithmetic.library(),
            arithmetic.name()
        ))),
    }
}

/// The size of the output: sides that are asked for (0: not given) stay as they are, others follow from the ratio of
/// `extent`.
///
/// torchvision, and what resizes with Pillow, cut the fraction of the other side off; what resizes with OpenCV rounds
/// it.
///
/// # Errors
/// When a side is not whole, 0, or too large.
fn size(
    arithmetic: Arithmetic,
    requested: [f64; 2],
    extent: [f64; 2],
    mode: Mode,
    max_size: Option<[f32; 2]>,
) -> Result<[usize; 2]> {
    let rounds = arithmetic == Arithmetic::OpenCv;
    // Both sides, when side `d` becomes `to`.
    let scaled = |d: usize, to: f64| -> [f64; 2] {
        std::array::from_fn(|i| match rounds {
            _ if i == d => to,
            true => (extent[i] * (to / extent[d])).round_ties_even(),
            false => (to * extent[i] / extent[d]).trunc(),
        })
    };
    let given: Vec<usize> = (0..2).filter(|&d| requested[d] != 0.0).collect();
    let ratio = |d: usize| requested[d] / extent[d];
    let mut size = match (given.as_slice(), mode) {
        ([], _) => extent,
        (&[d], Mode::Stretch) => std::array::from_fn(|i| if i == d { requested[i] } else { extent[i] }),
        (&[d], _) => scaled(d, requested[d]),
        (_, Mode::NotLarger) => {
            scaled(usize::from(ratio(1) < ratio(0)), requested[usize::from(ratio(1) < ratio(0))])
        }
        (_, Mode::NotSmaller) => {
            scaled(usize::from(ratio(1) > ratio(0)), requested[usize::from(ratio(1) > ratio(0))])
        }
        _ => requested,
    };
    for d in 0..2 {
        let most = max_size.map_or(0.0, |max| f64::from(max[d]));
        if most > 0.0 && size[d] > most {
            let other = size[1 - d];
            size[1 - d] = if rounds { scaled(d, most)[1 - d] } else { (most * other / size[d]).trunc() };
            size[d] = most;
        }
    }
    if size.iter().any(|side| *side < 1.0 || side.fract() != 0.0 || *side > 1e9) {
        return Err(Error::invalid(format!(
            "{} (`arithmetic` is `{}`) has no images of {} x {} pixels, which {} x {} would become",
            arithmetic.library(),
            arithmetic.name(),
            size[0],
            size[1],
            extent[0],
            extent[1]
        )));
    }
    Ok(size.map(|side| side as usize))
}

/// The task that makes just a window of what `task` makes, mirrored (rows, columns).
///
/// # Errors
/// When the window leaves the resized image.
pub(in crate::ops) fn windowed(
    task: &Task,
    anchor: &[i64],
    extent: &[usize],
    mirror: [bool; 2],
) -> Result<Task> {
    let mut made = *task;
    for d in 0..2 {
        let end = |start: usize| start.checked_add(extent[d]).filter(|&end| end <= task.size[d]);
        let place = usize::try_from(anchor[d]).ok().and_then(|start| Some((start, end(start)?)));
        let Some((start, end)) = place else {
            return Err(Error::invalid(format!(
                "a window of {} pixels from {} on leaves the resized image of {} pixels: {} (`arithmetic` is `{}`) crops inside of it",
                extent[d],
                anchor[d],
                task.size[d],
                task.arithmetic.library(),
                task.arithmetic.name()
            )));
        };
        made.window[d] =
            if task.mirror[d] { (task.size[d] - end, task.size[d] - start) } else { (start, end) };
        made.mirror[d] = task.mirror[d] != mirror[d];
    }
    made.check()?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(arithmetic: Arithmetic, requested: [f64; 2], extent: [f64; 2], mode: Mode) -> [usize; 2] {
        size(arithmetic, requested, extent, mode, None).unwrap()
    }

    #[test]
    fn the_other_side_is_cut_or_rounded() {
        let extent = [375.0, 500.0];
        assert_eq!(made(Arithmetic::Torchvision, [256.0; 2], extent, Mode::NotSmaller), [256, 341]);
        assert_eq!(made(Arithmetic::Pillow, [0.0, 250.0], [333.0, 500.0], Mode::Default), [166, 250]);
        assert_eq!(made(Arithmetic::OpenCv, [640.0; 2], [427.0, 640.0], Mode::NotLarger), [427, 640]);
        assert_eq!(made(Arithmetic::OpenCv, [640.0; 2], [376.0, 501.0], Mode::NotLarger), [480, 640]);
        assert_eq!(made(Arithmetic::Pillow13, [0.0, 30.0], extent, Mode::Stretch), [375, 30]);
        assert_eq!(made(Arithmetic::Pillow13, [7.0, 30.0], extent, Mode::Default), [7, 30]);
    }

    #[test]
    fn the_longer_side_may_be_bounded() {
        let bounded =
            size(Arithmetic::Torchvision, [800.0; 2], [427.0, 1024.0], Mode::NotSmaller, Some([1333.0; 2]));
        assert_eq!(bounded.unwrap(), [555, 1333]);
    }

    #[test]
    fn sizes_of_0_and_of_parts_of_pixels_are_refused() {
        for requested in [[0.0, 1.0], [2.5, 9.0]] {
            let error =
                size(Arithmetic::Torchvision, requested, [10.0, 400.0], Mode::Default, None).unwrap_err();
            assert!(error.to_string().contains("torchvision (`arithmetic` is `torchvision`)"), "{error}");
        }
    }

    #[test]
    fn a_window_of_a_mirrored_image_is_taken_from_its_other_end() {
        let mut task = Task::whole(Arithmetic::Pillow, Filter::Linear, [20, 30], 3, [10, 10]);
        task.mirror = [false, true];
        let part = windowed(&task, &[0, 1], &[4, 3], [true, true]).unwrap();
        assert_eq!((part.window, part.mirror), ([(0, 4), (6, 9)], [true, false]));
        assert!(windowed(&task, &[0, 8], &[4, 3], [false; 2]).is_err());
        assert!(windowed(&task, &[-1, 0], &[4, 3], [false; 2]).is_err());
    }
}
