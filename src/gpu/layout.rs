//! Structs that kernels have too, declared here once: the macro `device_struct` makes the struct in Rust and its text
//! in C++, field by field, so that the two cannot differ. It must not know which structs there are.
//!
//! ```text
//! device_struct! {                         struct Row {
//!     /// A sample.                           float *to;
//!     struct Row as Row {            ==>      uint64_t elements;  // of the output
//!         to: u64 = "float *",              };
//!         /// of the output                 static_assert(sizeof(Row) == 16, "...");
//!         elements: u64,
//!     }
//! }
//! ```
//!
//! A kernel finds the text in `layouts/NAME.cuh`, NAME being that of its file. The compiler of a device gets it from
//! memory. The files in `kernels/layouts/` are the same text for readers and for tests that run kernels on the host; a
//! test holds them to it.

use std::fmt::Write;

/// A type that fields of such structs have.
pub trait DeviceType {
    /// The type in C++, of arrays that of their elements.
    const NAME: &'static str;

    /// Lengths of an array, the outermost first.
    fn lengths() -> Vec<usize> {
        Vec::new()
    }

    /// Adds the structs that it is made of to `structs`, those that are used first.
    fn add(_structs: &mut Vec<StructText>) {}
}

macro_rules! numbers {
    ($($type:ident $name:literal)*) => {
        $(impl DeviceType for $type {
            const NAME: &'static str = $name;
        })*
    };
}
numbers! {
    u8 "uint8_t" u16 "uint16_t" u32 "uint32_t" u64 "uint64_t"
    i8 "int8_t" i16 "int16_t" i32 "int32_t" i64 "int64_t"
    f32 "float" f64 "double"
}

impl<T: DeviceType, const N: usize> DeviceType for [T; N] {
    const NAME: &'static str = T::NAME;

    fn lengths() -> Vec<usize> {
        [vec![N], T::lengths()].concat()
    }

    fn add(structs: &mut Vec<StructText>) {
        T::add(structs);
    }
}

/// A struct in C++.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructText {
    name: &'static str,
    text: String,
}

impl StructText {
    /// A struct without fields yet.
    pub fn new(name: &'static str) -> Self {
        Self { name, text: format!("struct {name} {{\n") }
    }

    /// One more field of type `T`; `pointer` is its type in C++ where that is another, as of an address.
    pub fn field<T: DeviceType>(&mut self, name: &str, pointer: Option<&str>, comments: &[&str]) {
        let lengths: String = T::lengths().iter().map(|length| format!("[{length}]")).collect();
        let declared = pointer.unwrap_or(T::NAME);
        let gap = if declared.ends_with('*') { "" } else { " " };
        let _ = write!(self.text, "  {declared}{gap}{name}{lengths};");
        if !comments.is_empty() {
            let _ = write!(self.text, "  //{}", comments.concat());
        }
        self.text.push('\n');
    }

    /// The struct is whole, and has `bytes` bytes in Rust.
    pub fn finish(mut self, bytes: usize) -> Self {
        let name = self.name;
        let _ = write!(
            self.text,
            "}};\nstatic_assert(sizeof({name}) == {bytes}, \"{name} has another size in Rust\");\n"
        );
        self
    }
}

/// The text of all structs that `R` and `P` are made of.
pub(super) fn text<R: DeviceType, P: DeviceType>() -> String {
    let mut structs = Vec::new();
    R::add(&mut structs);
    P::add(&mut structs);
    structs.into_iter().map(|made| made.text).collect::<Vec<_>>().join("\n")
}

/// Whether a struct of this name is among `structs`.
pub fn has(structs: &[StructText], name: &str) -> bool {
    structs.iter().any(|made| made.name == name)
}

/// Declares a struct in Rust, and its text in C++ under the name behind `as`. `= "float *"` behind a field is its type
/// in C++, where Rust has but an address or a number.
macro_rules! device_struct {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($derive:path),* $(,)?)])?
        $vis:vis struct $name:ident as $device:ident {
            $(
                $(#[doc = $comment:literal])*
                $field_vis:vis $field:ident: $type:ty $(= $pointer:literal)?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable $($(, $derive)*)?)]
        #[repr(C)]
        $vis struct $name {
            $(
                $(#[doc = $comment])*
                $field_vis $field: $type
            ),*
        }

        impl $crate::gpu::layout::DeviceType for $name {
            const NAME: &'static str = stringify!($device);

            fn add(structs: &mut Vec<$crate::gpu::layout::StructText>) {
                if $crate::gpu::layout::has(structs, Self::NAME) {
                    return;
                }
                $(<$type as $crate::gpu::layout::DeviceType>::add(structs);)*
                let mut made = $crate::gpu::layout::StructText::new(Self::NAME);
                $({
                    let pointer: &[&str] = &[$($pointer)?];
                    made.field::<$type>(stringify!($field), pointer.first().copied(), &[$($comment),*]);
                })*
                structs.push(made.finish(size_of::<Self>()));
            }
        }
    };
}
pub(crate) use device_struct;

#[cfg(test)]
mod tests {
    use super::*;

    device_struct! {
        /// An axis.
        #[derive(Debug, Default)]
        struct Axis as Axis {
            extent: u32,
            stride: i32,
        }
    }

    device_struct! {
        /// A row.
        struct Row as Row {
            to: u64 = "float *",
            /// of the output
            elements: u64,
            axes: [Axis; 2],
            matrix: [[f32; 3]; 2],
        }
    }

    device_struct! {
        /// The same with two fields exchanged.
        struct Exchanged as Row {
            to: u64 = "float *",
            /// of the output
            elements: u64,
            axes: [ExchangedAxis; 2],
            matrix: [[f32; 3]; 2],
        }
    }

    device_struct! {
        /// An axis with its fields exchanged.
        #[derive(Debug, Default)]
        struct ExchangedAxis as Axis {
            stride: i32,
            extent: u32,
        }
    }

    #[test]
    fn fields_stand_in_their_order() {
        let expected = "struct Axis {\n  uint32_t extent;\n  int32_t stride;\n};\n\
             static_assert(sizeof(Axis) == 8, \"Axis has another size in Rust\");\n\n\
             struct Row {\n  float *to;\n  uint64_t elements;  // of the output\n  Axis axes[2];\n\
             \x20 float matrix[2][3];\n};\n\
             static_assert(sizeof(Row) == 56, \"Row has another size in Rust\");\n";
        assert_eq!(text::<Row, Axis>(), expected);
        assert_ne!(text::<Exchanged, ExchangedAxis>(), expected);
    }
}
