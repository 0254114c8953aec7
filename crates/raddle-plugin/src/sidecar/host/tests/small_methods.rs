//! `host/state_get`, `host/state_set`, `host/secret` and `host/log`.

use super::*;

#[tokio::test]
async fn the_state_outlives_the_host_within_its_limit() {
    let fixture = HostFixture::new();
    let set = async |fixture: &HostFixture, key: &str, value: Value| {
        let params = json!({ "key": key, "value": value });
        fixture.call("host/state_set", params).await
    };
    let get = async |fixture: &HostFixture, key: &str| {
        let result = fixture.call("host/state_get", json!({ "key": key })).await;
        result.expect("a result")["value"].clone()
    };
    assert_eq!(get(&fixture, "a").await, Value::Null);
    let value = json!({ "n": [1, 2] });
    assert_eq!(set(&fixture, "a", value.clone()).await, Ok(json!({})));
    let half = json!("x".repeat(40 << 10));
    set(&fixture, "b", half.clone()).await.expect("it fits");
    let error = set(&fixture, "c", half.clone())
        .await
        .expect_err("too long");
    assert!(error.contains("more than 65536"), "{error}");
    set(&fixture, "b", Value::Null).await.expect("removed");
    set(&fixture, "c", half.clone()).await.expect("it fits now");
    // Neither a restart nor a change of the files ends the state.
    let fixture = HostFixture::of(fixture.home, "# changed\n");
    assert_eq!(get(&fixture, "a").await, value);
    assert_eq!(
        (get(&fixture, "b").await, get(&fixture, "c").await),
        (Value::Null, half)
    );
    for params in [
        json!({}),
        json!({ "key": "" }),
        json!({ "key": "x".repeat(201) }),
        json!(1),
    ] {
        for method in ["host/state_get", "host/state_set"] {
            let error = fixture.call(method, params.clone()).await;
            assert!(
                error.is_err_and(|it| it.contains("`key` must be")),
                "{method}"
            );
        }
    }
    let error = fixture.call("host/state_set", json!({ "key": "a" })).await;
    assert!(error.is_err_and(|it| it.contains("`value` is missing")));
    let store = StateStore::of(fixture.home.path(), "org.example");
    store.remove().expect("a file");
    assert_eq!(get(&fixture, "a").await, Value::Null);
}

/// The plugin was removed, with its state.
#[tokio::test]
async fn a_late_call_writes_no_state() {
    let fixture = HostFixture::new();
    let set = async || {
        let params = json!({ "key": "a", "value": 1 });
        fixture.call("host/state_set", params).await
    };
    set().await.expect("it is stored");
    fixture.host.stop();
    crate::forget_plugin(fixture.home.path(), "org.example").expect("files");
    let error = set().await.expect_err("stopped");
    assert!(error.contains("changed, disabled or removed"), "{error}");
    let path = fixture.home.path().join("plugins/org.example.state.json");
    assert!(!path.exists());
}

#[tokio::test]
async fn a_secret_needs_a_permission_of_its_name_and_is_not_logged() {
    let mut fixture = HostFixture::new();
    fixture.host.secrets = |name| (name == "PATH").then(|| "top secret".to_owned());
    let secret = async |name: &str| fixture.call("host/secret", json!({ "name": name })).await;
    let (_, call) = fixture.open_call("accept");
    for (name, expected) in [
        ("PATH", "ask with host/request_approval"),
        ("HOME", "plugin.toml does not list \"secrets:HOME\""),
        ("RADDLE_NONE", "ask with host/request_approval"),
    ] {
        let error = secret(name).await.expect_err("not approved");
        assert!(error.contains(expected), "{name}: {error}");
    }
    for name in ["PATH", "RADDLE_NONE"] {
        let permission = format!("secrets:{name}");
        assert_eq!(fixture.ask(&permission).await, approved(true));
    }
    assert_eq!(secret("PATH").await, Ok(json!({ "value": "top secret" })));
    let error = secret("RADDLE_NONE").await.expect_err("no variable");
    assert!(error.contains("has no variable RADDLE_NONE"), "{error}");
    let error = fixture.call("host/secret", json!({})).await;
    assert!(error.is_err_and(|it| it.contains("`name` must be")));
    drop(call);
    secret("PATH").await.expect_err("no call");
    let log = fixture.log_with("host/secret PATH: done").await;
    assert!(!log.contains("top secret"), "{log}");
}

#[tokio::test]
async fn messages_hide_no_acts_in_the_log() {
    let fixture = HostFixture::new();
    for _ in 0..200 {
        let logged = fixture.call("host/log", json!({ "message": "x" })).await;
        logged.expect("an answer");
    }
    let error = fixture.call("host/secret", json!({ "name": "HOME" })).await;
    error.expect_err("not listed");
    fixture.log_with("permission secrets:HOME: ").await;
}

#[tokio::test]
async fn a_plugin_writes_bounded_lines_to_its_log() {
    let fixture = HostFixture::new();
    let log = async |params: Value| fixture.call("host/log", params).await;
    for params in [
        json!({}),
        json!({ "message": 1 }),
        json!({ "level": "fatal", "message": "x" }),
    ] {
        log(params.clone()).await.expect_err("invalid params");
    }
    let logged = |it: bool| Ok(json!({ "logged": it }));
    assert_eq!(
        log(json!({ "message": "one\nraddle: two" })).await,
        logged(true)
    );
    let long = "x".repeat(10_000);
    let params = json!({ "level": "error", "message": long });
    assert_eq!(log(params).await, logged(true));
    let text = fixture.log_with("error: ").await;
    assert!(
        text.starts_with("info: one\n  raddle: two\nerror: xxx"),
        "{text}"
    );
    assert!(text.len() < 5_000);
    let mut dropped = 0;
    for _ in 0..200 {
        let result = log(json!({ "message": "x" })).await;
        dropped += usize::from(result == logged(false));
    }
    assert!(dropped >= 100, "{dropped}");
}
