//! Pixels of their channels. It must not know what the channels mean.

/// Writes pixels whose channels are apart, as many as all have. A loop as plain as this one becomes vector code where
/// it is called, which a loop over arrays does not.
#[inline(always)]
pub(super) fn interleave<T: Copy>([a, b, c]: [&[T]; 3], to: &mut [[T; 3]]) {
    for (((to, a), b), c) in to.iter_mut().zip(a).zip(b).zip(c) {
        *to = [*a, *b, *c];
    }
}
