#!/usr/bin/env bash
# Checks on this very machine that sessions outlive what they should outlive, and that a restart brings conversations back.
#
#   scripts/verify-session-persistence.sh            with the abide on PATH, or the one that cargo built for release
#   scripts/verify-session-persistence.sh ./abide    with that one
#
# Uses a state directory, a configuration, a tmux server and an agent of its own and touches nothing of yours; what it starts, it
# ends. Each check prints [PASS], [FAIL], or [SKIP] with the reason. Exits with 1 if any check failed.
set -uo pipefail

passed=0 failed=0 skipped=0 number=0

if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    green=$'\033[32m' red=$'\033[31m' yellow=$'\033[33m' bold=$'\033[1m' plain=$'\033[0m'
else
    green='' red='' yellow='' bold='' plain=''
fi

info() { printf '    %s\n' "$*"; }
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
    if [ "$failed" = 0 ]; then
        printf '%s[PASS]%s sessions on this machine persist\n' "$green" "$plain"
    else
        printf '%s[FAIL]%s see above\n' "$red" "$plain"
        return 1
    fi
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
export ABIDE_HOME=$scratch/home XDG_CONFIG_HOME=$scratch/config CLAUDE_CONFIG_DIR=$scratch/claude TMUX_TMPDIR=$scratch/tmux
export PATH=$scratch/bin:$PATH
unset ABIDE_INSTANCE ABIDE_SESSION ABIDE_LOG TMUX

# The processes that were started from here and still run: those that have our state directory in their environment.
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

# A stand-in for claude: it takes the id of a conversation as claude does, keeps the conversation where claude does, says that it
# is idle as claude does, and repeats what it hears.
mkdir -p "$scratch/work" "$scratch/bin" "$scratch/tmux" "$XDG_CONFIG_HOME"
chmod 700 "$scratch/tmux"
cat >"$scratch/bin/claude" <<'STUB'
#!/bin/sh
for word; do
    case $before in --session-id | --resume) id=$word ;; esac
    before=$word
done
turns=$CLAUDE_CONFIG_DIR/projects/$(pwd -P | sed 's/[^a-zA-Z0-9]/-/g')
mkdir -p "$turns" "$CLAUDE_CONFIG_DIR/sessions"
start=$(sed 's/.*) //' /proc/$$/stat | cut -d' ' -f20)
printf '{"pid":%s,"procStart":"%s","sessionId":"%s","status":"idle"}' $$ "$start" "$id" >"$CLAUDE_CONFIG_DIR/sessions/$$.json"
echo "claude $$ is ready"
while IFS= read -r line; do
    printf '{"type":"user","isSidechain":false,"cwd":"%s","sessionId":"%s","message":{"content":"%s"}}\n' \
        "$(pwd -P)" "$id" "$line" >>"$turns/$id.jsonl"
    echo "heard: $line"
done
STUB
chmod +x "$scratch/bin/claude"
cd "$scratch/work" || exit 2

# Gives the id in what `abide load` printed.
id_in() { sed -n 's/^ab-\([0-9a-z]\{8\}\) .*/\1/p'; }
# What starts an instance, as words for a shell: it is also run by other processes than this one.
load_command() { echo "'$abide' load claude --new --detach --substrate $substrate"; }
status_field() { "$abide" capsule call "$1" '{"verb": "status"}' | sed -n "s/^ *\"$2\": \([0-9]*\),*\$/\1/p" | head -n 1; }
tmux_server() { tmux -L abide display-message -p '#{pid}' 2>/dev/null; }
listed() { "$abide" ls --json | grep -A 40 "\"id\": \"$1\""; }
session_pid() { listed "$1" | sed -n 's/^ *"pid": \([0-9]*\),*$/\1/p' | head -n 1; }
conversation() { listed "$1" | sed -n 's/^ *"conversation": "\(.*\)",*$/\1/p' | head -n 1; }
state() { listed "$1" | grep -E '"(state|reason)"' | head -n 2 | sed 's/.*: //; s/[",]//g' | paste -sd ' '; }
cgroup() { sed -n 's/^0:://p' "/proc/$1/cgroup"; }
runs() { [ -d "/proc/$1" ] && ! grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null; }

# The process that holds the sessions of instance $1.
holder() { if [ "$substrate" = tmux ]; then tmux_server; else status_field "$1" keeper_pid; fi; }
clients() { if [ "$substrate" = tmux ]; then tmux -L abide list-clients | wc -l; else status_field "$1" attached; fi; }

# Whether the session of instance $1 hears and answers.
answers() {
    local word=$RANDOM$RANDOM
    "$abide" send "$1" "$word" && "$abide" wait "$1" --text "heard: $word" --timeout 20
}

# Shows the exact command line of the agent of instance $1, and checks that it names conversation $3 with option $2.
check_command_line() {
    local line
    line=$(tr '\0' ' ' <"/proc/$(session_pid "$1")/cmdline" | sed 's/ $//')
    info "command line: $(sed "s/--resume [^ ]*\|--session-id [^ ]*/$bold&$plain/" <<<"$line")"
    check "it was started with $2" grep -qF -- " $2 $3" <<<"$line"
    if [ "$2" = --resume ]; then
        check "it was not started with --session-id" bash -c "! grep -qF -- --session-id <<<'$line'"
    else
        check "it was not started with --resume" bash -c "! grep -qF -- --resume <<<'$line'"
    fi
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
attached() { [ "$(clients "$1")" = 1 ]; }
detached() { [ "$(clients "$1")" = 0 ]; }
user_manager() { systemctl --user show-environment >/dev/null 2>&1; }

starts() {
    id=$(eval "$(load_command)" | id_in)
    if [ -z "$id" ]; then
        fail "abide load"
        return
    fi
    check "it answers" answers "$id"
    talk=$(conversation "$id") session=$(session_pid "$id")
    info "$(if [ "$substrate" = tmux ]; then echo "tmux server"; else echo keeper; fi) $(holder "$id"), session $session, conversation $talk"
    check_command_line "$id" --session-id "$talk"
}

is_placed() {
    local pid
    pid=$(holder "$id")
    info "/proc/$pid/cgroup: $(cgroup "$pid")"
    isolation=$("$abide" explain "$id" | sed -n 's/^ *cgroup isolation: //p')
    info "cgroup isolation: $isolation"
    local unit=abide-$id.scope
    [ "$substrate" = capsule ] || unit=abide-tmux.scope
    case $isolation in
    enabled*) check "it is in a unit of its own, not in the login's" grep -q "/user@.*/$unit\$" "/proc/$pid/cgroup" ;;
    unavailable*"not run by systemd"*) skip "no systemd here: a plain daemon is all there is" ;;
    unavailable*) skip "no unit here; \`abide doctor\` says what to do about it" ;;
    *) fail "a unit was wanted and is not there" ;;
    esac
}

client_is_killed() {
    if ! command -v script >/dev/null; then
        skip "there is no \`script\` to give a client a terminal"
        return
    fi
    mkfifo "$scratch/keys.$substrate"
    (TERM=xterm script -qec "'$abide' hardline '$id'" /dev/null <>"$scratch/keys.$substrate" >/dev/null 2>&1 &)
    check "a client is attached" until_true attached "$id"
    pkill -KILL -f "^$abide hardline $id"
    [ "$substrate" = capsule ] || pkill -KILL -f "^tmux .*$scratch.* attach-session"
    check "it is attached no more" until_true detached "$id"
    check "the session answers" answers "$id"
    check "it is the same process" test "$(session_pid "$id")" = "$session"
}

multiplexer_is_killed() {
    local mux
    mux=$(status_field "$id" mux_pid)
    info "mux $mux"
    kill -KILL "$mux"
    check "the session answers" answers "$id"
    check "it is the same process" test "$(session_pid "$id")" = "$session"
    check "there is another multiplexer" test "$(status_field "$id" mux_pid)" != "$mux"
}

# The next one to start an instance is also the one to start the tmux server.
end_server() { [ "$substrate" = capsule ] || { "$abide" stop "$id" >/dev/null && until_true nothing_left; }; }
restart_server() { [ "$substrate" = capsule ] || "$abide" resume "$id" --detach >/dev/null; }

terminal_session_ends() {
    local second leader
    end_server
    rm -f "$scratch/leader" "$scratch/second"
    (setsid bash -c "echo \$\$ >'$scratch/leader'; $(load_command) >'$scratch/second'; exec sleep 1000" </dev/null &)
    until_true test -s "$scratch/second"
    second=$(id_in <"$scratch/second") leader=$(cat "$scratch/leader")
    info "session leader $leader"
    pkill -HUP -s "$leader" && pkill -KILL -s "$leader"
    check "the leader is gone" until_true gone "$leader"
    check "the session answers" answers "$second"
    "$abide" eject "$second" --clean >/dev/null
    restart_server
}

login_ends() {
    local third pid
    if ! user_manager; then
        skip "no user manager answers here"
        return
    elif [[ $isolation != enabled* ]]; then
        skip "sessions have no unit of their own here: $isolation"
        return
    fi
    end_server
    systemd-run --user --scope --quiet --unit="$login_unit" \
        bash -c "$(load_command) >'$scratch/third'; sleep 1000 & disown" </dev/null
    third=$(id_in <"$scratch/third")
    pid=$(holder "$third")
    info "held by $pid, /proc/$pid/cgroup: $(cgroup "$pid")"
    systemctl --user stop "$login_unit"
    check "the login is gone" bash -c "! systemctl --user is-active --quiet '$login_unit'"
    check "what holds the session is still there" runs "$pid"
    check "the session answers" answers "$third"
    "$abide" eject "$third" --clean >/dev/null
    restart_server
}

# Brings the instance back, which must be restorable, and checks that it is in the conversation it was in.
comes_back() {
    check "no process is left" until_true nothing_left
    info "state: $(state "$id")"
    check "it is restorable" bash -c "[[ '$(state "$id")' == 'restorable '* ]]"
    "$abide" resume "$id" --detach >/dev/null
    check "it is active" test "$(state "$id")" = "active null"
    check "the session answers" answers "$id"
    check_command_line "$id" --resume "$talk"
    check "it is the same conversation" test "$(conversation "$id")" = "$talk"
}

is_stopped() {
    "$abide" stop "$id" >/dev/null
    comes_back
}

holder_is_killed() {
    local pid
    pid=$(holder "$id")
    info "killing $pid"
    kill -KILL "$pid"
    comes_back
}

is_ended() {
    "$abide" eject "$id" --clean >/dev/null
    check "no process is left" until_true nothing_left
    check "it is listed no more" test -z "$(state "$id")"
    if user_manager; then
        check "no unit is left" test -z "$(systemctl --user list-units --all --plain --no-legend "abide-$id*" abide-tmux.scope)"
    fi
}

# What is checked, in this order: substrate, function, and what it is about.
scenarios=(
    "capsule starts                 a session starts, in a new conversation"
    "capsule is_placed              it is outside of the login's scope"
    "capsule client_is_killed       its client is killed"
    "capsule multiplexer_is_killed  its multiplexer is killed"
    "capsule terminal_session_ends  the terminal session that started it ends"
    "capsule login_ends             the login that started it ends (a scope of the user manager stands for the login)"
    "capsule is_stopped             it is stopped, and comes back in its conversation"
    "capsule holder_is_killed       its keeper is killed, and it comes back in its conversation"
    "capsule is_ended               it is ended for good"
    "tmux    starts                 a session starts in a tmux server, in a new conversation"
    "tmux    is_placed              the tmux server is outside of the login's scope"
    "tmux    client_is_killed       its tmux client is killed"
    "tmux    terminal_session_ends  the terminal session that started the tmux server ends"
    "tmux    login_ends             the login that started the tmux server ends"
    "tmux    is_stopped             it is stopped, and comes back in its conversation"
    "tmux    holder_is_killed       the tmux server is killed, and it comes back in its conversation"
    "tmux    is_ended               it is ended for good"
)

echo "abide: $abide ($("$abide" --version))"
echo
echo "What will be checked:"
for scenario in "${scenarios[@]}"; do
    read -r substrate _ title <<<"$scenario"
    number=$((number + 1))
    printf '%2d. %-8s%s\n' "$number" "$substrate" "$title"
done

number=0 id=
for scenario in "${scenarios[@]}"; do
    read -r substrate scenario title <<<"$scenario"
    number=$((number + 1))
    printf '\n%s%2d. %-8s%s%s\n' "$bold" "$number" "$substrate" "$title" "$plain"
    [ "$scenario" != starts ] || id=
    if [ "$substrate" = tmux ] && ! command -v tmux >/dev/null; then
        skip "tmux is not installed"
    elif [ "$scenario" != starts ] && [ -z "$id" ]; then
        fail "no session was started"
    else
        "$scenario"
    fi
done
summary
