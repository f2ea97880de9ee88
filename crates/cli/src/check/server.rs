//! Asks a running server: each version of a model gets the sample that was run here, by HTTP. It must not know what the
//! sample is.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use gesso::error::{Context, Error, Result};
use serde_json::{Value, json};

/// How long it may take to be reached.
const CONNECT: Duration = Duration::from_secs(10);
/// How long it may say nothing.
const ANSWER: Duration = Duration::from_secs(60);
/// Bytes of the lines before an answer. Stops a server that never ends them.
const MAX_HEAD_BYTES: u64 = 1 << 16;
/// Bytes of the text of an error that are read.
const MAX_ERROR_BYTES: u64 = 1 << 16;

/// Where a server listens to HTTP.
#[derive(Clone)]
pub(super) struct Server {
    address: String,
}

/// One tensor of a request.
pub(super) struct Tensor {
    pub(super) name: String,
    /// As the protocol names it: `UINT8`, `BYTES`.
    pub(super) datatype: String,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

struct Answer {
    status: u16,
    /// Why it was refused, if it was.
    error: String,
}

impl Server {
    /// A server by `HOST:PORT`, before which `http://` may stand.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let address = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        let is_one = address
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if !is_one || address.contains('/') {
            return Err("expected `HOST:PORT` of the server's HTTP, such as `localhost:8000`".to_owned());
        }
        Ok(Self { address: address.to_owned() })
    }

    /// Sends a request to a version of a model, which must be answered with outputs.
    ///
    /// # Errors
    /// Unavailable when the server cannot be reached; else what it refuses the request with.
    pub(super) fn ask(&self, model: &str, version: u64, tensors: &[Tensor]) -> Result<()> {
        let input = |tensor: &Tensor| {
            json!({ "name": tensor.name, "datatype": tensor.datatype, "shape": tensor.shape,
                "parameters": { "binary_data_size": tensor.bytes.len() } })
        };
        let inputs: Vec<Value> = tensors.iter().map(input).collect();
        let head = json!({ "inputs": inputs, "parameters": { "binary_data_output": true } }).to_string();
        let mut body = head.clone().into_bytes();
        tensors.iter().for_each(|tensor| body.extend(&tensor.bytes));
        let lines = format!("Inference-Header-Content-Length: {}\r\n", head.len());
        self.send("POST", &format!("{}/infer", path(model, version)), &lines, &body)
    }

    /// Whether the server says that a version of a model is ready.
    ///
    /// # Errors
    /// Unavailable when the server cannot be reached, or does not say so.
    pub(super) fn must_be_ready(&self, model: &str, version: u64) -> Result<()> {
        self.send("GET", &format!("{}/ready", path(model, version)), "", &[])
    }

    fn send(&self, method: &str, path: &str, lines: &str, body: &[u8]) -> Result<()> {
        let answer = self
            .exchange(method, path, lines, body)
            .map_err(|error| Error::new(gesso::error::ErrorKind::Unavailable, error.to_string()));
        let told = || format!("server `{}`", self.address);
        let Answer { status, error } = answer.context(told)?;
        if status == 200 {
            return Ok(());
        }
        let text = serde_json::from_str::<Value>(&error).ok();
        let text = text.as_ref().and_then(|text| text.get("error")?.as_str()).unwrap_or(&error);
        let text = if text.is_empty() { "it is not ready" } else { text };
        Err(Error::invalid(format!("status {status}: {text}"))).context(told)
    }

    fn exchange(&self, method: &str, path: &str, lines: &str, body: &[u8]) -> std::io::Result<Answer> {
        let mut stream = self.connect()?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{lines}Content-Length: {}\r\n\r\n",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        let mut reader = BufReader::new(stream);
        let (status, length) = read_head(&mut reader)?;
        if status == 200 {
            // The outputs are of no interest, but a server that is hung up on says so in its log.
            std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
            return Ok(Answer { status, error: String::new() });
        }
        let mut error = Vec::new();
        reader.take(length.min(MAX_ERROR_BYTES)).read_to_end(&mut error)?;
        Ok(Answer { status, error: String::from_utf8_lossy(&error).into_owned() })
    }

    fn connect(&self) -> std::io::Result<TcpStream> {
        let mut failed = None;
        for address in self.address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => return Ok(stream),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| std::io::Error::other("its name has no address")))
    }
}

/// The status of an answer, and the bytes of its body.
fn read_head(reader: &mut impl BufRead) -> std::io::Result<(u16, u64)> {
    let mut reader = reader.take(MAX_HEAD_BYTES);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other("the answer is not HTTP"))?;
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        if !line.ends_with('\n') {
            return Err(std::io::Error::other("the answer breaks off"));
        }
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length =
                    value.trim().parse().map_err(|_| std::io::Error::other("the answer has no length"))?;
            }
            Some(_) => {}
            None => return Ok((status, length)),
        }
    }
}

fn path(model: &str, version: u64) -> String {
    let mut name = String::new();
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            name.push(char::from(byte));
        } else {
            name += &format!("%{byte:02X}");
        }
    }
    format!("/v2/models/{name}/versions/{version}")
}

#[cfg(test)]
mod tests {
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
        for text in ["localhost", "https://a:443", ":80", "a:x", "a:8000/v2"] {
            assert!(Server::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn heads_of_answers_are_read() {
        let read = |text: &str| read_head(&mut text.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(read("HTTP/1.1 200 OK\r\ncontent-length: 12\r\nX: y\r\n\r\nbody"), Ok((200, 12)));
        assert_eq!(read("HTTP/1.1 400 Bad\r\n\r\n"), Ok((400, 0)));
        assert_eq!(read("220 mail\r\n"), Err("the answer is not HTTP".to_owned()));
        assert_eq!(read("HTTP/1.1 200 OK\r\nX: y"), Err("the answer breaks off".to_owned()));
        let endless = format!("HTTP/1.1 200 OK\r\n{}", "X: y\r\n".repeat(20_000));
        assert_eq!(read(&endless), Err("the answer breaks off".to_owned()));
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(path("a b/c", 2), "/v2/models/a%20b%2Fc/versions/2");
    }
}
