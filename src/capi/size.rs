//! Structs that say how large they are, so that the caller's header may be older or newer than this library. A struct
//! only grows, at its end; zeros there mean what their absence meant. It must not know what the structs are for.
//!
//! Nothing of a caller's struct becomes a reference: it is copied into one of ours, or ours into it, as far as both go.

use std::mem::MaybeUninit;

use crate::error::{Error, Result};
use crate::limits;

/// A struct of the interface.
///
/// # Safety
/// It is `#[repr(C)]`, begins with a `usize` that is its size, and all patterns of bits are values of it.
pub(super) unsafe trait Versioned {
    /// Its name in C.
    const NAME: &'static str;
    /// Bytes of its first version: no caller has a smaller one.
    const FIRST: usize;
}

/// Checks that `count` elements of `size` bytes fit into memory.
pub(super) fn check_elements(name: &str, count: usize, size: usize) -> Result<()> {
    if count.checked_mul(size).is_none_or(|bytes| bytes > isize::MAX as usize) {
        return Err(Error::invalid(format!("`{name}` has {count} elements, more than fit into memory")));
    }
    Ok(())
}

/// Checks that a pointer is neither null nor askew.
pub(super) fn check_pointer<T>(name: &str, pointer: *const T) -> Result<()> {
    if pointer.is_null() {
        return Err(Error::invalid(format!("`{name}` is a null pointer")));
    }
    if !pointer.is_aligned() {
        return Err(Error::invalid(format!(
            "`{name}` is at an address that is no multiple of {}",
            align_of::<T>()
        )));
    }
    Ok(())
}

/// Reads the size of the struct that a caller has at `pointer`.
///
/// # Safety
/// `pointer` is null, or points at a struct whose size is set.
unsafe fn size_at<T: Versioned>(what: &str, pointer: *const T) -> Result<usize> {
    check_pointer(what, pointer)?;
    // SAFETY: every struct begins with its size.
    let found = unsafe { pointer.cast::<usize>().read() };
    let most = size_of::<T>() + limits::MAX_STRUCT_GROWTH;
    if found < T::FIRST || found > most || !found.is_multiple_of(align_of::<T>()) {
        return Err(Error::invalid(format!(
            "`struct_size` of `{name}` is {found}, expected {} to {most}: set it to `sizeof({name})`",
            T::FIRST,
            name = T::NAME
        )));
    }
    Ok(found)
}

/// A copy of the struct that a caller filled. What his header does not have yet is zero.
///
/// # Errors
/// Invalid for a null pointer or a size that no version has; unsupported when something is set that only newer versions
/// know.
///
/// # Safety
/// `pointer` is null, or points at a struct of the size that it says.
pub(super) unsafe fn read<T: Versioned>(what: &str, pointer: *const T) -> Result<T> {
    // SAFETY: as the caller says.
    let found = unsafe { size_at(what, pointer) }?;
    // SAFETY: so many bytes are there.
    unsafe { copied(pointer, found) }
}

/// # Safety
/// `pointer` points at `found` bytes.
unsafe fn copied<T: Versioned>(pointer: *const T, found: usize) -> Result<T> {
    let (known, bytes) = (found.min(size_of::<T>()), pointer.cast::<u8>());
    for i in known..found {
        // SAFETY: less than `found`.
        if unsafe { bytes.wrapping_add(i).read() } != 0 {
            return Err(Error::unsupported(format!(
                "`{}` has {found} bytes, of which this version of the library knows {known}; behind them something is set that it cannot do",
                T::NAME
            )));
        }
    }
    let mut copy = MaybeUninit::<T>::zeroed();
    // SAFETY: both have at least `known` bytes, and `copy` is nobody else's.
    unsafe { std::ptr::copy_nonoverlapping(bytes, copy.as_mut_ptr().cast::<u8>(), known) };
    // SAFETY: all patterns of bits are values of the type.
    Ok(unsafe { copy.assume_init() })
}

/// Copies of `count` structs that a caller has one behind the other, each of the size that the first says.
///
/// # Errors
/// As for [`read`]; invalid when the sizes differ.
///
/// # Safety
/// As for [`read`], for so many.
pub(super) unsafe fn read_all<T: Versioned>(what: &str, first: *const T, count: usize) -> Result<Vec<T>> {
    // SAFETY: as the caller says.
    let stride = unsafe { stride(what, first, count) }?;
    // SAFETY: as many as the caller says, and `stride` made sure that each has this size.
    (0..count).map(|i| unsafe { copied(first.wrapping_byte_add(i * stride), stride) }).collect()
}

/// The size of each of `count` structs; 0 when there are none.
///
/// # Safety
/// As for [`read_all`].
unsafe fn stride<T: Versioned>(what: &str, first: *const T, count: usize) -> Result<usize> {
    if count == 0 {
        return Ok(0);
    }
    // SAFETY: as the caller says.
    let stride = unsafe { size_at(what, first) }?;
    check_elements(what, count, stride)?;
    for i in 1..count {
        // SAFETY: the caller has so many of this size.
        let found = unsafe { first.wrapping_byte_add(i * stride).cast::<usize>().read() };
        if found != stride {
            return Err(Error::invalid(format!(
                "`struct_size` of element {i} of `{what}` is {found}, expected {stride} as in the first"
            )));
        }
    }
    Ok(stride)
}

/// Where a caller wants a struct: of it, as much is written as his has. Its size stays, and what only newer versions
/// know.
pub(super) struct Out<T> {
    pointer: *mut T,
    size: usize,
}

impl<T: Versioned> Out<T> {
    /// Looks at the struct's size.
    ///
    /// # Errors
    /// Invalid for a null pointer or a size that no version has.
    ///
    /// # Safety
    /// `pointer` is null, or points at memory of the size that it says, nobody else's as long as this lives.
    pub(super) unsafe fn new(what: &str, pointer: *mut T) -> Result<Self> {
        // SAFETY: as the caller says.
        let size = unsafe { size_at(what, pointer.cast_const()) }?;
        Ok(Self { pointer, size })
    }

    /// As many, one behind the other.
    ///
    /// # Errors
    /// As for [`Out::new`]; invalid when the sizes differ.
    ///
    /// # Safety
    /// As for [`Out::new`], for so many.
    pub(super) unsafe fn all(what: &str, first: *mut T, count: usize) -> Result<Vec<Self>> {
        // SAFETY: as the caller says.
        let size = unsafe { stride(what, first.cast_const(), count) }?;
        Ok((0..count).map(|i| Self { pointer: first.wrapping_byte_add(i * size), size }).collect())
    }

    /// Writes what fits.
    pub(super) fn write(self, value: &T) {
        let (begin, end) = (size_of::<usize>(), self.size.min(size_of::<T>()));
        let from = std::ptr::from_ref(value).cast::<u8>().wrapping_add(begin);
        let to = self.pointer.cast::<u8>().wrapping_add(begin);
        // SAFETY: both structs have `end` bytes, at least their size.
        unsafe { std::ptr::copy_nonoverlapping(from, to, end - begin) };
    }
}

/// A struct of ours that foreign code writes, which may think it larger.
#[repr(C)]
pub(super) struct Roomy<T> {
    /// The struct.
    pub(super) value: T,
    tail: [u8; limits::MAX_STRUCT_GROWTH],
}

impl<T: Versioned> Roomy<T> {
    /// With room behind it.
    pub(super) fn new(value: T) -> Self {
        Self { value, tail: [0; limits::MAX_STRUCT_GROWTH] }
    }

    /// What was written.
    ///
    /// # Errors
    /// Unsupported when something is set that only newer versions know.
    pub(super) fn written(self) -> Result<T> {
        if self.tail.iter().any(|&byte| byte != 0) {
            return Err(Error::unsupported(format!(
                "something of `{}` is set that this version of the library does not know",
                T::NAME
            )));
        }
        Ok(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The third version of a struct.
    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Third {
        struct_size: usize,
        first: u64,
        second: u64,
        third: u64,
    }

    // SAFETY: as the trait asks.
    unsafe impl Versioned for Third {
        const NAME: &'static str = "gesso_third";
        const FIRST: usize = 16;
    }

    /// Two of them in memory of an older or newer caller; `tail` is what stands behind ours.
    fn callers(size: usize, tail: u64) -> Vec<u64> {
        let one = |number: u64| {
            let mut words = vec![size as u64, number, number + 1, number + 2];
            words.resize((size / 8).max(4), tail);
            words.truncate(size / 8);
            words
        };
        [one(10), one(20)].concat()
    }

    #[test]
    fn what_a_caller_has_is_read_and_the_rest_is_zero() {
        for (size, expected) in [(16, [10, 0, 0]), (24, [10, 11, 0]), (32, [10, 11, 12]), (48, [10, 11, 12])]
        {
            let memory = callers(size, 0);
            // SAFETY: two structs of this size.
            let read = unsafe { read_all::<Third>("them", memory.as_ptr().cast(), 2) }.unwrap();
            assert_eq!([read[0].first, read[0].second, read[0].third], expected, "{size}");
            assert_eq!(read[1].first, 20);
        }
    }

    #[test]
    fn what_a_newer_caller_wants_is_refused() {
        let memory = callers(48, 1);
        // SAFETY: a struct of this size.
        let error = unsafe { read::<Third>("it", memory.as_ptr().cast()) }.unwrap_err();
        assert!(
            error.to_string().contains("has 48 bytes, of which this version of the library knows 32"),
            "{error}"
        );
        for size in [0, 8, 20, 32 + limits::MAX_STRUCT_GROWTH + 8, usize::MAX] {
            let memory = [size];
            // SAFETY: nothing but the size is looked at.
            let error = unsafe { read::<Third>("it", memory.as_ptr().cast()) }.unwrap_err();
            assert!(error.to_string().contains("set it to `sizeof(gesso_third)`"), "{error}");
        }
        let mut memory = callers(32, 0);
        memory[4] = 24;
        // SAFETY: two structs.
        let error = unsafe { read_all::<Third>("them", memory.as_ptr().cast(), 2) }.unwrap_err();
        assert!(error.to_string().contains("element 1 of `them` is 24, expected 32"), "{error}");
    }

    #[test]
    fn no_more_is_written_than_a_caller_has() {
        let value = Third { struct_size: 32, first: 1, second: 2, third: 3 };
        for (size, expected) in
            [(16, vec![16, 1]), (24, vec![24, 1, 2]), (32, vec![32, 1, 2, 3]), (40, vec![40, 1, 2, 3, 9])]
        {
            let mut memory = callers(size, 9);
            // SAFETY: two structs of this size.
            for out in unsafe { Out::<Third>::all("them", memory.as_mut_ptr().cast(), 2) }.unwrap() {
                out.write(&value);
            }
            assert_eq!(memory, [expected.clone(), expected].concat());
        }
    }

    #[test]
    fn foreign_code_may_write_a_larger_struct() {
        let mut room = Roomy::new(Third { struct_size: 32, first: 0, second: 0, third: 0 });
        room.value.first = 7;
        room.tail[3] = 1;
        assert!(room.written().unwrap_err().to_string().contains("something of `gesso_third` is set"));
    }
}
