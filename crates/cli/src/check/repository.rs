//! A model repository as the server looks at it: which directories are models of ours, which versions of them it would
//! load, and the configuration that it would hand over.

use std::path::{Path, PathBuf};

use gesso::error::{Error, Result};
use gesso::limits;
use gesso::pipeline;
use serde_json::{Map, Value, json};
use triton_gesso::config::InstanceKind;
use triton_gesso::config::pbtxt::{self, Field};

use crate::terminal::read_regular;

/// Backends that are Gesso: by its own name, and installed in DALI's place.
const OURS: [&str; 2] = ["gesso", "dali"];

/// A directory of a repository.
pub(super) struct Model {
    pub(super) name: String,
    pub(super) directory: PathBuf,
    /// Its `config.pbtxt`; `None` where there is none.
    pub(super) fields: Option<Vec<Field>>,
}

/// What a model is for us.
pub(super) enum Kind {
    Ours,
    Ensemble,
    /// Of another backend.
    Other(String),
}

/// The directories of a repository by name.
///
/// # Errors
/// What reading the directory fails with.
pub(super) fn directories(repository: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(repository)
        .map_err(|error| Error::not_found(format!("cannot read `{}`: {error}", repository.display())))?;
    let is_model = |path: &PathBuf| {
        let hidden = path.file_name().is_none_or(|name| name.to_string_lossy().starts_with('.'));
        path.is_dir() && !hidden
    };
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(is_model).collect();
    found.sort();
    Ok(found)
}

impl Model {
    /// Reads what a directory says of itself.
    ///
    /// # Errors
    /// Invalid for a `config.pbtxt` that the server would not read, with the line.
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = directory.join("config.pbtxt");
        let fields = if path.exists() {
            let bytes = read_regular(&path, limits::MAX_CONFIG_BYTES as usize)?;
            let text = String::from_utf8(bytes).map_err(|_| Error::invalid("config.pbtxt is not UTF-8"))?;
            Some(pbtxt::parse(&text)?)
        } else {
            None
        };
        Ok(Self { name, directory: directory.to_owned(), fields })
    }

    /// Whose it is.
    pub(super) fn kind(&self) -> Kind {
        let json = self.written();
        let text = |key: &str| json.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let backend = if text("backend").is_empty() && text("platform").is_empty() {
            // The name says it: `NAME.gesso`.
            self.name.rsplit_once('.').map(|(_, backend)| backend.to_owned()).unwrap_or_default()
        } else {
            text("backend")
        };
        match backend.as_str() {
            ours if OURS.contains(&ours) => Kind::Ours,
            "" if text("platform") == "ensemble" => Kind::Ensemble,
            "" if text("platform").is_empty() => Kind::Other("no backend".to_owned()),
            "" => Kind::Other(format!("platform `{}`", text("platform"))),
            other => Kind::Other(format!("backend `{other}`")),
        }
    }

    /// What `config.pbtxt` says.
    pub(super) fn written(&self) -> Map<String, Value> {
        self.fields.as_deref().map(pbtxt::to_json).unwrap_or_default()
    }

    /// The configuration as the server hands it over: what was written, and what it adds.
    ///
    /// # Errors
    /// Invalid for a name that is not the directory's.
    pub(super) fn config(&self) -> Result<String> {
        let mut config = self.written();
        let name = config.entry("name").or_insert_with(|| json!(self.name));
        if name.as_str() != Some(&self.name) {
            return Err(Error::invalid(format!(
                "`name` is {name}, expected the name of the directory, `{}`",
                self.name
            )));
        }
        if config.get("backend").and_then(Value::as_str).is_none_or(str::is_empty) {
            let backend = self.name.rsplit_once('.').map(|(_, backend)| backend).unwrap_or_default();
            config.insert("backend".to_owned(), json!(backend));
            // The server assumes this name for a model that has no configuration.
            config.entry("default_model_filename").or_insert_with(|| json!(format!("model.{backend}")));
        }
        let groups = config.entry("instance_group").or_insert_with(|| json!([]));
        if let Value::Array(groups) = groups {
            if groups.is_empty() {
                groups.push(json!({}));
            }
            groups.iter_mut().for_each(|group| choose_kind(group, &self.name));
        }
        Ok(Value::Object(config).to_string())
    }

    /// The versions that the server would load, oldest first.
    ///
    /// # Errors
    /// Not found when there is none.
    pub(super) fn versions(&self) -> Result<Vec<u64>> {
        let entries = std::fs::read_dir(&self.directory).map_err(|error| {
            Error::not_found(format!("cannot read `{}`: {error}", self.directory.display()))
        })?;
        let number = |entry: std::fs::DirEntry| {
            entry.file_name().to_str()?.parse::<u64>().ok().filter(|_| entry.path().is_dir())
        };
        let mut there: Vec<u64> = entries.flatten().filter_map(number).collect();
        there.sort_unstable();
        let config = self.written();
        let policy = config.get("version_policy");
        let part = |key: &str| policy.and_then(|policy| policy.get(key));
        if part("all").is_none() {
            if let Some(specific) = part("specific") {
                let wanted = specific.get("versions").and_then(Value::as_array).cloned().unwrap_or_default();
                there.retain(|version| wanted.iter().any(|wanted| wanted.as_u64() == Some(*version)));
            } else {
                let latest =
                    part("latest").and_then(|latest| latest.get("num_versions")).and_then(Value::as_u64);
                let latest = usize::try_from(latest.unwrap_or(1)).unwrap_or(usize::MAX);
                there.drain(..there.len().saturating_sub(latest));
            }
        }
        if there.is_empty() {
            return Err(Error::not_found(format!(
                "`{}` has no directory of a version that `version_policy` wants, such as `1`",
                self.directory.display()
            )));
        }
        Ok(there)
    }

    /// Where in `config.pbtxt` an error comes from, as far as its text tells.
    pub(super) fn line(&self, error: &str) -> Option<usize> {
        locate(self.fields.as_deref()?, error)
    }
}

/// The server replaces a kind that it is to choose by one that the host has.
fn choose_kind(group: &mut Value, model: &str) {
    let Value::Object(fields) = group else { return };
    let kind = fields.get("kind").and_then(Value::as_str).unwrap_or("KIND_AUTO");
    if kind == "KIND_AUTO" {
        let kind = if pipeline::devices().is_ok() { InstanceKind::Gpu } else { InstanceKind::Cpu };
        fields.insert("kind".to_owned(), json!(kind.to_string()));
    }
    fields.entry("name").or_insert_with(|| json!(model));
    fields.entry("count").or_insert_with(|| json!(1));
}

/// The line of the field that an error names: of a tensor, of a parameter, or by its own name.
fn locate(fields: &[Field], error: &str) -> Option<usize> {
    if error.starts_with("step ") {
        return fields.iter().find(|field| field.name == "ensemble_scheduling").map(|field| field.line);
    }
    let names = |text: &str| error.contains(&format!("`{text}`")) || error.contains(&format!("{text} "));
    for role in ["input", "output"] {
        for field in fields.iter().filter(|field| field.name == role) {
            let pbtxt::Content::Message(tensor) = &field.value else { continue };
            let name = tensor.iter().find(|field| field.name == "name").and_then(text)?;
            if !error.contains(&format!("{role} `{name}`"))
                && !error.contains(&format!("are called `{name}`"))
            {
                continue;
            }
            let part = tensor.iter().find(|field| names(&field.name) && field.name != "name");
            return Some(part.map_or(field.line, |field| field.line));
        }
    }
    let parameter = fields.iter().filter(|field| field.name == "parameters").find(|field| {
        let pbtxt::Content::Message(entry) = &field.value else { return false };
        let key = entry.iter().find(|field| field.name == "key").and_then(text);
        key.is_some_and(|key| error.contains(&format!("`{key}`")))
    });
    // The name of a model is a word of many errors.
    let is_named = |field: &&Field| {
        if field.name == "name" { error.starts_with("`name` is") } else { names(&field.name) }
    };
    let by_name = || fields.iter().find(is_named);
    let of_tensors = || {
        let role = ["output", "input"].into_iter().find(|role| error.contains(&format!("{role}s")))?;
        fields.iter().find(|field| field.name == role)
    };
    parameter.or_else(by_name).or_else(of_tensors).map(|field| field.line)
}

fn text(field: &Field) -> Option<&str> {
    match &field.value {
        pbtxt::Content::Text(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"name: "m"
backend: "gesso"
max_batch_size: -1
input [
  {
    name: "A"
    data_type: TYPE_FP32
    dims: [ 2 ]
  },
  { name: "B" }
]
output { name: "O"
  dims: [ 3 ] }
parameters { key: "num_threads" value { string_value: "many" } }
instance_group { kind: KIND_GPU }
"#;

    #[test]
    fn errors_are_located() {
        let fields = pbtxt::parse(CONFIG).unwrap();
        for (error, line) in [
            ("max_batch_size is -1 in the configuration, expected 0 to 65536", 3),
            ("input `A` has data_type `TYPE_FP32` in the configuration, the pipeline has `TYPE_UINT8`", 7),
            ("input `A` has dims [2] in the configuration, the pipeline has [-1]", 8),
            ("input `B` of the configuration is not in the pipeline, whose inputs are `A`", 10),
            ("output `O` has 1 dimensions in the configuration (dims [3]), the pipeline has 3", 13),
            ("the configuration has 1 outputs (`O`), the pipeline has 2 (`X`, `Y`)", 12),
            ("parameter `num_threads` is `many`, expected 1 to 1024", 14),
            ("model configuration: `instance_group` has the unknown kind `KIND_TPU`", 15),
            ("two inputs are called `A`: give each a name", 5),
            ("`name` is \"x\", expected the name of the directory, `m`", 1),
        ] {
            assert_eq!(locate(&fields, error), Some(line), "{error}");
        }
        assert_eq!(locate(&fields, "there is no model file"), None);
    }
}
