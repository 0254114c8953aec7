//! Presets of well-known providers: the user configures only a key and a model.

/// Preset of a provider.
#[derive(Debug)]
pub struct Preset {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Base URL of its interface.
    pub base_url: &'static str,
    /// Wire protocol of its interface.
    pub wire_api: &'static str,
    /// The environment variable that its own documentation names; none if it takes no key.
    pub env_key: Option<&'static str>,
    /// Whether its models may have names with a slash in them.
    pub has_slashes: bool,
}

impl Preset {
    const fn at(name: &'static str, base_url: &'static str) -> Self {
        Self {
            name,
            base_url,
            wire_api: "chat",
            env_key: None,
            has_slashes: false,
        }
    }

    const fn with_wire_api(self, wire_api: &'static str) -> Self {
        Self { wire_api, ..self }
    }

    const fn with_key(self, variable: &'static str) -> Self {
        Self {
            env_key: Some(variable),
            ..self
        }
    }

    const fn with_slashes(self) -> Self {
        Self {
            has_slashes: true,
            ..self
        }
    }
}

/// All presets: vendors, brokers, engines on this machine at their usual ports, and the mock model
/// inside the server.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::at("openai", "https://api.openai.com/v1")
        .with_wire_api("responses")
        .with_key("OPENAI_API_KEY"),
    Preset::at("anthropic", "https://api.anthropic.com/v1")
        .with_wire_api("messages")
        .with_key("ANTHROPIC_API_KEY"),
    Preset::at("gemini", GEMINI)
        .with_wire_api("gemini")
        .with_key("GEMINI_API_KEY"),
    Preset::at("google", GEMINI)
        .with_wire_api("gemini")
        .with_key("GEMINI_API_KEY"),
    Preset::at("mistral", "https://api.mistral.ai/v1").with_key("MISTRAL_API_KEY"),
    Preset::at("deepseek", "https://api.deepseek.com/v1").with_key("DEEPSEEK_API_KEY"),
    Preset::at("xai", "https://api.x.ai/v1").with_key("XAI_API_KEY"),
    Preset::at("cerebras", "https://api.cerebras.ai/v1").with_key("CEREBRAS_API_KEY"),
    Preset::at("moonshot", "https://api.moonshot.ai/v1").with_key("MOONSHOT_API_KEY"),
    Preset::at("groq", "https://api.groq.com/openai/v1")
        .with_key("GROQ_API_KEY")
        .with_slashes(),
    Preset::at("openrouter", "https://openrouter.ai/api/v1")
        .with_key("OPENROUTER_API_KEY")
        .with_slashes(),
    Preset::at("together", "https://api.together.xyz/v1")
        .with_key("TOGETHER_API_KEY")
        .with_slashes(),
    Preset::at("fireworks", "https://api.fireworks.ai/inference/v1")
        .with_key("FIREWORKS_API_KEY")
        .with_slashes(),
    Preset::at("huggingface", "https://router.huggingface.co/v1")
        .with_key("HF_TOKEN")
        .with_slashes(),
    Preset::at("llamacpp", "http://127.0.0.1:8080/v1").with_slashes(),
    Preset::at("ollama", "http://127.0.0.1:11434/v1").with_slashes(),
    Preset::at("lmstudio", "http://127.0.0.1:1234/v1").with_slashes(),
    Preset::at("vllm", "http://127.0.0.1:8000/v1").with_slashes(),
    Preset::at("mock", MOCK_BASE_URL).with_wire_api("responses"),
];

/// Base URL of the mock model inside the server. The name is reserved, so it never belongs to
/// another machine.
pub const MOCK_BASE_URL: &str = "http://mock.invalid/v1";

const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta";

/// Returns the preset of this name.
pub(super) fn named(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|it| it.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_of_models_has_the_same_table() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/models.md");
        let page = std::fs::read_to_string(page).expect("the page of models");
        let code = |text: &str| format!("`{text}`");
        let rows = PRESETS.iter().map(|it| {
            let cells = [
                code(it.name),
                code(it.base_url),
                code(&format!("\"{}\"", it.wire_api)),
                it.env_key.map(code).unwrap_or_default(),
                if it.has_slashes { "yes" } else { "" }.to_owned(),
            ];
            format!("| {} |\n", cells.join(" | "))
        });
        let table: String = rows.collect();
        assert!(
            page.contains(&format!("|\n{table}\n")),
            "write this there:\n{table}"
        );
    }
}
