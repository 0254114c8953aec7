//! Signing in, and the model lists of providers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MockClient, MockModel, request_id_value};
use crate::support::server::{TestServer, command};

/// Tokens are valid for four calls each, and the device is pending once.
const TOKENS: &str = "access = { keys = ['sekret'], calls_per_token = 4, pending = 1 }";

/// A client whose provider needs a sign-in.
fn client() -> MockClient {
    client_with("")
}

/// The same, with more OAuth settings.
fn client_with(more: &str) -> MockClient {
    let mock = MockModel::start(TOKENS);
    let oauth = oauth_setting(&mock, more);
    MockClient::with(mock, &[&oauth])
}

/// The setting of the mock's OAuth endpoints, with more settings.
fn oauth_setting(mock: &MockModel, more: &str) -> String {
    let (root, _) = mock.base_url.rsplit_once('/').expect("a path");
    let urls = ["token", "device", "authorize"].map(|it| format!("{it}_url = '{root}/oauth/{it}'"));
    let urls = urls.join(", ");
    format!("oauth={{ client_id = 'raddle', {urls}{more} }}")
}

impl MockClient {
    /// Sends a request and returns its response.
    fn answer(&mut self, method: &str, params: Value) -> Value {
        self.ask(method, params);
        let request_id = request_id_value(self.last_id);
        let messages = self.until(|it| it["id"] == request_id);
        messages.last().expect("an answer").clone()
    }

    fn account(&mut self) -> Value {
        self.answer("account/read", json!({}))["result"].clone()
    }

    /// Waits for the end of a sign-in. Returns the notifications `login/completed` and `updated`.
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
        self.mock.request_log()["tokens"].clone()
    }
}

/// Opens a page as a browser does, and follows its redirects.
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

/// The redirect address of a page.
fn redirect_address(page: &str) -> String {
    let (_, address) = page.split_once("redirect_uri=").expect("a way back");
    let (address, _) = address.split_once('&').expect("its end");
    address.replace("%3A", ":").replace("%2F", "/")
}

#[test]
fn a_key_is_stored_until_sign_out() {
    let mut client = client();
    let nobody = json!({ "account": null, "requiresOpenaiAuth": true, "workspaceRouting": null });
    assert_eq!(client.account(), nobody);
    let (_, turn) = client.say("hello");
    assert_eq!(
        turn["error"]["message"], "no user is signed in with `mock`; run `raddle login mock`",
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
    let sign_in = &answer["result"];
    assert_eq!(sign_in["userCode"], "MOCK-CODE", "{answer}");
    assert_eq!(
        sign_in["verificationUrl"], "http://127.0.0.1/device",
        "{answer}"
    );
    let (completed, updated) = client.signed_in();
    assert_eq!(completed["loginId"], sign_in["loginId"], "{completed}");
    assert_eq!(updated["authMode"], "chatgpt", "{updated}");
    assert_eq!(client.account()["account"]["type"], "chatgpt");
    assert_eq!(client.tokens(), 1);

    for _ in 0..4 {
        let (_, turn) = client.say("hello");
        assert_eq!(turn["status"], "completed", "{turn}");
    }
    assert_eq!(client.tokens(), 1);
    // Now all of them are rejected.
    client.turns(4);
    assert_eq!(client.tokens(), 2);
    let response = client.answer("account/read", json!({ "refreshToken": true }));
    assert_eq!(
        response["result"]["account"]["type"], "chatgpt",
        "{response}"
    );
    assert_eq!(client.tokens(), 3);

    // A failed renewal does not sign the user out.
    client.mock.child.kill().expect("the mock ends");
    let response = client.answer("account/read", json!({ "refreshToken": true }));
    assert_eq!(
        response["result"]["account"]["type"], "chatgpt",
        "{response}"
    );
}

#[test]
fn the_command_line_signs_in_with_a_device_code() {
    let mock = MockModel::start(TOKENS);
    let settings = mock.arguments(&[&oauth_setting(&mock, "")]);
    let home = TempDir::new().expect("a home");
    let run = |words: &[&str]| {
        let output = command(home.path()).args(&settings).args(words).output();
        let output = output.expect("it runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let (code, _, stderr) = run(&["login", "--device"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("MOCK-CODE"), "{stderr}");
    let (code, stdout, stderr) = run(&["login", "--status"]);
    let expected = "mock: logged in through its pages\n";
    assert_eq!((code, stdout.as_str()), (Some(0), expected), "{stderr}");
    let (code, _, stderr) = run(&["logout"]);
    assert_eq!(code, Some(0), "{stderr}");
    let (code, stdout, _) = run(&["login", "--status"]);
    assert_eq!(code, Some(1), "{stdout}");
}

#[test]
fn sign_in_by_browser_rejects_other_requests_to_its_port() {
    let mut client = client();
    let browser = json!({ "type": "chatgpt" });
    let answer = client.answer("account/login/start", browser.clone());
    let page = answer["result"]["authUrl"].as_str().expect("a page");
    assert!(page.contains("code_challenge_method=S256"), "{page}");
    let wrong = browse(&format!(
        "{}?code=evil&state=guessed",
        redirect_address(page)
    ));
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

    // A cancelled sign-in is over, and its port is closed.
    let answer = client.answer("account/login/start", browser);
    let login = answer["result"]["loginId"].clone();
    let cancel = json!({ "loginId": login });
    let cancelled = client.answer("account/login/cancel", cancel.clone());
    assert_eq!(cancelled["result"]["status"], "canceled", "{cancelled}");
    let (completed, _) = client.signed_in();
    assert_eq!(completed["success"], false, "{completed}");
    assert_eq!(
        completed["error"], "the sign-in was cancelled",
        "{completed}"
    );
    let page = answer["result"]["authUrl"].as_str().expect("a page");
    let port = redirect_address(page);
    let port = port
        .trim_start_matches("http://")
        .trim_end_matches("/callback");
    assert!(TcpStream::connect(port).is_err(), "{port}");
    let again = client.answer("account/login/cancel", cancel);
    assert_eq!(again["result"]["status"], "notFound", "{again}");
}

/// A client that crashed cancels nothing, and its port is needed again.
#[test]
fn a_new_sign_in_takes_over_the_port_of_a_pending_one() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let mut client = client_with(&format!(", redirect_port = {port}"));
    let browser = json!({ "type": "chatgpt" });
    let old = client.answer("account/login/start", browser.clone());
    client.ask("account/login/start", browser);
    let (cancelled, _) = client.signed_in();
    assert_eq!(
        cancelled["loginId"], old["result"]["loginId"],
        "{cancelled}"
    );
    assert_eq!(
        cancelled["error"], "the sign-in was cancelled",
        "{cancelled}"
    );
    let request_id = request_id_value(client.last_id);
    let messages = client.until(|it| it["id"] == request_id);
    let new = messages.last().expect("an answer");
    browse(new["result"]["authUrl"].as_str().expect("a page"));
    let (completed, _) = client.signed_in();
    assert_eq!(completed["success"], true, "{completed}");
    assert_eq!(completed["loginId"], new["result"]["loginId"]);
}

#[test]
fn a_provider_with_another_key_source_rejects_sign_in() {
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
    let missing = "model_providers.gone.base_url=http://127.0.0.1:1/v1";
    // These two return no models: a key that is not set, and no server.
    let usual = ["-c", "model=openai/gpt", "-c", missing, "-c", &other];
    // The user's own provider may have such names itself, so the list has no models of other
    // providers.
    let own = ["-c", "model=m", "-c", "model_provider=other", "-c", &other];
    for (arguments, expected) in [(&usual[..], ["gpt", "other/mock"]), (&own, ["m", "mock"])] {
        let mut server = TestServer::start(arguments);
        let mut pipes = server.pipes();
        pipes.hello();
        let mut ids = Vec::new();
        // The server does not wait for slow providers; a later request returns their models.
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
            if ids.len() >= expected.len() {
                break;
            }
        }
        assert_eq!(ids, expected, "{arguments:?}");
    }
}
