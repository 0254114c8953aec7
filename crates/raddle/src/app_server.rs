//! `raddle app-server`: opens the listeners, runs the server, and shuts down in order.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use data_encoding::HEXLOWER_PERMISSIVE;
use raddle_config::Override;
use raddle_core::{Recovery, ThreadSource};
use raddle_providers::VendorClient;
use raddle_rpc::{
    Auth, ConnectionLimits, DataLoss, ListenAddress, Listener, Listeners, SignedBearer, Transport,
    raise_descriptor_limit, stdin_end,
};
use raddle_sandbox::{MeasureFn, environment};
use raddle_server::{Options, Server};
use sha2::{Digest, Sha256};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tracing::Level;

use crate::cli::{RecoverBy, Serve, SessionSource, WsAuth};
use crate::home::Home;
use crate::rules::RuleStore;
use crate::sandbox;
use crate::threads::{self, ThreadDeps};
use crate::{log, postgres};

/// The minimum length of the secret for signed tokens.
const SECRET_BYTES_MIN: usize = 32;

/// The minimum length of a capability token, so that it cannot be guessed.
const TOKEN_BYTES_MIN: usize = 16;

/// How many connections forwarded by other processes may queue for acceptance.
const RELAYED: usize = 16;

/// Observes the stages of a server's life.
pub(crate) trait Lifecycle {
    /// The server accepts clients at these addresses.
    fn ready(&mut self, addresses: &[String]) -> Result<()>;
    /// The server accepts no more clients and drains the ones it has.
    fn ending(&mut self);
    /// Returns a callback that runs about once a second, on its own thread, while the server runs.
    fn heartbeat(&self) -> Box<dyn FnMut() + Send> {
        Box::new(|| {})
    }
}

/// A [`Lifecycle`] that ignores every stage.
pub(crate) struct NoLifecycle;

impl Lifecycle for NoLifecycle {
    fn ready(&mut self, _addresses: &[String]) -> Result<()> {
        Ok(())
    }

    fn ending(&mut self) {}
}

/// Serves until the parent closes stdin or a signal arrives.
pub(crate) fn run(
    mut overrides: Vec<Override>,
    args: &Serve,
    lifecycle: &mut dyn Lifecycle,
) -> Result<()> {
    disable_core_dumps()?;
    let home = Home::find()?;
    let auth = auth(args)?;
    let rules = RuleStore::open(&home)?;
    for warning in rules.warnings() {
        log::print_line(&format!("raddle: warning: {warning}"));
    }
    overrides.extend(args.config.iter().cloned());
    let key_rules = Arc::new(rules.clone());
    let vendor_client = Arc::new(VendorClient::new(&home.state, Some(key_rules)));
    let peers = threads::local_peers(&home.state);
    let store = postgres::configured_store(&home, overrides.clone())?;
    let options = Options {
        source: source(args.session_source),
        secrets: secrets(args),
        measure_sandbox: Some(MeasureFn::new(sandbox::measuring(
            &home,
            overrides.clone(),
        )?)),
        overrides,
        login_shell: true,
        peers: Some(peers.clone()),
        vendors: Some(vendor_client.clone()),
        ..Options::new(home.paths())
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let listeners = listeners(args, &home, &auth);
    let recovery = recovery(args.recovery, &listeners);
    let deps = ThreadDeps {
        home: &home.state,
        store,
        rules,
        recovery,
        vendor_client: &vendor_client,
        peers,
    };
    let outcome = runtime.block_on(serve(options, listeners, deps, lifecycle));
    // A thread may be stuck in a read of stdin; it must not keep the process.
    runtime.shutdown_timeout(Duration::ZERO);
    outcome
}

/// Hides the environment, which holds the keys of models, from commands of the same user.
///
/// `RADDLE_DUMPABLE=1` keeps it readable, to debug the server.
pub(crate) fn disable_core_dumps() -> Result<()> {
    if std::env::var_os("RADDLE_DUMPABLE").is_some_and(|value| value == "1") {
        return Ok(());
    }
    environment::set_undumpable().context("cannot hide the environment from other processes")
}

/// How to recover turns whose owner died. The parent of a server on stdio alone died with it, so
/// its turns are interrupted by default; any other server continues them.
fn recovery(recover_by: Option<RecoverBy>, listeners: &[Listener]) -> Recovery {
    let is_child = matches!(listeners, [listener] if listener.listen == ListenAddress::Stdio);
    match recover_by {
        Some(RecoverBy::Continue) => Recovery::Continue,
        Some(RecoverBy::Interrupt) => Recovery::Interrupt,
        None if is_child => Recovery::Interrupt,
        None => Recovery::Continue,
    }
}

fn source(session_source: SessionSource) -> ThreadSource {
    match session_source {
        SessionSource::Cli => ThreadSource::Cli,
        SessionSource::Vscode => ThreadSource::Editor,
        SessionSource::Exec => ThreadSource::Exec,
        SessionSource::AppServer => ThreadSource::AppServer,
    }
}

async fn serve(
    options: Options,
    requested: Vec<Listener>,
    deps: ThreadDeps<'_>,
    lifecycle: &mut dyn Lifecycle,
) -> Result<()> {
    let on_stdio = requested
        .iter()
        .any(|listener| listener.listen == ListenAddress::Stdio);
    let has_others = requested.len() > usize::from(on_stdio);
    let (peer_connections, mut relayed) = mpsc::channel(RELAYED);
    let mut server = Server::open(options, |agent_deps| {
        threads::open(deps, agent_deps, peer_connections)
    })?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let (admin_pages, mut callers) = server.status_pages();
    let mut listeners = Listeners::new();
    for listener in requested {
        let admin_pages = Some(admin_pages.clone());
        listeners
            .open(Listener {
                admin_pages,
                ..listener
            })
            .await?;
    }
    let watch = listeners.watch(&admin_pages.blocked_page(), lifecycle.heartbeat());
    let _watch = watch.context("cannot watch over the server")?;
    lifecycle.ready(listeners.addresses())?;
    for banner in listeners.banners() {
        log::print(Level::INFO, banner);
    }
    if on_stdio && std::io::stdin().is_terminal() {
        log::print_line(
            "raddle: app-server speaks JSON-RPC on stdin and stdout, one message per line; press Ctrl-D to end",
        );
    }

    let mut parent: Option<Parent> = None;
    loop {
        tokio::select! {
            Some(connection) = listeners.next() => {
                let from_parent = connection.peer.transport == Transport::Stdio;
                let loss = connection.loss.clone();
                let ended = server.serve(connection);
                if from_parent {
                    parent = Some(Parent { ended, loss });
                }
            }
            Some(caller) = callers.recv() => drop(server.serve(caller)),
            Some(connection) = relayed.recv() => drop(server.serve(connection)),
            () = parent_closed(&mut parent) => match parent.take() {
                // The parent stopped reading, which is no reason to disconnect other clients. A
                // parent that has exited is.
                Some(Parent { loss, .. }) if has_others && loss.why().is_some() => {
                    let why = loss.why().unwrap_or_default();
                    tracing::warn!(why, "the connection to the parent has ended; others go on");
                    parent = Some(Parent { ended: stdin_closed(), loss: DataLoss::default() });
                }
                ended => {
                    parent = ended;
                    break;
                }
            },
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }

    lifecycle.ending();
    listeners.close();
    drop(relayed);
    tracing::info!(
        connections = server.connections(),
        "draining; a second signal ends at once"
    );
    let drained = async { tokio::join!(server.drain(), listeners.shutdown()) };
    tokio::select! {
        _ = drained => {}
        _ = terminate.recv() => tracing::warn!("ended by a second signal"),
        _ = interrupt.recv() => tracing::warn!("ended by a second signal"),
    }
    match parent.as_ref().and_then(|parent| parent.loss.why()) {
        Some(why) => bail!("{why}"),
        None => Ok(()),
    }
}

/// The connection of the process that started the server.
struct Parent {
    /// Closed when the connection has ended.
    ended: watch::Receiver<()>,
    loss: DataLoss,
}

/// Resolves when the parent has closed its end. Without a parent it never resolves.
async fn parent_closed(parent: &mut Option<Parent>) {
    match parent {
        Some(parent) => while parent.ended.changed().await.is_ok() {},
        None => std::future::pending().await,
    }
}

/// Returns a channel that closes at the end of stdin, whichever task reads it.
fn stdin_closed() -> watch::Receiver<()> {
    let (ended, when_ended) = watch::channel(());
    tokio::spawn(async move {
        stdin_end().await;
        drop(ended);
    });
    when_ended
}

/// Two worker threads suffice to move bytes, and each one costs memory at rest.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8))
}

fn listeners(args: &Serve, home: &Home, auth: &Auth) -> Vec<Listener> {
    let mut listens = args.listen.clone();
    if args.stdio && !listens.contains(&ListenAddress::Stdio) {
        listens.push(ListenAddress::Stdio);
    }
    if listens.is_empty() {
        listens.push(ListenAddress::Stdio);
    }
    // There is only one stdin, even if it is requested twice.
    let mut seen_stdio = false;
    listens.retain(|listen| {
        *listen != ListenAddress::Stdio || !std::mem::replace(&mut seen_stdio, true)
    });
    let host_names: Arc<[String]> = args.allow_host.clone().into();
    let is_network =
        |listen: &&ListenAddress| !matches!(listen, ListenAddress::Stdio | ListenAddress::Off);
    let limits = ConnectionLimits {
        message_bytes_max: args.max_message_bytes,
        ..ConnectionLimits::default()
    };
    let limits = limits.sharing(
        raise_descriptor_limit(),
        listens.iter().filter(is_network).count(),
    );
    listens
        .into_iter()
        .map(|listen| Listener {
            listen,
            default_socket: home.socket(),
            auth: auth.clone(),
            insecure_loopback: args.insecure_loopback,
            host_names: host_names.clone(),
            admin_pages: None,
            limits,
        })
        .collect()
}

/// The files with tokens and secrets that clients authenticate with.
fn secrets(args: &Serve) -> Vec<PathBuf> {
    let files = [&args.ws_token_file, &args.ws_shared_secret_file];
    let files = files.into_iter().flatten();
    files
        .filter_map(|it| std::path::absolute(it).ok())
        .collect()
}

fn auth(args: &Serve) -> Result<Auth> {
    let token = args.ws_token_file.is_some() || args.ws_token_sha256.is_some();
    match args.ws_auth {
        None if token || args.ws_shared_secret_file.is_some() => {
            bail!(
                "a token or secret is given, but not its kind; add --ws-auth capability-token or signed-bearer-token"
            )
        }
        None => Ok(Auth::Open),
        Some(WsAuth::CapabilityToken) => Ok(Auth::CapabilityToken {
            sha256: token_digest(args)?,
        }),
        Some(WsAuth::SignedBearerToken) => {
            let path = args
                .ws_shared_secret_file
                .as_deref()
                .context("--ws-auth signed-bearer-token needs --ws-shared-secret-file PATH")?;
            // Any bytes are valid, and all of them are significant.
            let secret = read_secret(path)?;
            if secret.len() < SECRET_BYTES_MIN {
                bail!(
                    "{} holds fewer than {SECRET_BYTES_MIN} bytes; put random bytes in it, e.g. with `head -c 32 /dev/urandom`",
                    path.display()
                );
            }
            Ok(Auth::SignedBearer(SignedBearer {
                secret,
                issuer: args.ws_issuer.clone(),
                audience: args.ws_audience.clone(),
                clock_skew: Duration::from_secs(args.ws_max_clock_skew_seconds),
                lifetime_max: Duration::from_secs(args.ws_max_token_lifetime_seconds),
            }))
        }
    }
}

fn token_digest(args: &Serve) -> Result<[u8; 32]> {
    if let Some(hex) = &args.ws_token_sha256 {
        let digest = HEXLOWER_PERMISSIVE.decode(hex.trim().as_bytes()).ok();
        let digest: Option<[u8; 32]> = digest.and_then(|it| it.try_into().ok());
        return digest.context("--ws-token-sha256 must be 64 hex digits");
    }
    let path = args.ws_token_file.as_deref().context(
        "--ws-auth capability-token needs --ws-token-file PATH or --ws-token-sha256 HEX",
    )?;
    let token = read_secret(path)?;
    // Editors append a line end, which a header cannot carry.
    let token = token.trim_ascii();
    if token.len() < TOKEN_BYTES_MIN {
        bail!(
            "the token in {} has fewer than {TOKEN_BYTES_MIN} bytes; put a random one in it, e.g. with `openssl rand -hex 32`",
            path.display()
        );
    }
    Ok(Sha256::digest(token).into())
}

/// Reads a secret file. Warns if other users can read it.
fn read_secret(path: &Path) -> Result<Vec<u8>> {
    use std::os::unix::fs::PermissionsExt;
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o077 != 0 {
        log::print_line(&format!(
            "raddle: warning: others may read {}; chmod 600 it",
            path.display()
        ));
    }
    Ok(bytes)
}
