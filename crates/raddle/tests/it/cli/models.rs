//! `raddle model list`.

use serde_json::{Value, json};

use super::CliHome;

#[test]
fn without_asking_there_are_those_of_the_configuration() {
    let place = CliHome::with("model = 'openai/one'\nreview_model = 'anthropic/two'\n");
    let went = place.run(&["model", "list", "--offline"]);
    assert_eq!(
        (went.code, went.out.as_str()),
        (Some(0), "openai/one  (default)\nanthropic/two\n"),
        "{}",
        went.err
    );
    let went = place.run(&["model", "list", "--offline", "--json"]);
    let told: Value = serde_json::from_str(&went.out).expect("JSON");
    assert_eq!(told["data"][0]["id"], json!("openai/one"));
    assert_eq!(told["data"][0]["modelProvider"], json!("openai"));
    assert_eq!(told["data"][0]["model"], json!("one"));
    assert_eq!(told["data"][0]["isDefault"], json!(true));
}

/// Whatever is printed means the same when it is pasted.
#[test]
fn what_is_listed_can_be_pasted() {
    let mine = "[model_providers.mine]\nbase_url = 'http://127.0.0.1:9/v1'\n\
                [profiles.other]\nmodel = 'claude'\nmodel_provider = 'anthropic'\n";
    for (config, wanted) in [
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
        let place = CliHome::with(&format!("{config}\n{mine}"));
        let models = |flags: &[&str]| {
            let words = [&["model", "list", "--offline", "--json"], flags].concat();
            let told: Value = serde_json::from_str(&place.run(&words).out).expect("JSON");
            told["data"].as_array().expect("a list").clone()
        };
        let went = place.run(&["model", "list", "--offline"]);
        let listed: Vec<&str> = went.out.lines().collect();
        assert_eq!(listed[0], format!("{}  (default)", wanted[0]), "{config}");
        assert_eq!(listed[1..], wanted[1..], "{config}");
        for it in models(&[]) {
            let setting = match it["id"].as_str() {
                Some(id) => vec!["-c".to_owned(), format!("model={id}")],
                None => {
                    let said = |key: &str| it[key].as_str().expect("a text").to_owned();
                    let provider = format!("model_provider={}", said("modelProvider"));
                    let model = format!("model={}", said("model"));
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
fn without_a_model_it_is_said_what_to_do() {
    let went = CliHome::new().run(&["model", "list"]);
    assert_eq!((went.code, went.out.as_str()), (Some(1), ""));
    assert!(
        went.err.contains("`raddle init` chooses one"),
        "{}",
        went.err
    );
}

#[test]
fn a_provider_that_cannot_be_asked_is_said() {
    let place = CliHome::new();
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
        let went = place.run(&["model", "list", "--provider", name]);
        assert_eq!((went.code, went.out.as_str()), (Some(1), ""));
        assert!(went.err.starts_with(line), "{}", went.err);
    }
}
