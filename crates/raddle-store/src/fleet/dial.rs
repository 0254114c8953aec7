//! Connecting to the primary, with the settings that a role needs.

use std::str::FromStr;
use std::time::Duration;

use raddle_core::ports::ReadError;
use tokio_postgres::Config;
use tokio_postgres::config::TargetSessionAttrs;

use super::connection::Connection;
use super::connections::Role;
use super::error::{QueryFailure, with_causes};
use super::options::FleetOptions;
use super::schema;
use super::tls::TlsDialer;

/// Time to connect to one host.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// Time for which sent bytes may stay unacknowledged. Beyond it, the kernel ends the connection.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(5);

/// Connector to the primary.
pub(super) struct Dialer {
    config: Config,
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
        let mut config = Config::from_str(&options.address).map_err(|error| {
            // The address may contain a password, and is not part of the message.
            let what = with_causes(&error);
            ReadError::Unusable(format!(
                "the address of the database is invalid ({what}); write it as \
                 postgres://user:password@host:port/database"
            ))
        })?;
        config
            .application_name("raddle")
            .connect_timeout(CONNECT_MAX)
            .tcp_user_timeout(UNACKNOWLEDGED_MAX)
            .keepalives_idle(UNACKNOWLEDGED_MAX)
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let is_letter = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_';
        if options.schema.is_empty() || !options.schema.chars().all(is_letter) {
            let what = format!(
                "the schema {:?} is invalid; use lower-case letters, digits and `_`",
                options.schema
            );
            return Err(ReadError::Unusable(what));
        }
        let tls = TlsDialer::new().map_err(|error| ReadError::Unusable(error.to_string()))?;
        Ok(Self {
            config,
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
        let mut config = self.config.clone();
        let given = config.get_options().unwrap_or_default();
        // The last option wins, so the address cannot weaken a commit.
        let options = format!("{given} {}", self.settings(role));
        config.options(options.trim());
        let connect = Connection::open(&config, &self.tls, self.statement_max);
        let connection = tokio::time::timeout(self.statement_max, connect)
            .await
            .map_err(|_| {
                QueryFailure::NotSent("connecting to the database took too long".into())
            })??;
        self.check_settings(&connection, role).await?;
        Ok(connection)
    }

    /// Returns the settings of a connection, as options of the startup message: unlike `SET`, they
    /// hold before the first statement and for all of them.
    fn settings(&self, role: Role) -> String {
        let commit = match role {
            Role::Events | Role::Work | Role::Reads => "on",
            Role::Deltas => "off",
        };
        let limit = match role {
            // The server cancels a read. It never cancels a write, because a canceled wait for the
            // standby is answered as a success.
            Role::Reads => self.statement_max.mul_f32(0.9).as_millis(),
            Role::Events | Role::Work | Role::Deltas => 0,
        };
        format!(
            "-c synchronous_commit={commit} -c statement_timeout={limit} \
             -c idle_in_transaction_session_timeout=10000 -c search_path={}",
            self.schema
        )
    }

    async fn check_settings(
        &self,
        connection: &Connection,
        role: Role,
    ) -> Result<(), QueryFailure> {
        let rows = connection.query("SHOW synchronous_commit", &[]).await?;
        let commit: String = rows
            .first()
            .and_then(|row| row.try_get(0).ok())
            .unwrap_or_default();
        let is_durable = matches!(commit.as_str(), "on" | "remote_apply");
        // Weaker commits are an option of the engine: without it, deltas survive more than needed.
        if role == Role::Deltas || is_durable {
            return Ok(());
        }
        Err(QueryFailure::Unusable(format!(
            "synchronous_commit is {commit:?} on a connection for events, which would lose \
             acknowledged events; let the `options` of the startup message through to the database"
        )))
    }
}
