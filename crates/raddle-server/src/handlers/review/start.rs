//! `review/start`: review changes, in a turn of the thread.

use std::sync::Arc;

use raddle_core::ports::ReviewedDiff;
use raddle_core::{Command, ReviewedHunk, StartReview, ThreadId};
use raddle_protocol::methods::ReviewStart;
use raddle_protocol::{
    ItemId, ReviewDelivery, ReviewStartResponse, ReviewTarget, TextUserInput, ThreadItem, Turn,
    TurnId, TurnItemsView, TurnStatus, UserInput, UserMessageItem,
};

use crate::call::Call;
use crate::services::{ServerState, threads};
use crate::wire_error::WireError;

/// Instructions of every review, whatever its target.
const REVIEW_INSTRUCTIONS: &str = "Look only for problems that these changes bring: wrong results, crashes, lost data, \
    security holes, broken promises to callers, tests that cannot fail. Read as much of the code around \
    them as you need to be sure. Change no file. Answer with the problems you found, the worst first. Begin \
    each with a line `- [P1] TITLE — PATH:FIRST-LAST`: P0 is the worst and P3 the least, and the lines are \
    those of the file now. Continue it with lines that are indented by two spaces: what goes wrong and \
    when, and how it could be corrected. Leave out matters of taste. If you found nothing, say so in one \
    sentence.";

pub(crate) async fn handle(state: Arc<ServerState>, call: Call<ReviewStart>) {
    let Call {
        params,
        reply,
        session,
    } = call;
    if matches!(params.delivery, Some(ReviewDelivery::Unrecognized(_))) {
        let what = "detached reviews are not supported; use delivery inline";
        return reply.error(WireError::Refused(what.into()));
    }
    let Some((text, task)) = target_texts(&params.target) else {
        let what = "invalid review target: it is empty or unknown; name what to review";
        return reply.error(WireError::Refused(what.into()));
    };
    let id = params.thread_id;
    let hunks = match reviewed_hunks(&state, id, &params.target).await {
        Ok(hunks) => hunks,
        Err(error) => return reply.error(error),
    };
    let turn = TurnId::mint();
    let start = Command::StartReview(Box::new(StartReview {
        turn: turn.clone(),
        item: ItemId::mint(),
        text: text.clone(),
        prompt: format!("{task} {REVIEW_INSTRUCTIONS}"),
        hunks,
        briefs: Vec::new(),
        principal: threads::principal(&session),
    }));
    let answer = reply.into_reply_to(move |done| {
        let response = done.map(|_| ReviewStartResponse {
            review_thread_id: id,
            turn: started_turn(turn.clone(), text.clone()),
        });
        response.map_err(|error| threads::refused(id, error))
    });
    state.threads.send_command(id, start, answer).await;
}

/// Returns the target as a text for people, and as a task for the model.
fn target_texts(target: &ReviewTarget) -> Option<(String, String)> {
    Some(match target {
        ReviewTarget::UncommittedChanges => (
            "current changes".to_owned(),
            "Review what is not committed in the working folder's git repository: what is staged, what \
             is not, and files that git does not track."
                .to_owned(),
        ),
        ReviewTarget::BaseBranch(it) if !it.branch.trim().is_empty() => (
            format!("changes against '{}'", it.branch),
            format!(
                "Review what the present branch changes compared with the branch `{0}`: the \
                 difference between the merge base of `HEAD` and `{0}`, and the working folder.",
                it.branch
            ),
        ),
        ReviewTarget::Commit(it) if !it.sha.trim().is_empty() => {
            let short: String = it.sha.chars().take(7).collect();
            let title = it.title.as_deref().filter(|title| !title.is_empty());
            (
                title.map_or_else(
                    || format!("commit {short}"),
                    |title| format!("commit {short}: {title}"),
                ),
                format!("Review what the commit `{}` changes.", it.sha),
            )
        }
        ReviewTarget::Custom(it) if !it.instructions.trim().is_empty() => {
            (it.instructions.clone(), it.instructions.clone())
        }
        _ => return None,
    })
}

/// Returns the hunks of the diff that the target names, as far as they are known.
async fn reviewed_hunks(
    state: &ServerState,
    id: ThreadId,
    target: &ReviewTarget,
) -> Result<Vec<ReviewedHunk>, WireError> {
    let diff = match target {
        ReviewTarget::UncommittedChanges => ReviewedDiff::Uncommitted,
        ReviewTarget::BaseBranch(it) => ReviewedDiff::SinceBranch(it.branch.clone()),
        ReviewTarget::Commit(it) => ReviewedDiff::Commit(it.sha.clone()),
        ReviewTarget::Custom(_) | ReviewTarget::Unrecognized(_) => return Ok(Vec::new()),
    };
    Ok(match threads::settings_of(state, Some(id)).await? {
        Some(settings) if !settings.no_environment => {
            state.review_diffs.hunks(settings, diff).await
        }
        _ => Vec::new(),
    })
}

/// Returns the started turn, with a message that names the target.
fn started_turn(turn: TurnId, text: String) -> Turn {
    let content = UserInput::Text(TextUserInput {
        text,
        text_elements: Vec::new(),
    });
    let message = UserMessageItem {
        id: ItemId::mint(),
        content: vec![content],
        client_id: None,
        completed_at_ms: None,
        started_at_ms: None,
    };
    Turn {
        id: turn,
        items: vec![ThreadItem::UserMessage(message)],
        status: TurnStatus::InProgress,
        completed_at: None,
        duration_ms: None,
        error: None,
        items_view: TurnItemsView::Full,
        root_turn_id: None,
        started_at: None,
    }
}
