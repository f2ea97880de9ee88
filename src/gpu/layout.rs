//! Structs, enums and constants that kernels have too, declared here once: the macros `device_struct`, `device_enum`
//! and `device_constants` make what Rust uses and its text in C++, so that the two cannot differ. It must not know
//! which structs there are.
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
//! A kernel finds the text in `layouts/NAME.cuh`, where NAME is that of its [`Header`]: mostly the kernel's own. The
//! compiler of a device gets it from memory. The files in `kernels/layouts/` are the same text for readers and for
//! tests that run kernels on the host; a test holds them to it.

use std::fmt::{Display, Write};
use std::hash::{Hash, Hasher};

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

/// A type that constants of kernels have.
pub trait ConstantType {
    /// The type in C++.
    const IN_KERNELS: &'static str;
}

impl<T: DeviceType> ConstantType for T {
    const IN_KERNELS: &'static str = T::NAME;
}

impl ConstantType for usize {
    const IN_KERNELS: &'static str = "uint32_t";
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

/// Structs and constants in C++ that kernels include as `layouts/NAME.cuh`.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    pub(crate) name: &'static str,
    /// Makes the text: only where a kernel is compiled.
    pub(crate) text: fn() -> String,
}

/// One name has one text: a test holds that.
impl PartialEq for Header {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Header {}

impl Hash for Header {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// A struct or an enum in C++.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructText {
    name: &'static str,
    text: String,
}

impl StructText {
    /// A struct without fields of its own yet, which has those of struct `base` in front.
    pub fn new(name: &'static str, base: Option<&str>) -> Self {
        let base = base.map(|base| format!(" : {base}")).unwrap_or_default();
        Self { name, text: format!("struct {name}{base} {{\n") }
    }

    /// An enum whose constants have these numbers.
    pub fn of_enum(name: &'static str, constants: &[(&str, u32)]) -> Self {
        let constants: Vec<String> =
            constants.iter().map(|(name, number)| format!("{name} = {number}")).collect();
        Self { name, text: format!("enum {name} : uint32_t {{ {} }};\n", constants.join(", ")) }
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

/// A constant in C++.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstantText(String);

impl ConstantText {
    /// Constant `name` of `value`, whose type in C++ is `type_name`.
    pub fn new(name: &str, type_name: &str, value: impl Display, comments: &[&str]) -> Self {
        let comments: String = comments.iter().map(|comment| format!("//{comment}\n")).collect();
        Self(format!("{comments}constexpr {type_name} {name} = {value};\n"))
    }
}

/// The text of `constants`, and of all structs that `R` and `P` are made of and point to.
pub(crate) fn text_with<R: DeviceType, P: DeviceType>(constants: &[ConstantText]) -> String {
    let mut structs = Vec::new();
    R::add(&mut structs);
    P::add(&mut structs);
    let constants: String = constants.iter().map(|constant| constant.0.as_str()).collect();
    let structs = structs.into_iter().map(|made| made.text);
    let parts = (!constants.is_empty()).then_some(constants).into_iter().chain(structs);
    parts.collect::<Vec<_>>().join("\n")
}

/// The same without constants.
pub(crate) fn text<R: DeviceType, P: DeviceType>() -> String {
    text_with::<R, P>(&[])
}

/// Whether a struct of this name is among `structs`.
pub fn has(structs: &[StructText], name: &str) -> bool {
    structs.iter().any(|made| made.name == name)
}

/// Declares a struct in Rust, and its text in C++ under the name behind `as`. `= "float *"` behind a field is its type
/// in C++, where Rust has but an address or a number; `of Band` behind that is the struct that the address is of, whose
/// text comes first. `extends image: Image` makes that field the base of the struct in C++.
macro_rules! device_struct {
    (
        $(#[doc = $doc:literal])*
        $(#[derive($($derive:path),* $(,)?)])?
        $vis:vis struct $name:ident as $device:ident $(extends $base_vis:vis $base:ident: $base_type:ty)? {
            $(
                $(#[doc = $comment:literal])*
                $field_vis:vis $field:ident: $type:ty $(= $pointer:literal $(of $pointee:ty)?)?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable $($(, $derive)*)?)]
        #[repr(C)]
        $vis struct $name {
            $($base_vis $base: $base_type,)?
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
                let base: Option<&str> = None;
                $(
                    <$base_type as $crate::gpu::layout::DeviceType>::add(structs);
                    let base = base.or(Some(<$base_type as $crate::gpu::layout::DeviceType>::NAME));
                )?
                $(
                    <$type as $crate::gpu::layout::DeviceType>::add(structs);
                    $($(<$pointee as $crate::gpu::layout::DeviceType>::add(structs);)?)?
                )*
                let mut made = $crate::gpu::layout::StructText::new(Self::NAME, base);
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

/// Declares an enum in Rust, and its text in C++ under the name behind `as`; the constants have their names in C++
/// behind `as`, too. A field that holds such a number is `u32 = "Border" of TheEnum`.
macro_rules! device_enum {
    (
        $(#[doc = $doc:literal])*
        $vis:vis enum $name:ident as $device:ident {
            $($(#[doc = $comment:literal])* $variant:ident as $constant:ident),* $(,)?
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u32)]
        $vis enum $name {
            $($(#[doc = $comment])* $variant),*
        }

        impl $name {
            /// What a kernel knows it by.
            $vis fn number(self) -> u32 {
                self as u32
            }
        }

        impl $crate::gpu::layout::DeviceType for $name {
            const NAME: &'static str = stringify!($device);

            fn add(structs: &mut Vec<$crate::gpu::layout::StructText>) {
                if !$crate::gpu::layout::has(structs, Self::NAME) {
                    let constants = [$((stringify!($constant), Self::$variant.number())),*];
                    structs.push($crate::gpu::layout::StructText::of_enum(Self::NAME, &constants));
                }
            }
        }
    };
}
pub(crate) use device_enum;

/// Declares constants in Rust, and a function `constants` that makes their text in C++. `as "int"` behind a type is
/// that in C++, where it is another.
macro_rules! device_constants {
    (
        $list_vis:vis fn $list:ident;
        $(
            $(#[doc = $doc:literal])*
            $vis:vis const $name:ident: $type:ty $(as $device:literal)? = $value:expr;
        )*
    ) => {
        $(
            $(#[doc = $doc])*
            $vis const $name: $type = $value;
        )*

        /// The text of those constants in C++.
        $list_vis fn $list() -> Vec<$crate::gpu::layout::ConstantText> {
            vec![$({
                let device: &[&str] = &[$($device,)? <$type as $crate::gpu::layout::ConstantType>::IN_KERNELS];
                $crate::gpu::layout::ConstantText::new(stringify!($name), device[0], $name, &[$($doc),*])
            }),*]
        }
    };
}
pub(crate) use device_constants;

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
        /// A longer row, of which one field is where an axis lies.
        struct Longer as Longer extends row: Row {
            more: u64 = "const Axis *" of Axis,
            /// 0 is none
            other: u64 = "const Other *" of Other,
        }
    }

    device_struct! {
        /// What only an address leads to.
        struct Other as Other {
            last: u64,
        }
    }

    device_enum! {
        /// What a field holds.
        enum Kind as Sort {
            Small as SMALL,
            /// More than a hand.
            Large as LARGE,
        }
    }

    device_struct! {
        struct Sorted as Sorted {
            sort: u32 = "Sort" of Kind,
        }
    }

    device_constants! {
        fn constants;
        /// Threads of a block.
        const THREADS: u32 = 1 << 7;
        const ROWS: usize as "int" = 3;
        const UNIT: usize = 4;
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

    #[test]
    fn a_struct_comes_behind_its_base_and_behind_what_it_points_to() {
        let text = text::<Longer, Axis>();
        let places =
            ["struct Axis {", "struct Row {", "struct Other {", "struct Longer : Row {\n  const Axis *more;"]
                .map(|part| text.find(part).unwrap());
        assert!(places.is_sorted(), "{text}");
        assert!(text.contains("sizeof(Longer) == 72"), "{text}");
        assert_eq!(text.matches("struct Axis {").count(), 1);
    }

    #[test]
    fn an_enum_stands_before_the_struct_that_has_it() {
        let expected =
            "enum Sort : uint32_t { SMALL = 0, LARGE = 1 };\n\nstruct Sorted {\n  Sort sort;\n};\n";
        let text = text::<Sorted, Sorted>();
        assert!(text.starts_with(expected), "{text}");
        assert_eq!([Kind::Small, Kind::Large].map(Kind::number), [0, 1]);
    }

    #[test]
    fn constants_have_the_types_of_the_kernel() {
        let text = text_with::<Axis, Axis>(&constants());
        let expected = "// Threads of a block.\nconstexpr uint32_t THREADS = 128;\nconstexpr int ROWS = 3;\n\
             constexpr uint32_t UNIT = 4;\n\nstruct Axis {";
        assert!(text.starts_with(expected), "{text}");
    }
}
