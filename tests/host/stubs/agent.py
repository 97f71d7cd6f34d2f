"""Stand-ins for the command-line agents: called by an agent's name, it takes that agent's flags and no others, keeps
conversations where and how that agent does, and refuses what that agent refuses, in its words.

Every start is noted in $HOME/argv.NAME. A line that is typed is something said; `/clear` begins a new conversation, `/resume ID` goes on with another one,
`/work` a turn of claude that does not end, and `exit N` ends it. The file $HOME/refuse.NAME holds words with which the agent ends at once."""

import fcntl
import hashlib
import json
import os
import signal
import sys
import time
import uuid
from pathlib import Path

sys.dont_write_bytecode = True
import opencode

NAME, ARGV = sys.argv[1], sys.argv[2:]
HOME, CWD = Path(os.environ["HOME"]), Path(os.getcwd()).resolve()

# Options with a value, options without, and sub-commands that name a conversation.
FLAGS = {
    "claude": (["--session-id", "--resume", "--model", "--settings"], ["--fork-session", "--continue"], []),
    "codex": (["-m", "-c"], ["--no-daemon", "--dangerously-bypass-hook-trust"], ["resume", "fork"]),
    "gemini": (["--session-id", "--resume", "-m"], ["--yolo"], []),
    "opencode": (["-s", "-m", "--port"], ["--fork"], []),
    "kimi": (["-S", "-m"], ["--yolo"], []),
    "qwen": (["--session-id", "--resume", "-m"], ["--fork-session"], []),
    "copilot": (["--session-id", "--model"], ["--allow-all-tools"], []),
    # One that abide does not know.
    "foo": (["--id", "--fork"], ["--fast"], ["resume"]),
}
CONFIG = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude"),
    "codex": ("CODEX_HOME", ".codex"),
    "gemini": ("GEMINI_CLI_HOME", ".gemini"),
    "opencode": ("XDG_DATA_HOME", ".local/share/opencode"),
    "kimi": ("KIMI_CODE_HOME", ".kimi-code"),
    "qwen": ("QWEN_HOME", ".qwen"),
    "copilot": ("COPILOT_HOME", ".copilot"),
    "foo": ("FOO_HOME", ".foo"),
}


def die(code, words):
    print(words, flush=True)
    sys.exit(code)


def config():
    variable, below = CONFIG[NAME]
    moved = os.environ.get(variable)
    if moved and NAME in ("gemini", "opencode"):
        return Path(moved) / Path(below).name
    return Path(moved) if moved else HOME / below


def parse():
    valued, switches, verbs = FLAGS[NAME]
    given, left = {}, list(ARGV)
    while left:
        word = left.pop(0)
        if word.startswith("--resume=") and NAME == "copilot":
            given["--resume"] = word.partition("=")[2]
        elif word in valued and left:
            given[word] = left.pop(0)
        elif word in switches:
            given[word] = True
        elif word in verbs and left:
            given[word] = left.pop(0)
        elif word.startswith("-"):
            die(2, f"error: unknown option '{word}'")
    return given


def project():
    units = str(CWD).encode("utf-16-le")
    units = [int.from_bytes(units[i : i + 2], "little") for i in range(0, len(units), 2)]
    name = "".join(chr(u) if u < 128 and chr(u).isalnum() else "-" for u in units)
    if len(units) <= 200 or NAME == "qwen":
        return name
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    value = value - (1 << 32) if value >= 1 << 31 else value
    value, digits = abs(value), ""
    while value or not digits:
        value, digit = divmod(value, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return f"{name[:200]}-{digits}"


def slug():
    register = config() / "projects.json"
    known = json.loads(register.read_text()) if register.exists() else {"projects": {}}
    known["projects"].setdefault(str(CWD), f"slug{len(known['projects'])}")
    register.parent.mkdir(parents=True, exist_ok=True)
    register.write_text(json.dumps(known))
    return known["projects"][str(CWD)]


def transcript(id):
    """Where the conversation is, or would be begun now."""
    root = config()
    if NAME == "claude":
        return root / "projects" / project() / f"{id}.jsonl"
    if NAME == "qwen":
        return root / "projects" / project() / "chats" / f"{id}.jsonl"
    if NAME == "codex":
        found = sorted(root.glob(f"sessions/*/*/*/rollout-*-{id}.jsonl"))
        return found[0] if found else root / time.strftime(f"sessions/%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S-{id}.jsonl")
    if NAME == "gemini":
        chats = root / "tmp" / slug() / "chats"
        found = sorted(chats.glob(f"session-*-{id[:8]}.jsonl"), key=lambda path: path.stat().st_size)
        return found[-1] if found else chats / f"session-{time.strftime('%Y-%m-%dT%H-%M')}-{id[:8]}.jsonl"
    if NAME == "kimi":
        work = f"wd_{CWD.name}_{hashlib.sha256(str(CWD).encode()).hexdigest()[:12]}"
        return root / "sessions" / work / id / "agents/main/wire.jsonl"
    if NAME == "copilot":
        return root / "session-state" / id / "events.jsonl"
    return root / "sessions" / project() / f"{id}.jsonl"


def first_records(id):
    cwd = str(CWD)
    return {
        "claude": [{"type": "mode", "mode": "normal", "sessionId": id}],
        "codex": [{"type": "session_meta", "payload": {"id": id, "cwd": cwd, "thread_source": "user"}}],
        "gemini": [{"sessionId": id, "projectHash": "00", "kind": "main"}],
        "kimi": [{"type": "profile.bind", "agentId": "main", "environmentDisclosure": {"cwd": cwd}}],
        "copilot": [{"type": "session.start", "data": {"sessionId": id, "context": {"cwd": cwd}}}],
    }.get(NAME, [])


def said(id, text):
    parts, cwd = [{"text": text}], str(CWD)
    return {
        "claude": {"type": "user", "isSidechain": False, "cwd": cwd, "sessionId": id, "message": {"content": text}},
        "codex": {"type": "response_item", "payload": {"type": "message", "role": "user", "content": parts}},
        "gemini": {"type": "user", "content": parts},
        "foo": {"text": text},
        "kimi": {"type": "turn.prompt", "agentId": "main", "input": parts},
        "qwen": {"type": "user", "sessionId": id, "cwd": cwd, "message": {"role": "user", "parts": parts}},
        "copilot": {"type": "user.message", "data": {"content": text}},
    }[NAME]


def new_id():
    return {"kimi": "session_", "opencode": "ses_"}.get(NAME, "") + str(uuid.uuid4()).replace(
        "-", "" if NAME == "opencode" else "-"
    )


class Conversation:
    def __new__(cls, id):
        return opencode.Conversation(config(), CWD, id) if NAME == "opencode" else super().__new__(cls)

    def __init__(self, id):
        self.id, self.path = id, transcript(id)
        self.lock = None
        if NAME == "claude":
            self.register()
        if NAME == "codex":
            locks = config() / "thread-writer-locks"
            locks.mkdir(parents=True, exist_ok=True)
            self.lock = open(locks / f"{id}.lock", "w")
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                die(1, f"thread {id} already has an active writer")

    def register(self, status="idle"):
        with open("/proc/self/stat") as stat:
            start = stat.read().rpartition(")")[2].split()[19]
        entry = config() / "sessions" / f"{os.getpid()}.json"
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.write_text(json.dumps({"pid": os.getpid(), "procStart": start, "sessionId": self.id, "status": status}))

    def say(self, text):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        with open(self.path, "a") as file:
            for record in (first_records(self.id) if is_new else []) + [said(self.id, text)]:
                file.write(json.dumps(record) + "\n")

    def exists(self):
        return self.path.exists() and self.path.stat().st_size > 0

    def last(self):
        words = []
        for line in self.path.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            found = json.dumps(record).rpartition('"text": "')[2] if '"text": "' in line else ""
            content = record.get("message", record.get("data", {}))
            found = content.get("content", "") if isinstance(content, dict) and "content" in content else found
            words += [str(found).partition('"')[0]] if found else []
        return words[-1] if words else "nothing"


def gemini_forgets(own):
    """A start removes what earlier ones resumed, unless it resumes that itself."""
    for mark in (config() / "tmp").glob("*/chats/*.resumed"):
        if mark.stem != own:
            Path(mark.read_text()).unlink(missing_ok=True)
            mark.unlink()


def unknown(id):
    code, words = {
        "claude": (1, f"No conversation found with session ID: {id}"),
        "codex": (1, f"No saved session found with ID {id}"),
        "gemini": (42, f'Invalid session identifier "{id}"'),
        "opencode": (1, "Session not found"),
        "kimi": (1, f"Session {id} not found"),
        "qwen": (1, f"No saved session found with ID {id}"),
        "copilot": (1, f"No session, task, or name matched '{id}'"),
        "foo": (1, f"there is no {id}"),
    }[NAME]
    die(code, words)


def resume(id, fork, preset):
    old = Conversation(id) if not fork or NAME == "opencode" else None
    path = transcript(id)
    if not (old.exists() if NAME == "opencode" else path.exists() and path.stat().st_size > 0):
        unknown(id)
    if fork and NAME == "opencode":
        conversation = old.copy(new_id())
    elif fork:
        conversation = Conversation(preset or new_id())
        conversation.path.parent.mkdir(parents=True, exist_ok=True)
        conversation.path.write_text(path.read_text().replace(id, conversation.id))
    else:
        conversation = old
    if NAME == "gemini":
        path.with_name(f"{id}.resumed").write_text(str(path))
    print(f"resumed: {conversation.last()}", flush=True)
    return conversation


def begin():
    given = parse()
    fork = given.get("fork") or (given.get("--resume") or given.get("-s")) if (
        given.get("--fork-session") or given.get("--fork") or given.get("fork")
    ) else None
    if NAME == "foo":
        fork = given.get("--fork")
        told = os.environ.get("FOO_ID")
        if told and Conversation(told).exists():
            return resume(told, False, None)
        given.setdefault("--session-id", given.get("--id") or told)
    resumed = given.get("--resume") or given.get("resume") or given.get("-s") or given.get("-S")
    if given.get("--continue"):
        found = sorted(transcript("x").parent.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
        resumed = found[-1].stem if found else None
    preset = given.get("--session-id")
    if NAME == "claude" and preset and resumed and not fork:
        die(1, "--session-id can only be used with --continue or --resume if --fork-session is also specified.")
    if NAME == "qwen" and preset and resumed:
        die(1, "Cannot use --session-id with --continue or --resume")
    if fork or resumed:
        return resume(fork or resumed, bool(fork), preset)
    if preset and Conversation(preset).exists():
        if NAME == "copilot":
            return resume(preset, False, None)
        words = f"Session ID {preset} is already in use." if NAME == "claude" else f"Session {preset} already exists"
        die(42 if NAME == "gemini" else 1, f"Error: {words}")
    return Conversation(preset or new_id())


def typed():
    try:
        for line in sys.stdin:
            yield line.strip()
    except OSError:
        pass  # The terminal is gone.


def main():
    if NAME == "opencode" and ARGV[:1] == ["import"]:
        return opencode.take_back(config(), CWD, ARGV[1])
    if "--help" in ARGV:
        die(0, "Options:\n      --no-daemon  Run in one process" if NAME == "codex" else "Options:")
    with open(HOME / f"argv.{NAME}", "a") as log:
        log.write(" ".join(ARGV) + "\n")
    refusal = HOME / f"refuse.{NAME}"
    if refusal.exists():
        die(1, refusal.read_text())
    if NAME == "gemini":
        # It outlives its terminal and does not end when asked.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        gemini_forgets(parse().get("--resume"))
    conversation = begin()
    if os.environ.get("CLAUDE_CODE_RESUME_INTERRUPTED_TURN"):
        print("going on with the turn", flush=True)
    print("ready", flush=True)
    for text in typed():
        if text == "/clear":
            conversation = Conversation(new_id())
        elif text.startswith("/resume "):
            conversation = resume(text.partition(" ")[2], False, None)
        elif text == "/work":
            conversation.register("busy")
        elif text.startswith("exit"):
            sys.exit(int(text.partition(" ")[2] or 0))
        else:
            conversation.say(text)
        print(f"heard: {text}", flush=True)
        if NAME == "opencode":
            opencode.tell("idle", conversation.id)
    if NAME == "gemini" and not sys.stdin.seekable():
        while True:
            signal.pause()


main()
