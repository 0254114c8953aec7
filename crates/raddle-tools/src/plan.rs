//! Tools without side effects: updating the plan, and asking the user.

use std::collections::BTreeSet;

use raddle_core::ports::{ToolIntent, ToolSpec};
use raddle_core::{
    Ask, AskQuestions, PlanStep, QuestionChoice, StepStatus, ToolCall, UserQuestion,
};
use serde::Deserialize;
use serde_json::json;

use crate::arguments;

/// Maximum number of questions per call.
const QUESTIONS_MAX: usize = 10;

#[derive(Deserialize)]
struct UpdatePlan {
    explanation: Option<String>,
    plan: Vec<StepArgs>,
}

#[derive(Deserialize)]
struct StepArgs {
    step: String,
    status: StatusArg,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum StatusArg {
    Pending,
    InProgress,
    Completed,
}

pub(crate) fn update_plan_spec() -> ToolSpec {
    ToolSpec {
        name: "update_plan".to_owned(),
        description:
            "Shows the user your plan. Give all steps every time, with at most one in progress."
                .to_owned(),
        freeform: None,
        schema: json!({
            "type": "object",
            "properties": {
                "explanation": { "type": "string", "description": "Why the plan changes." },
                "plan": { "type": "array", "items": {
                    "type": "object",
                    "properties": {
                        "step": { "type": "string" },
                        "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
                    },
                    "required": ["step", "status"], "additionalProperties": false,
                } },
            },
            "required": ["plan"], "additionalProperties": false,
        }),
    }
}

pub(crate) fn update_plan(call: &ToolCall) -> ToolIntent {
    match arguments::read(call) {
        Ok(UpdatePlan { explanation, plan }) => ToolIntent::Plan {
            explanation,
            steps: plan
                .into_iter()
                .map(|it| PlanStep {
                    step: it.step,
                    status: match it.status {
                        StatusArg::Pending => StepStatus::Pending,
                        StatusArg::InProgress => StepStatus::InProgress,
                        StatusArg::Completed => StepStatus::Completed,
                    },
                })
                .collect(),
        },
        Err(why) => ToolIntent::Refused(why.to_string()),
    }
}

#[derive(Deserialize)]
struct AskUser {
    questions: Vec<QuestionArgs>,
}

#[derive(Deserialize)]
struct QuestionArgs {
    id: Option<String>,
    header: Option<String>,
    question: String,
    options: Option<Vec<OptionArgs>>,
}

#[derive(Deserialize)]
struct OptionArgs {
    label: String,
    #[serde(default)]
    description: String,
}

/// Returns the same tool under the name that models of one family know.
pub(crate) fn request_user_input_spec() -> ToolSpec {
    ToolSpec {
        name: "request_user_input".to_owned(),
        ..ask_user_spec()
    }
}

pub(crate) fn ask_user_spec() -> ToolSpec {
    ToolSpec {
        name: "ask_user".to_owned(),
        description: "Asks the user something and waits for the answer. Use it only for what you cannot find out \
                      or decide yourself."
            .to_owned(),
        freeform: None,
        schema: json!({
            "type": "object",
            "properties": { "questions": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "id": { "type": "string", "description": "A name for the answer." },
                    "header": { "type": "string", "description": "A few words above the question." },
                    "question": { "type": "string" },
                    "options": { "type": "array", "description": "Answers to choose from; without them, free text.",
                        "items": {
                            "type": "object",
                            "properties": { "label": { "type": "string" }, "description": { "type": "string" } },
                            "required": ["label"], "additionalProperties": false,
                        } },
                },
                "required": ["question"], "additionalProperties": false,
            } } },
            "required": ["questions"], "additionalProperties": false,
        }),
    }
}

pub(crate) fn ask_user(call: &ToolCall) -> ToolIntent {
    let questions = match arguments::read(call) {
        Ok(AskUser { questions }) => questions,
        Err(why) => return ToolIntent::Refused(why.to_string()),
    };
    if questions.is_empty() || questions.len() > QUESTIONS_MAX {
        return ToolIntent::Refused(format!("Ask 1 to {QUESTIONS_MAX} questions at once."));
    }
    let questions = questions
        .into_iter()
        .enumerate()
        .map(|(at, it)| UserQuestion {
            id: it.id.unwrap_or_else(|| format!("q{}", at + 1)),
            header: it.header.unwrap_or_default(),
            question: it.question,
            other: it.options.is_some(),
            options: it.options.map(|options| {
                let options = options.into_iter().map(|it| QuestionChoice {
                    label: it.label,
                    description: it.description,
                });
                options.collect()
            }),
            secret: false,
        });
    let questions: Vec<UserQuestion> = questions.collect();
    // Answers refer to questions by id.
    let ids: BTreeSet<&str> = questions.iter().map(|it| it.id.as_str()).collect();
    if ids.len() < questions.len() {
        return ToolIntent::Refused("Give every question an id of its own.".to_owned());
    }
    ToolIntent::Ask(Ask::Questions(AskQuestions {
        questions,
        trust_folder: None,
    }))
}
