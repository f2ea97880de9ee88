//! Speech of manifests, and manifests that nobody would write.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::*;
use crate::operator::args::Value;

/// A WAV file of such samples.
fn wave(rate: u32, channels: u16, samples: &[i16]) -> Vec<u8> {
    let data: &[u8] = bytemuck::cast_slice(samples);
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0".to_vec();
    file.extend(channels.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend((rate * 2 * u32::from(channels)).to_le_bytes());
    file.extend((2 * channels).to_le_bytes());
    file.extend(b"\x10\0data");
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    let size = (file.len() as u32 - 8).to_le_bytes();
    file[4..8].copy_from_slice(&size);
    file
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("gesso-nemo-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let samples: Vec<i16> = (0..20).map(|i| 100 * i).collect();
    std::fs::write(folder.join("a.wav"), wave(10, 1, &samples)).unwrap();
    std::fs::write(folder.join("b.wav"), wave(20, 2, &samples)).unwrap();
    std::fs::write(folder.join("no.wav"), b"text").unwrap();
    folder
}

/// A reader of such lines, in which `@` is the folder.
fn opened(folder: &Path, lines: &str, given: &[(&str, Value)]) -> Result<Box<dyn Dataset>> {
    let path = folder.join("all.json").display().to_string();
    std::fs::write(&path, lines.replace('@', &folder.display().to_string())).unwrap();
    let mut values: BTreeMap<_, _> =
        [("manifest_filepaths".to_owned(), Value::Strings(vec![path.clone(), path]))].into();
    values.extend(given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let args = DEF.arguments(values);
    (DEF.outputs)(&args)?;
    open(&args)
}

fn samples(tensor: &Tensor) -> Vec<i16> {
    bytemuck::cast_slice(tensor.bytes.bytes()).to_vec()
}

const LINES: &str = "{\"audio_filepath\": \"@/a.wav\", \"text\": \"é\", \"duration\": 2}\n \n\
    {\"audio_filepath\": \"@/a.wav\", \"offset\": 0.55, \"duration\": 0.29, \"other\": [1]}\r\n\
    {\"audio_filepath\": \"@/b.wav\", \"duration\": 9}\n";

#[test]
fn speech_is_a_part_of_a_file_with_its_text() {
    let folder = folder("parts");
    let whole = Value::Ints(vec![5]);
    let given = [
        ("dtype", whole),
        ("read_idxs", Value::Bools(vec![true])),
        ("max_duration", Value::Floats(vec![5.0])),
    ];
    let dataset = opened(&folder, LINES, &given).unwrap();
    assert_eq!(dataset.count(), 4);
    let tensors = dataset.read(2, &Arc::default()).unwrap();
    assert_eq!((samples(&tensors[0]).len(), tensors[2].bytes.bytes()), (20, "é".as_bytes()));
    assert_eq!(
        (bytemuck::cast_slice::<u8, f32>(tensors[1].bytes.bytes()), tensors[1].shape.len()),
        (&[10.0][..], 0)
    );
    assert!(
        tensors[..2].iter().all(|tensor| tensor.source.ends_with("a.wav")) && tensors[2].source.is_empty()
    );
    let tensors = dataset.read(3, &Arc::default()).unwrap();
    assert_eq!((samples(&tensors[0]), tensors[2].bytes.bytes()), (vec![500, 600], &b""[..]));
    assert_eq!(bytemuck::cast_slice::<u8, i64>(tensors[3].bytes.bytes()), [1]);
    // Without an end, of two channels, mixed or not.
    for (mixes, shape) in [(true, &[10][..]), (false, &[10, 2])] {
        let given = [
            given[0].clone(),
            ("downmix", Value::Bools(vec![mixes])),
            ("min_duration", Value::Floats(vec![1.0])),
        ];
        let dataset = opened(&folder, LINES, &given).unwrap();
        let tensors = dataset.read(1, &Arc::default()).unwrap();
        assert_eq!((dataset.count(), &tensors[0].shape[..]), (4, shape));
        assert!(samples(&tensors[0]).starts_with(if mixes { &[50, 250] } else { &[0, 100, 200, 300] }));
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn speech_is_resampled_where_another_rate_is_wanted() {
    let folder = folder("rates");
    let dataset = opened(&folder, LINES, &[("sample_rate", Value::Floats(vec![20.0]))]).unwrap();
    for (index, frames) in [(0, 40), (1, 4), (2, 10)] {
        let tensors = dataset.read(index, &Arc::default()).unwrap();
        assert_eq!((tensors[0].dtype, &tensors[0].shape[..]), (DType::F32, &[frames][..]));
    }
    // As many as a sample may not have.
    let dataset = opened(&folder, LINES, &[("sample_rate", Value::Floats(vec![1e30]))]).unwrap();
    assert!(
        dataset.read(0, &Arc::default()).err().unwrap().to_string().contains("more than a sample may have")
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn manifests_and_files_that_are_wrong_are_errors() {
    let folder = folder("wrong");
    for line in [
        "{",
        "[]",
        "{}",
        r#"{"audio_filepath": 1}"#,
        r#"{"audio_filepath": "a", "offset": "x"}"#,
        &"[".repeat(100_000),
    ] {
        let error = opened(&folder, &format!("\n{line}"), &[]).err().unwrap().to_string();
        assert!(error.contains("line 2 of the manifest") && error.contains("all.json"), "{error}");
    }
    let line = |file: &str, more: &str| format!("{{\"audio_filepath\": \"@/{file}\"{more}}}");
    for (line, wanted) in [
        (line("none.wav", ""), "none.wav"),
        (line("no.wav", ""), "not an audio file"),
        (line("a.wav", ", \"offset\": -1"), "expected 0 seconds from -1 on"),
        (line("a.wav", ", \"offset\": 3, \"duration\": 1"), "expected 1 seconds from 3 on"),
        (line("a.wav", ", \"offset\": 1e300"), "it has 20 samples of a channel, 10 a second"),
    ] {
        let error = opened(&folder, &line, &[]).unwrap().read(1, &Arc::default()).err().unwrap().to_string();
        assert!(error.contains(wanted) && error.contains(".wav"), "{error}");
    }
    assert!(opened(&folder, &line("a.wav", ""), &[]).unwrap().read(2, &Arc::default()).is_err());
    for (name, value) in
        [("dtype", Value::Ints(vec![0])), ("sample_rate", Value::Floats(vec![f32::INFINITY]))]
    {
        assert!(opened(&folder, LINES, &[(name, value)]).err().unwrap().to_string().contains("expected"));
    }
    let given = [("sample_rate", Value::Floats(vec![20.0])), ("quality", Value::Floats(vec![101.0]))];
    assert!(opened(&folder, LINES, &given).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}
