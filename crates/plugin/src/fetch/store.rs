//! Objects in buckets of S3 and of Google Cloud Storage as addresses of the web. Who we are, environment variables say;
//! it goes to the bucket's own host alone.

use std::time::Duration;

use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use url::Url;

use super::address::Scheme;
use super::failure::Failure;
use gesso::error::{Context, Error, Result};

/// How long a signature counts. It is used at once; clocks may differ.
const SIGNED_FOR: Duration = Duration::from_secs(300);
const GOOGLE: &str = "https://storage.googleapis.com";

/// Where buckets are, and who we are there.
pub(super) struct Stores {
    region: String,
    s3: Option<Url>,
    credentials: Option<Credentials>,
    google: Url,
    token: Option<String>,
}

/// A request for an object.
pub(super) struct Signed {
    pub(super) url: Url,
    /// What `Authorization` says.
    pub(super) authorization: Option<String>,
}

impl Stores {
    /// What the environment variables say.
    ///
    /// # Errors
    /// Invalid for an endpoint that is no address of a host.
    pub(super) fn new(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let region =
            set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")).unwrap_or("us-east-1".to_owned());
        if !region.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(Error::invalid("environment variable `AWS_REGION` is no name of a region"));
        }
        let endpoint = |name: &str| {
            let url =
                set(name).map(|text| endpoint(&text).context(|| format!("environment variable `{name}`")));
            url.transpose()
        };
        let credentials =
            match (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY"), set("AWS_SESSION_TOKEN")) {
                (Some(key), Some(secret), Some(token)) => {
                    Some(Credentials::new_with_token(key, secret, token))
                }
                (Some(key), Some(secret), None) => Some(Credentials::new(key, secret)),
                _ => None,
            };
        let google = match endpoint("STORAGE_EMULATOR_HOST")? {
            Some(url) => url,
            None => self::endpoint(GOOGLE)?,
        };
        // A header of one line: other bytes are no token.
        let token = set("GOOGLE_OAUTH_ACCESS_TOKEN")
            .filter(|token| token.bytes().all(|byte| byte.is_ascii_graphic()));
        Ok(Self { region, s3: endpoint("AWS_ENDPOINT_URL")?, credentials, google, token })
    }

    /// What to ask for an object.
    ///
    /// # Errors
    /// Not allowed, where it has no address.
    pub(super) fn request(&self, store: Scheme, bucket: &str, key: &str) -> Result<Signed, Failure> {
        let wrong = Failure::NotAllowed("its bucket or object has no address");
        if store == Scheme::Gs {
            let mut url = self.google.clone();
            url.path_segments_mut().map_err(|()| wrong)?.pop_if_empty().push(bucket).extend(key.split('/'));
            let authorization = self.token.as_ref().map(|token| format!("Bearer {token}"));
            return Ok(Signed { url, authorization });
        }
        // A name with dots is in no certificate when it stands before the host.
        let style =
            if self.s3.is_some() || bucket.contains('.') { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let host = match &self.s3 {
            Some(url) => url.clone(),
            None => {
                endpoint(&format!("https://s3.{}.amazonaws.com", self.region)).map_err(|_| wrong.clone())?
            }
        };
        let bucket = Bucket::new(host, style, bucket.to_owned(), self.region.clone()).map_err(|_| wrong)?;
        let url = bucket.get_object(self.credentials.as_ref(), key).sign(SIGNED_FOR);
        Ok(Signed { url, authorization: None })
    }
}

fn endpoint(text: &str) -> Result<Url> {
    let url = Url::parse(text).ok().filter(|url| {
        ["http", "https"].contains(&url.scheme())
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    url.ok_or_else(|| Error::invalid("expected the address of a host, such as `https://storage.example.com`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stores(variables: &'static [(&'static str, &'static str)]) -> Result<Stores> {
        Stores::new(&|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn objects_have_addresses() {
        let plain = stores(&[]).unwrap();
        let url =
            |stores: &Stores, store, bucket, key| stores.request(store, bucket, key).unwrap().url.to_string();
        assert_eq!(
            url(&plain, Scheme::S3, "bucket", "a b/c?d#e%2f.jpg"),
            "https://bucket.s3.us-east-1.amazonaws.com/a%20b/c%3Fd%23e%252f.jpg"
        );
        assert_eq!(url(&plain, Scheme::S3, "a.b", "c"), "https://s3.us-east-1.amazonaws.com/a.b/c");
        assert_eq!(
            url(&plain, Scheme::Gs, "bucket", "a b/c?d#e%2f.jpg"),
            "https://storage.googleapis.com/bucket/a%20b/c%3Fd%23e%252f.jpg"
        );
        assert!(plain.request(Scheme::Gs, "bucket", "a").unwrap().authorization.is_none());
    }

    #[test]
    fn who_we_are_goes_with_the_request() {
        let stores = stores(&[
            ("AWS_ACCESS_KEY_ID", "KEY"),
            ("AWS_SECRET_ACCESS_KEY", "very secret"),
            ("AWS_SESSION_TOKEN", "session"),
            ("AWS_REGION", "eu-north-1"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000"),
            ("STORAGE_EMULATOR_HOST", "http://127.0.0.1:4443"),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "token"),
        ])
        .unwrap();
        let signed = stores.request(Scheme::S3, "bucket", "a").unwrap();
        let text = signed.url.to_string();
        assert!(text.starts_with("http://127.0.0.1:9000/bucket/a?"), "{text}");
        for part in ["X-Amz-Signature=", "X-Amz-Security-Token=session", "KEY%2F", "%2Feu-north-1%2Fs3%2F"] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("secret") && signed.authorization.is_none());
        let signed = stores.request(Scheme::Gs, "bucket", "a").unwrap();
        assert_eq!(signed.url.as_str(), "http://127.0.0.1:4443/bucket/a");
        assert_eq!(signed.authorization.as_deref(), Some("Bearer token"));
    }

    /// Neither is a part of the address but where it belongs.
    #[test]
    fn no_key_leads_to_another_host_or_bucket() {
        let stores =
            stores(&[("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/s3"), ("AWS_ACCESS_KEY_ID", "K")]).unwrap();
        let keys = [
            "@evil.com/a",
            "a@evil.com:1/x",
            ":80/a",
            "a//b",
            "a/",
            "?x=y",
            "#x",
            "a\\..\\b",
            "%2e%2e/b",
            "..%2fb",
            "...",
            "a/..b",
            "http://evil.com/",
            "\u{e4}\u{2028}\u{202e}",
            "&X-Amz-Signature=x",
            ";a=b",
            "[::1]",
            "%",
            "%00",
            " ",
            "+",
        ];
        for key in keys {
            for (store, begins) in [
                (Scheme::S3, "http://127.0.0.1:9000/s3/bucket/"),
                (Scheme::Gs, "https://storage.googleapis.com/bucket/"),
            ] {
                let Signed { url, .. } = stores.request(store, "bucket", key).unwrap();
                assert!(url.as_str().starts_with(begins), "{key}: {url}");
                let path = url.path().trim_start_matches("/s3").trim_start_matches("/bucket/");
                let bytes: Vec<u8> = percent_decoded(path);
                assert_eq!(String::from_utf8(bytes).unwrap(), key, "{url}");
                assert!(url.fragment().is_none() && url.username().is_empty());
            }
        }
    }

    fn percent_decoded(text: &str) -> Vec<u8> {
        let mut parts = text.split('%');
        let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
        for part in parts {
            bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
            bytes.extend(&part.as_bytes()[2..]);
        }
        bytes
    }

    #[test]
    fn endpoints_are_checked() {
        for wrong in ["127.0.0.1:9000", "ftp://host", "http://u:p@host", "http://host/?a"] {
            let stores = Stores::new(&|name| (name == "AWS_ENDPOINT_URL").then(|| wrong.to_owned()));
            let error = stores.err().unwrap().to_string();
            assert!(error.contains("`AWS_ENDPOINT_URL`: expected the address of a host"), "{error}");
        }
    }
}
