//! The question whether a folder is trusted. Raddle itself asks it beside the work of a turn, and
//! the turn neither waits for the answer nor depends on it. The question ends with the turn.

use super::{Decision, Thread};
use crate::{
    Ask, AskQuestions, AskTrust, Event, QuestionChoice, Refusal, RequestAnswer, RequestOpened,
    Resolution, UserQuestion,
};

/// Id of the question, and its answers.
const TRUST: &str = "trust";
const LATER: &str = "Not now";
const YES: &str = "Trust";
const NO: &str = "Do not trust";

pub(super) fn decide(thread: &Thread, it: AskTrust) -> Result<Decision, Refusal> {
    let turn = thread.turn.as_ref().ok_or(Refusal::NoTurn)?;
    if turn.stopping.is_some() {
        return Err(Refusal::TurnStopping);
    }
    let mut open = thread.requests.values();
    if open.any(|it| it.ask.trust_folder().is_some()) {
        return Ok(Vec::new().into());
    }
    let opened = RequestOpened {
        request: thread.next_request,
        turn: turn.id.clone(),
        item: it.item,
        ask: Ask::Questions(question(it.folder)),
        expires_at: it.expires_at,
        digest: None,
        files: Vec::new(),
        approve_on_timeout: false,
    };
    Ok(vec![Event::RequestOpened(opened).into()].into())
}

fn question(folder: String) -> AskQuestions {
    let choice = |label: &str, description: &str| QuestionChoice {
        label: label.to_owned(),
        description: description.to_owned(),
    };
    let question = UserQuestion {
        id: TRUST.to_owned(),
        header: "Trust".to_owned(),
        question: format!(
            "Do you trust the authors of {folder}? The folder contains skills, which are \
             instructions that the model follows."
        ),
        // The first choice is the one that a stray key takes: the question comes while the user
        // may be typing.
        options: Some(vec![
            choice(
                LATER,
                "The model does not get them, and you are asked again in another session.",
            ),
            choice(
                YES,
                "From the next turn on the model gets the skills of the folder.",
            ),
            choice(
                NO,
                "The model does not get them, and you are not asked again.",
            ),
        ]),
        other: false,
        secret: false,
    };
    AskQuestions {
        questions: vec![question],
        trust_folder: Some(folder),
    }
}

/// Returns whether the user trusts the folder of a request about trust; `None` if the resolution
/// does not say.
pub fn trust_answer(resolution: &Resolution) -> Option<bool> {
    let Resolution::Answered { answer, .. } = resolution else {
        return None;
    };
    let RequestAnswer::Answers { answers } = &**answer else {
        return None;
    };
    // The stock terminal client adds notes of the user after the label.
    let label = answers.get(TRUST)?.first()?;
    match label.as_str() {
        YES => Some(true),
        NO => Some(false),
        _ => None,
    }
}
