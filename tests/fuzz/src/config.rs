//! What a model says of itself: `config.pbtxt`, and the server's JSON of it.

use triton_gesso::config::{ModelConfig, pbtxt};

pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let json = match pbtxt::parse(text) {
        Ok(fields) => {
            let json = pbtxt::to_json(&fields);
            let _ = pbtxt::parse(&pbtxt::print(&json));
            serde_json::Value::Object(json).to_string()
        }
        Err(_) => text.to_owned(),
    };
    if let Ok(config) = ModelConfig::parse(&json) {
        let _ = (config.settings(), config.instance_kinds(), config.model_filename(), config.warm_ups());
        let _ = (config.check_as_written(), config.max_batch_size(), config.to_json());
    }
}
