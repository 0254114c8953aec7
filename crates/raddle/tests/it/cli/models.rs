//! `raddle model list`.

use serde_json::{Value, json};

use super::CliHome;

#[test]
fn offline_lists_the_models_of_the_configuration() {
    let home = CliHome::with("model = 'openai/one'\nreview_model = 'anthropic/two'\n");
    let output = home.run(&["model", "list", "--offline"]);
    assert_eq!(
        (output.code, output.out.as_str()),
        (Some(0), "openai/one  (default)\nanthropic/two\n"),
        "{}",
        output.err
    );
    let output = home.run(&["model", "list", "--offline", "--json"]);
    let json: Value = serde_json::from_str(&output.out).expect("JSON");
    assert_eq!(json["data"][0]["id"], json!("openai/one"));
    assert_eq!(json["data"][0]["modelProvider"], json!("openai"));
    assert_eq!(json["data"][0]["model"], json!("one"));
    assert_eq!(json["data"][0]["isDefault"], json!(true));
}

/// Each printed line selects the same model when it is passed as arguments.
#[test]
fn listed_models_can_be_passed_as_arguments() {
    let mine = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'\n\
                [profiles.other]\nmodel = 'claude'\nmodel_provider = 'anthropic'\n";
    for (config, expected) in [
        ("model = 'mine/a/b'", &["mine/a/b", "anthropic/claude"][..]),
        (
            "model = 'a/b'\nmodel_provider = 'mine'",
            &["a/b", "-c model_provider=anthropic -m claude"],
        ),
        (
            "model = 'gpt'\nmodel_provider = 'openai'",
            &["openai/gpt", "anthropic/claude"],
        ),
    ] {
        let home = CliHome::with(&format!("{config}\n{mine}"));
        let models = |flags: &[&str]| {
            let words = [&["model", "list", "--offline", "--json"], flags].concat();
            let json: Value = serde_json::from_str(&home.run(&words).out).expect("JSON");
            json["data"].as_array().expect("a list").clone()
        };
        let output = home.run(&["model", "list", "--offline"]);
        let listed: Vec<&str> = output.out.lines().collect();
        assert_eq!(listed[0], format!("{}  (default)", expected[0]), "{config}");
        assert_eq!(listed[1..], expected[1..], "{config}");
        for it in models(&[]) {
            let setting = match it["id"].as_str() {
                Some(id) => vec!["-c".to_owned(), format!("model={id}")],
                None => {
                    let value = |key: &str| it[key].as_str().expect("a text").to_owned();
                    let provider = format!("model_provider={}", value("modelProvider"));
                    let model = format!("model={}", value("model"));
                    vec!["-c".to_owned(), provider, "-c".to_owned(), model]
                }
            };
            let setting: Vec<&str> = setting.iter().map(String::as_str).collect();
            let now = &models(&setting)[0];
            let both = |it: &Value| (it["modelProvider"].clone(), it["model"].clone());
            assert_eq!(both(now), both(&it), "{config} {setting:?}");
        }
    }
}

#[test]
fn without_a_model_advice_is_printed() {
    let output = CliHome::new().run(&["model", "list"]);
    assert_eq!((output.code, output.out.as_str()), (Some(1), ""));
    assert!(
        output.err.contains("`raddle init` chooses one"),
        "{}",
        output.err
    );
}

#[test]
fn an_unreachable_provider_is_reported() {
    let home = CliHome::new();
    for (name, line) in [
        (
            "openai",
            "raddle: openai: the environment variable OPENAI_API_KEY is not set;",
        ),
        (
            "nobody",
            "raddle: nobody: the model provider `nobody` has no base_url;",
        ),
    ] {
        let output = home.run(&["model", "list", "--provider", name]);
        assert_eq!((output.code, output.out.as_str()), (Some(1), ""));
        assert!(output.err.starts_with(line), "{}", output.err);
    }
}
