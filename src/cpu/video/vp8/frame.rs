//! A decoded frame: three planes whose sides are filled up to whole macroblocks.

/// Samples behind the last one, which count for nothing: vectors read further than they need.
const BEHIND: usize = 16;

/// One plane; a row follows the other without gaps.
#[derive(Clone, Default)]
pub(super) struct Plane {
    pub(super) samples: Vec<u8>,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Plane {
    fn new(width: usize, height: usize) -> Self {
        Self { samples: vec![0; width * height + BEHIND], width, height }
    }
}

/// Luma, and blue and red of half its columns and rows.
#[derive(Clone, Default)]
pub(super) struct Frame {
    pub(super) planes: [Plane; 3],
}

impl Frame {
    /// One of so many macroblocks.
    pub(super) fn new([columns, rows]: [usize; 2]) -> Self {
        let chroma = Plane::new(columns * 8, rows * 8);
        Self { planes: [Plane::new(columns * 16, rows * 16), chroma.clone(), chroma] }
    }

    /// Columns and rows of macroblocks.
    pub(super) fn macroblocks(&self) -> [usize; 2] {
        let [luma, ..] = &self.planes;
        [luma.width / 16, luma.height / 16]
    }
}
