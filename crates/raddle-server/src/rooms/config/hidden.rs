//! What of the configuration is not shown, because it may be a secret.

use toml::{Table, Value};

/// In place of what is not shown.
const HIDDEN: &str = "…";

/// Hides what may be a key of a model provider.
pub(super) fn hide(config: &mut Table) {
    let providers = config.get_mut("model_providers");
    let providers = providers.and_then(Value::as_table_mut);
    for (_, provider) in providers.into_iter().flatten() {
        if let Some(token) = provider.get_mut("experimental_bearer_token") {
            *token = HIDDEN.into();
        }
        if let Some(Value::String(address)) = provider.get_mut("base_url") {
            hide_in_address(address);
        }
        for key in ["http_headers", "query_params"] {
            match provider.get_mut(key) {
                Some(Value::Table(values)) => {
                    values.iter_mut().for_each(|(_, it)| *it = HIDDEN.into());
                }
                Some(other) => *other = HIDDEN.into(),
                None => {}
            }
        }
    }
}

/// Hides an address's query, and all after the scheme if it may name a user.
fn hide_in_address(address: &mut String) {
    let secret = match address.contains('@') {
        true => address.find("://").map(|at| at + "://".len()).or(Some(0)),
        false => address.find(['?', '#']),
    };
    if let Some(at) = secret {
        address.truncate(at);
        address.push_str(HIDDEN);
    }
}

/// The keys under which stands what is shown in place of a secret, and not the secret.
pub(super) fn stand_ins(config: &Table) -> Vec<String> {
    let is_hidden = |it: &Value| it.as_str().is_some_and(|it| it.ends_with(HIDDEN));
    let mut found = Vec::new();
    let providers = config.get("model_providers").and_then(Value::as_table);
    for (name, provider) in providers.into_iter().flatten() {
        for key in ["experimental_bearer_token", "base_url"] {
            if provider.get(key).is_some_and(is_hidden) {
                found.push(format!("model_providers.{name}.{key}"));
            }
        }
        for key in ["http_headers", "query_params"] {
            let values = provider.get(key).and_then(Value::as_table);
            for (inner, _) in values.into_iter().flatten().filter(|it| is_hidden(it.1)) {
                found.push(format!("model_providers.{name}.{key}.{inner}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_hidden_and_their_names_are_not() {
        let mut config: Table = "model = 'm'\n[model_providers.a]\nenv_key = 'A'\n\
            experimental_bearer_token = 'sekret'\nhttp_headers = { Authorization = 'sekret' }\n\
            query_params = 'sekret'\n"
            .parse()
            .expect("TOML");
        hide(&mut config);
        let wanted: Table = "model = 'm'\n[model_providers.a]\nenv_key = 'A'\n\
            experimental_bearer_token = '…'\nhttp_headers = { Authorization = '…' }\n\
            query_params = '…'\n"
            .parse()
            .expect("TOML");
        assert_eq!(config, wanted);
    }

    #[test]
    fn keys_in_addresses_are_hidden() {
        for (address, wanted) in [
            ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
            ("http://127.0.0.1:9/v1?key=sekret", "http://127.0.0.1:9/v1…"),
            ("http://127.0.0.1:9/v1#sekret", "http://127.0.0.1:9/v1…"),
            ("http://me:sekret@127.0.0.1:9/v1", "http://…"),
            ("http://127.0.0.1:9/?a=b@sekret", "http://…"),
            ("me:sekret@127.0.0.1", "…"),
        ] {
            let section = format!("[model_providers.a]\nbase_url = '{address}'\n");
            let mut config: Table = section.parse().expect("TOML");
            hide(&mut config);
            let shown = &config["model_providers"]["a"]["base_url"];
            assert_eq!(shown.as_str(), Some(wanted));
        }
    }
}
