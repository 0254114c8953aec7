//! Signing in, and which models providers have.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{MockClient, MockModel, client_id};
use crate::support::server::TestServer;

/// Tokens are good for four calls each, and a device waits once.
const TOKENS: &str = "access = { keys = ['sekret'], calls_per_token = 4, pending = 1 }";

/// A client whose provider people sign in with.
fn client() -> MockClient {
    client_with("")
}

/// The same, with more said of how.
fn client_with(more: &str) -> MockClient {
    let mock = MockModel::start(TOKENS);
    let (root, _) = mock.base_url.rsplit_once('/').expect("a path");
    let urls = ["token", "device", "authorize"].map(|it| format!("{it}_url = '{root}/oauth/{it}'"));
    let urls = urls.join(", ");
    let oauth = format!("oauth={{ client_id = 'raddle', {urls}{more} }}");
    MockClient::with(mock, &[&oauth])
}

impl MockClient {
    /// Asks, and gives the answer and what is told until then.
    fn answer(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params);
        let asked = client_id(self.asked);
        let heard = self.until(|it| it["id"] == asked);
        heard.last().expect("an answer").clone()
    }

    fn account(&mut self) -> Value {
        self.answer("account/read", json!({}))["result"].clone()
    }

    /// What is told of a sign-in's end.
    fn signed_in(&mut self) -> (Value, Value) {
        let completed = self.until(|it| it["method"] == "account/login/completed");
        let completed = completed.last().expect("an end")["params"].clone();
        let updated = match completed["success"] == true {
            true => self.pipes.receive(),
            false => Value::Null,
        };
        (completed, updated["params"].clone())
    }

    fn tokens(&self) -> Value {
        self.mock.told()["tokens"].clone()
    }
}

/// Opens a page as a browser does, and goes where it is sent.
fn browse(address: &str) -> String {
    let (host, path) = address
        .strip_prefix("http://")
        .and_then(|it| it.split_once('/'))
        .expect("an address");
    let mut stream = TcpStream::connect(host).expect("someone listens");
    let request = format!("GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("a page");
    let next = page.lines().find_map(|it| it.strip_prefix("location: "));
    match next {
        Some(next) => browse(next),
        None => page,
    }
}

/// Where a page sends the browser back to.
fn back(page: &str) -> String {
    let (_, back) = page.split_once("redirect_uri=").expect("a way back");
    let (back, _) = back.split_once('&').expect("its end");
    back.replace("%3A", ":").replace("%2F", "/")
}

#[test]
fn a_key_is_kept_until_someone_signs_out() {
    let mut client = client();
    let nobody = json!({ "account": null, "requiresOpenaiAuth": true, "workspaceRouting": null });
    assert_eq!(client.account(), nobody);
    let (_, turn) = client.say("hello");
    let why = turn["error"]["message"].as_str().unwrap_or_default();
    assert!(
        why.starts_with("nobody is signed in with `mock`; "),
        "{turn}"
    );

    let key = json!({ "type": "apiKey", "apiKey": "sekret\n" });
    let answer = client.answer("account/login/start", key);
    assert_eq!(answer["result"], json!({ "type": "apiKey" }), "{answer}");
    let (completed, updated) = client.signed_in();
    assert_eq!(completed["loginId"], Value::Null, "{completed}");
    assert_eq!(updated, json!({ "authMode": "apikey", "planType": null }));
    assert_eq!(client.account()["account"], json!({ "type": "apiKey" }));
    let (_, turn) = client.say("hello");
    assert_eq!(turn["status"], "completed", "{turn}");

    let file = client.server.home().join("credentials.json");
    let mode = std::fs::metadata(file)
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let config = client.answer("config/read", json!({ "includeLayers": true }));
    assert!(!config.to_string().contains("sekret"), "{config}");

    let answer = client.answer("account/logout", Value::Null);
    assert_eq!(answer["result"], json!({}), "{answer}");
    assert_eq!(client.account(), nobody);
    let (_, turn) = client.say("hello");
    assert_eq!(turn["status"], "failed", "{turn}");
}

#[test]
fn a_device_signs_in_and_its_token_is_renewed_once_however_many_threads_wait() {
    let mut client = client();
    let device = json!({ "type": "chatgptDeviceCode" });
    let answer = client.answer("account/login/start", device);
    let begun = &answer["result"];
    assert_eq!(begun["userCode"], "MOCK-CODE", "{answer}");
    assert_eq!(
        begun["verificationUrl"], "http://127.0.0.1/device",
        "{answer}"
    );
    let (completed, updated) = client.signed_in();
    assert_eq!(completed["loginId"], begun["loginId"], "{completed}");
    assert_eq!(updated["authMode"], "chatgpt", "{updated}");
    assert_eq!(client.account()["account"]["type"], "chatgpt");
    assert_eq!(client.tokens(), 1);

    for _ in 0..4 {
        let (_, turn) = client.say("hello");
        assert_eq!(turn["status"], "completed", "{turn}");
    }
    assert_eq!(client.tokens(), 1);
    // Now it is refused to all of them.
    client.turns(4);
    assert_eq!(client.tokens(), 2);
    let asked = client.answer("account/read", json!({ "refreshToken": true }));
    assert_eq!(asked["result"]["account"]["type"], "chatgpt", "{asked}");
    assert_eq!(client.tokens(), 3);

    // Who cannot be asked for another changes nothing about who is signed in.
    client.mock.child.kill().expect("the mock ends");
    let asked = client.answer("account/read", json!({ "refreshToken": true }));
    assert_eq!(asked["result"]["account"]["type"], "chatgpt", "{asked}");
}

#[test]
fn a_browser_signs_in_and_nobody_else_through_its_port() {
    let mut client = client();
    let browser = json!({ "type": "chatgpt" });
    let answer = client.answer("account/login/start", browser.clone());
    let page = answer["result"]["authUrl"].as_str().expect("a page");
    assert!(page.contains("code_challenge_method=S256"), "{page}");
    let wrong = browse(&format!("{}?code=evil&state=guessed", back(page)));
    assert!(wrong.starts_with("HTTP/1.1 400 "), "{wrong}");
    let right = browse(page);
    assert!(
        right.ends_with("You are signed in. You can close this page."),
        "{right}"
    );
    let (completed, _) = client.signed_in();
    assert_eq!(completed["success"], true, "{completed}");
    let (_, turn) = client.say("hello");
    assert_eq!(turn["status"], "completed", "{turn}");

    // One that is given up is over, and its port is closed.
    let answer = client.answer("account/login/start", browser);
    let login = answer["result"]["loginId"].clone();
    let cancel = json!({ "loginId": login });
    let given_up = client.answer("account/login/cancel", cancel.clone());
    assert_eq!(given_up["result"]["status"], "canceled", "{given_up}");
    let (completed, _) = client.signed_in();
    assert_eq!(completed["success"], false, "{completed}");
    assert_eq!(
        completed["error"], "the sign-in was given up",
        "{completed}"
    );
    let page = answer["result"]["authUrl"].as_str().expect("a page");
    let port = back(page);
    let port = port
        .trim_start_matches("http://")
        .trim_end_matches("/callback");
    assert!(TcpStream::connect(port).is_err(), "{port}");
    let again = client.answer("account/login/cancel", cancel);
    assert_eq!(again["result"]["status"], "notFound", "{again}");
}

/// A client that crashed gives nothing up, and its port is wanted again.
#[test]
fn a_new_sign_in_takes_the_port_of_one_that_still_waits() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let mut client = client_with(&format!(", redirect_port = {port}"));
    let browser = json!({ "type": "chatgpt" });
    let old = client.answer("account/login/start", browser.clone());
    client.ask("account/login/start", browser);
    let (given_up, _) = client.signed_in();
    assert_eq!(given_up["loginId"], old["result"]["loginId"], "{given_up}");
    assert_eq!(given_up["error"], "the sign-in was given up", "{given_up}");
    let asked = client_id(client.asked);
    let heard = client.until(|it| it["id"] == asked);
    let new = heard.last().expect("an answer");
    browse(new["result"]["authUrl"].as_str().expect("a page"));
    let (completed, _) = client.signed_in();
    assert_eq!(completed["success"], true, "{completed}");
    assert_eq!(completed["loginId"], new["result"]["loginId"]);
}

#[test]
fn who_has_a_key_elsewhere_does_not_sign_in() {
    for (setting, begins) in [
        (
            "env_key=RADDLE_HOME",
            "the configuration says where the key of `mock` is; ",
        ),
        ("name=Mock", "the model provider `mock` takes no key; "),
        (
            "requires_openai_auth=true",
            "the model provider `mock` has no pages to sign in; ",
        ),
    ] {
        let mut client = MockClient::start("", &[setting]);
        let answer = client.answer("account/login/start", json!({ "type": "chatgpt" }));
        let why = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(why.starts_with(begins), "{answer}");
    }
}

#[test]
fn models_are_those_that_providers_have() {
    let mock = MockModel::start("");
    let other = format!("model_providers.other.base_url={}", mock.base_url);
    let gone = "model_providers.gone.base_url=http://127.0.0.1:1/v1";
    // Of these two nothing comes: a key that is not set, and nobody there.
    let usual = ["-c", "model=openai/gpt", "-c", gone, "-c", &other];
    // A provider of the user's own may have such names itself, so that nothing is told of others.
    let own = ["-c", "model=m", "-c", "model_provider=other", "-c", &other];
    for (arguments, wanted) in [(&usual[..], ["gpt", "other/mock"]), (&own, ["m", "mock"])] {
        let mut server = TestServer::start(arguments);
        let mut pipes = server.pipes();
        pipes.hello();
        let mut ids = Vec::new();
        // A client does not wait for providers for ever; what they say later is told to who asks again.
        for id in 1..60 {
            let list = json!({ "id": id, "method": "model/list", "params": {} });
            pipes.send(list.to_string().as_bytes());
            let list = loop {
                let message = pipes.receive();
                if message["id"] == id {
                    break message;
                }
            };
            let models = list["result"]["data"].as_array().expect("models");
            ids = models.iter().map(|it| it["id"].clone()).collect();
            if ids.len() >= wanted.len() {
                break;
            }
        }
        assert_eq!(ids, wanted, "{arguments:?}");
    }
}
