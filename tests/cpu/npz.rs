//! Reads the `.npz` files that the recording scripts write: arrays by name, little-endian, C order.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// What stands before the extents in a header.
const SHAPE: &str = "'shape': (";

/// An open file.
pub(crate) struct Npz(zip::ZipArchive<File>);

impl Npz {
    /// Opens `path`.
    pub(crate) fn open(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(zip::ZipArchive::new(file).unwrap())
    }

    /// Names of the arrays.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.file_names().map(|name| name.unwrap().strip_suffix(".npy").unwrap().to_owned()).collect()
    }

    /// Shape and elements of array `name`, whose type is `T`.
    pub(crate) fn array<T: bytemuck::Pod>(&mut self, name: &str) -> (Vec<usize>, Vec<T>) {
        let mut bytes = Vec::new();
        self.0.by_name(&format!("{name}.npy")).unwrap().read_to_end(&mut bytes).unwrap();
        // "\x93NUMPY", version 1.0, length of the header, header
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00", "{name}");
        let data = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let header = std::str::from_utf8(&bytes[10..data]).unwrap();
        let shape = header.split_once(SHAPE).unwrap().1.split_once(')').unwrap().0;
        let shape: Vec<usize> =
            shape.split(',').map(str::trim).filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect();
        let elements: Vec<T> = bytemuck::pod_collect_to_vec(&bytes[data..]);
        assert_eq!(elements.len(), shape.iter().product::<usize>(), "{name}");
        (shape, elements)
    }
}
