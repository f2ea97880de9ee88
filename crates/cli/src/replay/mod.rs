//! `gesso replay`: sends requests that a server has recorded to a new version of a model, or runs them in a pipeline,
//! and compares the answers with those that were recorded.

mod compare;
mod here;

use std::path::{Path, PathBuf};

use clap::Args;
use gesso::error::{Context, Error, ErrorKind, Result};
use serde_json::{Value, json};
use triton_gesso::record::{Answer, ENDING, MAX_HEADER_BYTES, MAX_RECORD_BYTES, Recorded, Tensor};

use crate::Exit;
use crate::progress;
use crate::run::Hardware;
use crate::server::{self, Server};
use crate::terminal::{Table, clean, print, print_json, read_regular};
use compare::{Difference, Now};
use here::Runner;

/// Requests that are shown one by one.
const LISTED: usize = 20;

/// Send requests that a server recorded (parameter `record_requests`) again, to a new version of the model or through a
/// pipeline, and compare the answers. The exit status is 1 if one differs beyond the tolerance, if a request now fails
/// that did not, or does not that did, or if a record is damaged.
#[derive(Args)]
pub(crate) struct Options {
    /// The folder with the records.
    folder: PathBuf,
    /// A running server that answers them.
    #[arg(long, value_name = "HOST:PORT", value_parser = Server::parse, required_unless_present = "pipeline")]
    server: Option<Server>,
    /// The model there; absent: the one that each request was recorded of.
    #[arg(long, requires = "server")]
    model: Option<String>,
    /// Its version; absent: the one that the server takes.
    #[arg(long, requires = "server")]
    version: Option<u64>,
    /// The file of a pipeline that answers them in this process, with the settings of a model that has no parameters.
    #[arg(long, conflicts_with = "server")]
    pipeline: Option<PathBuf>,
    #[command(flatten)]
    place: Hardware,
    /// How far a value may be from the recorded one.
    #[arg(long, default_value_t = 0.0, value_parser = tolerance)]
    tolerance: f64,
    /// For scripts.
    #[arg(long)]
    json: bool,
}

/// What became of one record.
enum Replayed {
    /// Its outputs by name.
    Compared(Vec<(String, Difference)>),
    /// It failed before, and does now.
    FailsAsBefore,
    /// It fails now, and did not.
    Fails(Error),
    /// It failed with this text, and does not any more.
    FailedBefore(String),
    /// The file cannot be read.
    Damaged(Error),
}

/// Who answers.
enum Target<'o> {
    Server(&'o Server),
    Here(Box<Runner>),
}

/// Runs the command.
pub(crate) fn replay(options: &Options) -> Result<Exit> {
    let files = records(&options.folder)?;
    let mut target = match (&options.server, &options.pipeline) {
        (Some(server), _) => Target::Server(server),
        (None, Some(path)) => {
            let (_, pipeline) = options.place.load(path)?;
            let instance = options.place.instance(&pipeline)?;
            Target::Here(Box::new(Runner::new(pipeline, instance)?))
        }
        (None, None) => return Err(Error::invalid("expected `--server` or `--pipeline`")),
    };
    let bar = progress::bar(files.len(), "requests");
    let mut rows = Vec::new();
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let replayed = match read(&path) {
            Ok(recorded) => target.replay(&recorded, options).context(|| format!("`{name}`"))?,
            Err(error) => Replayed::Damaged(error),
        };
        rows.push((name, replayed));
        bar.inc(1);
    }
    bar.finish_and_clear();
    let bad = rows.iter().filter(|(_, replayed)| replayed.is_bad(options.tolerance)).count();
    if options.json {
        print_json(&as_json(&rows, options.tolerance));
    } else {
        print(&text(&rows, options.tolerance));
    }
    Ok(if bad > 0 { Exit::Failure } else { Exit::Success })
}

fn tolerance(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    number.ok_or_else(|| "expected a number that is not negative".to_owned())
}

/// The files of a folder, in the order in which they were recorded.
fn records(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .map_err(|error| Error::not_found(format!("cannot read `{}`: {error}", folder.display())))?;
    let is_record = |path: &PathBuf| {
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        !hidden && path.extension().is_some_and(|extension| extension == ENDING)
    };
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_record).collect();
    if found.is_empty() {
        return Err(Error::not_found(format!("there is no `.{ENDING}` file in `{}`", folder.display())));
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<Recorded> {
    Recorded::parse(&read_regular(path, MAX_RECORD_BYTES + MAX_HEADER_BYTES)?)
}

impl Target<'_> {
    /// Answers a request again.
    ///
    /// # Errors
    /// Unavailable when the server cannot be reached.
    fn replay(&mut self, recorded: &Recorded, options: &Options) -> Result<Replayed> {
        let outputs = match &recorded.answer {
            Answer::Outputs(outputs) => outputs.as_slice(),
            Answer::Failed(_) => &[],
        };
        let compared = match self {
            Self::Server(server) => by_server(server, recorded, outputs, options),
            Self::Here(runner) => runner.run(recorded).and_then(|made| by_runner(&made, outputs)),
        };
        Ok(match (compared, &recorded.answer) {
            (Err(error), _) if error.kind() == ErrorKind::Unavailable && matches!(self, Self::Server(_)) => {
                return Err(error);
            }
            (Err(_), Answer::Failed(_)) => Replayed::FailsAsBefore,
            (Err(error), Answer::Outputs(_)) => Replayed::Fails(error),
            (Ok(_), Answer::Failed(error)) => Replayed::FailedBefore(error.clone()),
            (Ok(outputs), Answer::Outputs(_)) => Replayed::Compared(outputs),
        })
    }
}

fn by_server(
    server: &Server,
    recorded: &Recorded,
    outputs: &[Tensor],
    options: &Options,
) -> Result<Vec<(String, Difference)>> {
    let input = |tensor: &'_ Tensor| -> server::Tensor<Vec<u8>> {
        server::Tensor {
            name: tensor.name.clone(),
            datatype: tensor.datatype.clone(),
            shape: tensor.client_shape().to_vec(),
            bytes: tensor.bytes.clone().unwrap_or_default(),
        }
    };
    let inputs: Vec<_> = recorded.inputs.iter().map(input).collect();
    let inputs: Vec<_> = inputs.iter().map(server::Tensor::borrowed).collect();
    let names: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
    let model = options.model.as_deref().unwrap_or(&recorded.model);
    let answer = server.infer((model, options.version), &inputs, &names)?;
    let compare = |output: &Tensor| {
        let now = answer.iter().find(|now| now.name == output.name);
        let difference = now.map_or(Ok(Difference::Missing), |now| {
            let now = Now { datatype: &now.datatype, shape: &now.shape, bytes: &now.bytes };
            Difference::between(output, output.client_shape(), &now)
        });
        Ok((output.name.clone(), difference?))
    };
    outputs.iter().map(compare).collect()
}

fn by_runner(made: &[here::Output], outputs: &[Tensor]) -> Result<Vec<(String, Difference)>> {
    let compare = |output: &Tensor| {
        let Some(now) = output.index.and_then(|index| made.get(index)) else {
            return Ok((output.name.clone(), Difference::Missing));
        };
        let is_split = now.split.as_ref() == Some(&output.shape);
        let shape = if is_split { now.split.as_ref() } else { now.shape.as_ref() };
        let shape = shape.ok_or_else(|| {
            Error::invalid(format!(
                "output `{}`: the samples of the request have different shapes",
                output.name
            ))
        })?;
        let now = Now { datatype: &now.datatype, shape, bytes: &now.bytes };
        Ok((output.name.clone(), Difference::between(output, &output.shape, &now)?))
    };
    outputs.iter().map(compare).collect()
}

impl Replayed {
    fn is_bad(&self, tolerance: f64) -> bool {
        match self {
            Self::Compared(outputs) => outputs.iter().any(|(_, difference)| difference.is_beyond(tolerance)),
            Self::FailsAsBefore => false,
            Self::Fails(_) | Self::FailedBefore(_) | Self::Damaged(_) => true,
        }
    }

    /// What is said of it: the output, if it is about one, and what became of it.
    fn lines(&self) -> Vec<(String, String)> {
        let alone = |text: String| vec![(String::new(), text)];
        match self {
            Self::Compared(outputs) => {
                let differs = outputs.iter().filter(|(_, difference)| *difference != Difference::Equal);
                differs.map(|(name, difference)| (clean(name, 40), difference.text())).collect()
            }
            Self::FailsAsBefore => alone("fails as before".to_owned()),
            Self::Fails(error) => alone(format!("fails now: {}", clean(&error.to_string(), 400))),
            Self::FailedBefore(error) => {
                alone(format!("failed before, and is answered now: {}", clean(error, 400)))
            }
            Self::Damaged(error) => alone(format!("cannot be read: {}", clean(&error.to_string(), 400))),
        }
    }

    fn as_json(&self) -> Value {
        match self {
            Self::Compared(outputs) => {
                let output = |(name, difference): &(String, Difference)| {
                    let mut json = difference.as_json();
                    if let Value::Object(json) = &mut json {
                        json.insert("output".to_owned(), json!(name));
                    }
                    json
                };
                json!({ "status": "answered", "outputs": outputs.iter().map(output).collect::<Vec<_>>() })
            }
            Self::FailsAsBefore => json!({ "status": "fails as before" }),
            Self::Fails(error) => json!({ "status": "fails", "error": error.to_string() }),
            Self::FailedBefore(error) => json!({ "status": "failed before", "error": error }),
            Self::Damaged(error) => json!({ "status": "damaged", "error": error.to_string() }),
        }
    }
}

/// How many records are of a kind; each is of one.
struct Counts {
    equal: usize,
    within: usize,
    beyond: usize,
    not_recorded: usize,
    as_before: usize,
    fail: usize,
    failed_before: usize,
    damaged: usize,
}

impl Counts {
    fn of(rows: &[(String, Replayed)], tolerance: f64) -> Self {
        let count = |wanted: &dyn Fn(&Replayed) -> bool| rows.iter().filter(|(_, row)| wanted(row)).count();
        let all = |row: &Replayed, wanted: fn(&Difference) -> bool| match row {
            Replayed::Compared(outputs) => outputs.iter().all(|(_, difference)| wanted(difference)),
            _ => false,
        };
        let is_equal = |row: &Replayed| all(row, |difference| *difference == Difference::Equal);
        let is_known = |row: &Replayed| {
            all(row, |difference| matches!(difference, Difference::Equal | Difference::NotKept))
        };
        let is_compared = |row: &Replayed| matches!(row, Replayed::Compared(_));
        Self {
            equal: count(&is_equal),
            not_recorded: count(&|row| is_known(row) && !is_equal(row)),
            within: count(&|row| is_compared(row) && !is_known(row) && !row.is_bad(tolerance)),
            beyond: count(&|row| is_compared(row) && row.is_bad(tolerance)),
            as_before: count(&|row| matches!(row, Replayed::FailsAsBefore)),
            fail: count(&|row| matches!(row, Replayed::Fails(_))),
            failed_before: count(&|row| matches!(row, Replayed::FailedBefore(_))),
            damaged: count(&|row| matches!(row, Replayed::Damaged(_))),
        }
    }

    /// Each with what it is called.
    fn named(&self) -> [(&'static str, usize); 8] {
        [
            ("equal", self.equal),
            ("within the tolerance", self.within),
            ("beyond the tolerance", self.beyond),
            ("equal as far as recorded", self.not_recorded),
            ("fail as before", self.as_before),
            ("fail now", self.fail),
            ("failed before", self.failed_before),
            ("damaged", self.damaged),
        ]
    }
}

fn text(rows: &[(String, Replayed)], tolerance: f64) -> String {
    let mut table = Table::new(&["", "request", "output", "result"]);
    // What is bad comes first.
    let (mut bad, good): (Vec<_>, Vec<_>) = rows.iter().partition(|(_, replayed)| replayed.is_bad(tolerance));
    bad.extend(good.into_iter().filter(|(_, replayed)| !replayed.lines().is_empty()));
    for (name, replayed) in bad.iter().take(LISTED) {
        let mark = if replayed.is_bad(tolerance) { "bad" } else { "ok" };
        for (output, line) in replayed.lines() {
            table.row([mark.to_owned(), clean(name, 60), output, line]);
        }
    }
    let mut text = if bad.is_empty() { String::new() } else { table.lines() };
    if bad.len() > LISTED {
        text += &format!("and {} more\n", bad.len() - LISTED);
    }
    let counts: Vec<String> = Counts::of(rows, tolerance)
        .named()
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    text + &format!("{} requests: {}\n", rows.len(), counts.join(", "))
}

fn as_json(rows: &[(String, Replayed)], tolerance: f64) -> Value {
    let row = |(name, replayed): &(String, Replayed)| {
        let mut json = replayed.as_json();
        if let Value::Object(json) = &mut json {
            json.insert("request".to_owned(), json!(name));
        }
        json
    };
    let counts =
        Counts::of(rows, tolerance).named().map(|(name, count)| (name.replace(' ', "_"), json!(count)));
    json!({ "counts": Value::Object(counts.into_iter().collect()), "requests": rows.iter().map(row).collect::<Vec<_>>() })
}
