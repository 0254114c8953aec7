//! Models, keys and providers.

use super::{WrongInput, wrong};

/// The mock, without retries.
const MOCK: &str = "model = 'own/m'\nmodel_providers.own.base_url = 'http://{MOCK}/v1'\n\
                    model_providers.own.request_max_retries = 0\n";

pub(super) const TABLE: &[WrongInput] = &[
    wrong(
        "no model",
        &["exec", "hi"],
        1,
        &["no model provider is configured", "run `raddle init`", "in HOME/config.toml"],
    ),
    wrong(
        "no model, for doctor",
        &["doctor"],
        1,
        &["model: none is configured, so no turn can run", "`raddle init` chooses one"],
    ),
    wrong(
        "no model to list",
        &["model", "list"],
        1,
        &["no model is configured", "`raddle init` chooses one"],
    ),
    wrong(
        "no model for the first configuration",
        &["init", "--yes"],
        1,
        &["no model is given", "give --model PROVIDER/MODEL"],
    ),
    wrong(
        "an unknown provider for the first configuration",
        &["init", "--model", "nope/x", "--yes"],
        1,
        &["the provider `nope` is unknown", "give its address with --base-url URL"],
    ),
    wrong(
        "an address that is none, for the first configuration",
        &["init", "--model", "own/m", "--base-url", "nonsense", "--yes"],
        1,
        &[
            "--base-url cannot be used",
            "`nonsense` is not a valid base_url",
            "it must begin with https:// or http://",
        ],
    ),
    wrong(
        "an address without a host, for the first configuration",
        &["init", "--model", "own/m", "--base-url", "http://", "--yes"],
        1,
        &[
            "`http://` is not a valid base_url",
            "write one like http://127.0.0.1:8080/v1",
        ],
    ),
    wrong(
        "an empty address, for the first configuration",
        &["init", "--model", "own/m", "--base-url", "", "--yes"],
        2,
        &["a value is required for '--base-url <URL>'", "try '--help'"],
    ),
    wrong(
        "no key",
        &["exec", "hi"],
        1,
        &["the environment variable ANTHROPIC_API_KEY is not set", "set it to the key"],
    )
    .with_config("model = 'anthropic/claude'\n"),
    wrong(
        "a variable without a key",
        &["exec", "hi"],
        1,
        &["the environment variable NOT_SET is not set", "set it to the key"],
    )
    .with_config(
        "model = 'own/m'\n[model_providers.own]\nbase_url = 'http://{MOCK}/v1'\nenv_key = 'NOT_SET'\n",
    ),
    wrong(
        "a key file that is missing",
        &["exec", "hi"],
        1,
        &[
            "the key cannot be read from /nowhere/key",
            "No such file",
            "write the key into that file, or correct key_file",
        ],
    )
    .with_config(
        "model = 'own/m'\n[model_providers.own]\nbase_url = 'http://{MOCK}/v1'\nkey_file = '/nowhere/key'\n",
    ),
    wrong(
        "a key file that is empty",
        &["exec", "hi"],
        1,
        &["there is no key in HOME/key", "put the key there"],
    )
    .with_config(
        "model = 'own/m'\n[model_providers.own]\nbase_url = 'http://{MOCK}/v1'\nkey_file = '{HOME}/key'\n",
    )
    .with_files(&[("key", "")]),
    wrong(
        "a program for the key that is missing",
        &["exec", "hi"],
        1,
        &["`/nowhere/pass` gave no key", "there is no program `/nowhere/pass` on PATH"],
    )
    .with_config(
        "model = 'own/m'\n[model_providers.own]\nbase_url = 'http://{MOCK}/v1'\n\
         auth = { command = '/nowhere/pass' }\n",
    ),
    wrong(
        "a key that the vendor rejects",
        &["exec", "MOCK unauthorized"],
        1,
        &["the model's vendor answered 401", "The key is not known.", "check the key"],
    )
    .with_config(MOCK),
    wrong(
        "a page instead of an answer",
        &["exec", "MOCK content-type"],
        1,
        &["it is `text/html` and not a stream of events", "is base_url right?"],
    )
    .with_config(MOCK),
    wrong(
        "a path that the vendor does not have",
        &["exec", "hi"],
        1,
        &["the model's vendor answered 404", "/v1/responses"],
    )
    .with_config(
        "model = 'own/m'\n[model_providers.own]\nbase_url = 'http://{MOCK}/no'\nrequest_max_retries = 0\n",
    ),
    wrong(
        "a port on which no server listens",
        &["exec", "hi"],
        1,
        &[
            "cannot reach the model at http://127.0.0.1:1/v1/responses",
            "Connection refused",
            "start the server there, or correct base_url",
        ],
    )
    .with_config(
        "model = 'own/m'\n[model_providers.own]\nbase_url = 'http://127.0.0.1:1/v1'\nrequest_max_retries = 0\n",
    ),
    wrong(
        "a port on which no server listens, for doctor",
        &["doctor"],
        1,
        &[
            "provider: own does not answer on 127.0.0.1:1",
            "Connection refused",
            "start its model server, or set base_url of [model_providers.own] in HOME/config.toml",
        ],
    )
    .with_config("model = 'own/m'\n[model_providers.own]\nbase_url = 'http://127.0.0.1:1/v1'\n"),
    wrong(
        "TLS where there is none",
        &["exec", "hi"],
        1,
        &["cannot reach the model at https://{MOCK}/v1/responses", "should it be http://?"],
    )
    .with_config(
        "model = 'own/m'\n[model_providers.own]\nbase_url = 'https://{MOCK}/v1'\nrequest_max_retries = 0\n",
    ),
    wrong(
        "a provider without an address",
        &["exec", "hi"],
        1,
        &[
            "the model provider `own` has no base_url",
            "set it under [model_providers.own] in HOME/config.toml",
        ],
    )
    .with_config("model = 'own/m'\n[model_providers.own]\nwire_api = 'chat'\n"),
    wrong(
        "a provider that is no table",
        &["exec", "hi"],
        1,
        &[
            "the model provider `own` has no base_url",
            "set it under [model_providers.own] in HOME/config.toml",
        ],
    )
    .with_config("model = 'own/m'\nmodel_providers.own = 'http://x'\n"),
    wrong(
        "a misspelt provider",
        &["exec", "-m", "anthopic/claude", "hi"],
        1,
        &["the model provider `anthopic` has no base_url", "did you mean `anthropic`?"],
    )
    .with_config(
        "model = 'm'\nmodel_provider = 'own'\nmodel_providers.own.base_url = 'http://{MOCK}/v1'\n",
    ),
    wrong(
        "an address in words",
        &["exec", "hi"],
        1,
        &["`not a url` is not a valid base_url", "write one like http://127.0.0.1:8080/v1"],
    )
    .with_config("model = 'own/m'\n[model_providers.own]\nbase_url = 'not a url'\n"),
    wrong(
        "an address of another protocol",
        &["exec", "hi"],
        1,
        &["`ftp://127.0.0.1/` is not a valid base_url", "it must begin with https:// or http://"],
    )
    .with_config("model = 'own/m'\n[model_providers.own]\nbase_url = 'ftp://127.0.0.1/'\n"),
    wrong(
        "an unknown wire format",
        &["exec", "hi"],
        1,
        &[
            "the model provider `own` has wire_api = \"smoke\"",
            "write one of \"responses\", \"chat\", \"messages\", \"gemini\"",
        ],
    )
    .with_config(
        "model = 'own/m'\n[model_providers.own]\nbase_url = 'http://{MOCK}/v1'\nwire_api = 'smoke'\n",
    ),
];
