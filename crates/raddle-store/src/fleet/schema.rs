//! Tables, their layout number, and migrations.

use tokio_postgres::error::SqlState;

use super::connection::Connection;
use super::error::QueryFailure;

/// Layout that this build writes. A database with a higher one is refused as a whole.
pub(super) const LAYOUT: i32 = 1;

/// Migrations. Each step raises the layout by one. A released step never changes.
const STEPS: [&str; LAYOUT as usize] = [FIRST];

const FIRST: &str = "
    -- The row that decides which writer succeeds, and nothing that a list orders by: an update
    -- changes no indexed column.
    CREATE TABLE threads (
        id     uuid PRIMARY KEY,
        log    uuid NOT NULL UNIQUE,      -- key of its own rows; minted anew each time an id begins
        live   boolean NOT NULL,          -- false: reserved by a node in doubt, and not a thread
        head   bigint NOT NULL,           -- newest record
        tail   bigint NOT NULL,           -- newest event
        link   bytea NOT NULL,            -- of that event
        fence  bigint NOT NULL,           -- rises when a node takes the thread or settles a doubt
        family uuid NOT NULL,             -- the thread from which all its forks descend
        writer uuid,                      -- node log that may have deltas after the head
        owner  text,                      -- node that appends to that log
        since  bigint NOT NULL DEFAULT 0  -- batches of it up to this one have no deltas after the head
    ) WITH (fillfactor = 70);
    CREATE INDEX threads_writer ON threads (writer) WHERE writer IS NOT NULL;
    -- Logs in which nodes gather the deltas of their threads. A batch and a seal change the same row.
    CREATE TABLE node_logs (
        id     uuid PRIMARY KEY,
        n      bigint NOT NULL,           -- newest batch
        beats  bigint NOT NULL,           -- rises while the node runs
        sealed boolean NOT NULL           -- true: no batch follows
    ) WITH (fillfactor = 10);
    -- Batches: one row for each lane that has deltas. The lane follows from the id of the thread, so a
    -- reader of one thread skips most deltas of other threads.
    CREATE TABLE node_batches (
        node_log uuid NOT NULL,
        lane     smallint NOT NULL,
        n        bigint NOT NULL,
        logs     uuid[] NOT NULL,         -- what follows is one element for each delta
        seqs     bigint[] NOT NULL,
        ats      bigint[] NOT NULL,
        items    text[] NOT NULL,
        sizes    integer[] NOT NULL,
        bodies   bytea[] NOT NULL,
        PRIMARY KEY (node_log, lane, n)
    ) WITH (toast_tuple_target = 8160);
    -- The row lives for seconds, so compression costs more than it saves.
    ALTER TABLE node_batches ALTER bodies SET STORAGE EXTERNAL;
    -- Events. A fork shares rows, which stay when their own thread is deleted.
    CREATE TABLE records (
        log   uuid NOT NULL,
        seq   bigint NOT NULL,
        at    bigint NOT NULL,
        form  smallint NOT NULL,          -- encoding of the body
        bytes integer NOT NULL,           -- length of its JSON
        link  bytea NOT NULL,
        body  bytea NOT NULL,
        PRIMARY KEY (log, seq)
    );
    -- The program compresses bodies.
    ALTER TABLE records ALTER body SET STORAGE EXTERNAL;
    -- Records that a fork shares: those of another log from the first to the last.
    CREATE TABLE parts (
        log   uuid NOT NULL,
        upto  bigint NOT NULL,
        first bigint NOT NULL,
        taken uuid NOT NULL,
        PRIMARY KEY (log, upto)
    );
    CREATE INDEX parts_taken ON parts (taken, upto);
    -- Deltas of open items. They are never shared.
    CREATE TABLE deltas (
        log   uuid NOT NULL,
        seq   bigint NOT NULL,
        at    bigint NOT NULL,
        item  text NOT NULL,
        bytes integer NOT NULL,
        body  bytea NOT NULL,
        PRIMARY KEY (log, seq)
    );
    CREATE TABLE bases (
        log     uuid NOT NULL,
        at      bigint NOT NULL,
        version integer NOT NULL,
        body    bytea NOT NULL,
        PRIMARY KEY (log, at)
    );
    ALTER TABLE bases ALTER body SET STORAGE EXTERNAL;
    -- Logs whose rows may no longer be needed.
    CREATE TABLE removals (id uuid PRIMARY KEY, log uuid NOT NULL);
    -- Blobs, by the family of the thread that they were put for. Threads of different tenants never
    -- share a family.
    CREATE TABLE blobs (
        family  uuid NOT NULL,
        hash    bytea NOT NULL,
        form    smallint NOT NULL,
        body    bytea NOT NULL,
        waiting integer NOT NULL,         -- puts without a record that names the blob
        put_at  timestamptz NOT NULL,     -- of the last put
        PRIMARY KEY (family, hash)
    );
    ALTER TABLE blobs ALTER body SET STORAGE EXTERNAL;
    CREATE INDEX blobs_waiting ON blobs (put_at) WHERE waiting > 0;
    CREATE TABLE blob_uses (
        family uuid NOT NULL,
        hash   bytea NOT NULL,
        log    uuid NOT NULL,
        seq    bigint NOT NULL,
        PRIMARY KEY (family, hash, log, seq),
        FOREIGN KEY (family, hash) REFERENCES blobs (family, hash)
    );
    CREATE INDEX blob_uses_log ON blob_uses (log, seq);

    -- What follows is derived from the records.
    CREATE TABLE summaries (
        id         uuid PRIMARY KEY,
        tenant     text NOT NULL,         -- '' for none, else '=' and the tenant
        principal  text,
        visibility      smallint NOT NULL,     -- 0: open, 1: archived, 2: a fork without records of its own
        recency_at bigint NOT NULL,
        created_at bigint NOT NULL,
        updated_at bigint NOT NULL,
        used       boolean NOT NULL,
        cwd        text NOT NULL,
        provider   text,
        source     text NOT NULL,
        originator text,
        body       text NOT NULL          -- the whole summary, as JSON
    ) WITH (fillfactor = 80);
    CREATE INDEX summaries_recent ON summaries (tenant, visibility, recency_at, id);
    CREATE INDEX summaries_created ON summaries (tenant, visibility, created_at, id);
    CREATE INDEX summaries_updated ON summaries (tenant, visibility, updated_at, id);
    -- An entry of an index has at most 2,704 bytes, so long texts are in it by their beginning.
    CREATE INDEX summaries_principal
        ON summaries (tenant, left(principal, 200), visibility, recency_at, id);
    CREATE INDEX summaries_folder
        ON summaries (tenant, visibility, left(cwd, 200), recency_at, id);
    -- Records that pages are built from: 0 begins a turn, 1 ends one, 2 has a whole item, 3 reverts.
    CREATE TABLE marks (
        log   uuid NOT NULL,
        kind  smallint NOT NULL,
        seq   bigint NOT NULL,
        turn  text,                       -- of kind 0
        since bigint,                     -- of kind 3: first reverted record
        PRIMARY KEY (log, kind, seq)
    );
    CREATE INDEX marks_turn ON marks (log, left(turn, 200)) WHERE turn IS NOT NULL;
    -- Text that search finds, in lower case, until the index has it.
    CREATE TABLE texts (
        log  uuid NOT NULL,
        seq  bigint NOT NULL,
        text text NOT NULL,
        PRIMARY KEY (log, seq)
    ) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02);
    -- Text that the index has, in blocks of one log.
    CREATE TABLE text_blocks (
        log   uuid NOT NULL,
        upto  bigint NOT NULL,            -- last of its records
        seqs  bigint[] NOT NULL,          -- one element for each record, as the next column
        texts text[] NOT NULL,
        grams integer[] NOT NULL,         -- hashes of the tenant and a trigram
        PRIMARY KEY (log, upto)
    );
    CREATE INDEX text_blocks_grams ON text_blocks USING gin (grams) WITH (fastupdate = off);
    -- Hashes do not compress, and statistics of long arrays cost more than they tell.
    ALTER TABLE text_blocks ALTER grams SET STORAGE EXTERNAL, ALTER grams SET STATISTICS 0,
        ALTER texts SET STATISTICS 0, ALTER seqs SET STATISTICS 0;
";

/// Creates the tables, or migrates them if they are old. Several nodes may do so at once. If nothing
/// is missing, the role needs no right to create anything.
pub(super) async fn migrate(connection: &Connection, schema: &str) -> Result<(), QueryFailure> {
    let exists = format!("SELECT to_regclass('{schema}.layout') IS NOT NULL");
    if is_true(connection, &exists).await? {
        let layout = find_version(connection, "").await?;
        refuse_newer(layout.unwrap_or(0))?;
        if layout == Some(LAYOUT) {
            return Ok(());
        }
    }
    // Another node may be creating the tables.
    connection.command("SET lock_timeout = 0").await?;
    let exists = format!("SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = '{schema}')");
    if !is_true(connection, &exists).await? {
        let sql = format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"");
        create(connection, &sql).await?;
    }
    let layout = "CREATE TABLE IF NOT EXISTS layout (
                      one integer PRIMARY KEY CHECK (one = 1),
                      version integer NOT NULL
                  )";
    create(connection, layout).await?;
    let insert = "INSERT INTO layout (one, version) VALUES (1, 0) ON CONFLICT DO NOTHING";
    connection.command(insert).await?;
    connection.command("BEGIN").await?;
    // The row lock makes one node wait for the other.
    let layout = version(connection, "FOR UPDATE").await?;
    refuse_newer(layout)?;
    let done = usize::try_from(layout).unwrap_or(0);
    for step in STEPS.iter().skip(done) {
        connection.command(step).await?;
    }
    let update = "UPDATE layout SET version = $1 WHERE one = 1";
    connection.query(update, &[&LAYOUT]).await?;
    connection.command("COMMIT").await
}

async fn is_true(connection: &Connection, sql: &str) -> Result<bool, QueryFailure> {
    let rows = connection.query(sql, &[]).await?;
    Ok(rows.first().is_some_and(|row| row.get(0)))
}

/// Creates something unless it exists. The database rejects all but one of several concurrent
/// attempts; then it exists.
async fn create(connection: &Connection, sql: &str) -> Result<(), QueryFailure> {
    match connection.command(sql).await {
        Err(QueryFailure::Rejected(it))
            if it.code == SqlState::UNIQUE_VIOLATION
                || it.code == SqlState::DUPLICATE_TABLE
                || it.code == SqlState::DUPLICATE_OBJECT
                || it.code == SqlState::DUPLICATE_SCHEMA =>
        {
            Ok(())
        }
        result => result,
    }
}

/// Refuses tables of another layout.
pub(super) async fn check(connection: &Connection) -> Result<(), QueryFailure> {
    let layout = version(connection, "").await?;
    refuse_newer(layout)?;
    if layout < LAYOUT {
        let what = format!(
            "the database has the layout {layout} and needs {LAYOUT}; start a node of this \
             version, which migrates it"
        );
        return Err(QueryFailure::Unusable(what));
    }
    Ok(())
}

fn refuse_newer(layout: i32) -> Result<(), QueryFailure> {
    if layout > LAYOUT {
        let what = format!("layout {layout}, and this version knows layouts up to {LAYOUT}");
        return Err(QueryFailure::Newer(what));
    }
    Ok(())
}

/// Returns the layout of the tables.
pub(super) async fn version(connection: &Connection, lock: &str) -> Result<i32, QueryFailure> {
    let layout = find_version(connection, lock).await?;
    layout.ok_or_else(|| {
        QueryFailure::Unusable(
            "the table `layout` of the database has no row; restore it".to_owned(),
        )
    })
}

async fn find_version(connection: &Connection, lock: &str) -> Result<Option<i32>, QueryFailure> {
    let sql = format!("SELECT version FROM layout WHERE one = 1 {lock}");
    let rows = connection.query(&sql, &[]).await?;
    Ok(rows.first().and_then(|row| row.try_get(0).ok()))
}
