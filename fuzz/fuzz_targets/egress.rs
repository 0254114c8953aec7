//! Requests that the sandbox's proxy allows, checked by a reader that only compares bytes.
//!
//! An input is the data that a client sends to the proxy. If the rules allow its destination, then
//! the request named that host letter by letter, and the forwarded request names that host and no
//! other.
#![cfg_attr(fuzzing, no_main)]

use raddle_sandbox::egress::{EgressRules, EgressTarget, Forwarding, Host, RequestHead, Verdict};

/// Allowed hosts: single ones, and the subdomains of another.
const ALLOW: [&str; 3] = ["listed.test", "*.below.test", "10.0.0.1"];

fuzz::target!(|input: &[u8]| {
    let Ok(Some(head)) = RequestHead::parse(input) else {
        return;
    };
    let RequestHead {
        target,
        forwarding,
        bytes,
    } = head;
    assert!(bytes <= input.len());
    let again = EgressTarget::parse(&target.to_string(), None);
    assert_eq!(again.as_ref(), Ok(&target), "it is written as another host");
    let rules = EgressRules::parse(ALLOW, []).expect("rules");
    if !matches!(
        rules.verdict(&target),
        Verdict::Allowed | Verdict::AllowedAddress
    ) {
        return;
    }
    let dialled = target.host.to_string();
    let (parent, is_plain) = (".below.test", |it: u8| {
        it.is_ascii_lowercase() || it.is_ascii_digit() || b"-_.".contains(&it)
    });
    let is_below = dialled.len() > parent.len() && dialled.ends_with(parent);
    assert!(dialled == "listed.test" || dialled == "10.0.0.1" || is_below);
    assert!(matches!(target.host, Host::Address(_)) || dialled.bytes().all(is_plain));
    assert!(target.port == 80 || target.port == 443);
    // The second word of the input is the host, after the scheme and before its terminator.
    let mut words = input.split(|it| *it == b' ').filter(|it| !it.is_empty());
    let (method, address) = (words.next().unwrap_or(b""), words.next().unwrap_or(b""));
    let address = address.to_ascii_lowercase();
    let is_tunnel = method.ends_with(b"CONNECT");
    let address = address.strip_prefix(b"http://").unwrap_or(&address);
    let host = address
        .split(|it| b":/?".contains(it))
        .next()
        .unwrap_or(b"");
    assert_eq!(host, dialled.as_bytes(), "the request named another host");
    match forwarding {
        Forwarding::Tunnel => assert!(is_tunnel),
        Forwarding::Forward { head, .. } => {
            let mut headers = [httparse::EMPTY_HEADER; 128];
            let mut sent = httparse::Request::new(&mut headers);
            let whole = sent.parse(&head).expect("what is sent is HTTP");
            assert_eq!(whole, httparse::Status::Complete(head.len()));
            let named = sent
                .headers
                .iter()
                .filter(|it| it.name.eq_ignore_ascii_case("host"));
            let named: Vec<&[u8]> = named.map(|it| it.value).collect();
            let host = match target.port {
                80 => dialled,
                port => format!("{dialled}:{port}"),
            };
            assert_eq!(named, [host.as_bytes()]);
        }
    }
});
