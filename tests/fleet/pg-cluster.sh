#!/usr/bin/env bash
# A highly available PostgreSQL on loopback for tests: 3 etcd members, N Patroni members (one synchronous standby),
# or one plain server. Everything is under DIR; no system cluster, default port or service is touched.
# Needs Debian's patroni, etcd-server, python3-etcd, postgresql-15 (or PG_BIN=/path/to/bin); bash, iproute2, util-linux.
set -euo pipefail

usage() { cat <<'END'
pg-cluster.sh VERB DIR [options]
  up DIR [--members N] [--ttl S] [--strict] [--tmpfs SIZE]
                     3 etcd + N (default 3) Patroni/Postgres members, synchronous_mode on; waits until a standby is in step
                     --ttl S: leader lease (default 20; loop_wait = retry_timeout = S/4); --strict: no writes without a standby
                     --tmpfs SIZE: each member's data in a tmpfs of that size (root only), to fill it
  single DIR [NAME=VALUE…]
                     one plain Postgres, with these settings
  shared DIR         one plain Postgres for many test processes, without fsync. Whoever holds a shared lock of DIR.users uses
                     it; it starts if it does not run, ends 20 s after the last lock, and prints its DSN
  dsn DIR            libpq DSN of all members, target_session_attrs=read-write   (dsn DIR N: of member N alone)
  leader DIR         number and port of the leader, as etcd has it
  status DIR         members, roles, lag, pids
  kill-leader DIR    kill -9 of the leader's patroni and all its postgres processes; prints the member
  pause-leader DIR   SIGSTOP of the same
  pause-patroni DIR  SIGSTOP of the leader's patroni alone: its postgres stays up and writable
  kill-all DIR       kill -9 of every member, or of the single server; prints nothing
  kill-etcd-leader DIR  kill -9 of the leader of etcd; prints the member
  fill DIR WHICH     fills the disk of the leader or of the sync standby (needs --tmpfs); prints the member
  free DIR           frees the filled disks
  resume DIR         SIGCONT of what is paused, start of what is dead; waits until all are in step
  switch DIR         planned switchover to the sync standby; waits until all are in step
  psql DIR [args]    psql on the leader
  down DIR [--keep]  ends everything and removes DIR (--keep: leaves logs)
Environment: PG_BIN, PG_BASE_PORT (first port tried, default 27400), PG_RUN_AS (user when run as root, default postgres)
END
}
die() { echo "pg-cluster: $*" >&2; exit 1; }
note() { echo "pg-cluster: $*" >&2; }

[ $# -ge 1 ] || { usage >&2; exit 2; }
VERB=$1; shift
case $VERB in -h|--help|help) usage; exit 0;; esac
[ $# -ge 1 ] || die "$VERB needs a folder"
DIR=$(realpath -m -- "$1"); shift
case $DIR in /|/tmp|/home|/root|/var|/etc|/usr) die "$DIR: give a folder of its own";; esac
MARK=$DIR/.pg-cluster
PG_BIN=${PG_BIN:-/usr/lib/postgresql/15/bin}
RUN_AS=${PG_RUN_AS:-postgres}
SCOPE=raddle

if [ "$(id -u)" = 0 ]; then
  getent passwd "$RUN_AS" >/dev/null || die "no user $RUN_AS to run as; set PG_RUN_AS"
  as() { setpriv --reuid="$RUN_AS" --regid="$(id -g "$RUN_AS")" --init-groups env HOME="$DIR" "$@"; }
else
  RUN_AS=$(id -un)
  as() { "$@"; }
fi

load() { [ -f "$MARK" ] || die "$DIR: no cluster here (no .pg-cluster); run up or single"; . "$MARK"; }
ours() { # pid: alive and started for this folder
  [ -n "${1:-}" ] && [ -d "/proc/$1" ] && { tr '\0' ' ' <"/proc/$1/cmdline"; readlink "/proc/$1/cwd"; } 2>/dev/null | grep -F -- "$DIR/" >/dev/null; } # not -q: the writer's SIGPIPE would fail the pipeline
pid_of() { local p; p=$(cat "$DIR/run/$1.pid" 2>/dev/null || true); if ours "$p"; then echo "$p"; fi; }
postmaster() { local p; p=$(head -1 "$DIR/m$1/data/postmaster.pid" 2>/dev/null || true); if ours "$p"; then echo "$p"; fi; }
family() { local pm; pm=$(postmaster "$1"); [ -n "$pm" ] || return 0; echo "$pm"; cat "/proc/$pm/task/$pm/children" 2>/dev/null | tr ' ' '\n' || true; }
member_pids() { pid_of "patroni$1"; family "$1"; }
sig() { local s=$1 p; shift; for p in "$@"; do kill "-$s" "$p" 2>/dev/null || true; done; }
spawn() { # name, command...: in the background, out of our session
  local name=$1; shift
  ( cd "$DIR"; as true; if [ "$(id -u)" = 0 ]; then
      exec setsid setpriv --reuid="$RUN_AS" --regid="$(id -g "$RUN_AS")" --init-groups env HOME="$DIR" "$@"
    else exec setsid "$@"; fi ) >>"$DIR/log/$name.log" 2>&1 </dev/null &
  echo $! >"$DIR/run/$name.pid"; disown; }

free_ports() { # how many, after the base
  local want=$1 p=${PG_BASE_PORT:-27400} got=() busy
  busy=" $(ss -Htan | awk '{n=split($4,a,":"); print a[n]}' | sort -un | tr '\n' ' ') "
  while [ ${#got[@]} -lt "$want" ]; do
    [ "$p" -lt 65000 ] || die "no free ports after ${PG_BASE_PORT:-27400}"
    case $busy in *" $p "*) ;; *) got+=("$p");; esac
    p=$((p + 1))
  done
  echo "${got[@]}"; }

prepare() {
  local tool; for tool in "$@"; do command -v "$tool" >/dev/null || die "no $tool; apt-get install patroni etcd-server python3-etcd postgresql-15 iproute2"; done
  [ -x "$PG_BIN/postgres" ] || die "no postgres in $PG_BIN; apt-get install postgresql-15, or set PG_BIN to the folder of another version"
  if [ -f "$MARK" ]; then die "$DIR: there is a cluster already; down it first"; fi
  if [ -d "$DIR" ] && [ -n "$(ls -A "$DIR")" ]; then die "$DIR is not empty and not ours"; fi
  mkdir -p "$DIR"/{log,run,sock}
  chmod 755 "$DIR"
  if [ "$(id -u)" = 0 ]; then chown -R "$RUN_AS" "$DIR"; fi
  as test -w "$DIR" || { rm -rf -- "$DIR"; die "$RUN_AS cannot reach $DIR; choose a folder whose parents it may enter"; }
  [ ${#DIR} -lt 80 ] || die "$DIR: too long for a unix socket"; }

etcdc() { ETCDCTL_API=3 timeout 5 etcdctl --endpoints="$ENDPOINTS" --dial-timeout=1s --command-timeout=3s "$@" 2>/dev/null; }
leader_name() { etcdc get "/service/$SCOPE/leader" --print-value-only | head -1; }
sync_name() { etcdc get "/service/$SCOPE/sync" --print-value-only | sed -n 's/.*"sync_standby": *"\([^"]*\)".*/\1/p'; }
leader() { local l; l=$(leader_name || true); [ -n "$l" ] || return 1; echo "${l#m}"; }
need_leader() { LEAD=$(leader) || die "no leader now (see $DIR/log)"; }
pg() { # member, sql
  PGCONNECT_TIMEOUT=2 timeout 5 "$PG_BIN/psql" -X -At -h 127.0.0.1 -p "${PG_PORT[$1]}" -U postgres -d postgres -c "$2" 2>/dev/null; }

start_etcd() { local i=$1
  spawn "etcd$i" etcd --name "e$i" --data-dir "$DIR/etcd$i" --listen-client-urls "http://127.0.0.1:${EC_PORT[$i]}" \
    --advertise-client-urls "http://127.0.0.1:${EC_PORT[$i]}" --listen-peer-urls "http://127.0.0.1:${EP_PORT[$i]}" \
    --initial-advertise-peer-urls "http://127.0.0.1:${EP_PORT[$i]}" --initial-cluster "$ETCD_CLUSTER" \
    --initial-cluster-token "$DIR" --initial-cluster-state new --log-level warn; }
start_patroni() { spawn "patroni$1" patroni "$DIR/m$1/patroni.yml"; }

write_config() { local i=$1 hosts; hosts=$(echo "$ENDPOINTS" | sed 's#http://##g')
  mkdir -p "$DIR/m$i"
  if [ -n "$TMPFS" ]; then
    [ "$(id -u)" = 0 ] || die "--tmpfs needs root"
    mkdir -p "$DIR/m$i/fs"; mount -t tmpfs -o "size=$TMPFS,mode=0700,uid=$(id -u "$RUN_AS")" pg-cluster "$DIR/m$i/fs"
    mkdir -p "$DIR/m$i/fs/data"; ln -s fs/data "$DIR/m$i/data"
    chown "$RUN_AS" "$DIR/m$i/fs/data"; chmod 700 "$DIR/m$i/fs/data"
  fi
  cat >"$DIR/m$i/patroni.yml" <<END
scope: $SCOPE
name: m$i
restapi: {listen: "127.0.0.1:${RE_PORT[$i]}", connect_address: "127.0.0.1:${RE_PORT[$i]}"}
etcd3: {hosts: "$hosts"}
bootstrap:
  dcs:
    ttl: $TTL
    loop_wait: $((TTL / 4))
    retry_timeout: $((TTL / 4))
    maximum_lag_on_failover: 1048576
    synchronous_mode: true
    synchronous_mode_strict: $STRICT
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters:
        wal_level: replica
        hot_standby: "on"
        wal_log_hints: "on"
        max_connections: 200
        max_wal_senders: 10
        max_replication_slots: 10
        max_slot_wal_keep_size: ${KEEP}
        wal_keep_size: ${KEEP}
        max_wal_size: ${WALMAX}
        synchronous_commit: "on"
        shared_buffers: ${BUFFERS}
        dynamic_shared_memory_type: mmap
        log_min_messages: warning
        tcp_keepalives_idle: 10
        tcp_keepalives_interval: 3
        tcp_keepalives_count: 3
        tcp_user_timeout: 10000
        wal_sender_timeout: 10000
        wal_receiver_timeout: 10000
  initdb: [{encoding: UTF8}, {locale: C}, data-checksums]
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: "127.0.0.1:${PG_PORT[$i]}"
  connect_address: "127.0.0.1:${PG_PORT[$i]}"
  data_dir: "$DIR/m$i/data"
  bin_dir: "$PG_BIN"
  pgpass: "$DIR/m$i/pgpass"
  authentication: {superuser: {username: postgres}, replication: {username: replicator, password: r}, rewind: {username: rewinder, password: r}}
  parameters: {unix_socket_directories: "$DIR/sock"}
watchdog: {mode: off}
END
  if [ "$(id -u)" = 0 ]; then chown -R "$RUN_AS" "$DIR/m$i"; fi; }

wait_in_step() { # seconds. In step: all stream, and etcd names the standby (until it does, nobody else may be promoted)
  local end=$((SECONDS + $1)) n l
  while [ $SECONDS -lt "$end" ]; do
    if l=$(leader) && [ -n "$(postmaster "$l")" ] && [ "$(pg "$l" 'select pg_is_in_recovery()')" = f ]; then
      n=$(pg "$l" "select count(*) from pg_stat_replication where state='streaming' and application_name ~ '^m[0-9]+\$'" || echo 0)
      if [ "${n:-0}" -ge $((MEMBERS - 1)) ] && { [ "$MEMBERS" = 1 ] || { S=$(sync_name); [ -n "$S" ] && [ "$(pg "$l" "select application_name from pg_stat_replication where sync_state='sync'")" = "$S" ]; }; }; then return 0; fi
    fi
    sleep 0.5
  done
  return 1; }

up() {
  local members=3 i ports
  TTL=20 STRICT=false TMPFS= KEEP=1GB WALMAX=2GB BUFFERS=256MB
  while [ $# -gt 0 ]; do case $1 in
    --members) members=${2:?}; shift 2;; --ttl) TTL=${2:?}; shift 2;; --strict) STRICT=true; shift;;
    --tmpfs) TMPFS=${2:?}; KEEP=64MB WALMAX=96MB BUFFERS=64MB; shift 2;; *) die "up: unknown option $1";; esac; done
  [[ $members =~ ^[1-9]$ ]] || die "--members takes 1 to 9"
  [[ $TTL =~ ^[0-9]+$ && $TTL -ge 8 ]] || die "--ttl takes seconds, at least 8"
  prepare patroni etcd etcdctl ss setsid
  /usr/bin/python3 -c 'import etcd' 2>/dev/null || die "no python3-etcd; apt-get install python3-etcd"
  ports=($(free_ports $((6 + 2 * members))))
  { echo "MODE=ha MEMBERS=$members TTL=$TTL STRICT=$STRICT TMPFS=$TMPFS KEEP=$KEEP WALMAX=$WALMAX BUFFERS=$BUFFERS"
    echo "EC_PORT=(0 ${ports[*]:0:3}) EP_PORT=(0 ${ports[*]:3:3})"
    echo "RE_PORT=(0 ${ports[*]:6:members}) PG_PORT=(0 ${ports[*]:$((6 + members)):members})"
    echo "ENDPOINTS=http://127.0.0.1:${ports[0]},http://127.0.0.1:${ports[1]},http://127.0.0.1:${ports[2]}"
    echo "ETCD_CLUSTER=e1=http://127.0.0.1:${ports[3]},e2=http://127.0.0.1:${ports[4]},e3=http://127.0.0.1:${ports[5]}"
  } >"$MARK"
  load
  for i in 1 2 3; do start_etcd "$i"; done
  for ((i = 0; i < 40; i++)); do if etcdc endpoint health >/dev/null; then break; fi; sleep 0.5; done
  etcdc endpoint health >/dev/null || die "etcd did not come up: $(tail -3 "$DIR"/log/etcd1.log)"
  for ((i = 1; i <= MEMBERS; i++)); do write_config "$i"; start_patroni "$i"; done
  wait_in_step 120 || { tail -n 4 "$DIR"/log/patroni*.log >&2; die "the members did not come into step in 120 s; logs in $DIR/log (down removes them)"; }
  i=$(leader)
  pg "$i" "create role raddle login superuser" >/dev/null || die "cannot make the role raddle"
  pg "$i" "create database raddle owner raddle" >/dev/null || die "cannot make the database raddle"
  note "up: leader m$i on ${PG_PORT[$i]}, sync standby $(sync_name)"; }

single() {
  prepare ss setsid
  local port; port=$(free_ports 1)
  { echo "MODE=single MEMBERS=1 TMPFS="; echo "PG_PORT=(0 $port)"; printf 'SETTINGS=('; for it in "$@"; do printf '%q ' -c "$it"; done; echo ')'; } >"$MARK"; load
  mkdir "$DIR/m1"; if [ "$(id -u)" = 0 ]; then chown "$RUN_AS" "$DIR/m1"; fi
  as "$PG_BIN/initdb" -D "$DIR/m1/data" -U postgres -A trust -E UTF8 --locale=C --data-checksums >"$DIR/log/initdb.log" 2>&1 || die "initdb: $(tail -2 "$DIR/log/initdb.log")"
  start_single
  pg 1 "create role raddle login superuser" >/dev/null && pg 1 "create database raddle owner raddle" >/dev/null || die "cannot make the database"
  note "up: ${PG_PORT[1]}"; }
start_single() { local i
  spawn pg1 "$PG_BIN/postgres" -D "$DIR/m1/data" -p "${PG_PORT[1]}" -h 127.0.0.1 -k "$DIR/sock" -c dynamic_shared_memory_type=mmap \
    -c shared_buffers=256MB -c max_connections=200 -c max_wal_size=2GB "${SETTINGS[@]}"
  for ((i = 0; i < 60; i++)); do if [ -n "$(pg 1 'select 1')" ]; then return; fi; sleep 0.25; done
  die "postgres did not come up: $(tail -3 "$DIR/log/pg1.log")"; }

shared() { # the caller holds a shared lock of $DIR.users
  exec 9>"$DIR.start"; flock 9
  if [ -f "$MARK" ]; then load; if [ -n "$(pg 1 'select 1')" ]; then dsn; return; fi; down >/dev/null 2>&1 || rm -rf -- "$DIR"; fi
  MODE=; single fsync=off full_page_writes=off max_connections=500 >&2 9>&-
  ( exec setsid bash "$0" guard "$DIR" ) >/dev/null 2>&1 </dev/null 9>&- &
  disown
  dsn; }

guard() { # ends the server once nobody has held a lock of $DIR.users for 20 s
  local idle=0
  while [ -f "$MARK" ]; do
    sleep 1
    if flock -n "$DIR.users" true; then idle=$((idle + 1)); else idle=0; fi
    if [ $idle -ge 20 ]; then
      exec 9>"$DIR.start"; flock 9
      # A user that came meanwhile holds its lock before it asks for the server.
      if flock -n "$DIR.users" true; then down; return; fi
      idle=0; flock -u 9
    fi
  done; }

down() {
  local keep=${1:-} i p all=() shm
  load
  for ((i = 1; i <= MEMBERS; i++)); do all+=($(member_pids "$i")); done
  for i in 1 2 3; do all+=($(pid_of "etcd$i")); done
  all+=($(pid_of pg1))
  for ((i = 1; i <= MEMBERS; i++)); do shm+=" $(sed -n 7p "$DIR/m$i/data/postmaster.pid" 2>/dev/null | awk '{print $2}')"; done
  # The data goes anyway: patroni first, so that it starts nothing, then an immediate stop.
  for ((i = 1; i <= MEMBERS; i++)); do sig KILL $(pid_of "patroni$i"); done
  for ((i = 1; i <= MEMBERS; i++)); do p=($(family "$i")); sig CONT "${p[@]:-}"; sig QUIT "${p[0]:-}"; done
  for i in 1 2 3; do sig TERM $(pid_of "etcd$i"); done
  for ((i = 0; i < 40; i++)); do
    p=0; for i2 in "${all[@]:-}"; do if ours "$i2"; then p=1; fi; done
    [ $p = 1 ] || break; sleep 0.1
  done
  for p in "${all[@]:-}"; do if ours "$p"; then sig CONT "$p"; sig KILL "$p"; fi; done
  sleep 0.2
  for p in $shm; do if [[ $(ipcs -m -i "$p" 2>/dev/null | sed -n 's/.*nattch=\([0-9]*\).*/\1/p') = 0 ]]; then ipcrm -m "$p" 2>/dev/null || true; fi; done
  for ((i = 1; i <= MEMBERS; i++)); do if mountpoint -q "$DIR/m$i/fs" 2>/dev/null; then umount "$DIR/m$i/fs" || umount -l "$DIR/m$i/fs"; fi; done
  for p in "${all[@]:-}"; do if ours "$p"; then die "process $p did not end"; fi; done
  if [ "$keep" = --keep ]; then rm -rf -- "$DIR"/m[0-9]* "$DIR"/etcd[0-9]* "$DIR/run" "$DIR/sock" "$MARK"; note "down; logs in $DIR/log"
  else rm -rf -- "$DIR"; note "down, $DIR removed"; fi; }

status() { load
  local i p role
  if [ "$MODE" = ha ]; then echo "leader $(leader_name || echo none), sync standby $(sync_name || true), ttl $TTL"; for i in 1 2 3; do p=$(pid_of "etcd$i"); echo "etcd e$i port ${EC_PORT[$i]} pid ${p:-dead}"; done; fi
  for ((i = 1; i <= MEMBERS; i++)); do
    p=$(postmaster "$i"); role=$(pg "$i" "select case when pg_is_in_recovery() then 'standby, replayed '||coalesce(pg_last_wal_replay_lsn()::text,'-') else 'primary, at '||pg_current_wal_lsn()||', sync names '''||current_setting('synchronous_standby_names')||'''' end" || echo "no answer")
    echo "m$i port ${PG_PORT[$i]} postgres ${p:-dead}$( [ -n "$p" ] && awk '/^State/{print " ("$2")"}' "/proc/$p/status" ) $( [ "$MODE" = ha ] && echo "patroni $(p=$(pid_of patroni$i); echo "${p:-dead}") rest ${RE_PORT[$i]}" ) $role"
  done; }

dsn() { load
  local hosts= ports= i
  if [ -n "${1:-}" ]; then echo "host=127.0.0.1 port=${PG_PORT[$1]} user=raddle dbname=raddle connect_timeout=2"; return; fi
  for ((i = 1; i <= MEMBERS; i++)); do hosts+=,127.0.0.1; ports+=,${PG_PORT[$i]}; done
  echo "host=${hosts#,} port=${ports#,} user=raddle dbname=raddle target_session_attrs=read-write connect_timeout=2"; }

ha() { load; [ "$MODE" = ha ] || die "$VERB is for clusters made with up"; }

kill_all() { load
  local i p all=()
  # Patroni first, so that it starts nothing.
  for ((i = 1; i <= MEMBERS; i++)); do sig KILL $(pid_of "patroni$i"); all+=($(family "$i")); done
  sig KILL "${all[@]:-}"
  # Until init has reaped them: postgres takes a postmaster that is a zombie for a running one.
  for ((i = 0; i < 400; i++)); do
    p=0; for j in "${all[@]:-}"; do if [ -n "$j" ] && [ -d "/proc/$j" ]; then p=1; fi; done
    [ $p = 1 ] || return 0; sleep 0.05
  done; }

kill_etcd_leader() { ha
  local i line
  for i in 1 2 3; do
    line=$(ETCDCTL_API=3 etcdctl --endpoints="http://127.0.0.1:${EC_PORT[$i]}" --dial-timeout=1s --command-timeout=2s endpoint status 2>/dev/null || true)
    if [ "$(echo "$line" | awk -F', ' '{print $5}')" = true ]; then sig KILL "$(pid_of "etcd$i")"; echo "e$i"; return; fi
  done
  die "no etcd leader"; }

fill() { ha
  local m
  [ -n "$TMPFS" ] || die "fill is for clusters made with --tmpfs"
  need_leader
  case ${1:-} in leader) m=$LEAD;; standby) m=$(sync_name); m=${m#m}; [ -n "$m" ] || die "no sync standby";; *) die "fill takes leader or standby";; esac
  head -c 100G /dev/zero 2>/dev/null >"$DIR/m$m/fs/filler" || true
  echo "m$m"; }

free_disks() { ha
  local i
  for ((i = 1; i <= MEMBERS; i++)); do rm -f "$DIR/m$i/fs/filler"; done; }

resume() { load
  local i
  if [ "$MODE" != ha ]; then
    sig CONT $(family 1)
    if [ -z "$(postmaster 1)" ]; then start_single; fi
    return
  fi
  for ((i = 1; i <= MEMBERS; i++)); do sig CONT $(member_pids "$i"); done
  for i in 1 2 3; do if [ -z "$(pid_of "etcd$i")" ]; then start_etcd "$i"; fi; done
  for ((i = 1; i <= MEMBERS; i++)); do if [ -z "$(pid_of "patroni$i")" ]; then start_patroni "$i"; fi; done
  wait_in_step $((TTL + 90)) || die "not in step after $((TTL + 90)) s; see $DIR/log"
  echo "leader m$(leader)"; }

case $VERB in
  up) up "$@";;
  single) single "$@";;
  shared) shared;;
  guard) guard;;
  down) down "$@";;
  status) status;;
  dsn) dsn "$@";;
  leader) ha; need_leader; echo "m$LEAD ${PG_PORT[$LEAD]}";;
  kill-leader) ha; need_leader; sig KILL $(pid_of "patroni$LEAD"); P=($(family "$LEAD")); sig KILL "${P[@]:-}"; echo "m$LEAD";;
  pause-leader) ha; need_leader; sig STOP $(pid_of "patroni$LEAD"); P=($(family "$LEAD")); sig STOP "${P[@]:-}"; echo "m$LEAD";;
  pause-patroni) ha; need_leader; sig STOP $(pid_of "patroni$LEAD"); echo "m$LEAD";;
  kill-all) kill_all;;
  kill-etcd-leader) kill_etcd_leader;;
  fill) fill "$@";;
  free) free_disks;;
  resume) resume;;
  switch) ha; need_leader; T=$(sync_name); [ -n "$T" ] || die "no sync standby to switch to"
    curl -fsS -m 60 -XPOST -d "{\"leader\":\"m$LEAD\",\"candidate\":\"$T\"}" "http://127.0.0.1:${RE_PORT[$LEAD]}/switchover" || die "patroni refused"; echo
    wait_in_step $((TTL + 60)) || die "not in step after the switch";;
  psql) load; if [ "$MODE" = ha ]; then need_leader; else LEAD=1; fi
    exec "$PG_BIN/psql" -X -h 127.0.0.1 -p "${PG_PORT[$LEAD]}" -U raddle -d raddle "$@";;
  *) usage >&2; die "unknown verb $VERB";;
esac
