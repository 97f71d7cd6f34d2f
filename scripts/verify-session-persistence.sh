#!/usr/bin/env bash
# Checks on this very machine that sessions outlive what they should outlive.
#
#   scripts/verify-session-persistence.sh            with the abide on PATH, or the one that cargo built for release
#   scripts/verify-session-persistence.sh ./abide    with that one
#
# Uses a state directory and a configuration of its own and touches nothing of yours; what it starts, it ends. Each step says
# [PASS], [FAIL], or [SKIP] with the reason. Exits with 1 if any step failed.
set -uo pipefail

passed=0 failed=0 skipped=0 number=0

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    green=$'\033[32m' red=$'\033[31m' yellow=$'\033[33m' plain=$'\033[0m'
else
    green='' red='' yellow='' plain=''
fi

step() { number=$((number + 1)) && printf '\n%2d. %s\n' "$number" "$*"; }
tell() { printf '    %s\n' "$*"; }
pass() { passed=$((passed + 1)) && printf '    %s[PASS]%s %s\n' "$green" "$plain" "$*"; }
fail() { failed=$((failed + 1)) && printf '    %s[FAIL]%s %s\n' "$red" "$plain" "$*"; }
skip() { skipped=$((skipped + 1)) && printf '    %s[SKIP]%s %s\n' "$yellow" "$plain" "$*"; }

# check "what must hold" command…
check() {
    local what=$1
    shift
    if "$@" >/dev/null 2>&1; then pass "$what"; else fail "$what"; fi
}

summary() {
    printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    [ "$failed" = 0 ]
}

root=$(cd "$(dirname "$0")/.." && pwd)
abide=${1:-$(command -v abide || ls -t "$root"/target/*/release/abide 2>/dev/null | head -n 1)}
if [ ! -x "$abide" ]; then
    echo "there is no abide: put it on PATH, build it with \`cargo build --release\`, or name it as the argument" >&2
    exit 2
fi
abide=$(cd "$(dirname "$abide")" && pwd)/$(basename "$abide")

scratch=$(mktemp -d "${TMPDIR:-/tmp}/abide-verify.XXXXXX")
login_unit=abide-verify-login-$$.scope
export ABIDE_HOME=$scratch/home XDG_CONFIG_HOME=$scratch/config
unset ABIDE_INSTANCE ABIDE_SESSION ABIDE_LOG

# What was started from here and still runs: whatever has our state directory in its environment.
ours() {
    env -u ABIDE_HOME grep -lzxF "ABIDE_HOME=$ABIDE_HOME" /proc/[0-9]*/environ 2>/dev/null | env -u ABIDE_HOME tr -dc '0-9\n'
}

cleanup() {
    local pid
    systemctl --user stop "$login_unit" >/dev/null 2>&1
    for pid in $(ours); do kill -KILL "$pid" 2>/dev/null; done
    rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# An agent that says who it is and echoes what it hears.
mkdir -p "$scratch/work" "$XDG_CONFIG_HOME"
cat >"$scratch/stub" <<'STUB'
#!/bin/sh
echo "stub $$ is ready"
while IFS= read -r line; do echo "heard: $line"; done
STUB
chmod +x "$scratch/stub"
cd "$scratch/work" || exit 2

# Gives the id in what `abide load` printed.
id_in() { sed -n 's/^ab-\([0-9a-z]\{8\}\) .*/\1/p'; }
load() { "$abide" load "$scratch/stub" --detach | id_in; }
field() { "$abide" capsule call "$1" '{"verb": "status"}' | sed -n "s/^ *\"$2\": \([0-9]*\),*\$/\1/p" | head -n 1; }
cgroup() { sed -n 's/^0:://p' "/proc/$1/cgroup"; }
state() { "$abide" ls --json | grep -A 12 "\"id\": \"$1\"" | grep -E '"(state|reason)"' | sed 's/.*: //; s/[",]//g' | paste -sd ' '; }
runs() { [ -d "/proc/$1" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }

# Whether the session of instance $1 hears and answers.
answers() {
    local word=$RANDOM$RANDOM
    "$abide" send "$1" "$word" && "$abide" wait "$1" --text "heard: $word" --timeout 20
}

# Waits up to 20 s until a command succeeds.
until_true() {
    local tries
    for tries in $(seq 200); do
        if "$@"; then return 0; fi
        sleep 0.1
    done
    return 1
}
gone() { ! runs "$1"; }
nothing_left() { [ -z "$(ours)" ]; }
attached() { [ "$(field "$1" attached)" = 1 ]; }
detached() { [ "$(field "$1" attached)" = 0 ]; }

echo "abide: $abide ($("$abide" --version))"

step "A session starts"
id=$(load)
if [ -z "$id" ]; then
    fail "abide load"
    summary
    exit 1
fi
check "it answers" answers "$id"
keeper=$(field "$id" keeper_pid) session=$(field "$id" pid)
tell "keeper $keeper, session $session"
tell "/proc/$keeper/cgroup: $(cgroup "$keeper")"

step "It is where it was decided to be"
isolation=$("$abide" explain "$id" | sed -n 's/^ *cgroup isolation: //p')
tell "cgroup isolation: $isolation"
case $isolation in
enabled*) check "the keeper is in its own unit" grep -q "/abide-$id.scope\$" "/proc/$keeper/cgroup" ;;
unavailable*"not run by systemd"*) skip "no systemd here: a plain daemon is all there is" ;;
unavailable*) skip "no unit here; \`abide doctor\` says what to do about it" ;;
*) fail "a unit was wanted and is not there" ;;
esac

step "Its client is killed"
if command -v script >/dev/null; then
    mkfifo "$scratch/keys"
    (TERM=xterm script -qec "'$abide' hardline '$id'" /dev/null <>"$scratch/keys" >/dev/null 2>&1 &)
    check "a client is attached" until_true attached "$id"
    pkill -KILL -f "^$abide hardline $id"
    check "it is attached no more" until_true detached "$id"
    check "the session answers" answers "$id"
    check "it is the same process" runs "$session"
else
    skip "there is no \`script\` to give a client a terminal"
fi

step "Its multiplexer is killed"
mux=$(field "$id" mux_pid)
tell "mux $mux"
kill -KILL "$mux"
check "the session answers" answers "$id"
check "it is the same process" test "$(field "$id" pid)" = "$session"
check "there is another multiplexer" test "$(field "$id" mux_pid)" != "$mux"

step "The terminal session that started it ends"
(setsid bash -c "echo \$\$ >'$scratch/leader'; '$abide' load '$scratch/stub' --detach >'$scratch/second'; exec sleep 1000" </dev/null &)
until_true test -s "$scratch/second"
second=$(id_in <"$scratch/second") leader=$(cat "$scratch/leader")
tell "session leader $leader"
pkill -HUP -s "$leader" && pkill -KILL -s "$leader"
check "the leader is gone" until_true gone "$leader"
check "the session answers" answers "$second"
"$abide" eject "$second" --clean >/dev/null

step "The login that started it ends (a scope of the user manager stands for the login)"
if ! systemctl --user show-environment >/dev/null 2>&1; then
    skip "no user manager answers here"
elif [[ $isolation != enabled* ]]; then
    skip "sessions have no unit of their own here: $isolation"
else
    systemd-run --user --scope --quiet --unit="$login_unit" \
        bash -c "'$abide' load '$scratch/stub' --detach >'$scratch/third'; sleep 1000 & disown" </dev/null
    third=$(id_in <"$scratch/third")
    other=$(field "$third" keeper_pid)
    tell "keeper $other, /proc/$other/cgroup: $(cgroup "$other")"
    systemctl --user stop "$login_unit"
    check "the login is gone" bash -c "! systemctl --user is-active --quiet '$login_unit'"
    check "the session answers" answers "$third"
    "$abide" eject "$third" --clean >/dev/null
fi

step "It is stopped, and comes back"
"$abide" stop "$id" >/dev/null
check "no process is left" until_true nothing_left
tell "state: $(state "$id")"
check "it is restorable" test "$(state "$id")" = "restorable stopped"
"$abide" resume "$id" --detach >/dev/null
check "it is active" test "$(state "$id")" = "active null"
check "the session answers" answers "$id"

step "Its keeper is killed"
keeper=$(field "$id" keeper_pid)
kill -KILL "$keeper"
check "no process is left" until_true nothing_left
tell "state: $(state "$id")"
check "it is restorable" test "$(state "$id")" = "restorable crashed"

step "It is ended for good"
"$abide" eject "$id" --clean >/dev/null
check "no process is left" until_true nothing_left
check "it is listed no more" test -z "$(state "$id")"
if systemctl --user show-environment >/dev/null 2>&1; then
    check "no unit is left" test -z "$(systemctl --user list-units --all --plain --no-legend "abide-$id*")"
fi

summary
