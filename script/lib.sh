# Sourced by the scripts of this folder: where things are, and how messages look.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=$(basename "$0")
venv=$root/build/venv

say() { printf '%s: %s\n' "$name" "$*" >&2; }

# die STATUS MESSAGE: 1 a check failed, 2 wrong use, 3 the machine lacks something.
die() {
  say "error: $2"
  exit "$1"
}

# timed WHAT COMMAND...: runs the command and says how long it took.
timed() {
  local what=$1 begin=$SECONDS status=0
  shift
  "$@" || status=$?
  say "$what: $((SECONDS - begin)) s"
  return $status
}

# The parallel jobs of a build: one per core, as far as each has 1.5 GiB of memory.
jobs_of_this_machine() {
  local cores memory_gib jobs
  cores=$(nproc)
  memory_gib=$(awk '/MemAvailable/ { print int($2 / 1048576) }' /proc/meminfo)
  jobs=$((memory_gib * 2 / 3))
  [ "$jobs" -lt 1 ] && jobs=1
  [ "$jobs" -gt "$cores" ] && jobs=$cores
  echo "$jobs"
}
