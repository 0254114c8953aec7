//! The keys this server reads, and what they must look like. Other keys are kept and passed on.

/// What a value must be.
enum Kind {
    Text,
    OneOf(&'static [&'static str]),
    /// A name or a table, for policies that come in both forms.
    TextOrTable,
    Whole,
    Texts,
    Table,
}

const KEYS: &[(&str, Kind)] = &[
    ("model", Kind::Text),
    ("review_model", Kind::Text),
    ("model_provider", Kind::Text),
    ("model_providers", Kind::Table),
    ("model_reasoning_effort", Kind::Text),
    ("model_context_window", Kind::Whole),
    ("model_auto_compact_token_limit", Kind::Whole),
    ("fallback", Kind::Texts),
    ("budget", Kind::Table),
    ("approval_policy", Kind::TextOrTable),
    (
        "approvals_reviewer",
        Kind::OneOf(&["user", "auto_review", "guardian_subagent"]),
    ),
    ("sandbox_accept_tier", Kind::OneOf(&["A", "B"])),
    (
        "sandbox_mode",
        Kind::OneOf(&["read-only", "workspace-write", "danger-full-access"]),
    ),
    ("sandbox_network", Kind::Table),
    ("sandbox_workspace_write", Kind::Table),
    ("mcp_servers", Kind::Table),
    ("projects", Kind::Table),
    ("profiles", Kind::Table),
];

/// What is wrong with a layer, a sentence each.
pub(super) fn problems(table: &toml::Table) -> Vec<String> {
    KEYS.iter()
        .filter_map(|(key, kind)| Some((key, kind, table.get(*key)?)))
        .filter_map(|(key, kind, value)| match kind {
            Kind::Text if !value.is_str() => Some(format!("`{key}` must be a string")),
            Kind::Table if !value.is_table() => Some(format!("`{key}` must be a table")),
            Kind::Texts if !is_texts(value) => Some(format!("`{key}` must be a list of strings")),
            Kind::Whole if !value.is_integer() => Some(format!("`{key}` must be a whole number")),
            Kind::TextOrTable if !value.is_str() && !value.is_table() => {
                Some(format!("`{key}` must be a string or a table"))
            }
            Kind::OneOf(names) if !value.as_str().is_some_and(|text| names.contains(&text)) => {
                Some(format!("`{key}` must be one of {}", names.join(", ")))
            }
            _ => None,
        })
        .collect()
}

fn is_texts(value: &toml::Value) -> bool {
    let texts = value.as_array();
    texts.is_some_and(|it| it.iter().all(toml::Value::is_str))
}
