# Sourced by the scripts of this folder: versions, folders and the few functions they share.
# shellcheck shell=bash disable=SC2034 # what is set here is used elsewhere

KAFKA_VERSION=4.4.0
LOG4J_VERSION=2.25.1
DEFAULT_POSTGRES=17
ALL_POSTGRES=(14 15 16 17 18)

DEV="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

# What is fetched once and used by every run. PostgreSQL does not run as root, and the user it runs
# as instead cannot look into root's home: then its programs lie where everybody can read them.
CACHE="${OUTBOXD_CACHE:-$HOME/.cache/outboxd}"
KAFKA_JARS="$CACHE/kafka-$KAFKA_VERSION"
if [[ $EUID = 0 ]]; then
  POSTGRES_HOME=/var/cache/outboxd
  AS_POSTGRES=(setpriv --reuid=nobody --regid="$(id -g nobody)" --clear-groups)
else
  POSTGRES_HOME="$CACHE"
  AS_POSTGRES=()
fi

# postgres_release MAJOR: the full version for a major one, pinned so that runs repeat.
postgres_release() {
  case "$1" in
    14) echo 14.24.0 ;;
    15) echo 15.19.0 ;;
    16) echo 16.15.0 ;;
    17) echo 17.11.0 ;;
    18) echo 18.6.0 ;;
    *) die "PostgreSQL versions are ${ALL_POSTGRES[*]}, not '$1'" ;;
  esac
}

die() {
  echo "${0##*/}: $*" >&2
  exit 1
}

say() { echo "${0##*/}: $*" >&2; }

# help: prints the header comment of the running script.
help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; }

# free_port: a port nobody listens on, from below the range (32768 and up) that the kernel takes
# for outgoing connections. Otherwise a client that keeps trying a stopped server can be given that
# very port as its own, and the server cannot come back.
free_port() {
  perl -MIO::Socket::INET -e '
    for (1 .. 1000) {
      my $port = 15000 + int rand 17000;
      next unless IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1", LocalPort => $port);
      print "$port\n";
      exit;
    }
    die "no free port\n"'
}

# runs PID TEXT: whether the process lives and its command line holds TEXT, so that a process that
# got an old id by chance is never taken for ours.
runs() { tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" | grep -qF -- "$2"; }

# await SECONDS COMMAND...: repeats the command until it succeeds; fails after that time.
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}
