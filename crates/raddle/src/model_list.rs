//! `raddle model list`: which models there are.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use raddle_server::{
    ConfigModel, Configuration, KeySource, OfferedModel, Override, Provider, Vendors,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cli::ModelList;
use crate::config;
use crate::home::Home;
use crate::log;
use crate::model::VendorClient;
use crate::print::{Printer, sanitize};
use crate::rules::RuleStore;

/// How long a provider may take to say which models it has.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);

/// What a provider said, or why it said nothing.
pub(crate) type ProviderAnswer = (String, Result<Arc<[OfferedModel]>, String>);

/// The model that threads begin with, and its provider.
type DefaultModel = (Option<String>, Option<String>);

pub(crate) fn run(mut overrides: Vec<Override>, args: ModelList) -> Result<ExitCode> {
    let home = Home::find()?;
    overrides.extend(args.settings.config);
    let config = config::open(&home, overrides)?;
    let wanted = match (args.offline, args.provider.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => default_providers(&config),
        (false, false) => args.provider.clone(),
    };
    let (mut offered, mut failed) = (Vec::new(), Vec::new());
    for (name, answer) in ask(&home, &config, wanted)? {
        match answer {
            Ok(models) => offered.push((name, models)),
            Err(why) => failed.push((name, why)),
        }
    }
    let default = config.chosen();
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

/// The providers that are asked unless someone says which: not those, beside the usual one, whose key takes a command,
/// which may ask its user something.
pub(crate) fn default_providers(config: &Configuration) -> Vec<String> {
    let (_, usual) = config.chosen();
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

/// Asks providers for their models, all at once; the answers are in the order of the names.
pub(crate) fn ask(
    home: &Home,
    config: &Configuration,
    names: Vec<String>,
) -> Result<Vec<ProviderAnswer>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let _entered = runtime.enter();
    let desk = Arc::new(VendorClient::new(&home.state, RuleStore::open(home).ok()));
    let mut answers: Vec<Option<ProviderAnswer>> = Vec::new();
    let mut asked = JoinSet::new();
    for (at, name) in names.into_iter().enumerate() {
        match config.provider(&name) {
            Err(error) => answers.push(Some((name, Err(error.to_string())))),
            Ok(provider) => {
                answers.push(None);
                asked.spawn(one(at, provider, desk.clone()));
            }
        }
    }
    runtime.block_on(async {
        while let Some(done) = asked.join_next().await {
            let (at, answer) = done.context("a question ended early")?;
            answers[at] = Some(answer);
        }
        anyhow::Ok(())
    })?;
    Ok(answers.into_iter().flatten().collect())
}

async fn one(at: usize, provider: Provider, desk: Arc<VendorClient>) -> (usize, ProviderAnswer) {
    let answer = match timeout(LIST_TIMEOUT, desk.models(&provider)).await {
        Ok(answer) => answer.map(Arc::from),
        Err(_) => Err(format!(
            "no answer from {} within {} s; look whether it can be reached from here",
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
                "id": it.spelled,
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

/// What means a model when it is typed: its name, or where no name alone can, both options.
fn typed(it: &ConfigModel) -> String {
    match (&it.spelled, &it.provider) {
        (Some(spelled), _) => spelled.clone(),
        (None, Some(provider)) => format!("-c model_provider={provider} -m {}", it.model),
        (None, None) => it.model.clone(),
    }
}
