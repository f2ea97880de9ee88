//! Asks a running server by HTTP. It must not know what it is asked for.

use std::io::Read;
use std::time::Duration;

use gesso::error::{Context, Error, ErrorKind, Result};
use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body};

/// How long it may take to be reached.
const CONNECT: Duration = Duration::from_secs(10);
/// How long it may say nothing.
const ANSWER: Duration = Duration::from_secs(60);
/// Bytes of the lines before an answer. Stops a server that never ends them.
const MAX_HEAD_BYTES: usize = 1 << 16;
/// Bytes of the text of an error that are read.
const MAX_ERROR_BYTES: u64 = 1 << 16;
/// Bytes of an answer that are read.
const MAX_ANSWER_BYTES: u64 = 1 << 30;
/// How long the JSON before the tensors is, in a request and in an answer.
const HEAD_LENGTH: &str = "Inference-Header-Content-Length";

/// Where a server listens to HTTP.
#[derive(Clone)]
pub(crate) struct Server {
    address: String,
    agent: Agent,
}

/// One tensor of a request or of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tensor<B> {
    pub(crate) name: String,
    /// As the protocol names it: `UINT8`, `BYTES`.
    pub(crate) datatype: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: B,
}

impl Tensor<Vec<u8>> {
    /// The same, without a copy of the bytes.
    pub(crate) fn borrowed(&self) -> Tensor<&[u8]> {
        let Self { name, datatype, shape, bytes } = self;
        Tensor { name: name.clone(), datatype: datatype.clone(), shape: shape.clone(), bytes }
    }
}

impl Server {
    /// A server by `HOST:PORT`, before which `http://` may stand.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let address = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let is_one = address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if !is_one || address.contains(['/', '@', '?', '#']) {
            return Err("expected `HOST:PORT` of the server's HTTP, such as `localhost:8000`".to_owned());
        }
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT))
            .timeout_per_read(Some(ANSWER))
            .timeout_per_write(Some(ANSWER))
            .max_response_header_size(MAX_HEAD_BYTES)
            .http_status_as_error(false)
            .max_redirects(0)
            // The server itself is asked, whatever stands in the environment.
            .proxy(None)
            .build();
        Ok(Self { address: address.to_owned(), agent: config.into() })
    }

    /// Sends a request to a model, to the version that the server takes where none is given. Returns those `outputs`,
    /// or all where none is named.
    ///
    /// # Errors
    /// Unavailable when the server cannot be reached; else what it refuses the request with.
    pub(crate) fn infer(
        &self,
        (model, version): (&str, Option<u64>),
        tensors: &[Tensor<&[u8]>],
        outputs: &[&str],
    ) -> Result<Vec<Tensor<Vec<u8>>>> {
        let input = |tensor: &Tensor<&[u8]>| {
            json!({ "name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape,
                "parameters": { "binary_data_size": tensor.bytes.len() } })
        };
        let inputs: Vec<Value> = tensors.iter().map(input).collect();
        let output = |name: &&str| json!({ "name": name, "parameters": { "binary_data": true } });
        let mut head = json!({ "inputs": inputs, "parameters": { "binary_data_output": true } });
        if let (Value::Object(head), false) = (&mut head, outputs.is_empty()) {
            head.insert("outputs".to_owned(), outputs.iter().map(output).collect());
        }
        let head = head.to_string();
        let length = head.len();
        let mut body = head.into_bytes();
        tensors.iter().for_each(|tensor| body.extend(tensor.bytes));
        let asked = || {
            let url = self.url(&format!("{}/infer", path(model, version)));
            let mut answer = self.agent.post(url).header(HEAD_LENGTH, length.to_string()).send(&body[..])?;
            let length =
                answer.headers().get(HEAD_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
            let bytes = read(&mut answer)?;
            Ok((answer.status().as_u16(), length, bytes))
        };
        let (status, length, bytes) = self.told(asked())?;
        self.must_be_good(status, &bytes)?;
        answer(&bytes, length.unwrap_or(bytes.len())).context(|| format!("server `{}`", self.address))
    }

    /// Whether the server says that a version of a model is ready.
    ///
    /// # Errors
    /// Unavailable when the server cannot be reached, or does not say so.
    pub(crate) fn must_be_ready(&self, model: &str, version: u64) -> Result<()> {
        let asked = || {
            let mut answer =
                self.agent.get(self.url(&format!("{}/ready", path(model, Some(version))))).call()?;
            let bytes = read(&mut answer)?;
            Ok((answer.status().as_u16(), bytes))
        };
        let (status, bytes) = self.told(asked())?;
        self.must_be_good(status, &bytes)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn told<T>(&self, asked: Result<T, ureq::Error>) -> Result<T> {
        let failed = |error: ureq::Error| Error::new(ErrorKind::Unavailable, error.to_string());
        asked.map_err(failed).context(|| format!("server `{}`", self.address))
    }

    fn must_be_good(&self, status: u16, bytes: &[u8]) -> Result<()> {
        if status == 200 {
            return Ok(());
        }
        let error = String::from_utf8_lossy(bytes);
        let text = serde_json::from_slice::<Value>(bytes).ok();
        let text = text.as_ref().and_then(|text| text.get("error")?.as_str()).unwrap_or(&error);
        let text = if text.is_empty() { "it is not ready" } else { text };
        Err(Error::invalid(format!("status {status}: {text}")))
            .context(|| format!("server `{}`", self.address))
    }
}

/// The body of an answer.
fn read(answer: &mut Response<Body>) -> Result<Vec<u8>, ureq::Error> {
    let is_good = answer.status() == 200;
    let body = answer.body_mut();
    if is_good {
        return body.with_config().limit(MAX_ANSWER_BYTES).read_to_vec();
    }
    let mut error = Vec::new();
    body.as_reader().take(MAX_ERROR_BYTES).read_to_end(&mut error)?;
    Ok(error)
}

/// The tensors of an answer, whose JSON has `length` bytes.
fn answer(bytes: &[u8], length: usize) -> Result<Vec<Tensor<Vec<u8>>>> {
    let wrong = |what: &str| Error::invalid(format!("the answer {what}"));
    let (head, mut rest) = bytes.split_at_checked(length).ok_or_else(|| wrong("breaks off"))?;
    let head: Value = serde_json::from_slice(head).map_err(|_| wrong("begins with no JSON"))?;
    let outputs = head.get("outputs").and_then(Value::as_array).ok_or_else(|| wrong("has no outputs"))?;
    let tensor = |output: &Value| {
        let text = |key: &str| output.get(key).and_then(Value::as_str).map(str::to_owned);
        let size =
            output.get("parameters").and_then(|parameters| parameters.get("binary_data_size")?.as_u64());
        let size = size.and_then(|size| usize::try_from(size).ok());
        let (bytes, left) = rest.split_at_checked(size?)?;
        rest = left;
        let shape = output.get("shape")?.as_array()?.iter();
        let shape = shape.map(|extent| usize::try_from(extent.as_u64()?).ok()).collect::<Option<_>>()?;
        Some(Tensor { name: text("name")?, datatype: text("datatype")?, shape, bytes: bytes.to_vec() })
    };
    outputs.iter().map(tensor).collect::<Option<_>>().ok_or_else(|| wrong("has an output without its bytes"))
}

fn path(model: &str, version: Option<u64>) -> String {
    let mut path = String::from("/v2/models/");
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            path += &format!("%{byte:02X}");
        }
    }
    version.map_or(path.clone(), |version| format!("{path}/versions/{version}"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn addresses_are_hosts_with_ports() {
        for (text, address) in [
            ("localhost:8000", "localhost:8000"),
            ("http://10.0.0.1:80/", "10.0.0.1:80"),
            ("[::1]:8000", "[::1]:8000"),
        ] {
            assert_eq!(Server::parse(text).map(|server| server.address), Ok(address.to_owned()));
        }
        for text in ["localhost", "https://a:443", ":80", "a:x", "a:8000/v2", "a@b:80"] {
            assert!(Server::parse(text).is_err(), "{text}");
        }
    }

    /// What a server that answers `said`, whatever it is asked, makes of a request.
    fn answered(said: Vec<u8>) -> Result<Vec<Tensor<Vec<u8>>>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server::parse(&listener.local_addr().unwrap().to_string()).unwrap();
        let said = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 4_096];
            let count = stream.read(&mut asked).unwrap();
            // Who was asked may hang up before all is said.
            let _ = stream.write_all(&said);
            String::from_utf8_lossy(&asked[..count]).into_owned()
        });
        let tensor =
            Tensor { name: "X".to_owned(), datatype: "UINT8".to_owned(), shape: vec![1], bytes: &b"7"[..] };
        let answer = server.infer(("a b", None), &[tensor], &["O"]);
        let asked = said.join().unwrap();
        assert!(asked.starts_with("POST /v2/models/a%20b/infer HTTP/1.1\r\n"), "{asked}");
        answer
    }

    fn http(status: &str, lines: &str, body: &[u8]) -> Vec<u8> {
        let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{lines}\r\n", body.len());
        [head.as_bytes(), body].concat()
    }

    #[test]
    fn answers_are_read() {
        let head = br#"{"outputs":[{"name":"O","datatype":"INT8","shape":[1,2],"parameters":{"binary_data_size":2}}]}"#;
        let lines = format!("Inference-Header-Content-Length: {}\r\n", head.len());
        let whole = [&head[..], b"\x01\x02"].concat();
        let [output] = answered(http("200 OK", &lines, &whole)).unwrap().try_into().unwrap();
        let expected = Tensor {
            name: "O".to_owned(),
            datatype: "INT8".to_owned(),
            shape: vec![1, 2],
            bytes: vec![1, 2],
        };
        assert_eq!(output, expected);
        let error = |said: Vec<u8>| answered(said).unwrap_err().to_string();
        assert!(error(http("200 OK", &lines, &whole[..head.len() + 1])).contains("without its bytes"));
        assert!(error(http("200 OK", &lines, &head[..9])).contains("the answer breaks off"));
        assert!(error(http("200 OK", "", b"{}")).contains("the answer has no outputs"));
        assert!(error(http("400 Bad", "", br#"{"error":"too large"}"#)).ends_with("status 400: too large"));
        let long = error(http("400 Bad", "", &vec![b'x'; 100_000]));
        assert!(long.len() < 70_000 && long.contains("status 400: xxx"));
        assert!(error(http("503 No", "", b"")).ends_with("status 503: it is not ready"));
    }

    #[test]
    fn what_is_no_answer_is_an_error() {
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(20_000)).into_bytes();
        for said in [b"220 mail\r\n\r\n".to_vec(), b"HTTP/1.1 200 OK\r\nX: y".to_vec(), endless] {
            let error = answered(said).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        }
    }
}
