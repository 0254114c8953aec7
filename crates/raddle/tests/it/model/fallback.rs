//! Turns that continue after a permanent failure: with another model, or with a shorter history.

use serde_json::{Value, json};

use super::{MockClient, MockModel};

/// A client whose server falls back from the Responses wire to two other providers, all of them the
/// mock.
fn with_fallback(script: &str) -> MockClient {
    with_fallback_and(script, &[])
}

/// The same, with more settings.
fn with_fallback_and(script: &str, settings: &[&str]) -> MockClient {
    let mock = MockModel::start(script);
    let mut arguments = mock.arguments(&["request_max_retries=0"]);
    let base_url = &mock.base_url;
    let more = [
        format!("model_providers.second.base_url={base_url}"),
        "model_providers.second.wire_api=messages".to_owned(),
        format!("model_providers.third.base_url={base_url}"),
        "model_providers.third.wire_api=chat".to_owned(),
        "fallback=[\"second/mock-two\", \"third/mock/three\"]".to_owned(),
    ];
    let more = more
        .into_iter()
        .chain(settings.iter().map(|it| (*it).to_owned()));
    arguments.extend(more.flat_map(|it| ["-c".to_owned(), it]));
    MockClient::of(mock, &arguments)
}

fn params_of<'a>(messages: &'a [Value], method: &'a str) -> impl Iterator<Item = &'a Value> {
    let named = messages.iter().filter(move |it| it["method"] == method);
    named.map(|it| &it["params"])
}

#[test]
fn a_turn_falls_back_to_the_next_provider_with_a_warning() {
    let script = "[[answer]]\nsteps = [{ fault = '529' }]\n[[answer]]\nsteps = [{ fault = 'quota' }]\n\
                  [[answer]]\nsteps = [{ text = 'from the third' }]\n[[answer]]\nsteps = [{ text = 'from the first' }]";
    let mut client = with_fallback(script);
    let (messages, turn) = client.say("hello");
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(turn["items"][0]["text"], "from the third", "{turn}");
    let errors: Vec<(Value, Value)> = params_of(&messages, "error")
        .map(|it| (it["error"]["class"].clone(), it["willRetry"].clone()))
        .collect();
    assert_eq!(
        errors,
        [
            (json!("unavailable"), json!(true)),
            (json!("quota"), json!(true))
        ]
    );
    let warnings: Vec<&Value> = params_of(&messages, "warning")
        .map(|it| &it["message"])
        .collect();
    assert_eq!(
        warnings,
        [
            "The model failed; the turn continues with second/mock-two.",
            "The model failed; the turn continues with third/mock/three.",
        ]
    );
    let usage = params_of(&messages, "thread/tokenUsage/updated")
        .last()
        .expect("usage");
    assert_eq!(usage["modelProvider"], "third", "{usage}");
    assert_eq!(usage["model"], "mock/three", "{usage}");

    // The next turn starts with the first provider again.
    let (messages, turn) = client.say("and now");
    assert_eq!(turn["items"][0]["text"], "from the first", "{turn}");
    let usage = params_of(&messages, "thread/tokenUsage/updated")
        .last()
        .expect("usage");
    assert_eq!(usage["modelProvider"], "mock", "{usage}");
    let models = client.mock.request_bodies();
    let models: Vec<&Value> = models.iter().map(|it| &it["model"]).collect();
    assert_eq!(models, ["mock", "mock-two", "mock/three", "mock"]);
}

/// A fallback provider without its key is skipped without a request. The client receives the
/// reason.
#[test]
fn a_fallback_provider_without_a_key_is_skipped() {
    let script = "[[answer]]\nsteps = [{ fault = '529' }]\n[[answer]]\nsteps = [{ text = 'from the third' }]";
    let key_setting = "model_providers.second.env_key=NO_SUCH_KEY";
    let mut client = with_fallback_and(script, &[key_setting]);
    let (messages, turn) = client.say("hello");
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(turn["items"][0]["text"], "from the third", "{turn}");
    let errors: Vec<&Value> = params_of(&messages, "error")
        .map(|it| &it["error"])
        .collect();
    assert_eq!(errors.len(), 2, "{messages:?}");
    assert_eq!(errors[1]["class"], "auth", "{errors:?}");
    let why = errors[1]["message"].as_str().unwrap_or_default();
    assert!(why.contains("NO_SUCH_KEY"), "{why}");
    let models = client.mock.request_bodies();
    let models: Vec<&Value> = models.iter().map(|it| &it["model"]).collect();
    assert_eq!(models, ["mock", "mock/three"]);
}

/// A model that `model/list` shows for another provider works from a thread with any provider.
#[test]
fn a_listed_model_selects_its_provider() {
    let mock = MockModel::start("");
    let settings = [
        "model=openai/gpt".to_owned(),
        format!("model_providers.mock.base_url={}", mock.base_url),
        format!("model_providers.other.base_url={}", mock.base_url),
    ];
    let arguments: Vec<String> = settings
        .into_iter()
        .flat_map(|it| ["-c".to_owned(), it])
        .collect();
    let mut client = MockClient::of(mock, &arguments);
    for (model, provider, expected) in [
        ("other/first/one", "other", "first/one"),
        ("mock/mock", "mock", "mock"),
        ("mock", "mock", "mock"),
    ] {
        let input = json!([{ "type": "text", "text": "hello" }]);
        let (messages, turn) = client.turn(&json!({ "input": input, "model": model }));
        assert_eq!(turn["status"], "completed", "{turn}");
        let usage = params_of(&messages, "thread/tokenUsage/updated").last();
        let usage = usage.expect("usage");
        assert_eq!(usage["modelProvider"], provider, "{usage}");
        let requests = client.mock.request_bodies();
        assert_eq!(requests.last().expect("a call")["model"], expected);
    }
}

/// A name without a provider belongs to the default provider, if the list shows it so. A thread
/// keeps the model that it already has.
#[test]
fn a_bare_listed_name_selects_the_default_provider() {
    let mock = MockModel::start("");
    let mut arguments = mock.arguments(&[]);
    let other = format!("model_providers.other.base_url={}", mock.base_url);
    arguments.extend(["-c".to_owned(), other]);
    let mut client = MockClient::of(mock, &arguments);
    for (change, provider, expected) in [
        (
            json!({ "model": "x", "modelProvider": "other" }),
            "other",
            "x",
        ),
        (json!({ "model": "x" }), "other", "x"),
        (json!({ "model": "y" }), "other", "y"),
        (json!({ "model": "mock" }), "mock", "mock"),
        (
            json!({ "model": "mock", "modelProvider": "other" }),
            "other",
            "mock",
        ),
        (json!({ "model": "mock" }), "other", "mock"),
    ] {
        let mut params = change.clone();
        params["input"] = json!([{ "type": "text", "text": "hello" }]);
        let (messages, turn) = client.turn(&params);
        assert_eq!(turn["status"], "completed", "{turn}");
        let usage = params_of(&messages, "thread/tokenUsage/updated").last();
        let usage = usage.expect("usage");
        assert_eq!(usage["modelProvider"], provider, "{change}: {usage}");
        let requests = client.mock.request_bodies();
        assert_eq!(
            requests.last().expect("a call")["model"],
            expected,
            "{change}"
        );
    }
}

#[test]
fn a_policy_rejection_does_not_fall_back() {
    let mut client = with_fallback("[[answer]]\nsteps = [{ fault = 'filtered' }]");
    let (messages, turn) = client.say("hello");
    assert_eq!(turn["status"], "failed", "{turn}");
    assert_eq!(turn["error"]["class"], "policy", "{turn}");
    assert_eq!(params_of(&messages, "warning").count(), 0, "{messages:?}");
    assert_eq!(client.mock.request_bodies().len(), 1);
}

#[test]
fn a_history_that_does_not_fit_is_compacted_and_the_question_put_again() {
    let script = "[[answer]]\nsteps = [{ fault = 'context' }]\n[[answer]]\nsteps = [{ fault = 'context' }]\n\
                  [[answer]]\nsteps = [{ text = 'they greeted' }]\n[[answer]]\nsteps = [{ text = 'hello to you' }]";
    let mut client = MockClient::start(script, &[]);
    let (messages, turn) = client.say("hello");
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(turn["items"][0]["text"], "hello to you", "{turn}");
    let classes: Vec<&Value> = params_of(&messages, "error")
        .map(|it| &it["error"]["class"])
        .collect();
    assert_eq!(classes, ["contextOverflow", "contextOverflow"]);
    let compacted = params_of(&messages, "item/completed")
        .filter(|it| it["item"]["type"] == "contextCompaction");
    assert_eq!(compacted.count(), 1, "{messages:?}");
    let requests = client.mock.request_bodies();
    assert_eq!(requests.len(), 4);
    let last = requests[3]["input"].to_string();
    assert!(last.contains("they greeted"), "{last}");
}

#[test]
fn a_history_that_never_fits_ends_its_turn_in_the_end() {
    let script = "repeat = true\n[[answer]]\nsteps = [{ fault = 'context' }]";
    let mut client = MockClient::start(script, &[]);
    let (_, turn) = client.say("hello");
    assert_eq!(turn["status"], "failed", "{turn}");
    let info = &turn["error"]["codexErrorInfo"];
    assert_eq!(info, "contextWindowExceeded", "{turn}");
    assert_eq!(client.mock.request_bodies().len(), 5);
}
