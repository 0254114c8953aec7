//! The plugin for an issue tracker of docs/plugins.md, as it stands there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use super::{PluginFolder, codes, steps};

/// The first line of each block of the page that begins one of its files.
const MANIFEST_MARK: &str = "# ~/plugins/tracker/plugin.toml\n";
const PROGRAM_MARK: &str = "# ~/plugins/tracker/main.py\n";
/// The address of the tracker on the page.
const ADDRESS: &str = "127.0.0.1:4020";
/// A part of the manifest that the page leaves out, because its tracker creates real issues.
const EXAMPLE: &str = "
[[contributions.methods]]
name = \"issues/create\"
example = { title = \"Oil the loom\" }
";
/// The authorization of a request to create an issue, in a test of the plugin.
const AUTHORIZATION: &str = "Bearer the test value of TRACKER_TOKEN";

/// A request to the tracker: its first line, authorization and body.
type TrackerRequest = (String, Option<String>, String);

/// Returns the blocks of a language on the page, from the one with the mark on, as one text.
fn blocks(language: &str, mark: &str) -> String {
    let page = include_str!("../../../../../../docs/plugins.md");
    let (_, rest) = page.split_once(mark).expect(mark);
    let opening = format!("```{language}\n");
    let further = rest.split(&opening).skip(1);
    let texts = std::iter::once(rest).chain(further);
    let texts = texts.map(|it| it.split_once("```").expect("an end").0);
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Starts a tracker, and returns its address. It sends each request to the receiver before it
/// responds.
fn start_tracker() -> (String, mpsc::Receiver<TrackerRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            if sender.send(read_request(&stream)).is_err() {
                return;
            }
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n[]";
            stream.write_all(response).expect("a response");
        }
    });
    (address, receiver)
}

fn read_request(stream: &TcpStream) -> TrackerRequest {
    let mut reader = BufReader::new(stream);
    let (mut first, mut authorization, mut length) = (String::new(), None, 0);
    reader.read_line(&mut first).expect("a first line");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        match name.to_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().expect("a length"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    let body = String::from_utf8(body).expect("text");
    (first.trim_end().to_owned(), authorization, body)
}

/// Without an approval the tracker gets no request, and the errors are proper responses.
#[test]
fn the_plugin_of_the_tutorial_keeps_the_contract() {
    let (address, requests) = start_tracker();
    let manifest = blocks("toml", MANIFEST_MARK) + EXAMPLE;
    let program = blocks("python", PROGRAM_MARK);
    let [manifest, program] = [manifest, program].map(|it| {
        assert!(it.contains(ADDRESS), "{it}");
        it.replace(ADDRESS, &address)
    });
    let folder = PluginFolder::of(&manifest, &program);
    let listed = ("GET /issues HTTP/1.1".to_owned(), None, String::new());
    let created = (
        "POST /issues HTTP/1.1".to_owned(),
        Some(AUTHORIZATION.to_owned()),
        r#"{"title": "Oil the loom"}"#.to_owned(),
    );
    let refused = "the plugin responded with an error: No issue was created: the user did not \
                   approve it.";
    for (option, approval, outcome, expected) in [
        ("--deny", "denied", refused, vec![]),
        ("--approve", "approved", "ok", vec![listed, created]),
    ] {
        let (code, test) = folder.test(&[option]);
        assert_eq!((code, codes(&test)), (Some(0), vec![]), "{test}");
        let steps = steps(&test);
        for step in [
            ("host/request_approval secrets:TRACKER_TOKEN", approval),
            ("issues/create", outcome),
        ] {
            assert!(steps.contains(&step), "{test}");
        }
        assert_eq!(requests.try_iter().collect::<Vec<_>>(), expected, "{test}");
    }
}
