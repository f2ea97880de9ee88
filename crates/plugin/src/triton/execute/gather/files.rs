//! Files that requests name, for their names. What they take is known before any is read: a request of a few bytes may
//! name many large ones. It must not know where they are.

use std::sync::Arc;
use std::time::Duration;

use super::{Tensor, Tensors};
use crate::triton::folder::Folder;
use gesso::error::{Context, Error, ErrorKind, Result};
use gesso::limits;
use gesso::memory::{HostPool, copy_once};
use gesso::pipeline::Input;
use gesso::tensor::{Sample, Shape};

/// Bytes of a name, as Linux has it. Stops names of megabytes from being copied, or told of.
const MAX_PATH_BYTES: usize = 4_096;

/// What reading a byte is expected to take, with what fresh memory costs.
const NANOSECONDS_A_BYTE: u64 = 2;

/// Who waits for files.
pub(in crate::triton::execute) struct Reading<'a> {
    /// Whether somebody waits for the request of this number.
    pub(in crate::triton::execute) wanted: &'a (dyn Fn(usize) -> Result<()> + Sync),
    /// What reading may be expected to take for a request that stays in its batch.
    pub(in crate::triton::execute) from: Option<Duration>,
}

impl<'r> Tensor<'r> {
    /// The files in `folder` of these names, which are copied: a client may write to his own meanwhile.
    ///
    /// # Errors
    /// Invalid for a name that is longer than any.
    pub(super) fn name_files(mut self, folder: &'r Folder, memory: &Arc<HostPool>) -> Result<Self> {
        let long = self.samples.iter().map(|name| name.bytes().len()).find(|&bytes| bytes > MAX_PATH_BYTES);
        if let Some(bytes) = long {
            return Err(Error::invalid(format!(
                "a name of a file has {bytes} bytes, more than the limit of {MAX_PATH_BYTES}"
            )));
        }
        let mut names = memory.take(self.samples.iter().map(|name| name.bytes().len()).sum())?;
        let mut ranges = Vec::with_capacity(self.samples.len());
        let mut end = 0;
        for name in &self.samples {
            let range = end..end + name.bytes().len();
            copy_once(name.bytes(), names.bytes_mut().get_mut(range.clone()).unwrap_or_default());
            end = range.end;
            ranges.push(range);
        }
        let names = Arc::new(names);
        self.samples = ranges.into_iter().map(|range| Sample::Pooled(Arc::clone(&names), range)).collect();
        self.folder = Some(folder);
        Ok(self)
    }

    /// Bytes of the files that it names.
    fn named(&self, wanted: &dyn Fn() -> Result<()>) -> Result<usize> {
        let Some(folder) = self.folder else { return Ok(0) };
        let mut names = self.samples.iter().map(Sample::bytes);
        names.try_fold(0_usize, |sum, name| {
            wanted()?;
            Ok(sum.saturating_add(folder.find(name)?.1))
        })
    }

    /// Takes the files in place of their names. `wanted` is asked meanwhile.
    pub(super) fn read(
        &mut self,
        memory: &Arc<HostPool>,
        wanted: &(dyn Fn() -> Result<()> + Sync),
    ) -> Result<()> {
        let Some(folder) = self.folder.take() else { return Ok(()) };
        for (name, shape) in self.samples.iter_mut().zip(&mut self.shapes) {
            let (buffer, size) = folder.read(name.bytes(), memory, wanted)?;
            *shape = Shape::from([size]);
            *name = Sample::Pooled(Arc::new(buffer), 0..size);
        }
        Ok(())
    }

    /// Takes nothing in place of its samples.
    fn leave_out(&mut self) {
        for (sample, shape) in self.samples.iter_mut().zip(&mut self.shapes) {
            *sample = Sample::Missing;
            *shape = Shape::new(vec![0; shape.len()]);
        }
    }
}

/// Takes the files that the requests of a batch name in place of their names. Requests that there is no room for fail,
/// those with most bytes first. For those whose files are expected to take too long it is said how long: none of them
/// are read, and their samples are missing.
pub(in crate::triton::execute) fn read_files(
    declared: &[Input],
    requests: &mut [Result<Tensors<'_>>],
    memory: &Arc<HostPool>,
    reading: &Reading<'_>,
) -> Vec<Option<Duration>> {
    let mut sizes = Vec::new();
    let mut deferred = vec![None; requests.len()];
    for (i, request) in requests.iter_mut().enumerate() {
        let Ok(tensors) = request else { continue };
        let mut named = tensors.inputs.iter().zip(declared);
        let wanted = || (reading.wanted)(i);
        let sum: Result<usize> = named.try_fold(0_usize, |sum, (tensor, input)| {
            Ok(sum.saturating_add(tensor.named(&wanted).context(|| format!("input `{}`", input.name))?))
        });
        match sum {
            Ok(size) => sizes.push((size, i)),
            Err(error) => *request = Err(error),
        }
    }
    sizes.sort_unstable();
    let (room, mut total) = (memory.room() / limits::NAMED_FILES_PART, 0_usize);
    for (size, i) in sizes {
        let Some(Ok(tensors)) = requests.get_mut(i) else { continue };
        let fits = total.checked_add(size).filter(|&sum| sum <= room);
        let expected = Duration::from_nanos(NANOSECONDS_A_BYTE.saturating_mul(size as u64));
        if size <= room && reading.from.is_some_and(|from| expected > from) {
            tensors.inputs.iter_mut().for_each(Tensor::leave_out);
            deferred.iter_mut().skip(i).take(1).for_each(|deferred| *deferred = Some(expected));
            continue;
        }
        total = fits.unwrap_or(total);
        let wanted = || (reading.wanted)(i);
        let read = match fits {
            Some(_) => tensors.inputs.iter_mut().zip(declared).try_for_each(|(tensor, input)| {
                tensor.read(memory, &wanted).context(|| format!("input `{}`", input.name))
            }),
            None => Err(Error::new(
                ErrorKind::Unavailable,
                format!(
                    "files of {size} bytes do not fit into their batch any more, which has room for {room} bytes of files"
                ),
            )),
        };
        if let (Err(error), Some(request)) = (read, requests.get_mut(i)) {
            *request = Err(error);
        }
    }
    deferred
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use gesso::tensor::{DType, Device, Layout};

    const PATIENT: Reading<'static> = Reading { wanted: &|_| Ok(()), from: None };

    fn named<'r>(names: &[&'r [u8]]) -> Tensor<'r> {
        let samples: Vec<_> = names.iter().map(|name| Sample::Borrowed(name)).collect();
        let shapes = samples.iter().map(|sample| Shape::from([sample.bytes().len()])).collect();
        Tensor { dtype: DType::U8, shapes, samples, folder: None }
    }

    fn input() -> Input {
        Input {
            name: "FILE".to_owned(),
            dtype: Some(DType::U8),
            ndim: Some(1),
            layout: Layout::NONE,
            device: Device::Cpu,
        }
    }

    #[test]
    fn names_are_copied_before_they_are_looked_at() {
        let root = std::env::temp_dir().join(format!("gesso-names-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let (folder, memory) = (Folder::open(&root).unwrap(), Arc::new(HostPool::within(1_000)));
        let tensor = named(&[b"first", b"", b"second"]).name_files(&folder, &memory).ok().unwrap();
        assert!(tensor.samples.iter().all(|sample| matches!(sample, Sample::Pooled(..))));
        let names: Vec<_> = tensor.samples.iter().map(Sample::bytes).collect();
        assert_eq!(names, [&b"first"[..], b"", b"second"]);
        let long = vec![b'a'; MAX_PATH_BYTES + 1];
        let error = named(&[b"a", &long]).name_files(&folder, &memory).err().unwrap().to_string();
        assert_eq!(error, "a name of a file has 4097 bytes, more than the limit of 4096");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn requests_whose_files_take_long_are_set_aside_and_none_is_read_that_nobody_waits_for() {
        let root = std::env::temp_dir().join(format!("gesso-long-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("small"), [1; 10]).unwrap();
        fs::write(root.join("large"), [2; 300]).unwrap();
        let (folder, memory) = (Folder::open(&root).unwrap(), Arc::new(HostPool::within(1_000)));
        let asked = |name: &'static str| {
            let tensor = named(&[name.as_bytes()]).name_files(&folder, &memory)?;
            Ok(Tensors { samples: 1, inputs: vec![tensor] })
        };
        let mut requests = [asked("large"), asked("small"), asked("small")];
        let wanted = |i| if i == 2 { Err(Error::invalid("too late")) } else { Ok(()) };
        let reading = Reading { wanted: &wanted, from: Some(Duration::from_nanos(100)) };
        let deferred = read_files(&[input()], &mut requests, &memory, &reading);
        assert_eq!(deferred, [Some(Duration::from_nanos(600)), None, None]);
        let [large, small, late] =
            requests.map(|request| request.map(|mut tensors| tensors.inputs.remove(0)));
        let (large, small) = (large.ok().unwrap(), small.ok().unwrap());
        assert!(matches!(large.samples[0], Sample::Missing) && large.shapes == [Shape::from([0])]);
        assert_eq!(small.samples[0].bytes(), [1; 10]);
        assert!(late.err().unwrap().to_string().contains("too late"));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_largest_files_fail_and_the_others_are_read() {
        let root = std::env::temp_dir().join(format!("gesso-files-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("small"), [1; 100]).unwrap();
        fs::write(root.join("large"), [2; 300]).unwrap();
        // Names take some of it, too.
        let (folder, memory) = (Folder::open(&root).unwrap(), Arc::new(HostPool::within(1_100)));
        let asked = |names: &[&'static str]| {
            let names: Vec<_> = names.iter().map(|name| name.as_bytes()).collect();
            let tensor = named(&names).name_files(&folder, &memory)?;
            Ok(Tensors { samples: names.len(), inputs: vec![tensor] })
        };
        // The same file as often as a request has samples.
        let mut requests =
            [asked(&["large"; 2]), asked(&["small", "small"]), asked(&["none"]), asked(&["large"])];
        read_files(&[input()], &mut requests, &memory, &PATIENT);
        let [twice, small, none, large] = requests;
        let error = |request: Result<Tensors<'_>>| request.err().unwrap().to_string();
        assert!(error(twice).contains("files of 600 bytes do not fit"), "more than half of the memory");
        assert!(error(none).contains("input `FILE`: no file `none`"));
        let sizes = |tensors: &Tensors<'_>| -> Vec<usize> {
            tensors.inputs[0].samples.iter().map(|sample| sample.bytes().len()).collect()
        };
        let (small, large) = (small.ok().unwrap(), large.ok().unwrap());
        assert_eq!((sizes(&small), sizes(&large)), (vec![100, 100], vec![300]));
        assert_eq!(small.inputs[0].shapes, vec![Shape::from([100]); 2]);
        fs::remove_dir_all(&root).unwrap();
    }
}
