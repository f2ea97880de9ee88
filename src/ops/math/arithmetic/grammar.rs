//! Reads `expression_desc`, the text that a file gives an arithmetic operator. The file is not trusted: length and
//! depth are bounded, and every error says where. It must not know element types' rules or tensors.
//!
//! ```text
//! call  := NAME "(" { expr } ")"        operands separated by blanks
//! expr  := call | "&" INT | "$" INT ":" TYPE
//! ```

use crate::error::{Error, Result};
use crate::limits;
use crate::ops::math::arithmetic::functions::Function;
use crate::tensor::DType;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// Regular input of the operator.
    Input(usize),
    /// Constant of the file: `index` counts in `real_constants` for a float type, else in `integer_constants`.
    Constant { index: usize, dtype: DType },
    /// A function of other expressions, as many as it takes.
    Call { function: Function, operands: Vec<Expression> },
}

impl Expression {
    /// Parses `text`.
    ///
    /// # Errors
    /// The position of the first character that does not fit, and what would.
    pub(super) fn parse(text: &str) -> Result<Self> {
        if text.len() > limits::MAX_EXPRESSION_BYTES {
            return Err(Error::invalid(format!(
                "the expression has {} bytes, more than the limit of {}",
                text.len(),
                limits::MAX_EXPRESSION_BYTES
            )));
        }
        let mut parser = Parser { text, at: 0 };
        let expression = parser.call(0)?;
        parser.blanks();
        if parser.at < text.len() {
            return Err(parser.expected("the end"));
        }
        Ok(expression)
    }

    /// Calls `f` for every input that the expression names, as often as it does.
    pub(super) fn for_each_input(&self, f: &mut impl FnMut(usize)) {
        match self {
            Expression::Input(index) => f(*index),
            Expression::Constant { .. } => {}
            Expression::Call { operands, .. } => {
                for operand in operands {
                    operand.for_each_input(f);
                }
            }
        }
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn expression(&mut self, depth: usize) -> Result<Expression> {
        match self.peek() {
            Some(b'&') => {
                self.at += 1;
                Ok(Expression::Input(self.integer()?))
            }
            Some(b'$') => {
                self.at += 1;
                let index = self.integer()?;
                self.token(b':')?;
                Ok(Expression::Constant { index, dtype: self.dtype()? })
            }
            _ => self.call(depth),
        }
    }

    fn call(&mut self, depth: usize) -> Result<Expression> {
        if depth >= limits::MAX_EXPRESSION_DEPTH {
            return Err(Error::invalid(format!(
                "the expression is nested deeper than the limit of {} calls",
                limits::MAX_EXPRESSION_DEPTH
            )));
        }
        let start = self.at;
        let name = self.word();
        if name.is_empty() {
            return Err(self.expected("a function"));
        }
        let function = Function::named(name).ok_or_else(|| {
            Error::unsupported(format!(
                "function `{name}` at position {start} of expression `{}` is not known",
                self.text.escape_debug()
            ))
        })?;
        self.blanks();
        self.token(b'(')?;
        let mut operands = Vec::with_capacity(function.arity());
        loop {
            self.blanks();
            if self.peek() == Some(b')') {
                self.at += 1;
                break;
            }
            operands.push(self.expression(depth + 1)?);
        }
        if operands.len() != function.arity() {
            return Err(Error::invalid(format!(
                "function `{name}` has {} operands, expected {}",
                operands.len(),
                function.arity()
            )));
        }
        Ok(Expression::Call { function, operands })
    }

    fn dtype(&mut self) -> Result<DType> {
        let start = self.at;
        let name = self.word();
        DType::ALL.into_iter().find(|dtype| dtype.name() == name).ok_or_else(|| {
            self.at = start;
            self.expected("an element type")
        })
    }

    fn integer(&mut self) -> Result<usize> {
        let digits = self.run(|byte| byte.is_ascii_digit());
        digits.parse().map_err(|_| self.expected("a number"))
    }

    fn word(&mut self) -> &'t str {
        self.run(|byte| byte.is_ascii_alphanumeric())
    }

    fn blanks(&mut self) {
        self.run(|byte| byte == b' ');
    }

    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let len = rest.bytes().take_while(|&byte| belongs(byte)).count();
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn token(&mut self, token: u8) -> Result<()> {
        if self.peek() != Some(token) {
            return Err(self.expected(&format!("`{}`", char::from(token))));
        }
        self.at += 1;
        Ok(())
    }

    fn expected(&self, what: &str) -> Error {
        let found = self.text.get(self.at..).and_then(|rest| rest.chars().next());
        let found = found.map_or("the end".to_owned(), |c| format!("`{}`", c.escape_debug()));
        Error::invalid(format!(
            "expected {what} at position {} of expression `{}`, found {found}",
            self.at,
            self.text.escape_debug()
        ))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ops::math::arithmetic::functions::{Binary, Real};

    #[test]
    fn reads_what_dali_writes() {
        let expression = Expression::parse("mul(&0 $1:float32)").unwrap();
        let operands = vec![Expression::Input(0), Expression::Constant { index: 1, dtype: DType::F32 }];
        assert_eq!(expression, Expression::Call { function: Function::Binary(Binary::Mul), operands });
        for text in
            ["clamp(&0 $0:int32 $1:uint8)", "bitand(&0 $0:bool)", "add( &00  $0:int64 )", "sub (&0$0:int8)"]
        {
            assert!(Expression::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn calls_may_nest() {
        let expression = Expression::parse("add(&0 sqrt(mul(&3 $0:int8)))").unwrap();
        let mut inputs = Vec::new();
        expression.for_each_input(&mut |input| inputs.push(input));
        assert_eq!(inputs, [0, 3]);
        let Expression::Call { operands, .. } = &expression else { panic!() };
        assert!(matches!(operands[1], Expression::Call { function: Function::Real(Real::Sqrt), .. }));
    }

    #[test]
    fn errors_name_the_place() {
        for (text, words) in [
            ("", "expected a function at position 0"),
            ("&0", "expected a function at position 0"),
            ("$0:int32", "expected a function at position 0"),
            (" add(&0 &1)", "expected a function at position 0"),
            ("add", "expected `(` at position 3 of expression `add`, found the end"),
            ("add(&0 &1", "expected a function at position 9"),
            ("add(&0,&1)", "expected a function at position 6 of expression `add(&0,&1)`, found `,`"),
            ("add(&0 $0)", "expected `:` at position 9"),
            ("add(&0 $0:)", "expected an element type at position 10"),
            ("add(&0 $0:float)", "expected an element type at position 10"),
            ("add(& 0 &1)", "expected a number at position 5"),
            ("add(&-1 &1)", "expected a number at position 5"),
            ("add(&99999999999999999999 &1)", "expected a number"),
            ("add(&0 &1) x", "expected the end at position 11"),
            ("add(&0\t&1)", "found `\\t`"),
            ("add(&0 \u{fe}", "found `\u{fe}`"),
            ("add(&0)", "`add` has 1 operands, expected 2"),
            ("rand()", "function `rand` at position 0"),
        ] {
            let error = Expression::parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }

    #[test]
    fn length_and_depth_are_bounded() {
        let nested = |depth: usize| format!("{}&0{}", "abs(".repeat(depth), ")".repeat(depth));
        assert!(Expression::parse(&nested(limits::MAX_EXPRESSION_DEPTH)).is_ok());
        let error = Expression::parse(&nested(limits::MAX_EXPRESSION_DEPTH + 1)).unwrap_err().to_string();
        assert!(error.contains("nested deeper than the limit"), "{error}");
        let error = Expression::parse(&nested(1000)).unwrap_err().to_string();
        assert!(error.contains("bytes, more than the limit"), "{error}");
    }

    proptest! {
        #[test]
        fn hostile_text_is_an_error_and_no_panic(text in "(add|abs|[0-9]{1,30}|int32|[&$:(), \u{fe}]){0,40}") {
            let _ = Expression::parse(&text);
        }
    }
}
