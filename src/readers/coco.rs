//! `readers.COCO`: images with the boxes, classes, polygons and masks of their objects.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::annotations::{Image, Images, Wanted, load};
use super::file::{read_file, strings};
use super::masks::Masks;
use super::stored::joined;
use super::{Dataset, ReaderDef, Tensor, annotations_saved, tensors};
use crate::error::{Error, Result};
use crate::memory::HostPool;
use crate::operator::{ArgSpec, Args};
use crate::tensor::{DType, Shape, ValueType};

/// The reader's line in [`super::READERS`].
pub(super) const DEF: ReaderDef = ReaderDef {
    name: "readers__COCO",
    aliases: &["COCOReader"],
    doc: "Images with the boxes and classes of their objects",
    args: &[
        ArgSpec::string("file_root", "folder of the images"),
        ArgSpec::string("annotations_file", "COCO's annotations, in JSON").or_string(""),
        ArgSpec::strings("images", "names of the images that are read, in this order").or_computed("all"),
        ArgSpec::bool("ltrb", "boxes are left, top, right, bottom; else left, top, width, height")
            .or_bool(false),
        ArgSpec::bool("ratio", "boxes are parts of the image's size").or_bool(false),
        ArgSpec::bool("skip_empty", "images without objects are left out").or_bool(false),
        ArgSpec::float("size_threshold", "objects that are smaller in width or height are left out")
            .or_float(0.1),
        ArgSpec::bool("include_iscrowd", "whether crowds are objects").or_bool(true),
        ArgSpec::bool("avoid_class_remapping", "classes as they are numbered, not from 1 on").or_bool(false),
        ArgSpec::bool("image_ids", "one more output: the image's number").or_bool(false),
        ArgSpec::bool("save_img_ids", "the older name of `image_ids`").or_bool(false),
        ArgSpec::bool("polygon_masks", "two more outputs: polygons of the objects, and their vertices")
            .or_bool(false),
        ArgSpec::bool("masks", "the older form of `polygon_masks`, which counts coordinates").or_bool(false),
        ArgSpec::bool("pixelwise_masks", "one more output: the class of each pixel").or_bool(false),
        ArgSpec::string("preprocessed_annotations", "folder of annotations that were saved").or_string(""),
        ArgSpec::bool("save_preprocessed_annotations", "annotations are saved").or_bool(false),
        ArgSpec::string("save_preprocessed_annotations_dir", "the folder that they are saved in")
            .or_string(""),
    ],
    outputs,
    open,
    undecoded: None,
    behind: None,
    shuffles_list: true,
};

/// Arguments for annotations in COCO's own file alone.
const OF_FILE: [&str; 4] = ["skip_empty", "ratio", "ltrb", "size_threshold"];

fn has_ids(args: &Args) -> Result<bool> {
    Ok(args.bool("image_ids")? || args.bool("save_img_ids")?)
}

fn has_polygons(args: &Args) -> Result<bool> {
    let [one, older] = [args.bool("polygon_masks")?, args.bool("masks")?];
    if one && older {
        return Err(Error::invalid(
            "`masks` and `polygon_masks` are mutually exclusive; `masks` is the deprecated one",
        ));
    }
    if (one || older) && args.bool("pixelwise_masks")? {
        return Err(Error::invalid("`pixelwise_masks` and `polygon_masks` are mutually exclusive"));
    }
    Ok(one || older)
}

fn outputs(args: &Args) -> Result<Vec<ValueType>> {
    let known = |dtype, dims: &[Option<usize>]| ValueType {
        dtype: Some(dtype),
        dims: Some(dims.to_vec()),
        layout: Some(Default::default()),
    };
    let mut types =
        vec![known(DType::U8, &[None]), known(DType::F32, &[None, Some(4)]), known(DType::I32, &[None])];
    if has_polygons(args)? {
        types.extend([known(DType::I32, &[None, Some(3)]), known(DType::F32, &[None, Some(2)])]);
    }
    types.extend(args.bool("pixelwise_masks")?.then(|| known(DType::I32, &[None, None, Some(1)])));
    types.extend(has_ids(args)?.then(|| known(DType::I32, &[Some(1)])));
    Ok(types)
}

fn open(args: &Args) -> Result<Box<dyn Dataset>> {
    let (path, saved) = (args.string("annotations_file")?, args.string("preprocessed_annotations")?);
    let wanted = Wanted {
        images: strings(args, "images").filter(|names| !names.is_empty()),
        threshold: args.float("size_threshold")?,
        has_crowds: args.bool("include_iscrowd")?,
        has_corners: args.bool("ltrb")?,
        is_ratio: args.bool("ratio")?,
        keeps_classes: args.bool("avoid_class_remapping")?,
        skips_empty: args.bool("skip_empty")?,
        has_polygons: has_polygons(args)?,
        has_pixels: args.bool("pixelwise_masks")?,
    };
    let mut found = if !saved.is_empty() {
        if let Some(name) = OF_FILE.iter().find(|name| args.has(name)) {
            return Err(Error::invalid(format!(
                "`{name}` cannot be given together with `preprocessed_annotations`: those are as they were saved"
            )));
        }
        annotations_saved::load(saved, &wanted)?
    } else if !path.is_empty() {
        load(path, &wanted)?
    } else {
        return Err(Error::invalid("`annotations_file` or `preprocessed_annotations` must be provided"));
    };
    if args.bool("save_preprocessed_annotations")? {
        let folder = args.string("save_preprocessed_annotations_dir")?;
        annotations_saved::save(folder, &found, &wanted, has_ids(args)?)?;
    }
    if args.bool("masks")? {
        for [_, first, end] in &mut found.polygons {
            (*first, *end) = (first.saturating_mul(2), end.saturating_mul(2));
        }
    }
    Ok(Box::new(Annotated {
        root: args.given_string("file_root")?.into_iter().collect(),
        found,
        has_polygons: wanted.has_polygons,
        has_pixels: wanted.has_pixels,
        has_ids: has_ids(args)?,
        is_ratio: wanted.is_ratio,
    }))
}

struct Annotated {
    root: PathBuf,
    found: Images,
    has_polygons: bool,
    has_pixels: bool,
    has_ids: bool,
    /// Vertices are parts of the image's size.
    is_ratio: bool,
}

impl Annotated {
    /// The class of each pixel of an image.
    fn pixels(&self, image: &Image, memory: &Arc<HostPool>) -> Result<Tensor> {
        let classes = self.classes(image);
        let classes =
            classes.map_err(|what| Error::invalid(format!("masks of the image `{}`: {what}", image.name)))?;
        let [width, height] = image.size.map(|side| side as usize);
        tensors::shaped(Shape::from([height, width, 1]), &classes, memory)
    }

    fn classes(&self, image: &Image) -> std::result::Result<Vec<i32>, String> {
        let mut masks = Masks::new(image.size)?;
        let scale = if self.is_ratio { image.size.map(|side| side as f32) } else { [1.0; 2] };
        let labels = self.found.labels.get(image.objects.clone()).unwrap_or_default();
        let class = |object: i32| {
            let label = usize::try_from(object).ok().and_then(|object| labels.get(object)).copied();
            label.ok_or_else(|| format!("a mask is of object {object}, expected one of {}", labels.len()))
        };
        let vertices = self.found.vertices.get(image.vertices.clone()).unwrap_or_default();
        for &[object, first, end] in self.found.polygons.get(image.polygons.clone()).unwrap_or_default() {
            let [Ok(begin), Ok(behind)] = [first, end].map(usize::try_from) else {
                return Err(format!("a polygon has the vertices {first} to {end}"));
            };
            let part = vertices.get(begin..behind).ok_or_else(|| {
                format!("a polygon has the vertices {first} to {end}, and there are {}", vertices.len())
            })?;
            let part: Vec<[f32; 2]> = part.iter().map(|[x, y]| [x * scale[0], y * scale[1]]).collect();
            masks.add_polygon(class(object)?, &part)?;
        }
        for runs in self.found.runs.get(image.runs.clone()).unwrap_or_default() {
            masks.set_runs(class(runs.object)?, &runs.counts)?;
        }
        masks.classes()
    }
}

impl Dataset for Annotated {
    fn count(&self) -> usize {
        self.found.images.len()
    }

    fn read(&self, index: usize, memory: &Arc<HostPool>) -> Result<Vec<Tensor>> {
        let Images { images, boxes, labels, polygons, vertices, .. } = &self.found;
        let image = images.get(index).ok_or_else(|| Error::internal("a sample that is not there"))?;
        let file = read_file(&joined(&self.root, Path::new(&image.name)), memory)?;
        let boxes = boxes.get(image.objects.clone()).unwrap_or_default();
        let mut made = vec![
            Tensor { source: image.name.clone(), ..file },
            tensors::shaped(Shape::from([boxes.len(), 4]), boxes.as_flattened(), memory)?,
            tensors::list(labels.get(image.objects.clone()).unwrap_or_default(), memory)?,
        ];
        if self.has_polygons {
            let polygons = polygons.get(image.polygons.clone()).unwrap_or_default();
            let vertices = vertices.get(image.vertices.clone()).unwrap_or_default();
            let (count, corners) = (polygons.len(), vertices.len());
            made.push(tensors::shaped(Shape::from([count, 3]), polygons.as_flattened(), memory)?);
            made.push(tensors::shaped(Shape::from([corners, 2]), vertices.as_flattened(), memory)?);
        }
        if self.has_pixels {
            made.push(self.pixels(image, memory)?);
        }
        if self.has_ids {
            made.push(tensors::list(&[image.id], memory)?);
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::operator::args::Value;

    /// A reader of the annotations `text`, in a folder of the test's own.
    fn opened(name: &str, text: &str, given: &[(&str, Value)]) -> Result<Box<dyn Dataset>> {
        let folder = std::env::temp_dir().join(format!("gesso-coco-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("all.json"), text).unwrap();
        std::fs::write(folder.join("a.jpg"), b"file").unwrap();
        let string = |text: String| Value::Strings(vec![text]);
        let mut values: BTreeMap<String, Value> = [
            ("file_root".to_owned(), string(folder.display().to_string())),
            ("annotations_file".to_owned(), string(folder.join("all.json").display().to_string())),
        ]
        .into();
        values.extend(given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let args = DEF.arguments(values);
        outputs(&args)?;
        open(&args)
    }

    const TEXT: &str = r#"{"info": {}, "categories": [{"id": 9, "name": "x"}, {"id": 4}],
        "images": [{"id": 7, "file_name": "../none", "width": 10, "height": 5}, {"id": 3, "file_name": "a.jpg", "width": 8, "height": 4}],
        "annotations": [
            {"image_id": 3, "category_id": 9, "bbox": [1, 1, 2, 2], "iscrowd": 0, "segmentation": [[1, 2, 3, 4, 5, 6]]},
            {"image_id": 3, "category_id": 4, "bbox": [4, 2, 4, 0.05], "segmentation": [[1, 1]]},
            {"image_id": 3, "category_id": 4, "bbox": [0, 0, 1, 1], "iscrowd": 1, "segmentation": {"counts": "52203", "size": [2, 2]}}]}"#;

    #[test]
    fn images_have_boxes_and_classes() {
        let on = |name| (name, Value::Bools(vec![true]));
        let flags =
            [on("ltrb"), on("ratio"), on("image_ids"), ("include_iscrowd", Value::Bools(vec![false]))];
        let dataset = opened("boxes", TEXT, &flags).unwrap();
        assert_eq!(dataset.count(), 2);
        let tensors = dataset.read(0, &Arc::default()).unwrap();
        assert_eq!((tensors[0].bytes.bytes(), tensors[0].source.as_str()), (&b"file"[..], "a.jpg"));
        assert_eq!(tensors[1].shape[..], [1, 4]);
        assert_eq!(bytemuck::cast_slice::<u8, f32>(tensors[1].bytes.bytes()), [0.125, 0.25, 0.375, 0.75]);
        assert_eq!(bytemuck::cast_slice::<u8, i32>(tensors[2].bytes.bytes()), [2]);
        assert_eq!(bytemuck::cast_slice::<u8, i32>(tensors[3].bytes.bytes()), [3]);
        let error = dataset.read(1, &Arc::default()).err().unwrap().to_string();
        assert!(error.contains("../none"), "{error}");

        let dataset = opened("boxes", TEXT, &[on("skip_empty"), on("avoid_class_remapping")]).unwrap();
        assert_eq!(dataset.count(), 1);
        let tensors = dataset.read(0, &Arc::default()).unwrap();
        assert_eq!(bytemuck::cast_slice::<u8, i32>(tensors[2].bytes.bytes()), [9, 4]);
        let names = Value::Strings(["x", "a.jpg", "a.jpg"].map(str::to_owned).to_vec());
        assert_eq!(opened("boxes", TEXT, &[("images", names)]).unwrap().count(), 2);
        for other in ["masks", "pixelwise_masks"] {
            let error = opened("boxes", TEXT, &[on("polygon_masks"), on(other)]).err().unwrap();
            assert!(error.to_string().contains("mutually exclusive"), "{error}");
        }
    }

    #[test]
    fn objects_have_polygons() {
        let on = |name| (name, Value::Bools(vec![true]));
        for (name, end) in [("polygon_masks", 3), ("masks", 6)] {
            let dataset = opened("polygons", TEXT, &[on(name), on("ratio"), on("image_ids")]).unwrap();
            let tensors = dataset.read(0, &Arc::default()).unwrap();
            assert_eq!((&tensors[3].shape[..], &tensors[4].shape[..]), (&[1, 3][..], &[3, 2][..]));
            assert_eq!(bytemuck::cast_slice::<u8, i32>(tensors[3].bytes.bytes()), [0, 0, end]);
            let corners = bytemuck::cast_slice::<u8, f32>(tensors[4].bytes.bytes());
            assert_eq!(corners, [0.125, 0.5, 0.375, 1.0, 0.625, 1.5]);
            assert_eq!(tensors.len(), 6);
        }
        let odd = TEXT.replace("[[1, 2, 3, 4, 5, 6]]", "[[1, 2, 3]]");
        let error = opened("polygons", &odd, &[on("masks")]).err().unwrap().to_string();
        assert!(error.contains("a polygon of 3 numbers"), "{error}");
        assert!(opened("polygons", &odd, &[]).is_ok());
    }

    #[test]
    fn annotations_that_are_wrong_are_errors() {
        let image = r#""images": [{"id": 1, "file_name": "a.jpg", "width": 1, "height": 1}]"#;
        for text in [
            String::new(),
            "[".repeat(100_000),
            "{}".to_owned(),
            r#"{"images": [{"id": 1}]}"#.to_owned(),
            r#"{"images": [{"id": 9223372036854775808, "file_name": "a", "width": 1, "height": 1}]}"#
                .to_owned(),
            r#"{"images": [{"id": 9223372036854775807, "file_name": "a", "width": 1, "height": 1}]}"#
                .to_owned(),
            format!(
                r#"{{{image}, "annotations": [{{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3]}}]}}"#
            ),
            format!(
                r#"{{{image}, "annotations": [{{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}}]}}"#
            ),
        ] {
            let error = opened("wrong", &text, &[]).err().unwrap().to_string();
            assert!(error.contains("all.json"), "{error}");
        }
        let open = |text: &str| opened("wrong", text, &[]);
        assert_eq!(open(&format!("{{{image}}}")).unwrap().count(), 1);
        assert_eq!(open(r#"{"images": []}"#).unwrap().count(), 0);
    }
}
