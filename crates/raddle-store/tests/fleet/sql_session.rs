//! Sessions beside the journal.

use raddle_core::ThreadId;

use crate::server::shared;

/// A session beside the journal, for what a test does to its tables.
pub struct SqlSession(tokio_postgres::Client);

impl SqlSession {
    /// Connects to the server that all tests share.
    pub async fn open(schema: &str) -> Self {
        let address = format!("{} options='-c search_path={schema}'", shared());
        let connected = tokio_postgres::connect(&address, tokio_postgres::NoTls);
        let (client, connection) = connected.await.unwrap();
        tokio::spawn(connection);
        Self(client)
    }

    pub async fn run(&self, sql: &str) {
        self.0.batch_execute(sql).await.unwrap();
    }

    /// Runs a query of one value.
    pub async fn value<T>(&self, sql: &str) -> T
    where
        T: for<'a> tokio_postgres::types::FromSql<'a>,
    {
        self.0.query_one(sql, &[]).await.unwrap().get(0)
    }

    /// Returns the log of a thread.
    pub async fn log(&self, thread: ThreadId) -> uuid::Uuid {
        let id = thread.as_uuid();
        let sql = format!("SELECT log FROM threads WHERE id = '{id}'");
        self.value(&sql).await
    }

    /// Waits until another session waits for a lock of this one.
    pub async fn wait_for_blocked(&self) {
        let sql = "SELECT count(*) FROM pg_locks
                   WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))";
        let blocked = async { while self.value::<i64>(sql).await == 0 {} };
        let limit = std::time::Duration::from_secs(30);
        let waited = tokio::time::timeout(limit, blocked).await;
        waited.expect("no session waits for a lock of this one");
    }
}
