//! A request as it was recorded, with its answer: one file. It must not know who records requests, or what sends them
//! again.
//!
//! ```text
//! {"gesso_request":1,"model":"m","version":"1","id":"","time_ms":1764470000123,"inputs":[...],"outputs":[...]}\n
//! bytes of the inputs, bytes of the outputs, one behind the other
//! ```
//!
//! The line is JSON. It says of each tensor its `name`, its `datatype` as Triton's protocol names it, its `shape`, and
//! how many `bytes` of it follow. An output of which no bytes were kept has `null` for them. In the place of `outputs`
//! stands `error`, the text of it, when the request failed.

use serde_json::{Map, Value, json};

use crate::config::DataType;
use gesso::error::{Context, Error, Result};
use gesso::limits;

/// What the name of a file with a record ends with.
pub const ENDING: &str = "request";

/// Bytes of the tensors of one record. Stops requests of gigabytes from being copied, and files of any size from being
/// read.
pub const MAX_RECORD_BYTES: usize = 1 << 28;

/// Bytes of the line before them. Stops a file that never ends it.
pub const MAX_HEADER_BYTES: usize = 1 << 20;

/// Tensors of a request, and of an answer.
const MAX_TENSORS: usize = 1 << 12;

/// Dimensions of a tensor. Stops a line that holds nothing but numbers.
const MAX_DIMENSIONS: usize = 64;

/// Which form of the file this is.
const FORM: u64 = 1;

/// A request, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The model that it was sent to.
    pub model: String,
    /// And the version that answered.
    pub version: String,
    /// What the client called it; often empty.
    pub id: String,
    /// When, in milliseconds from 1970 on.
    pub time_ms: u64,
    /// What was sent, each with its bytes.
    pub inputs: Vec<Tensor>,
    /// What was answered.
    pub answer: Answer,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Those outputs that the client asked for.
    Outputs(Vec<Tensor>),
    /// An error with this text.
    Failed(String),
}

/// A tensor of a request or of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Its name in the model's configuration.
    pub name: String,
    /// As the protocol names it: `UINT8`, `BYTES`.
    pub datatype: String,
    /// As the pipeline sees it.
    pub shape: Vec<usize>,
    /// As the client sees it, where `reshape` in the configuration makes that another one.
    pub sent: Option<Vec<usize>>,
    /// Of an output: which of the pipeline's it is.
    pub index: Option<usize>,
    /// `None` where they were not kept.
    pub bytes: Option<Vec<u8>>,
}

impl Tensor {
    /// The shape that a client sees.
    pub fn client_shape(&self) -> &[usize] {
        self.sent.as_deref().unwrap_or(&self.shape)
    }

    /// The type of its elements.
    ///
    /// # Errors
    /// Invalid for a name of none.
    pub fn data_type(&self) -> Result<DataType> {
        let name = if self.datatype == "BYTES" { "STRING" } else { &self.datatype };
        DataType::from_config_name(&format!("TYPE_{name}")).ok_or_else(|| {
            Error::invalid(format!("`datatype` is `{}`, expected a type such as `UINT8`", self.datatype))
        })
    }

    fn to_json(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("name".to_owned(), json!(self.name));
        fields.insert("datatype".to_owned(), json!(self.datatype));
        fields.insert("shape".to_owned(), json!(self.shape));
        if let Some(sent) = &self.sent {
            fields.insert("sent_shape".to_owned(), json!(sent));
        }
        if let Some(index) = self.index {
            fields.insert("index".to_owned(), json!(index));
        }
        fields.insert("bytes".to_owned(), json!(self.bytes.as_ref().map(Vec::len)));
        Value::Object(fields)
    }

    /// Reads what the line says of a tensor, and takes its bytes from `rest`.
    fn read(value: &Value, rest: &mut &[u8]) -> Result<Self> {
        let shape_of =
            |key: &str| value.get(key).filter(|shape| !shape.is_null()).map(|value| shape(key, value));
        let name = text(value, "name")?;
        let mut tensor = Self {
            datatype: text(value, "datatype")?,
            shape: shape_of("shape").transpose()?.ok_or_else(|| Error::invalid("there is no `shape`"))?,
            sent: shape_of("sent_shape").transpose()?,
            index: value.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok()),
            bytes: None,
            name,
        };
        let data_type = tensor.data_type()?;
        let count = match value.get("bytes") {
            Some(Value::Null) => return Ok(tensor),
            Some(Value::Number(number)) => number.as_u64().and_then(|count| usize::try_from(count).ok()),
            _ => None,
        };
        let count = count.ok_or_else(|| Error::invalid("`bytes` is no count of bytes"))?;
        let elements = tensor.shape.iter().try_fold(1_usize, |product, extent| product.checked_mul(*extent));
        if let DataType::Dense(dtype) = data_type
            && elements.and_then(|elements| elements.checked_mul(dtype.size())) != Some(count)
        {
            return Err(Error::invalid(format!(
                "it has {count} bytes, which is no tensor of {} and shape {:?}",
                tensor.datatype, tensor.shape
            )));
        }
        let (bytes, left) = rest.split_at_checked(count).ok_or_else(|| {
            Error::invalid(format!("the file ends: expected {count} bytes, found {}", rest.len()))
        })?;
        *rest = left;
        tensor.bytes = Some(bytes.to_vec());
        Ok(tensor)
    }
}

impl Recorded {
    /// The line before the bytes, with its end.
    pub fn header(&self) -> String {
        let tensors = |tensors: &[Tensor]| Value::Array(tensors.iter().map(Tensor::to_json).collect());
        let mut line = json!({
            "gesso_request": FORM, "model": self.model, "version": self.version, "id": self.id,
            "time_ms": self.time_ms, "inputs": tensors(&self.inputs),
        });
        if let Value::Object(fields) = &mut line {
            match &self.answer {
                Answer::Outputs(outputs) => fields.insert("outputs".to_owned(), tensors(outputs)),
                Answer::Failed(error) => fields.insert("error".to_owned(), json!(error)),
            };
        }
        line.to_string() + "\n"
    }

    /// All tensors whose bytes are in the file, in their order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let outputs = match &self.answer {
            Answer::Outputs(outputs) => outputs.as_slice(),
            Answer::Failed(_) => &[],
        };
        self.inputs.iter().chain(outputs).filter_map(|tensor| tensor.bytes.as_deref())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Invalid for what is no record, or a damaged one.
    pub fn parse(file: &[u8]) -> Result<Self> {
        let end = file.iter().take(MAX_HEADER_BYTES).position(|&byte| byte == b'\n').ok_or_else(|| {
            Error::invalid(format!("expected a line of JSON of at most {MAX_HEADER_BYTES} bytes"))
        })?;
        let (line, mut rest) = file.split_at(end);
        rest = rest.get(1..).unwrap_or_default();
        let line: Value = serde_json::from_slice(line)
            .map_err(|error| Error::invalid(format!("its first line is not JSON: {error}")))?;
        match line.get("gesso_request").and_then(Value::as_u64) {
            Some(FORM) => {}
            Some(other) => {
                return Err(Error::unsupported(format!("it is of form {other}, expected form {FORM}")));
            }
            None => return Err(Error::invalid("its first line has no `gesso_request`: it is no record")),
        }
        let inputs = tensors(&line, "inputs", &mut rest)?;
        if let Some(input) = inputs.iter().find(|input| input.bytes.is_none()) {
            return Err(Error::invalid(format!("input `{}` has no bytes", input.name)));
        }
        let answer = match line.get("error") {
            Some(error) => {
                let error = error.as_str().ok_or_else(|| Error::invalid("`error` is no text"))?;
                Answer::Failed(error.to_owned())
            }
            None => Answer::Outputs(tensors(&line, "outputs", &mut rest)?),
        };
        if !rest.is_empty() {
            return Err(Error::invalid(format!("{} bytes stand behind its last tensor", rest.len())));
        }
        Ok(Self {
            model: text(&line, "model")?,
            version: text(&line, "version")?,
            id: text(&line, "id")?,
            time_ms: line.get("time_ms").and_then(Value::as_u64).unwrap_or_default(),
            inputs,
            answer,
        })
    }
}

fn tensors(line: &Value, key: &str, rest: &mut &[u8]) -> Result<Vec<Tensor>> {
    let list = line.get(key).and_then(Value::as_array);
    let list = list.ok_or_else(|| Error::invalid(format!("there is no list `{key}`")))?;
    if list.len() > MAX_TENSORS {
        return Err(Error::invalid(format!(
            "`{key}` has {} tensors, more than the limit of {MAX_TENSORS}",
            list.len()
        )));
    }
    let read = |(i, value)| Tensor::read(value, rest).context(|| format!("{key}, tensor {i}"));
    list.iter().enumerate().map(read).collect()
}

fn shape(key: &str, value: &Value) -> Result<Vec<usize>> {
    let extent = |value: &Value| {
        let extent = value.as_u64().and_then(|extent| usize::try_from(extent).ok())?;
        Some(extent).filter(|&extent| extent <= limits::MAX_SAMPLE_BYTES)
    };
    let list = value.as_array().filter(|list| list.len() <= MAX_DIMENSIONS);
    let extents = list.and_then(|list| list.iter().map(extent).collect::<Option<Vec<usize>>>());
    extents.ok_or_else(|| Error::invalid(format!("`{key}` is no shape")))
}

fn text(value: &Value, key: &str) -> Result<String> {
    let text = value.get(key).and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| Error::invalid(format!("there is no text `{key}`")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tensor(name: &str, datatype: &str, shape: &[usize], bytes: Option<&[u8]>) -> Tensor {
        Tensor {
            name: name.to_owned(),
            datatype: datatype.to_owned(),
            shape: shape.to_vec(),
            sent: None,
            index: None,
            bytes: bytes.map(<[u8]>::to_vec),
        }
    }

    fn recorded() -> Recorded {
        let scalar =
            Tensor { sent: Some(vec![2, 1]), index: Some(1), ..tensor("S", "FP32", &[2], Some(&[7; 8])) };
        Recorded {
            model: "a\nb".to_owned(),
            version: "3".to_owned(),
            id: "é\"".to_owned(),
            time_ms: 1_764_470_000_123,
            inputs: vec![
                tensor("X", "UINT16", &[1, 2], Some(&[1, 2, 3, 4])),
                tensor("F", "BYTES", &[1, 1], Some(&[2, 0, 0, 0, 9, 9])),
            ],
            answer: Answer::Outputs(vec![tensor("O", "UINT8", &[1, 500], None), scalar]),
        }
    }

    fn file(recorded: &Recorded) -> Vec<u8> {
        let mut file = recorded.header().into_bytes();
        recorded.pieces().for_each(|piece| file.extend(piece));
        file
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let failed = Recorded { answer: Answer::Failed("too\nlarge".to_owned()), ..recorded() };
        for recorded in [recorded(), failed] {
            let file = file(&recorded);
            assert_eq!(file.iter().filter(|&&byte| byte == b'\n').count(), 1);
            assert_eq!(Recorded::parse(&file).unwrap(), recorded);
        }
    }

    #[test]
    fn what_is_damaged_is_an_error() {
        let whole = file(&recorded());
        for end in 0..whole.len() {
            assert!(Recorded::parse(&whole[..end]).is_err(), "{end}");
        }
        let longer = [&whole[..], b"x"].concat();
        let error = |file: &[u8]| Recorded::parse(file).unwrap_err().to_string();
        assert_eq!(error(&longer), "1 bytes stand behind its last tensor");
        assert_eq!(error(b"{}\n"), "its first line has no `gesso_request`: it is no record");
        assert_eq!(error(b"{\"gesso_request\":2}\n"), "it is of form 2, expected form 1");
        assert!(error(&vec![b' '; MAX_HEADER_BYTES + 1]).contains("at most 1048576 bytes"));
        let changed = |from: &str, to: &str| {
            let text = String::from_utf8(whole.clone()).unwrap();
            assert!(text.contains(from));
            error(text.replacen(from, to, 1).as_bytes())
        };
        assert_eq!(
            changed("[1,2]", "[1,3]"),
            "inputs, tensor 0: it has 4 bytes, which is no tensor of UINT16 and shape [1, 3]"
        );
        assert!(changed("[1,2]", "[18446744073709551615,2]").contains("`shape` is no shape"));
        assert!(changed("UINT16", "UINT17").contains("`datatype` is `UINT17`"));
        assert!(changed("\"bytes\":6", "\"bytes\":6000").contains("expected 6000 bytes"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_record_or_an_error(at in 0_usize..400, byte: u8) {
            let mut file = file(&recorded());
            let at = at % file.len();
            file[at] = byte;
            let _ = Recorded::parse(&file);
        }
    }
}
