//! Hooks on input of the user. They run before the input is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use raddle_core::ports::{HookEvent, HookRuling};
use raddle_core::{
    Command, HookPiece, HookPrompt, Input, InputMessage, ItemId, NewHookPrompt, Settings, TurnKind,
};
use serde_json::Map;

use super::HookRunner;
use crate::AgentError;

/// Start of a loaded thread's session, on which hooks run once, before the first input.
#[derive(Debug)]
pub(crate) struct SessionStart {
    is_new: bool,
    is_over: AtomicBool,
}

impl SessionStart {
    /// `is_new`: whether the thread was just created, and not loaded.
    pub(crate) fn new(is_new: bool) -> Arc<Self> {
        Arc::new(Self {
            is_new,
            is_over: AtomicBool::new(false),
        })
    }
}

/// The first input of a session. Unless it is accepted, the text of the session's hooks is lost
/// with it, and they run again.
struct FirstInput<'a>(Option<&'a SessionStart>);

impl Drop for FirstInput<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.is_over.store(false, Ordering::Relaxed);
        }
    }
}

impl HookRunner {
    /// Runs the hooks on the input of a command, if it has any, and adds their text to it. Fails
    /// if a hook rejects the input. Dropping the future ends the hooks.
    pub(crate) async fn check_input(
        &self,
        session: &SessionStart,
        settings: &Settings,
        command: &mut Command,
    ) -> Result<(), AgentError> {
        let (input, message) = match command {
            Command::StartTurn(it) if it.kind == TurnKind::Work => match &mut it.message {
                Some(message) => (message.input.clone(), Some(message)),
                None => return Ok(()),
            },
            Command::Steer(it) => (it.message.input.clone(), Some(&mut it.message)),
            // The context of a queued message is that of its turn, which has not begun.
            Command::Enqueue(it) => (it.message.input.clone(), None),
            Command::ChangeQueued(it) => (it.input.clone(), None),
            _ => return Ok(()),
        };
        let is_first = message.is_some() && !session.is_over.swap(true, Ordering::Relaxed);
        let mut first = FirstInput(is_first.then_some(session));
        let mut pieces = match is_first {
            true => self.start_session(session, settings).await,
            false => Vec::new(),
        };
        let prompt: Vec<&str> = input.iter().filter_map(text).collect();
        let members = Map::from_iter([("prompt".to_owned(), prompt.join("\n").into())]);
        let event = HookEvent::UserPromptSubmit;
        let outcome = self.run(event, Vec::new(), settings, members).await;
        if let HookRuling::Ask(reason) | HookRuling::Deny(reason) = outcome.ruling {
            return Err(AgentError::RejectedByHook(reason));
        }
        first.0 = None;
        pieces.extend(outcome.context);
        if let Some(message) = message
            && !pieces.is_empty()
        {
            add(message, pieces);
        }
        Ok(())
    }

    /// Runs the hooks on the start of the session.
    async fn start_session(&self, session: &SessionStart, settings: &Settings) -> Vec<HookPiece> {
        let source = match session.is_new {
            true => "startup",
            false => "resume",
        };
        let input = Map::from_iter([("source".to_owned(), source.into())]);
        let subjects = vec![source.to_owned()];
        let outcome = self
            .run(HookEvent::SessionStart, subjects, settings, input)
            .await;
        outcome.context
    }
}

fn text(part: &Input) -> Option<&str> {
    match part {
        Input::Text { text, .. } => Some(text),
        _ => None,
    }
}

fn add(message: &mut InputMessage, pieces: Vec<HookPiece>) {
    message.hook_prompt = Some(NewHookPrompt {
        item: ItemId::mint(),
        prompt: HookPrompt { pieces },
    });
}
