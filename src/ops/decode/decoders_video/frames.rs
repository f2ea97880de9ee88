//! Which frames of a video are asked for: from arguments and the number of frames to a frame, or none, for each place
//! of the output. It must not know how frames are decoded.

use crate::cpu::video::Padding;
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, Args, SampleInputs};
use crate::tensor::ValueType;

/// The arguments that are read here.
pub(super) const ARGS: &[ArgSpec] = &[
    ArgSpec::ints("frames", "the frames, in any order; not together with `start_frame`, `end_frame`, `stride` or `sequence_length`").tensor(),
    ArgSpec::int("start_frame", "the first frame").tensor().or_int(0),
    ArgSpec::int("end_frame", "the frame behind the last one; not together with `sequence_length`").tensor(),
    ArgSpec::int("stride", "from a frame to the next one").tensor().or_int(1),
    ArgSpec::int("sequence_length", "how many frames; all that follow if neither it nor `end_frame` is given").tensor(),
    ArgSpec::string("pad_mode", "what stands for frames that the video does not have: `none`: nothing, the sequence is shorter; `constant`: `fill_value`; `edge` or `repeat`: the last frame; `reflect_1001` or `symmetric`, `reflect_101` or `reflect`: frames backwards, with or without the last one again").or_string("constant"),
];

/// The frames that are asked for.
pub(super) struct Frames {
    listed: Option<Arg>,
    /// Which of the argument inputs they are listed by, and how many that lists, if that is known.
    input: Option<usize>,
    count: Option<usize>,
    start: Arg,
    end: Option<Arg>,
    stride: Arg,
    length: Option<Arg>,
    padding: Padding,
}

impl Frames {
    /// Reads [`ARGS`].
    ///
    /// # Errors
    /// Arguments that exclude one another.
    pub(super) fn new(args: &Args) -> Result<Self> {
        let range = ["start_frame", "end_frame", "stride", "sequence_length"];
        if let (true, Some(other)) = (args.has("frames"), range.iter().find(|name| args.has(name))) {
            return Err(Error::invalid(format!(
                "both `frames` and `{other}` are given, expected one of them"
            )));
        }
        if args.has("end_frame") && args.has("sequence_length") {
            return Err(Error::invalid(
                "both `end_frame` and `sequence_length` are given, expected one of them",
            ));
        }
        Ok(Self {
            listed: args.given_arg("frames")?,
            input: args.tensor("frames"),
            count: None,
            start: args.arg("start_frame")?,
            end: args.given_arg("end_frame")?,
            stride: args.arg("stride")?,
            length: args.given_arg("sequence_length")?,
            padding: Padding::new(args.string("pad_mode")?)?,
        })
    }

    /// Takes in what is known of the argument inputs at load.
    pub(super) fn infer_arguments(&mut self, arguments: &[ValueType]) {
        let dims = self.input.and_then(|input| arguments.get(input)?.dims.as_deref());
        if let Some([count]) = dims {
            self.count = *count;
        }
    }

    /// What stands for frames that the video does not have.
    pub(super) fn padding(&self) -> Padding {
        self.padding
    }

    /// How many frames an output has, where every sample has the same number.
    pub(super) fn known(&self) -> Option<usize> {
        if let Some(listed) = &self.listed {
            return listed.known().map(<[f64]>::len).or(self.count);
        }
        match self.length.as_ref()?.known()? {
            [length] if self.padding != Padding::None && *length >= 0.0 => Some(*length as usize),
            _ => None,
        }
    }

    /// The frame of a video of `count` frames for each place of the output, at most `most`; `None` stands for the fill
    /// value.
    ///
    /// # Errors
    /// Arguments that name no frames, or more than `most`.
    pub(super) fn choose(
        &self,
        sample: &SampleInputs<'_>,
        count: usize,
        most: usize,
    ) -> Result<Vec<Option<usize>>> {
        let too_many = |length: i64| {
            Error::invalid(format!(
                "{length} frames of a video make a sample larger than the limit, which are {most}"
            ))
        };
        if let Some(listed) = &self.listed {
            let listed = listed.ints(sample)?;
            if listed.len() > most {
                return Err(too_many(listed.len() as i64));
            }
            return listed.into_iter().map(|frame| self.padding.frame(frame, count)).collect();
        }
        let (start, stride) = (self.start.int(sample)?, self.stride.int(sample)?);
        if stride < 1 {
            return Err(Error::invalid(format!("argument `stride` is {stride}, expected 1 or more")));
        }
        if start >= count as i64 {
            return Err(Error::invalid(format!(
                "argument `start_frame` is {start}, but the video has {count} frames"
            )));
        }
        let up_to = |end: i64| (end.saturating_sub(start)).saturating_add(stride - 1) / stride;
        let mut length = match (&self.length, &self.end) {
            (Some(length), _) => length.int(sample)?,
            (None, Some(end)) => {
                let end = end.int(sample)?;
                if end <= start {
                    return Err(Error::invalid(format!(
                        "argument `end_frame` is {end}, expected more than `start_frame`, which is {start}"
                    )));
                }
                up_to(end)
            }
            (None, None) => up_to(count as i64),
        };
        if length < 0 {
            return Err(Error::invalid(format!(
                "argument `sequence_length` is {length}, expected 0 or more"
            )));
        }
        if self.padding == Padding::None {
            length = length.min(up_to(count as i64));
        }
        if usize::try_from(length).map_or(true, |length| length > most) {
            return Err(too_many(length));
        }
        (0..length)
            .map(|i| self.padding.frame(start.saturating_add(i.saturating_mul(stride)), count))
            .collect()
    }
}
