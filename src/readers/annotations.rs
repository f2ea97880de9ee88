//! COCO's annotation files (`instances.json`) as images with their objects. It must not know readers.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::masks;
use super::pieces::text;
use crate::error::{Error, Layer, Result};
use crate::limits;

/// COCO's file. What of a shape is kept, `S` says.
#[derive(Deserialize)]
struct Content<S> {
    images: Vec<Info>,
    #[serde(default = "Vec::new")]
    annotations: Vec<Annotation<S>>,
    #[serde(default)]
    categories: Vec<Category>,
}

#[derive(Deserialize, Clone)]
struct Info {
    id: i64,
    file_name: String,
    width: f64,
    height: f64,
}

#[derive(Deserialize)]
struct Annotation<S> {
    image_id: i64,
    category_id: i64,
    bbox: [f64; 4],
    #[serde(default)]
    iscrowd: Option<Crowd>,
    #[serde(default = "none")]
    segmentation: Option<S>,
}

fn none<S>() -> Option<S> {
    None
}

#[derive(Deserialize)]
struct Category {
    id: i64,
}

/// Whether an object is a crowd: a truth value, or 0 and 1.
#[derive(Deserialize, Clone, Copy)]
#[serde(untagged)]
enum Crowd {
    Flag(bool),
    Number(f64),
}

/// Polygons, each a list of x and y in turn; or runs of pixels.
#[derive(Deserialize)]
#[serde(untagged)]
enum Shape {
    Polygons(Vec<Vec<f64>>),
    Runs { counts: Counts },
}

/// How long runs of pixels are, outside and inside in turn.
#[derive(Deserialize)]
#[serde(untagged)]
enum Counts {
    Numbers(Vec<u32>),
    Text(String),
    Other(IgnoredAny),
}

impl Counts {
    fn numbers(&self) -> std::result::Result<Cow<'_, [u32]>, String> {
        match self {
            Self::Numbers(numbers) => Ok(Cow::Borrowed(numbers)),
            Self::Text(text) => masks::runs_of_text(text).map(Cow::Owned),
            Self::Other(_) => {
                Err("the runs of a mask are neither whole numbers of 32 bits nor a text".to_owned())
            }
        }
    }
}

/// The parts of a shape, where these are kept.
trait Parts: DeserializeOwned {
    fn polygons(&self) -> &[Vec<f64>];
    fn runs(&self) -> Option<&Counts>;
}

impl Parts for IgnoredAny {
    fn polygons(&self) -> &[Vec<f64>] {
        &[]
    }

    fn runs(&self) -> Option<&Counts> {
        None
    }
}

impl Parts for Shape {
    fn polygons(&self) -> &[Vec<f64>] {
        if let Self::Polygons(polygons) = self { polygons } else { &[] }
    }

    fn runs(&self) -> Option<&Counts> {
        if let Self::Runs { counts } = self { Some(counts) } else { None }
    }
}

/// What of the annotations is wanted, and how.
pub(super) struct Wanted {
    /// Names of the images, in order; `None`: all, in the order of their numbers.
    pub(super) images: Option<Vec<String>>,
    /// Objects of a smaller width or height are left out.
    pub(super) threshold: f32,
    pub(super) has_crowds: bool,
    /// Boxes are left, top, right, bottom; else left, top, width, height.
    pub(super) has_corners: bool,
    /// Boxes and vertices are parts of the image's size.
    pub(super) is_ratio: bool,
    /// Classes are numbered as in the file, not from 1 on.
    pub(super) keeps_classes: bool,
    pub(super) skips_empty: bool,
    pub(super) has_polygons: bool,
    /// Masks of pixels are made of polygons and of runs.
    pub(super) has_pixels: bool,
}

/// An image, and where its objects and their parts are among all.
#[derive(Default)]
pub(super) struct Image {
    pub(super) name: String,
    pub(super) id: i32,
    /// Width and height; none where no masks of pixels are made.
    pub(super) size: [u32; 2],
    pub(super) objects: Range<usize>,
    pub(super) polygons: Range<usize>,
    pub(super) vertices: Range<usize>,
    pub(super) runs: Range<usize>,
}

/// Images and their objects, one behind the other.
#[derive(Default)]
pub(super) struct Images {
    pub(super) images: Vec<Image>,
    pub(super) boxes: Vec<[f32; 4]>,
    pub(super) labels: Vec<i32>,
    /// The object's number in its image, the first vertex and the one behind the last among those of the image.
    pub(super) polygons: Vec<[i32; 3]>,
    pub(super) vertices: Vec<[f32; 2]>,
    pub(super) runs: Vec<Runs>,
}

/// A mask as runs of pixels.
pub(super) struct Runs {
    /// The object's number in its image.
    pub(super) object: i32,
    /// Pixels outside and inside in turn, column after column.
    pub(super) counts: Vec<u32>,
}

/// What the file at `path` says of the images that are wanted.
///
/// # Errors
/// A file that cannot be read, is not as COCO's are, or has numbers that do not fit.
pub(super) fn load(path: &str, wanted: &Wanted) -> Result<Images> {
    let text = text(path)?;
    let loaded = match wanted.has_polygons || wanted.has_pixels {
        true => parsed::<Shape>(&text, wanted),
        false => parsed::<IgnoredAny>(&text, wanted),
    };
    loaded.map_err(|what| Error::invalid(what).context(Layer::File(path.to_owned())))
}

/// The same of a text, or what is wrong with it.
fn parsed<S: Parts>(text: &str, wanted: &Wanted) -> std::result::Result<Images, String> {
    let content: Content<S> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let Content { mut images, annotations, categories } = content;
    let mut kinds: Vec<i64> = categories.iter().map(|category| category.id).collect();
    kinds.sort_unstable();
    let class = |(kind, class): (i64, i64)| (kind, if wanted.keeps_classes { kind } else { class });
    let classes: BTreeMap<i64, i64> = kinds.into_iter().zip(1..).map(class).collect();
    images.sort_by_key(|info| info.id);
    if let Some(names) = &wanted.images {
        let by_name: HashMap<&str, &Info> =
            images.iter().map(|info| (info.file_name.as_str(), info)).collect();
        images = names.iter().filter_map(|name| by_name.get(name.as_str())).copied().cloned().collect();
    }
    if images.len() > limits::MAX_DATASET_SAMPLES {
        return Err(format!("more than {} images", limits::MAX_DATASET_SAMPLES));
    }
    let mut by_image: HashMap<i64, Vec<Annotation<S>>> = HashMap::new();
    for annotation in annotations {
        by_image.entry(annotation.image_id).or_default().push(annotation);
    }
    let mut found = Images::default();
    for info in images {
        let objects = by_image.get(&info.id).map_or(&[][..], Vec::as_slice);
        found.add(info, objects, &classes, wanted)?;
    }
    Ok(found)
}

impl Wanted {
    fn keeps<S>(&self, annotation: &Annotation<S>) -> bool {
        let [_, _, width, height] = annotation.bbox.map(|number| number as f32);
        let is_crowd = match annotation.iscrowd {
            None => false,
            Some(Crowd::Flag(flag)) => flag,
            Some(Crowd::Number(number)) => number != 0.0,
        };
        width >= self.threshold && height >= self.threshold && (self.has_crowds || !is_crowd)
    }

    /// A box as it is given, of an image of this size.
    fn made(&self, given: [f64; 4], [width, height]: [f32; 2]) -> [f32; 4] {
        let [left, top, mut right, mut bottom] = given.map(|number| number as f32);
        if self.has_corners {
            (right, bottom) = (right + left, bottom + top);
        }
        [left / width, top / height, right / width, bottom / height]
    }
}

impl Images {
    /// Adds an image and its objects, or says what is wrong with them.
    fn add<S: Parts>(
        &mut self,
        info: Info,
        objects: &[Annotation<S>],
        classes: &BTreeMap<i64, i64>,
        wanted: &Wanted,
    ) -> std::result::Result<(), String> {
        let size = if wanted.is_ratio { [info.width as f32, info.height as f32] } else { [1.0; 2] };
        let (first, polygons, vertices) = (self.boxes.len(), self.polygons.len(), self.vertices.len());
        let runs = self.runs.len();
        for object in objects.iter().filter(|object| wanted.keeps(object)) {
            let kind = object.category_id;
            let class = classes.get(&kind).and_then(|&class| i32::try_from(class).ok());
            self.labels.push(class.ok_or_else(|| format!("an object is of the unknown category {kind}"))?);
            self.boxes.push(wanted.made(object.bbox, size));
            let number = self.boxes.len() - first - 1;
            for polygon in object.segmentation.iter().flat_map(Parts::polygons) {
                let begin = self.vertices.len() - vertices;
                let (points, rest) = polygon.as_chunks::<2>();
                if !rest.is_empty() {
                    return Err(format!("a polygon of {} numbers, expected x and y in turn", polygon.len()));
                }
                self.vertices.extend(points.iter().map(|&[x, y]| [x as f32 / size[0], y as f32 / size[1]]));
                let places = [number, begin, self.vertices.len() - vertices].map(i32::try_from);
                let [Ok(number), Ok(begin), Ok(end)] = places else {
                    return Err("an image has more vertices than 32 bits can count".to_owned());
                };
                self.polygons.push([number, begin, end]);
            }
            if let (true, Some(counts)) =
                (wanted.has_pixels, object.segmentation.as_ref().and_then(Parts::runs))
            {
                let number = i32::try_from(number).map_err(|_| "an image has too many objects".to_owned())?;
                self.runs.push(Runs { object: number, counts: counts.numbers()?.into_owned() });
            }
        }
        if wanted.skips_empty && self.boxes.len() == first {
            return Ok(());
        }
        let id = i32::try_from(info.id)
            .map_err(|_| format!("an image has the number {}, expected 32 bits", info.id))?;
        self.images.push(Image {
            name: info.file_name,
            id,
            size: if wanted.has_pixels { whole([info.width, info.height])? } else { [0; 2] },
            objects: first..self.boxes.len(),
            polygons: polygons..self.polygons.len(),
            vertices: vertices..self.vertices.len(),
            runs: runs..self.runs.len(),
        });
        Ok(())
    }
}

/// The size of an image, whose pixels are counted.
fn whole(size: [f64; 2]) -> std::result::Result<[u32; 2], String> {
    let is_size =
        |&number: &f64| number.fract() == 0.0 && (0.0..=limits::MAX_IMAGE_SIDE as f64).contains(&number);
    if size.iter().all(is_size) {
        return Ok(size.map(|number| number as u32));
    }
    let [width, height] = size;
    Err(format!(
        "an image of {width} x {height} pixels, expected whole numbers up to {}",
        limits::MAX_IMAGE_SIDE
    ))
}
