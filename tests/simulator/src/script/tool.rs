//! Scripts of running and stopping tools.

use raddle_core::{
    AppendText, Ask, AskElicitation, AskForTool, AskQuestions, Command, CountModelUse, EndTool,
    ItemBody, ItemId, ItemPart, ItemStatus, Output, PluginPermission, Timestamp, Usage,
};
use support::Rng;

use super::{Steps, question};
use crate::hunks::WrittenHunks;

/// Returns the steps of a running tool. `written`: the part of a change of files that it writes.
pub fn running(rng: &mut Rng, item: &ItemId, body: &ItemBody, written: &WrittenHunks) -> Steps {
    let mut steps = Steps::new();
    for _ in 0..rng.below(6) {
        let length = if rng.percent(8) {
            400
        } else {
            rng.range(1, 30)
        };
        let text = "x".repeat(usize::try_from(length).unwrap_or(1));
        let print = AppendText {
            item: item.clone(),
            part: ItemPart::Printed,
            text,
        };
        steps.push_back((rng.range(1, 120), Command::AppendText(print)));
    }
    if rng.percent(12) {
        let ask = match rng.percent(50) {
            true => Ask::Questions(AskQuestions {
                questions: vec![question()],
                trust_folder: None,
            }),
            false => Ask::Elicitation(AskElicitation {
                server: "p".to_owned(),
                body: serde_json::json!({"message": "may I?"}),
                permission: Some(PluginPermission {
                    plugin: "p".to_owned(),
                    hash: "sha256:0".to_owned(),
                    name: "workspace.read".to_owned(),
                }),
            }),
        };
        let expires_at = rng.percent(30).then_some(Timestamp(1_500));
        let ask = AskForTool {
            item: item.clone(),
            ask,
            expires_at,
        };
        steps.push_back((rng.range(1, 50), Command::AskForTool(Box::new(ask))));
    }
    if rng.percent(15) {
        steps.push_back((rng.range(1, 50), Command::UpdateDiff("+a".to_owned())));
        let usage = Usage {
            input: 7,
            output: 3,
            ..Usage::default()
        };
        let used = CountModelUse {
            item: item.clone(),
            model: None,
            provider: None,
            usage,
            estimated: false,
            price: None,
        };
        steps.push_back((1, Command::CountModelUse(Box::new(used))));
    }
    if rng.percent(8) {
        steps.push_back((1, Command::Warn("careful".to_owned())));
    }
    let status = if rng.percent(85) && written.lines.is_some() {
        ItemStatus::Completed
    } else {
        ItemStatus::Failed
    };
    let wait = if rng.percent(6) {
        rng.range(3_000, 20_000)
    } else {
        rng.range(1, 700)
    };
    steps.push_back((wait, end(item, body, status, &written.report)));
    steps
}

/// Returns the steps of a tool that must stop. Not every tool obeys.
pub fn stopping(rng: &mut Rng, item: &ItemId, body: &ItemBody) -> Steps {
    let mut steps = Steps::new();
    if rng.percent(50) {
        let text = "bye".to_owned();
        let print = AppendText {
            item: item.clone(),
            part: ItemPart::Printed,
            text,
        };
        steps.push_back((rng.range(1, 100), Command::AppendText(print)));
    }
    let wait = if rng.percent(20) {
        rng.range(9_000, 16_000)
    } else {
        rng.range(1, 2_000)
    };
    steps.push_back((wait, end(item, body, ItemStatus::Interrupted, "done")));
    steps
}

fn end(item: &ItemId, body: &ItemBody, status: ItemStatus, output: &str) -> Command {
    Command::EndTool(Box::new(EndTool {
        item: item.clone(),
        status,
        body: body.clone(),
        output: Output::text(output),
    }))
}
