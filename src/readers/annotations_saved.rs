//! Annotations that were read once and saved as tables, in DALI's format. A file is one table: the number of its rows
//! (32 bits; of boxes that of numbers), then the rows. A table without rows has no file. What belongs to an image, an
//! offset and a count say. It must not know readers.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use bytemuck::Pod;

use super::annotations::{Image, Images, Runs, Wanted};
use super::pieces::open_file;
use crate::error::{Error, Layer, Result};
use crate::limits;

const NAMES: &str = "filenames.dat";
const IDS: &str = "original_ids.dat";
const BOXES: &str = "boxes.dat";
const LABELS: &str = "labels.dat";
const OBJECTS: [&str; 2] = ["offsets.dat", "counts.dat"];
const POLYGONS: [&str; 3] = ["polygon_data.dat", "polygon_offset.dat", "polygons_count.dat"];
const VERTICES: [&str; 3] = ["vertices.dat", "vertices_offset.dat", "vertices_count.dat"];
const SIZES: [&str; 2] = ["widths.dat", "heights.dat"];
/// The object of each mask of runs.
const MASKS: [&str; 3] = ["masks_rles_idx.dat", "masks_offset.dat", "mask_count.dat"];
/// The masks: height, width and number of runs (64 bits each), and the runs (32 bits).
const RUNS: &str = "masks_rles.dat";

/// Writes tables of `found`; those of masks as `wanted`, numbers of images if `has_ids`.
///
/// # Errors
/// No folder; what cannot be written, or counted with 32 bits.
pub(super) fn save(folder: &str, found: &Images, wanted: &Wanted, has_ids: bool) -> Result<()> {
    if folder.is_empty() {
        return Err(Error::invalid(
            "`save_preprocessed_annotations` needs `save_preprocessed_annotations_dir`",
        ));
    }
    let written = Writer { folder: folder.into() }.save(found, wanted, has_ids);
    written.map_err(|error| {
        Error::invalid(format!("Could not write the preprocessed annotations {folder}: {error}"))
    })
}

/// Puts tables into a folder.
struct Writer {
    folder: PathBuf,
}

impl Writer {
    fn save(&self, found: &Images, wanted: &Wanted, has_ids: bool) -> std::io::Result<()> {
        let images = &found.images;
        let mut names = self.file(NAMES)?;
        images.iter().try_for_each(|image| writeln!(names, "{}", image.name))?;
        names.flush()?;
        if has_ids {
            self.column(IDS, images, |image| image.id)?;
        }
        self.table(BOXES, 4 * found.boxes.len(), &found.boxes)?;
        self.table(LABELS, found.labels.len(), &found.labels)?;
        self.column(OBJECTS[0], images, |image| image.objects.start as i32)?;
        self.column(OBJECTS[1], images, |image| image.objects.len() as i32)?;
        if wanted.has_pixels || wanted.has_polygons {
            let [polygons, vertices] = [POLYGONS, VERTICES];
            self.table(polygons[0], found.polygons.len(), &found.polygons)?;
            self.parts(polygons, images, |image| &image.polygons)?;
            self.table(vertices[0], found.vertices.len(), &found.vertices)?;
            self.parts(vertices, images, |image| &image.vertices)?;
        }
        if wanted.has_pixels {
            self.column(SIZES[0], images, |image| image.size[0])?;
            self.column(SIZES[1], images, |image| image.size[1])?;
            let objects: Vec<i32> = found.runs.iter().map(|runs| runs.object).collect();
            self.table(MASKS[0], objects.len(), &objects)?;
            self.parts(MASKS, images, |image| &image.runs)?;
            self.runs(found)?;
        }
        Ok(())
    }

    fn file(&self, name: &str) -> std::io::Result<BufWriter<File>> {
        Ok(BufWriter::new(File::create(self.folder.join(name))?))
    }

    fn table<T: Pod>(&self, name: &str, count: usize, rows: &[T]) -> std::io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut file = self.file(name)?;
        file.write_all(&counted(count)?)?;
        file.write_all(bytemuck::cast_slice(rows))?;
        file.flush()
    }

    /// A table of one number for each image.
    fn column<T: Pod>(&self, name: &str, images: &[Image], of: impl Fn(&Image) -> T) -> std::io::Result<()> {
        self.table(name, images.len(), &images.iter().map(of).collect::<Vec<T>>())
    }

    /// Where the rows of each image are among those of all.
    fn parts(
        &self,
        [_, offsets, counts]: [&str; 3],
        images: &[Image],
        of: impl Fn(&Image) -> &Range<usize>,
    ) -> std::io::Result<()> {
        self.column(offsets, images, |image| of(image).start as i64)?;
        self.column(counts, images, |image| of(image).len() as i64)
    }

    fn runs(&self, found: &Images) -> std::io::Result<()> {
        if found.runs.is_empty() {
            return Ok(());
        }
        let mut file = self.file(RUNS)?;
        file.write_all(&counted(found.runs.len())?)?;
        for image in &found.images {
            let [width, height] = image.size.map(u64::from);
            for runs in found.runs.get(image.runs.clone()).unwrap_or_default() {
                file.write_all(bytemuck::cast_slice(&[height, width, runs.counts.len() as u64]))?;
                file.write_all(bytemuck::cast_slice(&runs.counts))?;
            }
        }
        file.flush()
    }
}

/// The number that a table begins with.
fn counted(count: usize) -> std::io::Result<[u8; 4]> {
    let count = i32::try_from(count).map_err(|_| std::io::Error::other("more rows than 31 bits count"))?;
    Ok(count.to_le_bytes())
}

/// The images of tables that [`save`] wrote, or DALI.
///
/// # Errors
/// Tables that cannot be read, or that do not fit one another.
pub(super) fn load(folder: &str, wanted: &Wanted) -> Result<Images> {
    let tables = Tables { folder: folder.into() };
    let names = String::from_utf8(tables.content(NAMES)?)
        .map_err(|_| tables.wrong(NAMES, "it is no text, expected UTF-8"))?;
    let named = |name: &str| Image { name: name.to_owned(), ..Default::default() };
    let mut found = Images { images: names.lines().map(named).collect(), ..Default::default() };
    let count = found.images.len();
    if count > limits::MAX_DATASET_SAMPLES {
        return Err(tables.wrong(NAMES, &format!("more than {} images", limits::MAX_DATASET_SAMPLES)));
    }
    let ids = if tables.has(IDS) { tables.of_images(IDS, count)? } else { (0..count as i32).collect() };
    let [offsets, counts] = OBJECTS.map(|name| tables.of_images::<i32>(name, count));
    let (offsets, counts) = (offsets?, counts?);
    found.boxes = tables.table(BOXES, 4)?;
    found.labels = tables.table(LABELS, 1)?;
    let rows = found.boxes.len().min(found.labels.len());
    let objects = ranges(&offsets, &counts, rows).ok_or_else(|| tables.wrong(OBJECTS[0], MISFIT))?;
    let each = found.images.iter_mut().zip(ids).zip(objects);
    each.for_each(|((image, id), objects)| (image.id, image.objects) = (id, objects));
    if (wanted.has_polygons || wanted.has_pixels) && tables.has(POLYGONS[1]) {
        found.polygons = tables.parts(POLYGONS, &mut found.images, |image| &mut image.polygons)?;
        found.vertices = tables.parts(VERTICES, &mut found.images, |image| &mut image.vertices)?;
    }
    if wanted.has_pixels {
        let [widths, heights] = SIZES.map(|name| tables.of_images::<u32>(name, count));
        let sizes = widths?.into_iter().zip(heights?);
        found.images.iter_mut().zip(sizes).for_each(|(image, (width, height))| image.size = [width, height]);
        let objects: Vec<i32> = tables.parts(MASKS, &mut found.images, |image| &mut image.runs)?;
        found.runs = tables.runs(&objects)?;
    }
    Ok(found)
}

const MISFIT: &str = "it does not fit the other preprocessed annotations";

/// Takes tables from a folder.
struct Tables {
    folder: PathBuf,
}

impl Tables {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    fn wrong(&self, name: &str, what: &str) -> Error {
        Error::invalid(what).context(Layer::File(self.path(name).display().to_string()))
    }

    fn content(&self, name: &str) -> Result<Vec<u8>> {
        let read = |path: &Path| {
            let file = open_file(path)?;
            let size = file.metadata()?.len();
            if size > limits::MAX_READER_TEXT_BYTES as u64 {
                return Err(ErrorKind::FileTooLarge.into());
            }
            let mut content = Vec::with_capacity(size as usize);
            file.take(size).read_to_end(&mut content)?;
            Ok(content)
        };
        let path = self.path(name);
        read(&path).map_err(|error: std::io::Error| {
            Error::not_found(error.to_string()).context(Layer::File(path.display().to_string()))
        })
    }

    /// The rows of a table, whose first number is `each` times as large.
    fn table<T: Pod>(&self, name: &str, each: usize) -> Result<Vec<T>> {
        if !self.has(name) {
            return Ok(Vec::new());
        }
        let content = self.content(name)?;
        let (count, rows) = content.split_at_checked(4).unwrap_or_default();
        let expected = u32::from_le_bytes(count.try_into().unwrap_or_default()) as usize;
        let found = rows.len() / size_of::<T>();
        if count.is_empty() || rows.len() % size_of::<T>() != 0 || found * each != expected {
            let length = content.len();
            return Err(
                self.wrong(name, &format!("it has {length} bytes, which is not what its first number says"))
            );
        }
        Ok(bytemuck::pod_collect_to_vec(rows))
    }

    /// A table of one number for each image.
    fn of_images<T: Pod>(&self, name: &str, count: usize) -> Result<Vec<T>> {
        let found = self.table(name, 1)?;
        if found.len() == count {
            return Ok(found);
        }
        Err(self
            .wrong(name, &format!("it has {} numbers, expected {count}, one for each image", found.len())))
    }

    /// The rows of a table, and which of them are those of each image.
    fn parts<T: Pod>(
        &self,
        [name, offsets, counts]: [&str; 3],
        images: &mut [Image],
        of: impl Fn(&mut Image) -> &mut Range<usize>,
    ) -> Result<Vec<T>> {
        let rows = self.table(name, 1)?;
        let begins = self.of_images::<i64>(offsets, images.len())?;
        let lengths = self.of_images::<i64>(counts, images.len())?;
        let ranges = ranges(&begins, &lengths, rows.len()).ok_or_else(|| self.wrong(offsets, MISFIT))?;
        images.iter_mut().zip(ranges).for_each(|(image, range)| *of(image) = range);
        Ok(rows)
    }

    /// The masks of these objects.
    fn runs(&self, objects: &[i32]) -> Result<Vec<Runs>> {
        if objects.is_empty() {
            return Ok(Vec::new());
        }
        let content = self.content(RUNS)?;
        let mut rest = content.get(4..).unwrap_or_default();
        let mut take = |length: u64| {
            let (part, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            rest = behind;
            Some(part)
        };
        let mut mask = |&object: &i32| {
            let [_, _, length]: [u64; 3] = *bytemuck::pod_collect_to_vec(take(24)?).first_chunk()?;
            let counts = bytemuck::pod_collect_to_vec(take(length.checked_mul(4)?)?);
            Some(Runs { object, counts })
        };
        let found = objects.iter().map(&mut mask).collect::<Option<Vec<Runs>>>();
        match found {
            Some(found) if rest.is_empty() => Ok(found),
            _ => Err(self.wrong(RUNS, &format!("it does not hold {} masks", objects.len()))),
        }
    }
}

/// The rows of each image; `None` unless they are among `rows`.
fn ranges<T: Copy>(begins: &[T], lengths: &[T], rows: usize) -> Option<Vec<Range<usize>>>
where
    usize: TryFrom<T>,
{
    let range = |(&begin, &length): (&T, &T)| {
        let (begin, length) = (usize::try_from(begin).ok()?, usize::try_from(length).ok()?);
        Some(begin..begin.checked_add(length).filter(|&end| end <= rows)?)
    };
    begins.iter().zip(lengths).map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(has_pixels: bool) -> Wanted {
        Wanted {
            images: None,
            threshold: 0.0,
            has_crowds: true,
            has_corners: false,
            is_ratio: true,
            keeps_classes: true,
            skips_empty: false,
            has_polygons: !has_pixels,
            has_pixels,
        }
    }

    fn images() -> Images {
        let first =
            Image { name: "a.jpg".to_owned(), id: 7, size: [4, 2], objects: 0..2, ..Default::default() };
        let second = Image {
            name: "b.jpg".to_owned(),
            id: 9,
            size: [2, 2],
            objects: 2..3,
            polygons: 0..1,
            vertices: 0..3,
            runs: 0..1,
        };
        Images {
            images: vec![first, second],
            boxes: vec![[1.0, 2.0, 3.0, 4.0]; 3],
            labels: vec![5, 6, 7],
            polygons: vec![[0, 0, 3]],
            vertices: vec![[0.0, 0.0], [2.0, 0.0], [2.0, 2.0]],
            runs: vec![Runs { object: 0, counts: vec![1, 2, 1] }],
        }
    }

    /// A folder of the test's own, with tables of [`images`].
    fn saved(name: &str, wanted: &Wanted) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("gesso-saved-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        save(folder.to_str().unwrap(), &images(), wanted, true).unwrap();
        folder
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let wanted = wanted(true);
        let folder = saved("all", &wanted);
        let found = load(folder.to_str().unwrap(), &wanted).unwrap();
        let expected = images();
        for (found, expected) in found.images.iter().zip(&expected.images) {
            assert_eq!((&found.name, found.id, found.size), (&expected.name, expected.id, expected.size));
            assert_eq!((&found.objects, &found.runs), (&expected.objects, &expected.runs));
            assert_eq!((&found.polygons, &found.vertices), (&expected.polygons, &expected.vertices));
        }
        assert_eq!((found.boxes, found.labels), (expected.boxes, expected.labels));
        assert_eq!(found.vertices, expected.vertices);
        assert_eq!((found.runs[0].object, &found.runs[0].counts[..]), (0, &[1, 2, 1][..]));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn damaged_tables_are_errors_that_name_the_file() {
        let wanted = wanted(true);
        let folder = saved("damaged", &wanted);
        let path = folder.to_str().unwrap();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let file = entry.unwrap().path();
            let whole = std::fs::read(&file).unwrap();
            for at in 0..whole.len() {
                for changed in [whole[..at].to_vec(), [&whole[..at], &[0xFF; 9], &whole[at..]].concat()] {
                    std::fs::write(&file, &changed).unwrap();
                    let Err(error) = load(path, &wanted) else { continue };
                    assert!(error.file().is_some(), "{error}");
                }
                let mut changed = whole.clone();
                changed[at] ^= 0x81;
                std::fs::write(&file, &changed).unwrap();
                let _ = load(path, &wanted);
            }
            std::fs::write(&file, whole).unwrap();
        }
        assert!(load(path, &wanted).is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(load(path, &wanted).is_err() && save(path, &images(), &wanted, false).is_err());
        assert!(save("", &images(), &wanted, false).is_err());
    }
}
