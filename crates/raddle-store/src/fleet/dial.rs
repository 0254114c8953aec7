//! Connecting to the primary, with the settings that a role needs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use raddle_core::ports::ReadError;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::{Config, Row};

use super::address;
use super::connection::Connection;
use super::connections::Role;
use super::error::QueryFailure;
use super::options::FleetOptions;
use super::schema;
use super::tls::TlsDialer;

/// Time to connect to one host, until it has said whether it accepts writes.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Time for which sent bytes may stay unacknowledged. Beyond it, the kernel ends the connection.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// Time that a write waits for a row that another transaction has locked. Beyond it, the server
/// rejects the write, and nothing is stored. Shorter than a statement, so that the statements behind
/// it on the same connection are not in doubt.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(2);

/// Maximum length of the name of a schema.
const SCHEMA_BYTES_MAX: usize = 63;

/// Connector to the primary.
pub(super) struct Dialer {
    /// Hosts, one of which is the primary.
    hosts: Vec<Config>,
    /// Host to try first: the one that was the primary last.
    first: AtomicUsize,
    tls: TlsDialer,
    pub(super) schema: String,
    /// Time for one statement, and for all hosts together.
    pub(super) statement_max: Duration,
}

impl std::fmt::Debug for Dialer {
    /// Omits the configuration, which may contain a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dialer").finish_non_exhaustive()
    }
}

impl Dialer {
    pub(super) fn new(options: &FleetOptions) -> Result<Self, ReadError> {
        let mut hosts = address::parse(&options.address)?;
        for config in &mut hosts {
            config
                .application_name("raddle")
                .connect_timeout(CONNECT_MAX)
                .tcp_user_timeout(UNACKNOWLEDGED_MAX)
                .keepalives_idle(UNACKNOWLEDGED_MAX)
                .target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        check_schema(&options.schema)?;
        let tls = TlsDialer::new().map_err(|error| ReadError::Unusable(error.to_string()))?;
        Ok(Self {
            hosts,
            first: AtomicUsize::new(0),
            tls,
            schema: options.schema.clone(),
            statement_max: options.statement_max,
        })
    }

    /// Connects, and checks the settings and the layout of the tables.
    pub(super) async fn connect(&self, role: Role) -> Result<Connection, QueryFailure> {
        let connection = self.connect_unchecked(role).await?;
        schema::check(&connection).await?;
        Ok(connection)
    }

    /// Connects, and checks the settings only. The tables may not exist yet.
    pub(super) async fn connect_unchecked(&self, role: Role) -> Result<Connection, QueryFailure> {
        let connection = self.connect_any(role).await?;
        self.check_settings(&connection, role).await?;
        Ok(connection)
    }

    /// Connects to the first host that accepts writes, beginning with the last one that did.
    async fn connect_any(&self, role: Role) -> Result<Connection, QueryFailure> {
        let start = Instant::now();
        let first = self.first.load(Ordering::Relaxed);
        let mut failure = None;
        for at in (0..self.hosts.len()).map(|it| (first + it) % self.hosts.len()) {
            // The next attempt goes on with this host.
            self.first.store(at, Ordering::Relaxed);
            if failure.is_some() && start.elapsed() >= self.statement_max {
                break;
            }
            match self.connect_host(&self.hosts[at], role).await {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    failure = Some(error);
                    self.first.store(at + 1, Ordering::Relaxed);
                }
            }
        }
        let none = || QueryFailure::NotSent("the address of the database names no host".to_owned());
        Err(failure.unwrap_or_else(none))
    }

    /// Connects to one host. A host that accepts the connection and then is silent, as a paused one,
    /// takes no longer than one that is gone.
    async fn connect_host(&self, host: &Config, role: Role) -> Result<Connection, QueryFailure> {
        let mut config = host.clone();
        let given = config.get_options().unwrap_or_default();
        // The last option wins, so the address cannot weaken a commit.
        let options = format!("{given} {}", self.settings(role));
        config.options(options.trim());
        let limit = CONNECT_MAX.min(self.statement_max);
        let connect = Connection::open(&config, &self.tls, self.statement_max);
        let connection = tokio::time::timeout(limit, connect).await;
        connection.map_err(|_| {
            QueryFailure::NotSent("connecting to the database took too long".to_owned())
        })?
    }

    /// Returns the settings of a connection, as options of the startup message: unlike `SET`, they
    /// hold before the first statement and for all of them.
    fn settings(&self, role: Role) -> String {
        let commit = match role {
            Role::Events | Role::Work | Role::Reads => "on",
            Role::Deltas => "off",
        };
        let (statement, lock) = match role {
            // The server cancels a read. It never cancels a write, because a canceled wait for the
            // standby is answered as a success.
            Role::Reads => (self.statement_max.mul_f32(0.9), Duration::ZERO),
            Role::Events | Role::Work | Role::Deltas => {
                (Duration::ZERO, LOCK_WAIT_MAX.min(self.statement_max / 4))
            }
        };
        // Compiling a search takes longer than running it.
        let jit = if role == Role::Reads {
            "-c jit=off "
        } else {
            ""
        };
        // The server ends a transaction that its client left before another statement waits for it
        // too long.
        let idle = self.statement_max.mul_f32(0.75);
        format!(
            "{jit}-c synchronous_commit={commit} -c statement_timeout={} -c lock_timeout={} \
             -c idle_in_transaction_session_timeout={} \
             -c client_min_messages=notice \
             -c default_transaction_isolation=read\\ committed -c search_path={}",
            statement.as_millis(),
            lock.as_millis(),
            idle.as_millis(),
            self.schema
        )
    }

    /// Compares the settings of the session with those that the startup message asked for. A pooler
    /// may drop options.
    async fn check_settings(
        &self,
        connection: &Connection,
        role: Role,
    ) -> Result<(), QueryFailure> {
        let sql = "SELECT current_setting('synchronous_commit'),
                       current_setting('statement_timeout') = '0', current_setting('search_path'),
                       current_setting('server_encoding'),
                       current_setting('default_transaction_isolation'),
                       current_setting('client_min_messages')";
        let rows = connection.query(sql, &[]).await?;
        let row = rows
            .first()
            .ok_or_else(|| QueryFailure::NotSent("the database returned no settings".to_owned()))?;
        self.check_values(row, role).map_err(|what| {
            QueryFailure::Unusable(format!(
                "{what}; let the `options` of the startup message through to the database"
            ))
        })?;
        let encoding: String = text(row, 3);
        if encoding != "UTF8" {
            return Err(QueryFailure::Unusable(format!(
                "the encoding of the database is {encoding}, which cannot store every text; create \
                 a database with the encoding UTF8"
            )));
        }
        Ok(())
    }

    fn check_values(&self, row: &Row, role: Role) -> Result<(), String> {
        let commit = text(row, 0);
        let is_durable = matches!(commit.as_str(), "on" | "remote_apply");
        // Weaker commits are an option of the engine: without it, deltas survive more than needed.
        if role != Role::Deltas && !is_durable {
            return Err(format!(
                "synchronous_commit is {commit:?} on a connection for events, which would lose \
                 acknowledged events"
            ));
        }
        let is_unlimited: bool = row.try_get(1).unwrap_or_default();
        if is_unlimited == (role == Role::Reads) {
            let what = if is_unlimited {
                "statement_timeout is 0 on a connection for reads, which would never end"
            } else {
                "statement_timeout is set on a connection for writes, which would acknowledge \
                 commits that no standby has"
            };
            return Err(what.to_owned());
        }
        let path = text(row, 2);
        if path.trim_matches('"') != self.schema {
            return Err(format!(
                "search_path is {path:?} instead of {:?}, which would use other tables",
                self.schema
            ));
        }
        // A commit whose wait for the standby was canceled is answered with a warning.
        let messages = text(row, 5);
        if messages != "notice" {
            return Err(format!(
                "client_min_messages is {messages:?}, which may hide that a commit did not wait"
            ));
        }
        let isolation = text(row, 4);
        if isolation != "read committed" {
            return Err(format!(
                "default_transaction_isolation is {isolation:?} instead of \"read committed\""
            ));
        }
        Ok(())
    }
}

fn text(row: &Row, column: usize) -> String {
    row.try_get(column).unwrap_or_default()
}

/// Refuses a name of a schema that would have to be quoted, or that PostgreSQL would shorten.
fn check_schema(schema: &str) -> Result<(), ReadError> {
    let is_letter = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
    let begins = schema.starts_with(|it: char| it.is_ascii_lowercase());
    if begins && schema.len() <= SCHEMA_BYTES_MAX && schema.chars().all(is_letter) {
        return Ok(());
    }
    Err(ReadError::Unusable(format!(
        "the schema {schema:?} is invalid; use at most {SCHEMA_BYTES_MAX} lower-case letters, digits \
         and `_`, beginning with a letter"
    )))
}
