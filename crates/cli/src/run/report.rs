//! What `gesso run` did, for people and for scripts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gesso::pipeline::Pipeline;
use serde_json::{Value, json};

use super::{Done, LISTED};
use crate::inputs::Samples;
use crate::names::shown;
use crate::terminal::{BAD, BOLD, Table, WARN, clean, styled};

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(super) fn text(done: &Done, samples: &Samples, pipeline: &Pipeline, all: Duration) -> String {
    if done.samples.is_empty() && done.count_before() > 0 {
        return format!("nothing to do: all {} samples are there\n", done.count_before());
    }
    let mut outputs = Table::new(&["output", ">sample", "type", "shape", "file", "picture"]);
    let brief = |path: &Path| clean(&path.display().to_string(), 80);
    for written in done.written.iter().take(LISTED) {
        outputs.row([
            clean(&written.output, 40),
            written.sample.to_string(),
            written.dtype.to_owned(),
            written.shape.clone(),
            written.file.as_deref().map_or("-".to_owned(), brief),
            written.picture.as_ref().map_or("-".to_owned(), |(path, how)| format!("{} ({how})", brief(path))),
        ]);
    }
    let mut text = format!("{}\n{}", styled(BOLD, "outputs"), outputs.lines());
    if done.outputs > LISTED {
        text += &format!("  and {} more\n", done.outputs - LISTED);
    }
    let mut operators = Table::new(&["operator", ">ms", ">share"]);
    let total: Duration = done.operators.iter().sum::<Duration>() + done.device;
    for (name, time) in times(done, pipeline) {
        let share = 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        operators.row([name, format!("{:.3}", milliseconds(time)), format!("{share:.0} %")]);
    }
    text += &format!("\n{}\n{}", styled(BOLD, "operators"), operators.lines());
    text += &format!(
        "\n{} of {} samples in {:.1} ms, the first batch included, {:.1} ms with files\n",
        done.samples.len() - done.failed.len(),
        done.samples.len(),
        milliseconds(done.running),
        milliseconds(all)
    );
    if done.count_before() > 0 {
        text += &format!("{} samples were there from an earlier run\n", done.count_before());
    }
    if samples.left_out() > 0 {
        text += &format!(
            "{}: {} files of folders are left out: their names end like no image, sound, video or `.npy`; a pattern (`'photos/*'`) names any\n",
            styled(WARN, "note"),
            samples.left_out()
        );
    }
    for warning in pipeline.warnings() {
        text += &format!("{}: {}\n", styled(WARN, "note"), clean(warning, 400));
    }
    for (sample, row) in &done.samples {
        let Some(error) = done.failed.get(sample) else { continue };
        let files: Vec<String> =
            samples.files(*row).iter().map(|(_, path)| format!("`{}`", path.display())).collect();
        let error = clean(&format!("sample {sample} ({}): {error}", files.join(", ")), usize::MAX);
        text += &format!("{}: {error}\n", styled(BAD, "failed"));
    }
    text
}

/// What took which time: every operator in order, or of many, those of one name together, the longest first.
fn times(done: &Done, pipeline: &Pipeline) -> Vec<(String, Duration)> {
    let names = pipeline.operators();
    let mut times: Vec<(String, Duration)> =
        names.iter().cloned().zip(done.operators.iter().copied()).collect();
    if times.len() > LISTED {
        let mut by_name: BTreeMap<String, (usize, Duration)> = BTreeMap::new();
        for (name, time) in times {
            let (count, total) = by_name.entry(name).or_default();
            *count += 1;
            *total += time;
        }
        let named =
            |(name, (count, time))| (if count == 1 { name } else { format!("{name} x{count}") }, time);
        times = by_name.into_iter().map(named).collect();
        times.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    }
    if !done.device.is_zero() {
        times.push(("waiting for the device".to_owned(), done.device));
    }
    times
}

pub(super) fn as_json(done: &Done, samples: &Samples, pipeline: &Pipeline) -> Value {
    let outputs: Vec<Value> = done
        .written
        .iter()
        .map(|written| {
            json!({
                "output": written.output, "sample": written.sample, "dtype": written.dtype, "shape": written.shape,
                "file": written.file.as_deref().map(shown), "picture": written.picture.as_ref().map(|(path, _)| shown(path)),
                "pixels": written.picture.as_ref().map(|(_, how)| how),
            })
        })
        .collect();
    let inputs: Vec<Value> = done
        .samples
        .iter()
        .map(|(sample, row)| {
            let files = samples.files(*row).into_iter().map(|(name, path)| (name.to_owned(), json!(shown(path))));
            let files: serde_json::Map<String, Value> = files.collect();
            json!({ "sample": sample, "files": files, "error": done.failed.get(sample).map(ToString::to_string) })
        })
        .collect();
    let names = pipeline.operators();
    let operators: Vec<Value> = names
        .iter()
        .zip(&done.operators)
        .map(|(name, &time)| json!({ "operator": name, "milliseconds": milliseconds(time) }))
        .collect();
    json!({
        "outputs": outputs, "samples": inputs, "samples_before": done.count_before(), "files_left_out": samples.left_out(), "operators": operators, "milliseconds": milliseconds(done.running),
        "device_milliseconds": milliseconds(done.device), "warnings": pipeline.warnings(),
    })
}
