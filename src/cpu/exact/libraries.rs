//! The libraries whose arithmetic there is, and the filters that each of them has. It must not know how they compute.

use super::filters::Curve;
use super::nearest::Rule;
use super::opencv::Kernel;

/// Whose arithmetic resizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Pillow before 13.0.
    Pillow,
    /// Pillow 13.0.
    Pillow13,
    /// torchvision with tensors of bytes on a CPU, and `antialias=True`.
    Torchvision,
    /// torchvision by float32, rounded to bytes.
    TorchvisionFloat,
    /// OpenCV with arrays of bytes.
    OpenCv,
}

/// A filter of one of the libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Filter {
    /// The nearest pixel.
    Nearest,
    /// torchvision's `NEAREST_EXACT`.
    NearestExact,
    /// Pillow's `BOX`.
    Box,
    /// Linear: the triangle of Pillow and torchvision, the two nearest pixels of OpenCV.
    Linear,
    /// Pillow's `HAMMING`.
    Hamming,
    /// Cubic.
    Cubic,
    /// `LANCZOS` of Pillow, and of torchvision with bytes.
    Lanczos,
    /// OpenCV's `INTER_AREA`.
    Area,
}

/// What an image is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Elements {
    /// uint8.
    Bytes,
    /// uint16: Pillow's mode `I;16`.
    Words,
    /// float32: Pillow's mode `F`, torchvision's tensors.
    Floats,
}

impl Elements {
    /// What they are called in sentences.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Bytes => "uint8",
            Self::Words => "uint16",
            Self::Floats => "float32",
        }
    }

    /// Bytes of one.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Words => 2,
            Self::Floats => 4,
        }
    }
}

/// How a library computes with a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Nearest(Rule),
    /// Sums of integers.
    Sums(Curve),
    /// Sums of float32 by a triangle or, if it is true, by a cubic.
    Floats(bool),
    OpenCv(Kernel),
    Means,
}

impl Arithmetic {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Pillow, Self::Pillow13, Self::Torchvision, Self::TorchvisionFloat, Self::OpenCv];

    /// Those of Pillow.
    pub const PILLOW: [Self; 2] = [Self::Pillow, Self::Pillow13];

    /// Its name in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pillow => "pillow",
            Self::Pillow13 => "pillow13",
            Self::Torchvision => "torchvision",
            Self::TorchvisionFloat => "torchvision-float",
            Self::OpenCv => "opencv",
        }
    }

    /// What the library is called in sentences.
    pub fn library(self) -> &'static str {
        match self {
            Self::Pillow | Self::Pillow13 => "Pillow",
            Self::Torchvision | Self::TorchvisionFloat => "torchvision",
            Self::OpenCv => "OpenCV",
        }
    }

    /// Whether the library resizes images of such elements with this arithmetic.
    pub fn resizes(self, elements: Elements) -> bool {
        match elements {
            Elements::Bytes => true,
            Elements::Words => self.is_pillow(),
            Elements::Floats => self.is_pillow() || self == Self::TorchvisionFloat,
        }
    }

    /// Whether it is one of the two of Pillow.
    pub fn is_pillow(self) -> bool {
        matches!(self, Self::Pillow | Self::Pillow13)
    }

    /// The library's filters by their names in arguments.
    pub fn filters(self) -> impl Iterator<Item = (&'static str, Filter)> {
        Filter::ALL
            .into_iter()
            .filter(move |&filter| self.method(filter).is_some())
            .map(|filter| (filter.name(), filter))
    }

    /// How it computes with `filter`, if it has it.
    pub(super) fn method(self, filter: Filter) -> Option<Method> {
        let pillow = self.is_pillow();
        let sums = |curve| Some(Method::Sums(curve));
        match (self, filter) {
            (Self::Pillow | Self::Pillow13, Filter::Nearest) => Some(Method::Nearest(Rule::Pillow)),
            (Self::OpenCv, Filter::Nearest) => Some(Method::Nearest(Rule::OpenCv)),
            (_, Filter::Nearest) => Some(Method::Nearest(Rule::Torchvision)),
            (Self::Torchvision | Self::TorchvisionFloat, Filter::NearestExact) => {
                Some(Method::Nearest(Rule::TorchvisionExact))
            }
            (Self::TorchvisionFloat, Filter::Linear) => Some(Method::Floats(false)),
            (Self::TorchvisionFloat, Filter::Cubic) => Some(Method::Floats(true)),
            (Self::OpenCv, Filter::Linear) => Some(Method::OpenCv(Kernel::Linear)),
            (Self::OpenCv, Filter::Cubic) => Some(Method::OpenCv(Kernel::Cubic)),
            (Self::OpenCv, Filter::Area) => Some(Method::Means),
            (Self::OpenCv, _) => None,
            (_, Filter::Linear) => sums(Curve::Bilinear),
            (_, Filter::Cubic) => sums(Curve::Bicubic),
            (_, Filter::Box) if pillow => sums(Curve::Box),
            (_, Filter::Hamming) if pillow => sums(Curve::Hamming),
            (Self::Torchvision, Filter::Lanczos) => sums(Curve::Lanczos),
            (_, Filter::Lanczos) if pillow => sums(Curve::Lanczos),
            _ => None,
        }
    }
}

impl Filter {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Nearest,
        Self::NearestExact,
        Self::Box,
        Self::Linear,
        Self::Hamming,
        Self::Cubic,
        Self::Lanczos,
        Self::Area,
    ];

    /// Its name in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nearest => "nearest",
            Self::NearestExact => "nearest-exact",
            Self::Box => "box",
            Self::Linear => "linear",
            Self::Hamming => "hamming",
            Self::Cubic => "cubic",
            Self::Lanczos => "lanczos",
            Self::Area => "area",
        }
    }
}
