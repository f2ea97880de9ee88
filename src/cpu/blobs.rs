//! Connected parts of label maps: elements of one value that touch along a dimension. It must not know operators.

/// A part of a map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob<T> {
    /// The value of its elements.
    pub label: T,
    /// First position along each dimension.
    pub low: Vec<usize>,
    /// One behind the last position along each dimension.
    pub high: Vec<usize>,
}

impl<T> Blob<T> {
    /// The elements of the box around it.
    pub fn volume(&self) -> usize {
        self.low.iter().zip(&self.high).map(|(low, high)| high - low).product()
    }
}

/// The parts of `labels`, a tensor of shape `shape`, in the order of their first elements; `None` if they are more than
/// `most`. Elements for which `is_background` holds belong to none.
pub fn blobs<T: Copy + PartialEq>(
    labels: &[T],
    shape: &[usize],
    most: usize,
    is_background: impl Fn(T) -> bool,
) -> Option<Vec<Blob<T>>> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d];
    }
    let mut is_done = vec![false; labels.len()];
    let (mut found, mut open) = (Vec::new(), Vec::new());
    for start in 0..labels.len() {
        let label = labels[start];
        if is_done[start] || is_background(label) {
            continue;
        }
        if found.len() == most {
            return None;
        }
        is_done[start] = true;
        open.push(start);
        let mut blob = Blob { label, low: shape.to_vec(), high: vec![0; shape.len()] };
        while let Some(at) = open.pop() {
            for (d, &stride) in strides.iter().enumerate() {
                let position = at / stride % shape[d];
                blob.low[d] = blob.low[d].min(position);
                blob.high[d] = blob.high[d].max(position + 1);
                let before = (position > 0).then(|| at - stride);
                let behind = (position + 1 < shape[d]).then(|| at + stride);
                for next in [before, behind].into_iter().flatten() {
                    if !is_done[next] && labels[next] == label {
                        is_done[next] = true;
                        open.push(next);
                    }
                }
            }
        }
        found.push(blob);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_touch_along_dimensions_not_corners() {
        let map = [1, 1, 0, 0, 2, 1, 0, 2, 2];
        let found = blobs(&map, &[3, 3], 3, |label| label == 0).unwrap();
        let boxes: Vec<_> = found.iter().map(|blob| (blob.label, &blob.low[..], &blob.high[..])).collect();
        let expected: [(i32, &[usize], &[usize]); 3] =
            [(1, &[0, 0], &[1, 2]), (2, &[1, 1], &[3, 3]), (1, &[1, 2], &[2, 3])];
        assert_eq!(boxes, expected);
        assert_eq!(found[1].volume(), 4);
        assert!(blobs(&map, &[3, 3], 2, |label| label == 0).is_none());
        assert!(blobs::<i32>(&[], &[0, 3], 0, |_| false).unwrap().is_empty());
    }
}
