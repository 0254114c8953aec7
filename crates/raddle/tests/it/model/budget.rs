//! Budgets: a warning before the limit, a typed error at the limit, and the ways to continue.

use serde_json::{Value, json};

use super::{MockClient, MockModel, request_id_value};
use crate::support::server::command;

/// A token costs a thousandth of a dollar.
const PRICES: &str = "prices=[{ provider = 'mock', model = 'mock', input = 1000, output = 1000 }]";

/// An answer that uses so many tokens and calls a missing tool, so that the turn goes on.
fn goes_on(tokens: u64) -> String {
    format!(
        "[[answer]]\nsteps = [{{ usage = {{ input = {tokens}, output = 0 }} }}, {{ call = 'nothing', arguments = {{}} }}]\n"
    )
}

/// An answer that uses so many tokens and ends the turn.
fn ends(tokens: u64) -> String {
    format!(
        "[[answer]]\nsteps = [{{ usage = {{ input = {tokens}, output = 0 }} }}, {{ text = 'fine' }}]\n"
    )
}

fn arguments(mock: &MockModel, settings: &[&str]) -> Vec<String> {
    let mut arguments = mock.arguments(&[]);
    let more = settings.iter().map(|it| (*it).to_owned());
    arguments.extend(more.flat_map(|it| ["-c".to_owned(), it]));
    arguments
}

fn client(script: &str, settings: &[&str]) -> MockClient {
    let mock = MockModel::start(script);
    let arguments = arguments(&mock, settings);
    MockClient::of(mock, &arguments)
}

/// The budgets of the warnings.
fn budget_warnings(messages: &[Value]) -> Vec<Value> {
    let warnings = messages.iter().filter(|it| it["method"] == "warning");
    let budgets = warnings.map(|it| it["params"]["budget"].clone());
    budgets.filter(Value::is_object).collect()
}

/// Checks that a turn ended because of this budget.
fn assert_spent(turn: &Value, budget: &Value) {
    assert_eq!(turn["status"], "failed", "{turn}");
    let error = &turn["error"];
    assert_eq!(error["codexErrorInfo"], "sessionBudgetExceeded", "{turn}");
    assert_eq!(error["class"], "quota", "{turn}");
    assert_eq!(error["budget"], *budget, "{turn}");
}

#[test]
fn tokens_end_a_turn_before_the_next_call_and_the_next_begins_anew() {
    let script = [goes_on(85), goes_on(15), ends(5)].concat();
    let mut client = client(&script, &["budget.turn.tokens=100"]);
    let (messages, turn) = client.say("go on");
    let near = json!({ "scope": "turn", "kind": "tokens", "spent": 85.0, "limit": 100.0 });
    assert_eq!(budget_warnings(&messages), [near]);
    let spent = json!({ "scope": "turn", "kind": "tokens", "spent": 100.0, "limit": 100.0 });
    assert_spent(&turn, &spent);
    assert_eq!(client.mock.request_bodies().len(), 2);
    let usage = messages
        .iter()
        .rfind(|it| it["method"] == "thread/tokenUsage/updated");
    assert_eq!(
        usage.expect("usage")["params"]["budgets"],
        json!([spent]),
        "{messages:?}"
    );

    let (messages, turn) = client.say("and now");
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(budget_warnings(&messages), Vec::<Value>::new());
}

/// One call can use more than a budget. The warning then names both numbers, and does not call the
/// budget nearly spent.
#[test]
fn an_exceeded_budget_is_reported_as_exceeded() {
    let script = [ends(1896), ends(100), ends(85)].concat();
    let mut client = client(&script, &["budget.turn.tokens=100"]);
    for (tokens, state) in [(1896, "exceeded"), (100, "spent"), (85, "nearly spent")] {
        let (messages, turn) = client.say("go on");
        assert_eq!(turn["status"], "completed", "{turn}");
        let mut messages = messages.iter();
        let warning = messages.find(|it| it["params"]["budget"].is_object());
        let expected = format!(
            "A budget is {state}: this turn has used {tokens} tokens of 100 tokens (budget.turn.tokens)."
        );
        let message = &warning.expect("a warning")["params"]["message"];
        assert_eq!(*message, json!(expected), "{turn}");
    }
}

/// The usage of a thread is in its records: a killed server loses nothing of it and counts nothing
/// twice.
#[test]
fn a_thread_over_budget_stays_so_until_its_budget_is_raised() {
    let script = [ends(60), ends(40), ends(1), ends(1)].concat();
    let mut client = client(&script, &["budget.thread.tokens=100"]);
    let (messages, turn) = client.say("one");
    assert_eq!(turn["status"], "completed", "{turn}");
    assert_eq!(budget_warnings(&messages), Vec::<Value>::new());

    let arguments = arguments(&client.mock, &["budget.thread.tokens=100"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    client.server.start_again(&arguments);
    client.pipes = client.server.pipes();
    // Only experimental clients can change settings, and receive the change.
    client.ask(
        "initialize",
        json!({
            "clientInfo": { "name": "test", "version": "1" },
            "capabilities": { "experimentalApi": true },
        }),
    );
    let request_id = request_id_value(client.last_id);
    client.until(|it| it["id"] == request_id);
    resume(&mut client, json!({}));
    let (messages, turn) = client.say("two");
    assert_eq!(turn["status"], "completed", "{turn}");
    let near = json!({ "scope": "thread", "kind": "tokens", "spent": 100.0, "limit": 100.0 });
    assert_eq!(budget_warnings(&messages), std::slice::from_ref(&near));

    let (_, turn) = client.say("three");
    assert_spent(&turn, &near);
    assert_eq!(client.mock.request_bodies().len(), 2);

    let thread = client.thread.clone();
    let budget = json!({ "thread": { "tokens": 1000 } });
    client.ask(
        "thread/settings/update",
        json!({ "threadId": thread, "budget": budget }),
    );
    let messages = client.until(|it| it["method"] == "thread/settings/updated");
    let budget_shown =
        &messages.last().expect("the settings")["params"]["threadSettings"]["budget"];
    assert_eq!(*budget_shown, budget, "{messages:?}");
    let (_, turn) = client.say("four");
    assert_eq!(turn["status"], "completed", "{turn}");

    // A client that resumes the thread, and is its only subscriber, can also set it in the
    // configuration.
    unsubscribe(&mut client);
    resume(&mut client, json!({ "budget.thread.tokens": 50 }));
    let (_, turn) = client.say("five");
    assert_eq!(turn["error"]["budget"]["limit"], 50.0, "{turn}");
    unsubscribe(&mut client);
    resume(
        &mut client,
        json!({ "budget": { "thread": { "tokens": 5000 } } }),
    );
    let (_, turn) = client.say("six");
    assert_eq!(turn["status"], "completed", "{turn}");
}

fn unsubscribe(client: &mut MockClient) {
    let thread = client.thread.clone();
    client.ask("thread/unsubscribe", json!({ "threadId": thread }));
    let request_id = request_id_value(client.last_id);
    client.until(|it| it["id"] == request_id);
}

fn resume(client: &mut MockClient, config: Value) {
    let thread = client.thread.clone();
    client.ask(
        "thread/resume",
        json!({ "threadId": thread, "config": config }),
    );
    let request_id = request_id_value(client.last_id);
    let messages = client.until(|it| it["id"] == request_id);
    let answer = messages.last().expect("an answer");
    assert!(answer["result"].is_object(), "{answer}");
}

#[test]
fn money_is_counted_at_known_prices_and_shown_for_each_model() {
    let script = [goes_on(90), goes_on(20), ends(1)].concat();
    let mut client = client(&script, &[PRICES, "budget.turn.usd=0.1"]);
    let (messages, turn) = client.say("go on");
    let near = json!({ "scope": "turn", "kind": "usd", "spent": 0.09, "limit": 0.1 });
    assert_eq!(budget_warnings(&messages), [near]);
    let spent = json!({ "scope": "turn", "kind": "usd", "spent": 0.11, "limit": 0.1 });
    assert_spent(&turn, &spent);
    let usage = messages
        .iter()
        .rfind(|it| it["method"] == "thread/tokenUsage/updated");
    assert_eq!(usage.expect("usage")["params"]["costUsd"], 0.11);
    let (_, turn) = client.say("and now");
    assert_eq!(turn["status"], "completed", "{turn}");

    let mut show = command(client.server.home());
    let shown = show.args(["thread", "show", &client.thread]).output();
    let shown = String::from_utf8(shown.expect("to run").stdout).expect("text");
    let used = shown.lines().find(|it| it.starts_with("used "));
    assert_eq!(
        used,
        Some(
            "used    mock/mock  111 tokens (111 read, 0 of them from the cache, 0 written)  $0.111  3 calls"
        ),
        "{shown}"
    );
}

#[test]
fn an_unknown_price_does_not_count_as_zero() {
    let mut client = client(&ends(5), &["budget.thread.usd=1"]);
    let (_, turn) = client.say("hello");
    let budget = json!({ "scope": "thread", "kind": "usd", "spent": null, "limit": 1.0 });
    assert_spent(&turn, &budget);
    let message = turn["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("[[prices]]"), "{message}");
    assert_eq!(client.mock.request_bodies().len(), 0);

    // The advice in the message works, from the next turn on.
    let file = client.server.home().join("config.toml");
    let price = "[[prices]]\nprovider = 'mock'\nmodel = '*'\ninput = 1000\noutput = 1000\n";
    std::fs::write(file, price).expect("a file");
    let (messages, turn) = client.say("and now");
    assert_eq!(turn["status"], "completed", "{turn}");
    let usage = messages
        .iter()
        .rfind(|it| it["method"] == "thread/tokenUsage/updated");
    assert_eq!(usage.expect("usage")["params"]["costUsd"], 0.005);
}

#[test]
fn a_tool_call_over_budget_is_not_started() {
    let echo = |text: &str| {
        format!(
            "[[answer]]\nsteps = [{{ call = 'exec_command', arguments = {{ cmd = 'echo {text}', login = false }} }}]\n"
        )
    };
    let script = [echo("one"), echo("two"), ends(1)].concat();
    let settings = [
        "budget.turn.tool_calls=1",
        "sandbox_mode=workspace-write",
        "sandbox_workspace_write.exclude_slash_tmp=true",
        "sandbox_workspace_write.exclude_tmpdir_env_var=true",
    ];
    let mut client = client(&script, &settings);
    let (messages, turn) = client.say("go on");
    let spent = json!({ "scope": "turn", "kind": "toolCalls", "spent": 1.0, "limit": 1.0 });
    assert_eq!(budget_warnings(&messages), std::slice::from_ref(&spent));
    assert_spent(&turn, &spent);
    let ended = messages
        .iter()
        .filter(|it| it["method"] == "item/completed")
        .map(|it| &it["params"]["item"])
        .filter(|it| it["type"] == "commandExecution");
    let ended: Vec<&Value> = ended.map(|it| &it["exitCode"]).collect();
    assert_eq!(ended, [&json!(0), &Value::Null], "{messages:?}");
    let (_, turn) = client.say("and now");
    assert_eq!(turn["status"], "completed", "{turn}");
}

#[test]
fn the_time_budget_ends_a_turn_with_a_silent_model() {
    let script = format!("[[answer]]\nsteps = [{{ fault = 'stall' }}]\n{}", ends(1));
    let mut client = client(&script, &["budget.turn.seconds=1"]);
    let (messages, turn) = client.say("go on");
    let warnings = budget_warnings(&messages);
    assert_eq!(warnings.len(), 1, "{messages:?}");
    assert_eq!(warnings[0]["kind"], "seconds", "{warnings:?}");
    assert!(warnings[0]["spent"].as_f64() >= Some(0.8), "{warnings:?}");
    assert_eq!(turn["error"]["budget"]["kind"], "seconds", "{turn}");
    assert_eq!(turn["error"]["codexErrorInfo"], "sessionBudgetExceeded");
    // On a slow machine a turn that answers at once may take longer than that.
    unsubscribe(&mut client);
    resume(&mut client, json!({ "budget.turn.seconds": 600 }));
    let (_, turn) = client.say("and now");
    assert_eq!(turn["status"], "completed", "{turn}");
}

#[test]
fn an_invalid_budget_starts_no_thread() {
    let mut client = client("", &[]);
    let config = json!({ "budget.turn.euros": 5 });
    client.ask("thread/start", json!({ "config": config }));
    let request_id = request_id_value(client.last_id);
    let messages = client.until(|it| it["id"] == request_id);
    let answer = messages.last().expect("an answer");
    assert_eq!(
        answer["error"]["message"],
        "`euros` under [budget.turn] is not used here; write one of tokens, usd, seconds, tool_calls"
    );
}
