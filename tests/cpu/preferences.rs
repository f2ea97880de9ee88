//! What the author of a model wishes reaches the operators of instances on the host.

use std::sync::Mutex;

use gesso::cpu::decode::JpegDecoder;
use gesso::error::Result;
use gesso::operator::{Args, CpuCx, Inputs, Io, OpDef, Operator, Preferences, one_output};
use gesso::ops::custom;
use gesso::pipeline::Pipeline;
use gesso::tensor::{BatchDesc, Device, ValueType};

static TOLD: Mutex<Vec<Preferences>> = Mutex::new(Vec::new());

/// Notes what it is told.
struct Listener;

impl Operator for Listener {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(inputs.to_vec())
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        Ok(vec![inputs.desc(0)?.clone()])
    }

    fn run_cpu(&mut self, _: &CpuCx<'_>, _: &mut Io<'_>) -> Result<()> {
        Ok(())
    }

    fn prefer(&mut self, preferences: &Preferences) {
        TOLD.lock().unwrap().push(*preferences);
    }
}

#[test]
fn operators_on_the_host_are_told_who_decodes() {
    custom::register(vec![OpDef {
        name: "Listener",
        doc: "Notes what it is told",
        devices: &[Device::Cpu],
        inputs: (1, 1),
        args: &[],
        build: &|_: &Args, _| Ok(Box::new(Listener)),
        outputs: &one_output,
        ..OpDef::BASE
    }])
    .unwrap();
    let description = r#"{"max_batch_size": 1,
        "inputs": [{"name": "in", "dtype": "uint8", "ndim": 1}],
        "operators": [{"name": "Listener", "instance": "listener", "inputs": ["in"], "outputs": ["out"]}],
        "outputs": [{"name": "out"}]}"#;
    let file = Pipeline::author(&serde_json::from_str(description).unwrap()).unwrap();
    let pipeline = Pipeline::load(&file, Device::Cpu).unwrap();
    for jpeg_decoder in [JpegDecoder::LibjpegTurbo, JpegDecoder::Own] {
        let preferences = Preferences { jpeg_decoder, ..Preferences::default() };
        pipeline.instance_with(Some(1), None, &preferences).unwrap();
        assert_eq!(TOLD.lock().unwrap().pop(), Some(preferences));
    }
}
