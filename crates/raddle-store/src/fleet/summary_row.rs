//! Rows of lists: the columns by which lists are filtered and ordered, and the summary itself.

use raddle_core::ports::{Activity, ListScope, Origin, ReadError, Summary};
use raddle_core::{Seq, ThreadId, ThreadSource, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error;
use super::statement::{Statement, storable};

/// Summary as JSON. The head is not part of it: the thread's row has it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SummaryBody {
    thread: ThreadId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    preview: String,
    cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    effort: Option<String>,
    archived: bool,
    turns: u64,
    created_at: Timestamp,
    recency_at: Timestamp,
    updated_at: Timestamp,
    origin: Origin,
    #[serde(default)]
    activity: Activity,
}

/// Parses a stored summary.
pub(super) fn parse(body: &str, head: Seq) -> Result<Summary, ReadError> {
    let damaged = |_| error::corrupt(head, "its list entry cannot be read");
    let it: SummaryBody = serde_json::from_str(body).map_err(damaged)?;
    Ok(Summary {
        thread: it.thread,
        tenant: it.tenant,
        principal: it.principal,
        name: it.name,
        preview: it.preview,
        cwd: it.cwd,
        provider: it.provider,
        model: it.model,
        effort: it.effort,
        archived: it.archived,
        turns: it.turns,
        created_at: it.created_at,
        recency_at: it.recency_at,
        updated_at: it.updated_at,
        origin: it.origin,
        activity: it.activity,
        head,
    })
}

/// Whether two summaries have different rows. The head is not part of a row.
pub(super) fn differs(before: Option<&Summary>, after: Option<&Summary>) -> bool {
    let row = |it: &Summary| Summary {
        head: Seq::ZERO,
        ..it.clone()
    };
    before.map(row) != after.map(row)
}

/// Visibility of open threads.
const OPEN: i16 = 0;

/// Visibility of archived threads.
const ARCHIVED: i16 = 1;

/// Visibility of forks that have only shared records so far. No list shows them.
const HIDDEN: i16 = 2;

/// Returns the visibility that a query lists.
pub(super) fn visibility(archived: bool) -> i16 {
    if archived { ARCHIVED } else { OPEN }
}

/// Returns the tenant of a query as a column holds it.
pub(super) fn tenant_of(scope: &ListScope) -> String {
    tenant(scope.tenant.as_deref())
}

/// Encodes a tenant. No name of a tenant equals the absence of one.
fn tenant(name: Option<&str>) -> String {
    name.map_or_else(String::new, |name| format!("={}", storable(name)))
}

/// Encodes a source.
pub(super) fn source(source: &ThreadSource) -> String {
    // Serializing names and text cannot fail. JSON escapes NUL characters.
    serde_json::to_string(source).unwrap_or_default()
}

/// Columns of a row, without its thread.
#[derive(Debug)]
pub(super) struct SummaryRow {
    id: Uuid,
    tenant: String,
    principal: Option<String>,
    visibility: i16,
    recency_at: i64,
    created_at: i64,
    updated_at: i64,
    used: bool,
    cwd: String,
    provider: Option<String>,
    source: String,
    originator: Option<String>,
    body: String,
}

impl SummaryRow {
    /// Encodes the summary of a thread. That of a fork without records of its own is of the thread
    /// that it began with.
    pub(super) fn new(thread: ThreadId, it: &Summary) -> Self {
        let visibility = if it.thread == thread {
            visibility(it.archived)
        } else {
            HIDDEN
        };
        let text = |it: &Option<String>| it.as_deref().map(storable);
        Self {
            id: *thread.as_uuid(),
            tenant: tenant(it.tenant.as_deref()),
            principal: text(&it.principal),
            visibility,
            recency_at: it.recency_at.0,
            created_at: it.created_at.0,
            updated_at: it.updated_at.0,
            used: it.is_used(),
            cwd: storable(&it.cwd),
            provider: text(&it.provider),
            source: source(&it.origin.source),
            originator: text(&it.origin.originator),
            body: body(it),
        }
    }

    /// Adds the insertion or the replacement of the row to a statement, for each row of a source.
    pub(super) fn write<'a>(&'a self, statement: &mut Statement<'a>, from: &str) {
        let values = [
            format!("{}::uuid", statement.bind(&self.id)),
            format!("{}::text", statement.bind(&self.tenant)),
            format!("{}::text", statement.bind(&self.principal)),
            format!("{}::smallint", statement.bind(&self.visibility)),
            format!("{}::bigint", statement.bind(&self.recency_at)),
            format!("{}::bigint", statement.bind(&self.created_at)),
            format!("{}::bigint", statement.bind(&self.updated_at)),
            format!("{}::boolean", statement.bind(&self.used)),
            format!("{}::text", statement.bind(&self.cwd)),
            format!("{}::text", statement.bind(&self.provider)),
            format!("{}::text", statement.bind(&self.source)),
            format!("{}::text", statement.bind(&self.originator)),
            format!("{}::text", statement.bind(&self.body)),
        ];
        statement.push(&format!(
            "INSERT INTO summaries (id, {COLUMNS}) SELECT {} {from}
             ON CONFLICT (id) DO UPDATE SET ({COLUMNS}) = ROW ({EXCLUDED})",
            values.join(", ")
        ));
    }
}

const COLUMNS: &str = "tenant, principal, visibility, recency_at, created_at, updated_at, used, cwd, \
                       provider, source, originator, body";

const EXCLUDED: &str = "excluded.tenant, excluded.principal, excluded.visibility, \
                        excluded.recency_at, excluded.created_at, excluded.updated_at, \
                        excluded.used, excluded.cwd, excluded.provider, excluded.source, \
                        excluded.originator, excluded.body";

fn body(it: &Summary) -> String {
    let body = SummaryBody {
        thread: it.thread,
        tenant: it.tenant.clone(),
        principal: it.principal.clone(),
        name: it.name.clone(),
        preview: it.preview.clone(),
        cwd: it.cwd.clone(),
        provider: it.provider.clone(),
        model: it.model.clone(),
        effort: it.effort.clone(),
        archived: it.archived,
        turns: it.turns,
        created_at: it.created_at,
        recency_at: it.recency_at,
        updated_at: it.updated_at,
        origin: it.origin.clone(),
        activity: it.activity.clone(),
    };
    // Serializing names, numbers and text cannot fail. JSON escapes NUL characters.
    serde_json::to_string(&body).unwrap_or_default()
}
