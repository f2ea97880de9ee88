//! How exact answers must be: on the host, and on a device beside answers of a host or of a device.

use gesso::tensor::DType;

use crate::recording::Case;

/// How far an answer may be from the recorded one, which DALI gave on a CPU.
pub(crate) struct Tolerance {
    /// Largest difference.
    pub(crate) largest: f64,
    /// Largest difference relative to the expected value.
    pub(crate) relative: f64,
    /// Largest mean difference.
    pub(crate) mean: Option<f64>,
}

impl Tolerance {
    pub(crate) fn on_cpu(case: &Case) -> Self {
        Self { largest: case.tol, relative: 0.0, mean: case.mean }
    }

    /// From what DALI answered on a device. There it decodes pictures that the engines refuse with a program of its
    /// own.
    pub(crate) fn of_devices(module: &str, case: &Case, dtype: DType) -> Self {
        let real = matches!(dtype, DType::F16 | DType::F32 | DType::F64);
        let level = if real { 0.02 } else { 1.0 };
        let decodes = module.starts_with("decoders_image") || case.name.contains("image_random_crop");
        if decodes || matches!(module, "pipelines" | "automatic") {
            return Self { largest: 64.0 * level, relative: 0.0, mean: Some(level) };
        }
        let rounding = match module {
            "jpeg_compression_distortion" => 4.0,
            _ if real => 1e-5,
            _ => 1.0,
        };
        Self { largest: case.tol + rounding, relative: 1e-5, mean: case.mean }
    }

    /// How far a device may be from a host that upsamples chroma as the device does, where an image decoder comes
    /// first: a level; one of real numbers is what a level is behind a normalization.
    pub(crate) fn beside_host(case: &Case, dtype: DType) -> Self {
        let real = matches!(dtype, DType::F16 | DType::F32 | DType::F64);
        // Colours are spread there, and a level with them.
        let level = if case.name == "colors" { 2.0 } else { 1.0 };
        Self { largest: if real { 0.03 } else { level }, relative: 1e-3, mean: None }
    }

    /// Whether a case begins with a decoder of images, which a device has of its own.
    pub(crate) fn is_of_decoder(module: &str, case: &Case) -> bool {
        module.starts_with("decoders_image")
            || case.name.contains("image_random_crop")
            || module == "pipelines"
    }

    /// The device rounds halves to even, multiplies and adds in one step, and replicates chroma.
    pub(crate) fn on_device(module: &str, case: &Case, dtype: DType, peak: f64) -> Self {
        let integer = !matches!(dtype, DType::F16 | DType::F32 | DType::F64);
        if Self::is_of_decoder(module, case) {
            // Files made for a GPU do not upsample chroma smoothly: its edges differ by much, in pictures of noise.
            let scale = if dtype == DType::U8 { 1.0 } else { 0.02 };
            let mean = if case.name.ends_with("_made_for_gpu") { 16.0 } else { 0.5 };
            return Self { largest: f64::INFINITY, relative: 0.0, mean: Some(mean * scale) };
        }
        // No file is made there, and chroma is not spread smoothly.
        if module == "jpeg_compression_distortion" || case.name.ends_with("_JpegCompressionDistortion") {
            let mean = if module == "fuzz" { 16.0 } else { 6.0 };
            return Self { largest: f64::INFINITY, relative: 0.0, mean: Some(mean) };
        }
        let rounding = if integer && dtype != DType::Bool { 1.0 } else { 1e-5 };
        let relative = if dtype == DType::F16 { 1e-3 } else { 1e-5 };
        // Sums of large values that nearly cancel, and places between pixels, are off by a part of those values.
        let summed = match module {
            "warp_affine" | "rotate" => 1e-4,
            "color_twist"
            | "brightness_contrast"
            | "coord_transform"
            | "gaussian_blur"
            | "filter"
            | "laplacian" => 1e-5,
            // A Gaussian window does not end at zero: a tap that falls on its end counts or does not.
            "fuzz" if case.name.ends_with("RandomResizedCrop") => 0.03,
            // On the host the places between samples of a signal are summed up.
            "audio" if case.name.starts_with("resampled") => 2e-3,
            "fuzz" if case.name.ends_with("_AudioResample") => 2e-3,
            // On the host the squares of such numbers overflow.
            "audio" if case.name == "regions_of_uint64" => f64::INFINITY,
            _ => 0.0,
        };
        let rounding = rounding + summed * peak;
        Self { largest: case.tol + rounding, relative, mean: case.mean.map(|mean| mean + 0.6) }
    }
}
