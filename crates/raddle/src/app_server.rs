//! `raddle app-server`: doors in front, the server behind, and an orderly end.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use raddle_core::{Recovery, ThreadSource};
use raddle_rpc::{
    Auth, ConnectionLimits, DataLoss, ListenAddress, Listener, Listeners, SignedBearer, Transport,
    raise_descriptor_limit, stdin_end,
};
use raddle_sandbox::{MeasureFn, environment};
use raddle_server::{Options, Override, Server};
use sha2::{Digest, Sha256};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};

use crate::cli::{RecoverBy, Serve, SessionSource, WsAuth};
use crate::home::Home;
use crate::log;
use crate::model::VendorClient;
use crate::rules::RuleStore;
use crate::sandbox;
use crate::threads;

/// The shortest secret that signed tokens may use.
const SECRET_BYTES_MIN: usize = 32;

/// The shortest capability token. Anything that can be guessed is none.
const TOKEN_BYTES_MIN: usize = 16;

/// How many connections of other processes may wait to be taken.
const RELAYED: usize = 16;

/// Whoever wants to know how far a server is.
pub(crate) trait Lifecycle {
    /// It takes clients, here.
    fn ready(&mut self, addresses: &[String]) -> Result<()>;
    /// It takes no more, and finishes what it has.
    fn ending(&mut self);
    /// What is done about once a second for as long as it runs, from a thread of its own.
    fn heartbeat(&self) -> Box<dyn FnMut() + Send> {
        Box::new(|| {})
    }
}

/// Nobody wants to know.
pub(crate) struct NoLifecycle;

impl Lifecycle for NoLifecycle {
    fn ready(&mut self, _addresses: &[String]) -> Result<()> {
        Ok(())
    }

    fn ending(&mut self) {}
}

/// Serves until the parent closes stdin or a signal says to stop.
pub(crate) fn run(
    mut overrides: Vec<Override>,
    args: &Serve,
    told: &mut dyn Lifecycle,
) -> Result<()> {
    disable_core_dumps()?;
    let home = Home::find()?;
    let auth = auth(args)?;
    let rules = RuleStore::open(&home)?;
    for warning in rules.warnings() {
        log::print_line(&format!("raddle: warning: {warning}"));
    }
    overrides.extend(args.config.iter().cloned());
    let desk = Arc::new(VendorClient::new(&home.state, Some(rules.clone())));
    let options = Options {
        source: source(args.session_source),
        secrets: secrets(args),
        measure_sandbox: Some(MeasureFn::new(sandbox::measuring(
            &home,
            overrides.clone(),
        )?)),
        overrides,
        login_shell: true,
        peers: Some(threads::local_peers(&home.state)),
        vendors: Some(desk.clone()),
        ..Options::new(home.paths())
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let wanted = doors(args, &home, &auth);
    let recovery = recovery(args.recovery, &wanted);
    let ground = ThreadDeps {
        home: &home,
        rules,
        recovery,
        vendor_client: &desk,
    };
    let outcome = runtime.block_on(serve(options, wanted, ground, told));
    // A thread may be stuck in a read of stdin; it must not keep the process.
    runtime.shutdown_timeout(Duration::ZERO);
    outcome
}

/// The keys of models are in our environment, and commands of the same user must not find them there.
/// `RADDLE_DUMPABLE=1` is for whoever wants to debug the server.
pub(crate) fn disable_core_dumps() -> Result<()> {
    if std::env::var_os("RADDLE_DUMPABLE").is_some_and(|value| value == "1") {
        return Ok(());
    }
    environment::set_undumpable().context("cannot hide the environment from other processes")
}

/// What becomes of turns whose owner died. Whoever started a child on stdio is gone when it died, unless they say
/// otherwise; a server that others reach goes on.
fn recovery(said: Option<RecoverBy>, doors: &[Listener]) -> Recovery {
    let is_child = matches!(doors, [door] if door.listen == ListenAddress::Stdio);
    match said {
        Some(RecoverBy::Continue) => Recovery::Continue,
        Some(RecoverBy::Interrupt) => Recovery::Interrupt,
        None if is_child => Recovery::Interrupt,
        None => Recovery::Continue,
    }
}

fn source(said: SessionSource) -> ThreadSource {
    match said {
        SessionSource::Cli => ThreadSource::Cli,
        SessionSource::Vscode => ThreadSource::Editor,
        SessionSource::Exec => ThreadSource::Exec,
        SessionSource::AppServer => ThreadSource::AppServer,
    }
}

/// What the threads stand on.
struct ThreadDeps<'a> {
    home: &'a Home,
    rules: RuleStore,
    recovery: Recovery,
    vendor_client: &'a VendorClient,
}

async fn serve(
    options: Options,
    wanted: Vec<Listener>,
    ground: ThreadDeps<'_>,
    told: &mut dyn Lifecycle,
) -> Result<()> {
    let on_stdio = wanted
        .iter()
        .any(|door| door.listen == ListenAddress::Stdio);
    let ThreadDeps {
        home,
        rules,
        recovery,
        vendor_client: desk,
    } = ground;
    let has_others = wanted.len() > usize::from(on_stdio);
    let (hatch, mut relayed) = mpsc::channel(RELAYED);
    let mut server = Server::open(options, |ground| {
        threads::open(&home.state, ground, rules, recovery, desk, hatch)
    })?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let (board, mut callers) = server.status_pages();
    let mut doors = Listeners::new();
    for door in wanted {
        let board = Some(board.clone());
        doors
            .open(Listener {
                admin_pages: board,
                ..door
            })
            .await?;
    }
    let watch = doors.watch(&board.blocked_page(), told.heartbeat());
    let _watch = watch.context("cannot watch over the server")?;
    told.ready(doors.addresses())?;
    for banner in doors.banners() {
        log::print_line(&format!("raddle: {banner}"));
    }
    if on_stdio && std::io::stdin().is_terminal() {
        log::print_line(
            "raddle: app-server speaks JSON-RPC on stdin and stdout, one message per line; press Ctrl-D to end",
        );
    }

    let mut parent: Option<Parent> = None;
    loop {
        tokio::select! {
            Some(connection) = doors.next() => {
                let from_parent = connection.peer.transport == Transport::Stdio;
                let loss = connection.loss.clone();
                let ended = server.serve(connection);
                if from_parent {
                    parent = Some(Parent { ended, loss });
                }
            }
            Some(caller) = callers.recv() => drop(server.serve(caller)),
            Some(connection) = relayed.recv() => drop(server.serve(connection)),
            () = gone(&mut parent) => match parent.take() {
                // Its answers were not taken, and that is no reason to send others away. That it has ended is.
                Some(Parent { loss, .. }) if has_others && loss.why().is_some() => {
                    let why = loss.why().unwrap_or_default();
                    tracing::warn!(why, "the connection to the parent is over; others go on");
                    parent = Some(Parent { ended: last_of_stdin(), loss: DataLoss::default() });
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

    told.ending();
    doors.close();
    drop(relayed);
    tracing::info!(
        connections = server.connections(),
        "draining; a second signal ends at once"
    );
    let drained = async { tokio::join!(server.drain(), doors.shutdown()) };
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

/// The process that started us.
struct Parent {
    /// Closed when its connection has ended.
    ended: watch::Receiver<()>,
    loss: DataLoss,
}

/// Resolves when the process that started us has closed its end. Without one, never.
async fn gone(parent: &mut Option<Parent>) {
    match parent {
        Some(parent) => while parent.ended.changed().await.is_ok() {},
        None => std::future::pending().await,
    }
}

/// Closes when stdin has ended, whoever reads it.
fn last_of_stdin() -> watch::Receiver<()> {
    let (ended, when_ended) = watch::channel(());
    tokio::spawn(async move {
        stdin_end().await;
        drop(ended);
    });
    when_ended
}

/// Two threads are plenty for moving bytes, and each one costs memory at rest.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8))
}

fn doors(args: &Serve, home: &Home, auth: &Auth) -> Vec<Listener> {
    let mut listens = args.listen.clone();
    if args.stdio && !listens.contains(&ListenAddress::Stdio) {
        listens.push(ListenAddress::Stdio);
    }
    if listens.is_empty() {
        listens.push(ListenAddress::Stdio);
    }
    // There is one stdin, however often it is asked for.
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

/// The files that say who may come in.
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
            // Any bytes will do, and all of them count.
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
        return unhex(hex.trim()).context("--ws-token-sha256 must be 64 hex digits");
    }
    let path = args.ws_token_file.as_deref().context(
        "--ws-auth capability-token needs --ws-token-file PATH or --ws-token-sha256 HEX",
    )?;
    let token = read_secret(path)?;
    // Editors add a line end, and a header cannot carry one.
    let token = token.trim_ascii();
    if token.len() < TOKEN_BYTES_MIN {
        bail!(
            "the token in {} has fewer than {TOKEN_BYTES_MIN} bytes; put a random one in it, e.g. with `openssl rand -hex 32`",
            path.display()
        );
    }
    Ok(Sha256::digest(token).into())
}

/// What a secret file holds.
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

fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}
