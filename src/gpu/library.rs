//! Finds NVIDIA's shared libraries at run time: beside the plugin, where the loader looks, in toolkits, and in the
//! folders where pip's `nvidia-*` packages put them. It must not know what the libraries do.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};

/// A library that we can use, with the names of the files that hold it.
#[derive(Debug, Clone, Copy)]
pub struct Library {
    /// What errors call it.
    pub name: &'static str,
    /// File names, the newest version first.
    pub files: &'static [&'static str],
    /// Which package brings it.
    pub hint: &'static str,
    /// How the names of files begin that it loads by itself, but does not find beside it.
    companions: Option<&'static str>,
}

impl Library {
    /// The CUDA driver.
    pub const DRIVER: Self = Self {
        name: "the NVIDIA driver",
        files: &["libcuda.so.1", "libcuda.so"],
        hint: "install the driver, or start the container with `--gpus all`",
        companions: None,
    };
    /// The run-time compiler.
    pub const NVRTC: Self = Self {
        name: "NVRTC",
        files: &["libnvrtc.so.13", "libnvrtc.so.12"],
        hint: "`pip install nvidia-cuda-nvrtc`, or put `libnvrtc.so.13` beside the plugin",
        companions: Some("libnvrtc-builtins.so"),
    };
    /// The JPEG decoder.
    pub const NVJPEG: Self = Self {
        name: "nvJPEG",
        files: &["libnvjpeg.so.13", "libnvjpeg.so.12"],
        hint: "`pip install nvidia-nvjpeg`, or put `libnvjpeg.so.13` beside the plugin",
        companions: None,
    };
    /// The JPEG 2000 decoder.
    pub const NVJPEG2000: Self = Self {
        name: "nvJPEG2000",
        files: &["libnvjpeg2k.so.0", "libnvjpeg2k.so"],
        hint: "`pip install nvidia-nvjpeg2k-cu12`, or put `libnvjpeg2k.so.0` beside the plugin; it is optional",
        companions: None,
    };
    /// The video decoder.
    pub const NVDEC: Self = Self {
        name: "NVDEC",
        files: &["libnvcuvid.so.1", "libnvcuvid.so"],
        hint: "it comes with the driver; a container needs `video` in `NVIDIA_DRIVER_CAPABILITIES`",
        companions: None,
    };

    /// The interface to the optical flow engine.
    pub const OPTICAL_FLOW: Self = Self {
        name: "NVOF",
        files: &["libnvidia-opticalflow.so.1", "libnvidia-opticalflow.so"],
        hint: "it comes with the driver; a container needs `video` in `NVIDIA_DRIVER_CAPABILITIES`",
        companions: None,
    };

    /// Loads the first file that can be loaded.
    ///
    /// # Errors
    /// Unavailable, naming the folders that were searched and how to get the library.
    pub fn open(&self) -> Result<Found> {
        let mut searched = Vec::new();
        let mut last = None;
        for candidate in self.candidates() {
            // SAFETY: these are NVIDIA's libraries by name; their initialisers only set up their own state.
            match unsafe { libloading::Library::new(&candidate) } {
                Ok(library) => {
                    tracing::debug!(library = self.name, path = %candidate.display(), "loaded");
                    self.load_companions(&candidate);
                    return Ok(Found { library, path: candidate });
                }
                Err(error) => {
                    if candidate.exists() {
                        last = Some(format!("`{}`: {error}", candidate.display()));
                    }
                    let folder = candidate.parent().map(Path::to_path_buf).unwrap_or_default();
                    if !folder.as_os_str().is_empty() && !searched.contains(&folder) {
                        searched.push(folder);
                    }
                }
            }
        }
        let searched: Vec<String> = searched.iter().map(|folder| folder.display().to_string()).collect();
        let last = last.map(|text| format!("; {text}")).unwrap_or_default();
        Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "{} is not there: `{}` is neither on the library path nor in {}{last}; {}",
                self.name,
                self.files[0],
                searched.join(", "),
                self.hint
            ),
        ))
    }

    /// Loads what the library at `path` will ask for by name, from its folder, for good.
    fn load_companions(&self, path: &Path) {
        let (Some(start), Some(folder)) = (self.companions, path.parent()) else { return };
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(start) {
                // SAFETY: as in `open`: a part of the library that was just loaded from there.
                match unsafe { libloading::Library::new(entry.path()) } {
                    Ok(companion) => std::mem::forget(companion),
                    Err(error) => tracing::debug!("cannot load `{}`: {error}", entry.path().display()),
                }
            }
        }
    }

    /// Where the library may be, the best place first.
    fn candidates(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        folders.extend(plugin_folder());
        let beside = folders.iter().flat_map(|folder| self.files.iter().map(|file| folder.join(file)));
        let named = self.files.iter().map(PathBuf::from);
        let mut candidates: Vec<PathBuf> = beside.chain(named).collect();
        for folder in toolkits().into_iter().chain(packages()) {
            candidates.extend(self.files.iter().map(|file| folder.join(file)));
        }
        candidates
    }
}

/// A library that is loaded for good.
pub struct Found {
    library: libloading::Library,
    /// The file.
    pub path: PathBuf,
}

impl Found {
    /// The function `name`, as a pointer of type `F`.
    ///
    /// # Safety
    /// `F` is the type of the function in the library's header. The pointer is valid as long as `self`.
    ///
    /// # Errors
    /// Unavailable when the library has no such function: it is too old.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F> {
        // SAFETY: the caller vouches for the type.
        let symbol = unsafe { self.library.get::<F>(name.as_bytes()) };
        symbol.map(|symbol| *symbol).map_err(|_| {
            Error::new(
                ErrorKind::Unavailable,
                format!("`{}` has no function `{name}`: it is too old", self.path.display()),
            )
        })
    }
}

/// The folder of the file that this code is in.
fn plugin_folder() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let address = (plugin_folder as fn() -> Option<PathBuf>) as *const libc::c_void;
    // SAFETY: `address` is any address, `info` is valid for the call.
    if unsafe { libc::dladdr(address, info.as_mut_ptr()) } == 0 {
        return None;
    }
    // SAFETY: `dladdr` succeeded, so it filled `info`; zeroed before, it is valid in any case.
    let info = unsafe { info.assume_init() };
    if info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader keeps the name, which ends with NUL, as long as this code is loaded.
    let name = unsafe { std::ffi::CStr::from_ptr(info.dli_fname) };
    let path = Path::new(std::ffi::OsStr::new(name.to_str().ok()?)).canonicalize().ok()?;
    path.parent().map(Path::to_path_buf)
}

/// Library folders of CUDA toolkits.
fn toolkits() -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    named
        .chain([PathBuf::from("/usr/local/cuda")])
        .flat_map(|root| [root.join("lib64"), root.join("targets/x86_64-linux/lib")])
        .collect()
}

/// Library folders of pip's packages, in the active environment and in those of Pythons on the path.
fn packages() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = std::env::var_os("VIRTUAL_ENV").map(PathBuf::from).into_iter().collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        if folder.join("python3").exists()
            && let Some(prefix) = folder.parent()
            && !prefixes.iter().any(|known| known == prefix)
        {
            prefixes.push(prefix.to_path_buf());
        }
    }
    let mut found = Vec::new();
    for prefix in prefixes {
        let versions = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        for version in versions.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3")) {
            for packages in ["site-packages", "dist-packages"] {
                let nvidia = version.path().join(packages).join("nvidia");
                // `cu13/lib` holds everything of CUDA 13; CUDA 12 has a folder for each library.
                for folder in ["cu13/lib", "cuda_nvrtc/lib", "nvjpeg/lib", "nvjpeg2k/lib"] {
                    found.push(nvidia.join(folder));
                }
            }
        }
    }
    found.retain(|folder| folder.is_dir());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_an_error_that_says_how_to_get_it() {
        let missing = Library {
            name: "Nothing",
            files: &["libnothing.so.7"],
            hint: "look elsewhere",
            companions: None,
        };
        let error = missing.open().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let text = error.to_string();
        assert!(text.contains("libnothing.so.7") && text.contains("look elsewhere"), "{text}");
    }
}
