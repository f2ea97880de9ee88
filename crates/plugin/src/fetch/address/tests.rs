//! Addresses that the list has, and the many that look as if it had.

use super::*;

fn list() -> Allowed {
    Allowed::parse(
        "https://images.example.com/photos/, https://*.cdn.example.org, http://10.0.0.5:8080/a, https://[fd00::1]/, \
         s3://bucket/prefix/, gs://whole-bucket",
    )
    .unwrap()
}

#[test]
fn the_list_has_what_it_says() {
    for (text, name) in [
        ("https://images.example.com/photos/a.jpg", None),
        (
            "HTTPS://IMAGES.Example.com:443/photos/a.jpg?x=1#part",
            Some("https://images.example.com/photos/a.jpg?x=1"),
        ),
        ("https://images.example.com/x/../photos/%61.jpg", Some("https://images.example.com/photos/%61.jpg")),
        ("https://a.cdn.example.org/x", None),
        ("https://a.b.cdn.example.org/x", None),
        ("http://10.0.0.5:8080/a", None),
        ("http://10.0.0.5:8080/a/b%20c", None),
        // The same host in other numbers.
        ("http://0x0a000005:8080/a", Some("http://10.0.0.5:8080/a")),
        ("http://167772165:8080/a", Some("http://10.0.0.5:8080/a")),
        ("http://012.0.0.05:8080/a", Some("http://10.0.0.5:8080/a")),
        ("https://[FD00:0:0::1]/x", Some("https://[fd00::1]/x")),
        ("s3://bucket/prefix/a b?#%.jpg", None),
        ("S3://bucket/prefix/ä", Some("s3://bucket/prefix/ä")),
        ("gs://whole-bucket/x/y", None),
    ] {
        let address = list().check(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(address.name(), name.unwrap_or(text));
    }
}

#[test]
fn what_only_looks_like_it_is_refused() {
    for text in [
        // Another scheme, host, port or path.
        "http://images.example.com/photos/a.jpg",
        "https://images.example.com:8443/photos/a.jpg",
        "https://images.example.com/photo/a.jpg",
        "https://images.example.com/",
        "https://images.example.com",
        "https://images.example.com./photos/a.jpg",
        "https://evil.com/photos/a.jpg?images.example.com/photos/",
        "https://images.example.com.evil.com/photos/a.jpg",
        "https://xcdn.example.org/x",
        "https://cdn.example.org/x",
        "https://.cdn.example.org/x",
        "http://10.0.0.5:8080/ab",
        "http://10.0.0.5/a",
        "http://[::ffff:10.0.0.5]:8080/a",
        "http://10.0.0.6:8080/a",
        // Ways out of the path.
        "https://images.example.com/photos/../secret",
        "https://images.example.com/photos/%2e%2e/secret",
        "https://images.example.com/photos/..%2fsecret",
        "https://images.example.com/photos/..%5csecret",
        "https://images.example.com/photos/%252e%252e%252fsecret",
        "https://images.example.com/photos/..;x/secret",
        "https://images.example.com/photos/..%3b/secret",
        "https://images.example.com/photos/%c0%ae%c0%ae/secret",
        "https://images.example.com/photos/..%c0%afsecret",
        "https://images.example.com/photos/%e0%80%ae%e0%80%ae/secret",
        "https://images.example.com/photos/%f0%80%80%ae./secret",
        "https://images.example.com/photos/.%2e/secret",
        "https://images.example.com/photos/%u002e%u002e/secret",
        "https://images.example.com/photos/a%0d%0aHost:%20evil",
        "https://images.example.com/photos/a%00.jpg",
        "https://images.example.com/photos/a%zz.jpg",
        "https://images.example.com/photos\\..\\secret",
        // Users, and characters that parsers leave out.
        "https://images.example.com@evil.com/photos/a.jpg",
        "https://me:secret@images.example.com/photos/a.jpg",
        "https://@images.example.com/photos/a.jpg",
        "https://evil.com\\@images.example.com/photos/a.jpg",
        "https://images.exa\tmple.com/photos/a.jpg",
        "https://images.example.com/photos/a.jpg\r\nHost: evil",
        " https://images.example.com/photos/a.jpg",
        "https:///images.example.com/photos/a.jpg",
        "https:images.example.com/photos/a.jpg",
        "https://images.example.com/photos/ä.jpg",
        "https://\u{ff49}mages.example.com/photos/a.jpg",
        "file:///etc/passwd",
        "gopher://images.example.com/photos/",
        "",
        // Buckets.
        "s3://bucket/prefix",
        "s3://bucket/prefix-of-others/a",
        "s3://bucket/prefix/../secret",
        "s3://bucket/prefix/./a",
        "s3://bucket//prefix/a",
        "s3://Bucket/prefix/a",
        "s3://bucket.evil.com@x/prefix/a",
        "s3://other/prefix/a",
        "s3://bucket",
        "gs://whole-bucket",
        "gs://whole-bucket/",
        "gs://bucket/prefix/a",
        "gs://../x",
    ] {
        assert!(matches!(list().check(text.as_bytes()), Err(Failure::NotAllowed(_))), "{text}");
    }
    assert!(list().check(&[b"https://images.example.com/photos/", [0xff].as_slice()].concat()).is_err());
    let long = format!("https://images.example.com/photos/{}", "a".repeat(MAX_ADDRESS_BYTES));
    assert!(list().check(long.as_bytes()).is_err());
}

#[test]
fn all_names_of_a_domain_have_one_owner() {
    let owner = |text: &str| list().owner(&list().check(text.as_bytes()).unwrap());
    assert_eq!(owner("https://images.example.com/photos/a.jpg"), "images.example.com");
    assert_eq!(owner("https://a.cdn.example.org/x"), "*.cdn.example.org");
    assert_eq!(owner("https://a.b.cdn.example.org/x"), "*.cdn.example.org");
    assert_eq!(owner("https://[fd00::1]/x"), "[fd00::1]");
    assert_eq!(owner("s3://bucket/prefix/a"), "bucket");
    let both = Allowed::parse("https://*.example.org/, https://own.example.org/").unwrap();
    assert_eq!(both.owner_of("own.example.org"), "own.example.org");
    assert_eq!(both.owner_of("example.com"), "example.com");
}

#[test]
fn letters_of_other_encodings_are_names() {
    for text in
        ["https://images.example.com/photos/caf%E9.jpg", "https://images.example.com/photos/%C3%A9.jpg"]
    {
        assert!(list().check(text.as_bytes()).is_ok(), "{text}");
    }
}

#[test]
fn only_listed_schemes_make_an_address_of_bytes() {
    let allowed = Allowed::parse("https://a.example.com/").unwrap();
    for yes in ["https://b.example.com/x", "HttpS://", "https://"] {
        assert!(allowed.is_address(yes.as_bytes()), "{yes}");
    }
    for no in ["http://a.example.com/", "s3://b/c", "https:/", "", "\u{ff}\u{d8}", " https://a.example.com/"]
    {
        assert!(!allowed.is_address(no.as_bytes()), "{no}");
    }
}

#[test]
fn entries_are_checked() {
    for wrong in [
        "",
        ",",
        "images.example.com",
        "ftp://a.example.com/",
        "https://",
        "https://*.com/",
        "https://*/",
        "https://a.*.com/",
        "https://*.1.2.3.4/",
        "https://u@a.example.com/",
        "https://a.example.com/?x",
        "s3://",
        "s3://*.bucket/",
        "s3://b/",
        "https://a.example.com/*",
        "https://a b.example.com/",
    ] {
        let error = Allowed::parse(wrong).unwrap_err().to_string();
        assert!(error.contains("expected"), "{wrong}: {error}");
    }
    assert!(Allowed::parse(&"https://a.example.com/,".repeat(1_001)).is_err());
    assert_eq!(list().0.len(), 6);
}
