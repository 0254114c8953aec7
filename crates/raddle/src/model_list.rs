//! `raddle model list`: lists the available models.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use raddle_config::{
    ConfigModel, Configuration, KeySource, OfferedModel, Override, Provider, Vendors,
};
use raddle_console::{Printer, sanitize};
use raddle_core::ports::Rulebook;
use raddle_providers::VendorClient;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cli::ModelList;
use crate::config;
use crate::home::Home;
use crate::log;
use crate::rules::RuleStore;
use crate::runtime;

/// How long a provider may take to list its models.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);

/// The models of a provider, or the error.
pub(crate) type ProviderAnswer = (String, Result<Arc<[OfferedModel]>>);

/// The model that threads start with, and its provider.
type DefaultModel = (Option<String>, Option<String>);

pub(crate) fn run(mut overrides: Vec<Override>, args: ModelList) -> Result<ExitCode> {
    let home = Home::find()?;
    overrides.extend(args.settings.config);
    let config = config::open(&home, overrides)?;
    let providers = match (args.offline, args.provider.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => default_providers(&config),
        (false, false) => args.provider.clone(),
    };
    let (mut offered, mut failed) = (Vec::new(), Vec::new());
    for (name, answer) in ask(&home, &config, providers)? {
        match answer {
            Ok(models) => offered.push((name, models)),
            Err(why) => failed.push((name, why)),
        }
    }
    let default = config.default_model();
    let mut models = config.models(&offered);
    if !args.provider.is_empty() {
        let is_offered = |it: &ConfigModel| {
            let mut of_its_own = offered
                .iter()
                .filter(|(name, _)| it.provider.as_ref() == Some(name));
            of_its_own.any(|(_, models)| models.iter().any(|has| has.id == it.model))
        };
        models.retain(is_offered);
    }
    print(&models, &default, args.json)?;
    for (name, why) in &failed {
        log::print_line(&format!("raddle: {name}: {why}"));
    }
    if models.is_empty() && failed.is_empty() {
        log::print_line(
            "raddle: no model is configured; `raddle init` chooses one, and --provider NAME asks a well-known provider",
        );
        return Ok(ExitCode::FAILURE);
    }
    Ok(match failed.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The providers that are asked by default. Excludes those whose key needs a command, which may
/// prompt its user, except the configured default provider.
pub(crate) fn default_providers(config: &Configuration) -> Vec<String> {
    let (_, usual) = config.default_model();
    let is_quiet = |name: &String| {
        let provider = config.provider(name);
        let is_command = provider.is_ok_and(|it| matches!(it.key, KeySource::Command(_)));
        usual.as_ref() == Some(name) || !is_command
    };
    config
        .provider_names()
        .into_iter()
        .filter(is_quiet)
        .collect()
}

/// Asks providers for their models concurrently. The answers are in the order of the names.
pub(crate) fn ask(
    home: &Home,
    config: &Configuration,
    names: Vec<String>,
) -> Result<Vec<ProviderAnswer>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = runtime::current_thread()?;
    let _entered = runtime.enter();
    let rules = RuleStore::open(home).ok();
    let rules = rules.map(|it| Arc::new(it) as Arc<dyn Rulebook>);
    let vendor_client = Arc::new(VendorClient::new(&home.state, rules));
    let mut answers: Vec<Option<ProviderAnswer>> = Vec::new();
    let mut requests = JoinSet::new();
    for (at, name) in names.into_iter().enumerate() {
        match config.provider(&name) {
            Err(error) => answers.push(Some((name, Err(error.into())))),
            Ok(provider) => {
                answers.push(None);
                requests.spawn(one(at, provider, vendor_client.clone()));
            }
        }
    }
    runtime.block_on(async {
        while let Some(done) = requests.join_next().await {
            let (at, answer) = done.context("a request ended early")?;
            answers[at] = Some(answer);
        }
        anyhow::Ok(())
    })?;
    Ok(answers.into_iter().flatten().collect())
}

async fn one(
    at: usize,
    provider: Provider,
    vendor_client: Arc<VendorClient>,
) -> (usize, ProviderAnswer) {
    let answer = match timeout(LIST_TIMEOUT, vendor_client.models(&provider)).await {
        Ok(answer) => answer.map(Arc::from).map_err(anyhow::Error::from),
        Err(_) => Err(anyhow!(
            "no answer from {} within {} s; check that it is reachable from here",
            provider.base_url,
            LIST_TIMEOUT.as_secs()
        )),
    };
    (at, (provider.name, answer))
}

fn print(models: &[ConfigModel], default: &DefaultModel, is_json: bool) -> Result<()> {
    let is_default = |it: &ConfigModel| {
        let (model, provider) = default;
        model.as_ref() == Some(&it.model) && *provider == it.provider
    };
    let mut printer = Printer::new();
    if is_json {
        let row = |it: &ConfigModel| {
            json!({
                "id": it.model_setting,
                "model": it.model,
                "modelProvider": it.provider,
                "displayName": it.name,
                "description": it.description,
                "isDefault": is_default(it),
            })
        };
        let data: Vec<Value> = models.iter().map(row).collect();
        printer.line(&json!({ "data": data }).to_string())?;
    } else {
        for it in models {
            let mark = if is_default(it) { "  (default)" } else { "" };
            printer.line(&sanitize(&format!("{}{mark}", typed(it))))?;
        }
    }
    Ok(printer.flush()?)
}

/// Returns the arguments that select a model: its name, or both options if no plain name can.
fn typed(it: &ConfigModel) -> String {
    match (&it.model_setting, &it.provider) {
        (Some(spelled), _) => spelled.clone(),
        (None, Some(provider)) => format!("-c model_provider={provider} -m {}", it.model),
        (None, None) => it.model.clone(),
    }
}
