//! Samples that bring a type of their own, in batches of several requests: what the model's configuration says decides.

use std::collections::BTreeMap;

use serde_json::json;

use gesso::pipeline::Pipeline;
use gesso::tensor::Device;

use crate::host::objects::{Instance, Model};
use crate::host::request::{Request, UINT8};
use crate::host::{Host, book, code};
use crate::library::Plugin;
use crate::recorded::{Case, Folder, Recording};

/// The outputs' types in the order of the recorded pipeline, which decodes a file of numpy for each.
const TYPES: [(&str, &str); 12] = [
    ("uint8", "TYPE_UINT8"),
    ("int8", "TYPE_INT8"),
    ("uint16", "TYPE_UINT16"),
    ("int16", "TYPE_INT16"),
    ("uint32", "TYPE_UINT32"),
    ("int32", "TYPE_INT32"),
    ("uint64", "TYPE_UINT64"),
    ("int64", "TYPE_INT64"),
    ("float16", "TYPE_FP16"),
    ("float32", "TYPE_FP32"),
    ("float64", "TYPE_FP64"),
    ("bool", "TYPE_BOOL"),
];

/// The output that the requests ask for.
const FLOATS: usize = 9;

struct Arrays<'h> {
    host: &'h Host,
    case: Case,
    output: String,
    model: *mut Model,
    instance: *mut Instance,
    _folder: Folder,
}

impl<'h> Arrays<'h> {
    fn load(host: &'h Host, plugin: &Plugin, name: &str) -> Self {
        let case = Recording::open("decoders_numpy").case("every_type");
        let folder = Folder::new(name);
        folder.write("1/model.dali", &case.pipeline);
        let pipeline = Pipeline::load(&case.pipeline, Device::Cpu).unwrap();
        let outputs = pipeline.outputs().iter().zip(TYPES);
        let outputs: Vec<_> = outputs
            .map(|(output, (_, ty))| json!({"name": output.name, "data_type": ty, "dims": [-1, -1]}))
            .collect();
        let config = json!({"max_batch_size": 4, "output": outputs}).to_string();
        let model = host.model_in(&folder.path("").display().to_string(), name, &config);
        plugin.model_initialize(model).unwrap();
        let instance = host.instance(model);
        plugin.instance_initialize(instance).unwrap();
        let output = pipeline.outputs()[FLOATS].name.clone();
        Self { host, case, output, model, instance, _folder: folder }
    }

    fn file(&self, of: &str) -> &[u8] {
        &self.case.inputs[of][0].bytes
    }

    /// A request whose file of float32 is `file`; the others are good.
    fn request(&self, id: &str, file: &[u8]) -> *mut Request {
        let files: BTreeMap<&str, &[u8]> = TYPES.iter().map(|(of, _)| (*of, self.file(of))).collect();
        let inputs = files.into_iter().map(|(of, good)| {
            let bytes = if of == "float32" { file } else { good };
            self.host.input(of, UINT8, &[1, bytes.len() as i64], &[(0, bytes)])
        });
        self.host.request_of(id, inputs.collect(), &[&self.output])
    }

    fn end(self, plugin: &Plugin) {
        plugin.instance_finalize(self.instance).unwrap();
        plugin.model_finalize(self.model).unwrap();
        self.host.assert_clean();
    }
}

#[test]
fn a_file_of_another_type_than_the_configuration_says_fails_alone_wherever_it_stands() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let arrays = Arrays::load(&host, &plugin, "types");
    let other = arrays.file("int16");
    let good = arrays.file("float32");
    let requests = [("a", other), ("b", other), ("good", good)].map(|(id, file)| arrays.request(id, file));
    plugin.execute(arrays.instance, &mut requests.to_vec()).unwrap();
    host.wait_until("three answers", |book| book.answers.len() == 3);
    {
        let book = book();
        let of = |id: &str| book.answers.iter().find(|answer| answer.request == id).unwrap();
        assert_eq!(of("good").failure, None);
        assert_eq!(of("good").outputs[0].bytes, arrays.case.outputs[FLOATS][0].bytes);
        for id in ["a", "b"] {
            let failure = of(id).failure.clone().unwrap();
            let says = "an array of int16 with 2 dimensions, but the output is declared as float32 with 2 dimensions";
            assert_eq!((failure.code, failure.text.contains(says)), (code::INVALID_ARG, true), "{failure:?}");
        }
    }
    arrays.end(&plugin);
}

#[test]
fn what_is_wrong_with_files_is_said_also_when_no_file_of_the_batch_is_right() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let arrays = Arrays::load(&host, &plugin, "damaged");
    plugin.execute(arrays.instance, &mut [arrays.request("a", b"none of numpy")]).unwrap();
    host.wait_until("an answer", |book| !book.answers.is_empty());
    {
        let book = book();
        let failure = book.answers[0].failure.clone().unwrap();
        assert!(failure.text.contains("not a file of numpy"), "{failure:?}");
    }
    arrays.end(&plugin);
}
