//! Files that requests name, for their names. What they take is known before any is read: a request of a few bytes may name many large ones. It
//! must not know where they are.

use std::sync::Arc;

use super::{Tensor, Tensors};
use gesso::error::{Context, Error, ErrorKind, Result};
use gesso::limits;
use gesso::memory::HostPool;
use gesso::pipeline::Input;
use gesso::tensor::{Sample, Shape};

impl Tensor<'_> {
    /// Bytes of the files that it names.
    fn named(&self) -> Result<usize> {
        let Some(folder) = self.folder else { return Ok(0) };
        let mut names = self.samples.iter().map(Sample::bytes);
        names.try_fold(0_usize, |sum, name| Ok(sum.saturating_add(folder.find(name)?.1)))
    }

    /// Takes the files in place of their names.
    pub(super) fn read(&mut self, memory: &Arc<HostPool>) -> Result<()> {
        let Some(folder) = self.folder.take() else { return Ok(()) };
        for (name, shape) in self.samples.iter_mut().zip(&mut self.shapes) {
            let (buffer, size) = folder.read(name.bytes(), memory)?;
            *shape = Shape::from([size]);
            *name = Sample::Pooled(Arc::new(buffer), 0..size);
        }
        Ok(())
    }
}

/// Takes the files that the requests of a batch name in place of their names. Requests that there is no room for fail, those with most
/// bytes first.
pub(in crate::triton::execute) fn read_files(
    declared: &[Input],
    requests: &mut [Result<Tensors<'_>>],
    memory: &Arc<HostPool>,
) {
    let mut sizes = Vec::new();
    for (i, request) in requests.iter_mut().enumerate() {
        let Ok(tensors) = request else { continue };
        let mut named = tensors.inputs.iter().zip(declared);
        let sum: Result<usize> = named.try_fold(0_usize, |sum, (tensor, input)| {
            Ok(sum.saturating_add(tensor.named().context(|| format!("input `{}`", input.name))?))
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
        total = fits.unwrap_or(total);
        let read = match fits {
            Some(_) => tensors.inputs.iter_mut().zip(declared).try_for_each(|(tensor, input)| {
                tensor.read(memory).context(|| format!("input `{}`", input.name))
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
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::triton::folder::Folder;
    use gesso::tensor::{DType, Device, Layout};

    #[test]
    fn the_largest_files_fail_and_the_others_are_read() {
        let root = std::env::temp_dir().join(format!("gesso-files-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("small"), [1; 100]).unwrap();
        fs::write(root.join("large"), [2; 300]).unwrap();
        let (folder, memory) = (Folder::open(&root).unwrap(), Arc::new(HostPool::within(1_000)));
        let asked = |names: &[&'static str]| {
            let samples: Vec<_> = names.iter().map(|name| Sample::Borrowed(name.as_bytes())).collect();
            let shapes = samples.iter().map(|sample| Shape::from([sample.bytes().len()])).collect();
            Ok(Tensors {
                samples: names.len(),
                inputs: vec![Tensor { dtype: DType::U8, shapes, samples, folder: Some(&folder) }],
            })
        };
        // The same file as often as a request has samples.
        let mut requests =
            [asked(&["large"; 2]), asked(&["small", "small"]), asked(&["none"]), asked(&["large"])];
        let input = Input {
            name: "FILE".to_owned(),
            dtype: Some(DType::U8),
            ndim: Some(1),
            layout: Layout::NONE,
            device: Device::Cpu,
        };
        read_files(&[input], &mut requests, &memory);
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
