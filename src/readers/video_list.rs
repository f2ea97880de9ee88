//! Which video files there are, and which part of each is wanted. It must not know sequences.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::pattern::Filter;
use super::{file, list};
use crate::cpu::video::Video;
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::Args;

/// A video file.
pub(super) struct Listed {
    pub(super) path: PathBuf,
    pub(super) label: i32,
    /// Where the wanted part begins and ends, as the list says it.
    start: Option<f32>,
    end: Option<f32>,
}

/// What the numbers of a list are.
#[derive(Clone, Copy)]
pub(super) enum Bounds {
    /// As the older reader takes them.
    Seconds(Rounding),
    /// Seconds that are rounded to the unit of the video's times first, towards 0; those before its first frame mean
    /// that.
    Units(Rounding),
    /// Numbers of frames; negative ones count from the end.
    Frames(Rounding),
}

/// Which way a number between two frames goes.
#[derive(Clone, Copy)]
pub(super) struct Rounding {
    pub(super) start_up: bool,
    pub(super) end_up: bool,
}

impl Rounding {
    /// The one that DALI calls so.
    pub(super) fn new(name: &str) -> Result<Self> {
        let (start_up, end_up) = match name {
            "start_down_end_up" => (false, true),
            "start_up_end_down" => (true, false),
            "all_up" => (true, true),
            "all_down" => (false, false),
            other => {
                return Err(Error::invalid(format!(
                    "argument `file_list_rounding` is `{other}`, expected `start_down_end_up`, `start_up_end_down`, `all_up` or \
                     `all_down`"
                )));
            }
        };
        Ok(Self { start_up, end_up })
    }
}

/// Whether the arguments give labels.
pub(super) fn has_labels(args: &Args) -> bool {
    let given = |name| args.given_string(name).ok().flatten().is_some_and(|text: &str| !text.is_empty());
    given("file_list") || given("file_root") || args.has("labels")
}

/// The folder of folders that the arguments name, if they do.
///
/// # Errors
/// One that is no text.
pub(super) fn root(args: &Args) -> Result<Option<&str>> {
    Ok(args.given_string("file_root")?.filter(|root| !root.is_empty()))
}

/// The files that the arguments name. An empty list of labels may stand for 0, 1, 2 and so on.
///
/// # Errors
/// Two ways to name them, or none; what is wrong with a list or a folder.
pub(super) fn listed(args: &Args, counts_labels: bool) -> Result<Vec<Listed>> {
    let text = |name| Ok::<_, Error>(args.given_string(name)?.filter(|text| !text.is_empty()));
    let given = file::strings(args, "filenames").filter(|names| !names.is_empty());
    let (root, list) = (root(args)?, text("file_list")?);
    let labels = args.given_ints("labels")?;
    let beside = labels.as_deref().filter(|labels| given.is_none() && !labels.is_empty());
    if let (Some(labels), Some(_)) = (beside, root.or(list)) {
        let source = if root.is_some() { "`file_root`" } else { "`file_list`" };
        return Err(Error::invalid(format!(
            "{} `labels` beside {source}, which has labels of its own, expected them beside `filenames`",
            labels.len()
        )));
    }
    match (given, root, list) {
        (Some(names), None, None) => {
            let labels = match labels {
                None => vec![0; names.len()],
                Some(labels) if labels.is_empty() && counts_labels => (0..names.len() as i64).collect(),
                Some(labels) => labels,
            };
            if labels.len() != names.len() {
                return Err(Error::invalid(format!(
                    "{} `labels` for {} `filenames`",
                    labels.len(),
                    names.len()
                )));
            }
            let whole = |(name, label): (String, i64)| {
                let label = i32::try_from(label).map_err(|_| {
                    Error::invalid(format!(
                        "one of `labels` is {label}, expected {} to {}",
                        i32::MIN,
                        i32::MAX
                    ))
                })?;
                Ok(Listed::whole(PathBuf::from(name), label))
            };
            names.into_iter().zip(labels).map(whole).collect()
        }
        (None, Some(root), None) => {
            let root = Path::new(root);
            let found = list::in_folders(root, &Filter::all(), None)?;
            Ok(found.into_iter().map(|(path, label)| Listed::whole(root.join(path), label)).collect())
        }
        (None, None, Some(list)) => of_list(Path::new(list)),
        _ => Err(Error::invalid("expected one of `filenames`, `file_root` and `file_list`")),
    }
}

/// Each line `path label [start [end]]` of a text file. Paths are relative to the folder that the program runs in.
fn of_list(list: &Path) -> Result<Vec<Listed>> {
    let text = std::fs::read_to_string(list)
        .map_err(|error| Error::not_found(format!("the list `{}`: {error}", list.display())))?;
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bound = |word: &str| word.parse::<f32>().ok().filter(|value| value.is_finite());
        let parsed = match *words.as_slice() {
            [path, label] => label.parse().ok().map(|label| Listed::whole(PathBuf::from(path), label)),
            [path, label, start] => label.parse().ok().zip(bound(start)).map(|(label, start)| Listed {
                start: Some(start),
                ..Listed::whole(PathBuf::from(path), label)
            }),
            [path, label, start, end] => {
                label.parse().ok().zip(bound(start)).zip(bound(end)).map(|((label, start), end)| Listed {
                    start: Some(start),
                    end: Some(end),
                    ..Listed::whole(PathBuf::from(path), label)
                })
            }
            _ => None,
        };
        let parsed = parsed.filter(|entry| entry.label >= 0).ok_or_else(|| {
            Error::invalid(format!(
                "line {} of `{}`: expected `path label [start [end]]`, with a label of 0 or more",
                number + 1,
                list.display()
            ))
        })?;
        if found.len() >= limits::MAX_DATASET_SAMPLES {
            return Err(Error::invalid(format!("more than {} videos", limits::MAX_DATASET_SAMPLES)));
        }
        found.push(parsed);
    }
    Ok(found)
}

impl Listed {
    fn whole(path: PathBuf, label: i32) -> Self {
        Self { path, label, start: None, end: None }
    }

    /// The frames of `video` that are wanted; what lies behind its end does not count.
    ///
    /// # Errors
    /// A part that begins before the video.
    pub(super) fn range(&self, video: &Video<'_>, bounds: Bounds) -> Result<Range<usize>> {
        let count = video.frames();
        let place = |bound: f32, up| match bounds {
            Bounds::Frames(_) => frame(bound, count, up),
            Bounds::Seconds(_) => match f64::from(bound) {
                0.0.. => Ok(at(bound.into(), video, up)),
                _ => Err(Error::invalid(format!("{bound} seconds lie before its first frame"))),
            },
            Bounds::Units(_) => Ok(at(video.in_units(bound.into()), video, up)),
        };
        if self.start.is_some() && self.start == self.end {
            return Ok(0..0);
        }
        let (Bounds::Frames(rounding) | Bounds::Seconds(rounding) | Bounds::Units(rounding)) = bounds;
        let start = self.start.map_or(Ok(0), |start| place(start, rounding.start_up))?;
        let end = self.end.map_or(Ok(count), |end| place(end, rounding.end_up))?.min(count);
        Ok(start.min(end)..end)
    }
}

/// The frame of this number, from the end where it is negative.
fn frame(bound: f32, count: usize, up: bool) -> Result<usize> {
    let whole = if up { bound.ceil() } else { bound.floor() } as i64;
    let frame = if whole < 0 { whole + count as i64 } else { whole };
    usize::try_from(frame)
        .map_err(|_| Error::invalid(format!("frame {bound} lies before the first of its {count} frames")))
}

/// The frame that is shown at `seconds`, or, where that is between two, the one before or behind.
fn at(seconds: f64, video: &Video<'_>, up: bool) -> usize {
    let count = video.frames();
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if video.seconds(middle) < seconds { low = middle + 1 } else { high = middle }
    }
    // `low` is the first frame that is not shown before.
    let is_exact = low < count && video.seconds(low) <= seconds;
    if up || is_exact || low == count { low } else { low.saturating_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list with this text, which is gone with the test's process.
    fn of_text(name: &str, text: &str) -> Result<Vec<Listed>> {
        let path = std::env::temp_dir().join(format!("gesso-video-list-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        let found = of_list(&path);
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn a_line_names_a_file_its_label_and_a_part() {
        let found = of_text("good", "a.mp4 3\n\n b.mp4 0 1.5 \nc.mp4 7 -4 9\n").unwrap();
        let found: Vec<_> = found.iter().map(|listed| (listed.label, listed.start, listed.end)).collect();
        assert_eq!(found, [(3, None, None), (0, Some(1.5), None), (7, Some(-4.0), Some(9.0))]);
    }

    #[test]
    fn another_line_is_an_error_that_says_which() {
        for (i, line) in
            ["a.mp4", "a.mp4 x", "a.mp4 -1", "a.mp4 1 x", "a.mp4 1 2 inf", "a.mp4 1 2 3 4"].iter().enumerate()
        {
            let error = of_text(&i.to_string(), &format!("a.mp4 1\n{line}\n")).err().unwrap();
            assert!(error.to_string().contains("line 2 of"), "{error}");
        }
        let missing = of_list(Path::new("/nowhere/list")).err().unwrap();
        assert!(missing.to_string().contains("the list `/nowhere/list`"), "{missing}");
    }

    #[test]
    fn roundings_have_names() {
        let ways = ["start_down_end_up", "start_up_end_down", "all_up", "all_down"];
        let found = ways.map(|name| Rounding::new(name).map(|way| (way.start_up, way.end_up)).unwrap());
        assert_eq!(found, [(false, true), (true, false), (true, true), (false, false)]);
        assert!(Rounding::new("up").is_err());
    }

    #[test]
    fn seconds_are_rounded_to_the_unit_of_a_videos_times() {
        // Of raw streams, which say no times: 25 frames a second, in FFmpeg's units of 1 / 1,200,000 of a second.
        let clip = format!("{}/tests/data/video/h264.h264", env!("CARGO_MANIFEST_DIR"));
        let video = Video::open(std::fs::read(clip).unwrap()).unwrap();
        let range = |part: &str, rounding: &str| {
            let listed = of_text(&format!("units-{part}-{rounding}"), &format!("a.h264 1 {part}")).unwrap();
            listed[0].range(&video, Bounds::Units(Rounding::new(rounding).unwrap())).unwrap()
        };
        assert_eq!(range("0.04 0.2", "all_up"), 1..5);
        assert_eq!(range("0 0.19", "all_up"), 0..5);
        assert_eq!(range("0.05 0.19", "all_down"), 1..4);
        assert_eq!(range("-0.1 0.28", "start_down_end_up"), 0..7);
        assert_eq!(video.in_units(f64::from(0.2_f32)), 0.2);
    }

    #[test]
    fn numbers_of_frames_are_rounded_and_counted_from_the_end() {
        assert_eq!(frame(2.5, 12, false).unwrap(), 2);
        assert_eq!(frame(2.5, 12, true).unwrap(), 3);
        assert_eq!(frame(-4.0, 12, false).unwrap(), 8);
        assert!(frame(-20.0, 12, false).unwrap_err().to_string().contains("frame -20"));
    }
}
