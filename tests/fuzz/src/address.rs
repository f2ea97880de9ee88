//! Addresses of files that clients name, beside a list of those that are allowed.

use triton_gesso::fetch::{Address, Allowed, Networks};

const LIST: &str =
    "https://a.example.com/x/, http://*.example.org:81/y, https://[fd00::1]/, s3://bucket/p/, gs://bucket";

pub(crate) fn run(input: &[u8]) {
    let list = Allowed::parse(LIST);
    assert!(list.is_ok(), "the list is right");
    let Ok(list) = list else { return };
    let _ = list.is_address(input);
    if let Ok(address) = list.check(input) {
        // What is allowed is what the list says, however it was written.
        let (name, owner) = (address.name(), list.owner(&address));
        let starts = |heads: &[&str]| heads.iter().any(|head| name.starts_with(head));
        match &address {
            Address::Web(url) if owner == "*.example.org" => {
                assert!(
                    url.port() == Some(81) && (url.path() == "/y" || url.path().starts_with("/y/")),
                    "{name}"
                );
            }
            Address::Web(_) => assert!(starts(&["https://a.example.com/x/", "https://[fd00::1]/"]), "{name}"),
            Address::Object { .. } => assert!(starts(&["s3://bucket/p/", "gs://bucket/"]), "{name}"),
        }
        // Written again it is the same one.
        assert!(list.check(name.as_bytes()).is_ok_and(|again| again == address), "{name}");
    }
    let Ok(text) = std::str::from_utf8(input) else { return };
    let _ = (Allowed::parse(text), Networks::parse(text));
}
