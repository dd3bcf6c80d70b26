#!/bin/sh
# Says in under a second, before anything is installed, when no jail can work on this machine: exit 4, else 0.
# The fleet's own self-check remains the judge; this asks only whether bubblewrap gets its namespaces and its /proc,
# or, where [jail] names Docker, whether an engine's socket is there. $1: another /proc to read the reasons from.
set -u
proc=${1:-/proc}
socket=${DOCKER_HOST:-unix:///run/docker.sock}
socket=${socket#unix://}

fact() { cat "$proc/$1" 2>/dev/null; }

engine() { [ -S "$socket" ] && [ -w "$socket" ]; }

# As the user of the jails: a fleet of root's starts them as this one too.
as_user() {
  if [ "$(id -u)" = 0 ] && setpriv --reuid 64738 --regid 64738 --clear-groups true 2>/dev/null; then
    setpriv --reuid 64738 --regid 64738 --clear-groups "$@"
  else
    "$@"
  fi
}

backend() {
  case ${QA_FLEET_JAIL:-} in
    *docker*) echo docker ;;
    "") sed -n "/^\[jail\]/,/^\[[^j]/s/^backend *= *\"\([a-z]*\)\".*/\1/p" "${CONFIGURATION_DIRECTORY:-config}/fleet.toml" 2>/dev/null ;;
  esac
}

if [ "$(backend)" = docker ]; then
  engine && exit 0
  reason="[jail] backend is docker, and $socket is not a socket that this user may write to"
elif command -v bwrap >/dev/null; then # itself: an AppArmor profile may permit it, and nothing else
  trial="bwrap --unshare-all --unshare-user --ro-bind / /" with_proc="--proc /proc --"
elif command -v unshare >/dev/null; then
  trial="unshare --user --map-root-user --pid --fork" with_proc=--mount-proc
else
  exit 0 # cannot tell
fi

if [ -n "${reason:-}" ]; then
  :
elif ! as_user $trial true 2>/dev/null; then
  if [ "$(fact sys/kernel/apparmor_restrict_unprivileged_userns)" = 1 ]; then
    reason="AppArmor denies user namespaces to programs without a profile (Ubuntu 23.10 and later:
  kernel.apparmor_restrict_unprivileged_userns=1)"
  elif [ "$(fact sys/kernel/unprivileged_userns_clone)" = 0 ]; then
    reason="the kernel denies user namespaces to ordinary users (kernel.unprivileged_userns_clone=0)"
  elif [ "$(fact sys/user/max_user_namespaces)" = 0 ]; then
    reason="user namespaces are switched off (user.max_user_namespaces=0)"
  elif fact self/status | grep -q '^Seccomp:[[:space:]]*2'; then
    reason="a seccomp filter denies user namespaces, such as the default one of a container"
  else
    reason="user namespaces are denied here"
  fi
elif ! as_user $trial $with_proc true 2>/dev/null; then
  if fact self/mountinfo | grep -q ' /proc/sys ro'; then
    reason="/proc/sys is read-only here, as in a container: the kernel then refuses a jail's own /proc"
  else
    reason="parts of /proc are masked, as in a container: the kernel then refuses a jail's own /proc"
  fi
else
  exit 0
fi

there="not found at $socket"
engine && there="found: $socket"
cat >&2 <<END
qa-fleet: no jail can work on this machine, and the fleet runs nothing without one.
  $reason.
Two remedies, in docs/containers.md:
  1. let bubblewrap make namespaces: on Ubuntu an AppArmor profile, in a container the flags of config/seccomp.json;
  2. Docker's engine makes the jails: QA_FLEET_JAIL='{ backend = "docker" }' (engine: $there).
END
exit 4
