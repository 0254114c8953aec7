//! Report about a database for its operator.

use std::time::{Duration, Instant, SystemTime};

use raddle_core::ports::ReadError;
use tokio_postgres::types::FromSql;

use super::connection::{Connection, Param};
use super::connections::Role;
use super::dial::Dialer;
use super::error;
use super::options::FleetOptions;
use super::schema::{self, LAYOUT};

/// Properties of a database that its operator decides on.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseReport {
    /// Version of the server, such as `15.18`.
    pub version: String,
    /// The same as a number, such as 150018.
    pub version_number: i32,
    /// Schema of the tables.
    pub schema: String,
    /// Layout of the tables; `None` if there are none.
    pub layout: Option<i32>,
    /// Layout that this build writes.
    pub layout_of_build: i32,
    /// Number of standbys that commits wait for; `None` if the role may not see them.
    pub synchronous_standbys: Option<i64>,
    /// Whether the role may create the schema, or tables in it.
    pub may_create: bool,
    /// Time by which the clock of the server is ahead of this machine's, in milliseconds.
    pub clock_ahead_ms: i64,
    /// Error of the clock's measurement: half the time of the request.
    pub clock_error: Duration,
    /// Number of connections that the server allows.
    pub connections_max: i64,
    /// Number of connections of one node.
    pub connections_of_node: usize,
    /// Size of the database.
    pub bytes: i64,
    /// Estimated number of threads; `None` without tables, or before the first analysis of them.
    pub threads: Option<i64>,
}

impl DatabaseReport {
    /// Whether a commit waits for a second copy. Databases whose storage replicates itself have no
    /// standby that could be seen here.
    pub fn has_second_copy(&self) -> bool {
        self.synchronous_standbys.is_some_and(|it| it > 0)
    }
}

/// Examines a database, and changes nothing.
pub(super) async fn report(options: &FleetOptions) -> Result<DatabaseReport, ReadError> {
    let dialer = Dialer::new(options)?;
    let connected = dialer.connect_unchecked(Role::Reads).await;
    let connection = connected.map_err(error::read)?;
    let name = &dialer.schema;
    let one = |sql: &'static str| Question {
        connection: &connection,
        sql,
    };
    let has_table = one("SELECT to_regclass(quote_ident($1) || '.layout') IS NOT NULL");
    let layout = match has_table.about(name).await? {
        true => {
            let found = schema::version(&connection, "").await;
            Some(found.map_err(error::read)?)
        }
        false => None,
    };
    let begun = Instant::now();
    let now: i64 = one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        .alone()
        .await?;
    let clock_error = begun.elapsed() / 2;
    // The answer is from the middle of the request.
    let here = SystemTime::now() - clock_error;
    let here = here.duration_since(SystemTime::UNIX_EPOCH);
    let here = here.map_or(0, |it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX));
    Ok(DatabaseReport {
        version: one("SELECT current_setting('server_version')")
            .alone()
            .await?,
        version_number: one("SELECT current_setting('server_version_num')::integer")
            .alone()
            .await?,
        schema: name.clone(),
        layout,
        layout_of_build: LAYOUT,
        // Rows of other roles have no state for a role without the privilege to see it.
        synchronous_standbys: one("SELECT CASE WHEN bool_or(sync_state IS NULL) THEN NULL
                 ELSE count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) END
             FROM pg_stat_replication")
        .alone()
        .await?,
        may_create: one("SELECT CASE WHEN to_regnamespace($1) IS NULL
                 THEN has_database_privilege(current_database(), 'CREATE')
                 ELSE has_schema_privilege($1, 'CREATE') END")
        .about(name)
        .await?,
        clock_ahead_ms: now - here,
        clock_error,
        connections_max: one("SELECT current_setting('max_connections')::bigint")
            .alone()
            .await?,
        connections_of_node: options.connections(),
        bytes: one("SELECT pg_database_size(current_database())")
            .alone()
            .await?,
        threads: one("SELECT NULLIF(reltuples, -1)::bigint FROM pg_class
             WHERE oid = to_regclass(quote_ident($1) || '.threads')")
        .maybe_about(name)
        .await?,
    })
}

/// A statement that returns one value.
struct Question<'a> {
    connection: &'a Connection,
    sql: &'static str,
}

impl Question<'_> {
    async fn alone<T: for<'b> FromSql<'b>>(&self) -> Result<T, ReadError> {
        self.ask(&[]).await?.ok_or_else(|| self.no_row())
    }

    async fn about<T: for<'b> FromSql<'b>>(&self, name: &str) -> Result<T, ReadError> {
        self.ask(&[&name]).await?.ok_or_else(|| self.no_row())
    }

    async fn maybe_about<T: for<'b> FromSql<'b>>(
        &self,
        name: &str,
    ) -> Result<Option<T>, ReadError> {
        Ok(self.ask::<Option<T>>(&[&name]).await?.flatten())
    }

    async fn ask<T: for<'b> FromSql<'b>>(
        &self,
        params: &[Param<'_>],
    ) -> Result<Option<T>, ReadError> {
        let rows = self.connection.query(self.sql, params).await;
        let rows = rows.map_err(error::read)?;
        let value = rows.first().map(|row| row.try_get(0)).transpose();
        value.map_err(|error| ReadError::Unusable(format!("{}: {error}", self.sql)))
    }

    fn no_row(&self) -> ReadError {
        ReadError::Unusable(format!("{}: the database returned no row", self.sql))
    }
}
