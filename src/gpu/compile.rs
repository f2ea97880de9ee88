//! Which kernels there are, and how a source becomes machine code: specialised for element types by definitions, for
//! the device's own architecture, kept on disk.

use super::kernel_cache;
use super::layout::{self, DeviceType, Header};
use super::nvrtc::Nvrtc;
use crate::error::Result;
use crate::tensor::DType;

/// A file in `kernels/`.
pub struct KernelSource {
    /// Its name without `.cu`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

// Every file of `kernels/`: `HEADERS` and `SOURCES`.
include!(concat!(env!("OUT_DIR"), "/kernels.rs"));

/// The first architecture on which a kernel may begin before those ahead of it are done.
const FIRST_EARLY: (i32, i32) = (9, 0);

/// A kernel, specialised: a file, definitions for it, and its structs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelSpec {
    source: &'static str,
    entry: &'static str,
    definitions: Vec<(&'static str, String)>,
    early: bool,
    /// Of a row of its table and of its parameters.
    bytes: [usize; 2],
    /// What these are called in C++.
    names: [&'static str; 2],
    header: Header,
}

impl KernelSpec {
    /// Function `entry` of `kernels/{source}.cu`, whose table has rows `R` and whose parameters are `P`: the file
    /// includes their text, `layouts/{source}.cuh`.
    pub fn of<R: DeviceType, P: DeviceType>(source: &'static str, entry: &'static str) -> Self {
        let header = Header { name: source, text: layout::text::<R, P> };
        let (bytes, names) = ([size_of::<R>(), size_of::<P>()], [R::NAME, P::NAME]);
        Self { source, entry, definitions: Vec::new(), early: false, bytes, names, header }
    }

    /// The file includes the text of `header` in place of its own.
    #[must_use]
    pub(crate) fn header(self, header: Header) -> Self {
        Self { header, ..self }
    }

    /// Defines `name` as `value`.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass numbers")]
    pub fn define(mut self, name: &'static str, value: impl ToString) -> Self {
        self.definitions.push((name, value.to_string()));
        self
    }

    /// It waits by itself (`begin_early()` in `kernels/common.cuh`), so that it may be launched before what is ahead of
    /// it in its stream is done.
    #[must_use]
    pub fn early(mut self) -> Self {
        self.early = true;
        self.define("EARLY", 1)
    }

    /// Defines `name` as the CUDA type of `dtype`.
    #[must_use]
    pub fn dtype(self, name: &'static str, dtype: DType) -> Self {
        self.define(name, cuda_type(dtype))
    }

    /// The file in `kernels/`, without `.cu`.
    pub fn source(&self) -> &'static str {
        self.source
    }

    /// The structs of its table and its parameters in C++, and constants: the name of their file in
    /// `kernels/layouts/`, without `.cuh`, and their text.
    pub fn layout(&self) -> (&'static str, String) {
        (self.header.name, (self.header.text)())
    }

    /// What a row of its table and its parameters are called in C++.
    pub fn struct_names(&self) -> [&'static str; 2] {
        self.names
    }

    /// The function in it.
    pub fn entry(&self) -> &'static str {
        self.entry
    }

    /// Whether a device of an architecture such as (9, 0) may begin it early.
    pub(super) fn begins_early(&self, arch: (i32, i32)) -> bool {
        self.early && arch >= FIRST_EARLY
    }

    /// Bytes of a row and of the parameters.
    pub(super) fn sizes(&self) -> [usize; 2] {
        self.bytes
    }

    fn options(&self, arch: (i32, i32)) -> Vec<String> {
        let mut options = vec![
            format!("--gpu-architecture=sm_{}{}", arch.0, arch.1),
            "--std=c++17".to_owned(),
            "--fmad=false".to_owned(),
            "-default-device".to_owned(),
        ];
        options.extend(self.definitions.iter().map(|(name, value)| format!("-D{name}={value}")));
        options
    }
}

/// The type in CUDA of elements of `dtype`, as `common.cuh` names it.
pub fn cuda_type(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "uint8_t",
        DType::U16 => "uint16_t",
        DType::U32 => "uint32_t",
        DType::U64 => "uint64_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::I64 => "int64_t",
        DType::F16 => "half_t",
        DType::F32 => "float",
        DType::F64 => "double",
        DType::Bool => "bool",
    }
}

/// Machine code of `spec` for an architecture such as (9, 0): from the disk, else compiled and stored there.
///
/// # Errors
/// Internal, when the source does not exist or does not compile.
pub fn compile(nvrtc: &Nvrtc, spec: &KernelSpec, arch: (i32, i32)) -> Result<Vec<u8>> {
    let source = SOURCES
        .iter()
        .find(|source| source.name == spec.source)
        .ok_or_else(|| crate::error::Error::internal(format!("there is no kernel file `{}`", spec.source)))?;
    let options = spec.options(arch);
    let (major, minor) = nvrtc.version();
    let (name, layout) = spec.layout();
    // As in the file: several headers may include it.
    let (name, layout) = (format!("layouts/{name}.cuh"), format!("#pragma once\n{layout}"));
    let mut headers = HEADERS.to_vec();
    headers.push((&name, &layout));
    let texts = headers.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("\n");
    let key = format!("nvrtc {major}.{minor}\n{}\n{texts}\n{}", options.join(" "), source.text);
    if let Some(code) = kernel_cache::read(&key) {
        return Ok(code);
    }
    let name = format!("{}.cu", source.name);
    let code = nvrtc.compile(&name, source.text, &headers, &options)?;
    kernel_cache::write(&key, &code);
    Ok(code)
}
