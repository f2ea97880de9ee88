//! The functions of arithmetic expressions and their names. What types they take and give, `promote` says; how they are
//! computed, `loops`.

/// A function by its group: the members of a group have the same rules for element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    /// One operand, whose type stays.
    Same(Same),
    /// `bitnot`: one integer operand.
    Not,
    /// One operand, a real result.
    Real(Real),
    /// Two operands of any type.
    Binary(Binary),
    /// Two operands, a real result.
    RealBinary(RealBinary),
    /// Two operands, a truth value.
    Compare(Compare),
    /// Two integer operands.
    Bits(Bits),
    /// `clamp`: a value and its lower and upper bound.
    Clamp,
}

/// See [`Function::Same`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Same {
    Plus,
    Minus,
    Abs,
}

/// See [`Function::Real`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Real {
    Sqrt,
    Rsqrt,
    Cbrt,
    Exp,
    Log,
    Log2,
    Log10,
    Fabs,
    Floor,
    Ceil,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
}

/// See [`Function::Binary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Min,
    Max,
    Pow,
}

/// See [`Function::RealBinary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RealBinary {
    Div,
    Pow,
    Atan2,
}

/// See [`Function::Compare`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Eq,
    Neq,
    Lt,
    Leq,
    Gt,
    Geq,
}

/// See [`Function::Bits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bits {
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

/// Every function by the name it has in an expression.
const NAMES: &[(&str, Function)] = &[
    ("plus", Function::Same(Same::Plus)),
    ("minus", Function::Same(Same::Minus)),
    ("abs", Function::Same(Same::Abs)),
    ("bitnot", Function::Not),
    ("sqrt", Function::Real(Real::Sqrt)),
    ("rsqrt", Function::Real(Real::Rsqrt)),
    ("cbrt", Function::Real(Real::Cbrt)),
    ("exp", Function::Real(Real::Exp)),
    ("log", Function::Real(Real::Log)),
    ("log2", Function::Real(Real::Log2)),
    ("log10", Function::Real(Real::Log10)),
    ("fabs", Function::Real(Real::Fabs)),
    ("floor", Function::Real(Real::Floor)),
    ("ceil", Function::Real(Real::Ceil)),
    ("sin", Function::Real(Real::Sin)),
    ("cos", Function::Real(Real::Cos)),
    ("tan", Function::Real(Real::Tan)),
    ("asin", Function::Real(Real::Asin)),
    ("acos", Function::Real(Real::Acos)),
    ("atan", Function::Real(Real::Atan)),
    ("sinh", Function::Real(Real::Sinh)),
    ("cosh", Function::Real(Real::Cosh)),
    ("tanh", Function::Real(Real::Tanh)),
    ("asinh", Function::Real(Real::Asinh)),
    ("acosh", Function::Real(Real::Acosh)),
    ("atanh", Function::Real(Real::Atanh)),
    ("add", Function::Binary(Binary::Add)),
    ("sub", Function::Binary(Binary::Sub)),
    ("mul", Function::Binary(Binary::Mul)),
    ("div", Function::Binary(Binary::Div)),
    ("mod", Function::Binary(Binary::Mod)),
    ("min", Function::Binary(Binary::Min)),
    ("max", Function::Binary(Binary::Max)),
    ("pow", Function::Binary(Binary::Pow)),
    ("fdiv", Function::RealBinary(RealBinary::Div)),
    ("fpow", Function::RealBinary(RealBinary::Pow)),
    ("atan2", Function::RealBinary(RealBinary::Atan2)),
    ("eq", Function::Compare(Compare::Eq)),
    ("neq", Function::Compare(Compare::Neq)),
    ("lt", Function::Compare(Compare::Lt)),
    ("leq", Function::Compare(Compare::Leq)),
    ("gt", Function::Compare(Compare::Gt)),
    ("geq", Function::Compare(Compare::Geq)),
    ("bitand", Function::Bits(Bits::And)),
    ("bitor", Function::Bits(Bits::Or)),
    ("bitxor", Function::Bits(Bits::Xor)),
    ("lshift", Function::Bits(Bits::ShiftLeft)),
    ("rshift", Function::Bits(Bits::ShiftRight)),
    ("clamp", Function::Clamp),
];

impl Function {
    /// The function that an expression calls `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|&(_, function)| function)
    }

    /// Every name.
    #[cfg(test)]
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|&(name, _)| name)
    }

    /// How an expression calls it.
    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, function)| *function == self).map_or("?", |&(name, _)| name)
    }

    /// Number of operands.
    pub(super) fn arity(self) -> usize {
        match self {
            Function::Same(_) | Function::Not | Function::Real(_) => 1,
            Function::Binary(_) | Function::RealBinary(_) | Function::Compare(_) | Function::Bits(_) => 2,
            Function::Clamp => 3,
        }
    }
}

impl Compare {
    /// The comparison of the operands in the other order.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Compare::Eq | Compare::Neq => self,
            Compare::Lt => Compare::Gt,
            Compare::Leq => Compare::Geq,
            Compare::Gt => Compare::Lt,
            Compare::Geq => Compare::Leq,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_one_name() {
        for (i, &(name, function)) in NAMES.iter().enumerate() {
            assert_eq!(Function::named(name), Some(function));
            assert_eq!(function.name(), name);
            assert!(NAMES[..i].iter().all(|&(other, f)| other != name && f != function), "{name}");
        }
        assert_eq!(Function::named("rand"), None);
    }
}
