//! `raddle model list`: which models there are.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use raddle_server::{Configuration, KeySource, Offered, Override, Provider, Vendors};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::cli::ModelList;
use crate::config;
use crate::home::Home;
use crate::log;
use crate::model::Desk;
use crate::print::{Printer, harmless};

/// How long a provider may take to say which models it has.
const PATIENCE: Duration = Duration::from_secs(15);

/// What the list has for a home without a model.
const UNCONFIGURED: &str = "unconfigured";

/// What a provider said, or why it said nothing.
pub(crate) type Answer = (String, Result<Arc<[Offered]>, String>);

struct Row {
    id: String,
    name: String,
    description: String,
    is_default: bool,
}

pub(crate) fn run(overrides: Vec<Override>, args: &ModelList) -> Result<ExitCode> {
    let home = Home::find()?;
    let config = config::open(&home, overrides)?;
    let wanted = match (args.offline, args.provider.is_empty()) {
        (true, _) => Vec::new(),
        (false, true) => quiet(&config),
        (false, false) => args.provider.clone(),
    };
    let (mut offered, mut failed) = (Vec::new(), Vec::new());
    for (name, answer) in ask(&home, &config, wanted)? {
        match answer {
            Ok(models) => offered.push((name, models)),
            Err(why) => failed.push((name, why)),
        }
    }
    let rows = match args.provider.is_empty() {
        true => all(&config, &offered),
        false => of_providers(&offered),
    };
    print(&rows, args.json)?;
    for (name, why) in &failed {
        log::say(&harmless(&format!("raddle: {name}: {why}")));
    }
    if rows.is_empty() && failed.is_empty() {
        log::say(
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
pub(crate) fn quiet(config: &Configuration) -> Vec<String> {
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
pub(crate) fn ask(home: &Home, config: &Configuration, names: Vec<String>) -> Result<Vec<Answer>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let _entered = runtime.enter();
    let desk = Arc::new(Desk::new(&home.state));
    let mut answers: Vec<Option<Answer>> = Vec::new();
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

async fn one(at: usize, provider: Provider, desk: Arc<Desk>) -> (usize, Answer) {
    let answer = match timeout(PATIENCE, desk.models(&provider)).await {
        Ok(answer) => answer.map(Arc::from),
        Err(_) => Err(format!(
            "no answer from {} within {} s; look whether it can be reached from here",
            provider.base_url,
            PATIENCE.as_secs()
        )),
    };
    (at, (provider.name, answer))
}

fn all(config: &Configuration, offered: &[(String, Arc<[Offered]>)]) -> Vec<Row> {
    let models = config.models(offered).into_iter();
    let models = models.filter(|it| it.id != UNCONFIGURED);
    let row = |it: raddle_protocol::Model| Row {
        id: it.id,
        name: it.display_name,
        description: it.description,
        is_default: it.is_default,
    };
    models.map(row).collect()
}

/// The models of some providers, each as `model` in the configuration names it.
fn of_providers(offered: &[(String, Arc<[Offered]>)]) -> Vec<Row> {
    let each = |(provider, models): &(String, Arc<[Offered]>)| {
        let row = |it: &Offered| Row {
            id: format!("{provider}/{}", it.id),
            name: it.name.clone().unwrap_or_else(|| it.id.clone()),
            description: format!("From provider {provider}."),
            is_default: false,
        };
        models.iter().map(row).collect::<Vec<_>>()
    };
    offered.iter().flat_map(each).collect()
}

fn print(rows: &[Row], is_json: bool) -> Result<()> {
    let mut printer = Printer::new();
    if is_json {
        let row = |it: &Row| json!({ "id": it.id, "displayName": it.name, "description": it.description, "isDefault": it.is_default });
        let data: Vec<Value> = rows.iter().map(row).collect();
        printer.line(&json!({ "data": data }).to_string())?;
    } else {
        for row in rows {
            let mark = if row.is_default { "  (default)" } else { "" };
            printer.line(&harmless(&format!("{}{mark}", row.id)))?;
        }
    }
    Ok(printer.flush()?)
}
