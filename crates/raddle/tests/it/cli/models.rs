//! `raddle model list`.

use serde_json::{Value, json};

use super::Place;

#[test]
fn without_asking_there_are_those_of_the_configuration() {
    let place = Place::with("model = 'openai/one'\nreview_model = 'anthropic/two'\n");
    let went = place.run(&["model", "list", "--offline"]);
    assert_eq!(
        (went.code, went.out.as_str()),
        (Some(0), "one  (default)\nanthropic/two\n"),
        "{}",
        went.err
    );
    let went = place.run(&["model", "list", "--offline", "--json"]);
    let told: Value = serde_json::from_str(&went.out).expect("JSON");
    assert_eq!(told["data"][0]["id"], json!("one"));
    assert_eq!(told["data"][0]["isDefault"], json!(true));
}

#[test]
fn without_a_model_it_is_said_what_to_do() {
    let went = Place::new().run(&["model", "list"]);
    assert_eq!((went.code, went.out.as_str()), (Some(1), ""));
    assert!(
        went.err.contains("`raddle init` chooses one"),
        "{}",
        went.err
    );
}

#[test]
fn a_provider_that_cannot_be_asked_is_said() {
    let place = Place::new();
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
