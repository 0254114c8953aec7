//! PostgreSQL servers for tests, by `tests/fleet/pg-cluster.sh`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/fleet/pg-cluster.sh"
);

/// Runs the script, and returns what it prints.
fn run(verb: &str, folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("bash")
        .arg(SCRIPT)
        .arg(verb)
        .arg(folder)
        .args(arguments)
        .env("PG_BASE_PORT", base_port(verb).to_string())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{verb} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Returns the first port that a new server tries. Servers that start at the same moment would choose
/// the same one.
fn base_port(verb: &str) -> u32 {
    match verb {
        "single" => 28_000 + std::process::id() % 1000 * 20,
        _ => 27_400,
    }
}

/// The server that tests share, and the lock that keeps it.
struct SharedServer {
    address: String,
    _lock: File,
}

static SHARED: OnceLock<SharedServer> = OnceLock::new();

/// Variable that names the folder of a running cluster, to use it instead of one server.
const CLUSTER: &str = "RADDLE_TEST_CLUSTER";

fn shared_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os(CLUSTER) {
        return folder.into();
    }
    // The server runs as another user if the tests run as root, and must be able to enter it.
    std::env::temp_dir().join(format!(
        "raddle-fleet-{}",
        rustix::process::getuid().as_raw()
    ))
}

/// Returns the address of the server that all tests share. It runs as long as any of them.
pub fn shared() -> &'static str {
    let server = SHARED.get_or_init(|| {
        let folder = shared_folder();
        let users = folder.with_extension("users");
        let verb = match std::env::var_os(CLUSTER) {
            Some(_) => "dsn",
            None => "shared",
        };
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .open(users)
            .unwrap();
        lock.lock_shared().unwrap();
        SharedServer {
            address: run(verb, &folder, &[]),
            _lock: lock,
        }
    });
    &server.address
}

/// Runs SQL on the server that all tests share, and returns its output without headers.
pub async fn sql(text: String) -> String {
    shared();
    psql(shared_folder(), text).await
}

async fn psql(folder: PathBuf, text: String) -> String {
    // Proxies of the test go on meanwhile.
    tokio::task::spawn_blocking(move || run("psql", &folder, &["-At", "-c", &text]))
        .await
        .unwrap()
}

/// Returns the folder of the sockets of the server that all tests share.
pub fn sockets() -> PathBuf {
    shared();
    shared_folder().join("sock")
}

/// A server of one test, which ends with it.
pub struct OwnServer {
    folder: tempfile::TempDir,
}

impl OwnServer {
    pub async fn start() -> Self {
        tokio::task::spawn_blocking(Self::new).await.unwrap()
    }

    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pg");
        // The server runs as another user if the tests run as root, and must be able to enter it.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        run("single", &path, &["fsync=off"]);
        Self { folder }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("pg")
    }

    pub fn address(&self) -> String {
        run("dsn", &self.path(), &[])
    }

    /// Runs SQL, and returns its output without headers.
    pub async fn sql(&self, text: &str) -> String {
        psql(self.path(), text.to_owned()).await
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        run("down", &self.path(), &[]);
    }
}

/// Returns the port in an address.
pub fn port(address: &str) -> u16 {
    let port = address.split(' ').find_map(|it| it.strip_prefix("port="));
    port.unwrap().parse().unwrap()
}
