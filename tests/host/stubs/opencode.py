"""How OpenCode keeps conversations: rows of one database, in WAL mode, which stays open; and what its plugins hear."""

import json
import os
import re
import sqlite3
import subprocess
import time

SCHEMA = """
CREATE TABLE IF NOT EXISTS `session` (`id` text PRIMARY KEY, `project_id` text NOT NULL, `parent_id` text,
  `slug` text NOT NULL, `directory` text NOT NULL, `title` text NOT NULL, `version` text NOT NULL,
  `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `time_archived` integer);
CREATE TABLE IF NOT EXISTS `message` (`id` text PRIMARY KEY, `session_id` text NOT NULL,
  `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
CREATE TABLE IF NOT EXISTS `part` (`id` text PRIMARY KEY, `message_id` text NOT NULL, `session_id` text NOT NULL,
  `time_created` integer NOT NULL, `time_updated` integer NOT NULL, `data` text NOT NULL);
CREATE INDEX IF NOT EXISTS `message_session_idx` ON `message` (`session_id`, `time_created`, `id`);
CREATE INDEX IF NOT EXISTS `part_session_idx` ON `part` (`session_id`);
"""


def connect(root):
    root.mkdir(parents=True, exist_ok=True)
    db = sqlite3.connect(root / "opencode.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(SCHEMA)
    return db


def put(db, id, directory, title, messages):
    """Adds what is not there yet; `messages` are (id, data, parts), the parts (id, data)."""
    now = time.time_ns() // 1_000_000
    row = (id, "global", "quick-fox", str(directory), title, "1.18.33", now, now)
    db.execute("BEGIN")
    db.execute(
        "INSERT OR IGNORE INTO session (id, project_id, slug, directory, title, version, time_created, time_updated)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.execute("UPDATE session SET time_updated = ? WHERE id = ?", (now, id))
    for message, data, parts in messages:
        db.execute("INSERT OR IGNORE INTO message VALUES (?, ?, ?, ?, ?)", (message, id, now, now, json.dumps(data)))
        for part, data in parts:
            row = (part, message, id, now, now, json.dumps(data))
            db.execute("INSERT OR IGNORE INTO part VALUES (?, ?, ?, ?, ?, ?)", row)
    db.execute("COMMIT")


class Conversation:
    def __init__(self, root, cwd, id):
        self.root, self.cwd, self.id = root, cwd, id
        self.db = connect(root) if (root / "opencode.db").exists() else None

    def exists(self):
        return bool(self.db and self.db.execute("SELECT 1 FROM session WHERE id = ?", (self.id,)).fetchone())

    def say(self, text):
        self.db = self.db or connect(self.root)
        number = time.time_ns()
        parts = [(f"prt_{number}", {"type": "text", "text": text})]
        put(self.db, self.id, self.cwd, f"About {text}", [(f"msg_{number}", {"role": "user"}, parts)])

    def last(self):
        query = "SELECT data FROM part WHERE session_id = ? ORDER BY id DESC"
        row = self.db.execute(query, (self.id,)).fetchone()
        return json.loads(row[0])["text"] if row else "nothing"

    def copy(self, id):
        fork = Conversation(self.root, self.cwd, id)
        fork.say(self.last())
        return fork


def take_back(root, cwd, path):
    """`opencode import`: what is written belongs to the directory that it is run in."""
    with open(path) as file:
        exported = json.load(file)
    info, strip = exported["info"], lambda data: {k: v for k, v in data.items() if not k.lower().endswith("id")}
    for key in ("id", "slug", "projectID", "directory", "title", "version", "time"):
        assert key in info, key
    messages = []
    for message in exported["messages"]:
        parts = [(part["id"], strip(part)) for part in message["parts"]]
        messages.append((message["info"]["id"], strip(message["info"]), parts))
    put(connect(root), info["id"], cwd, info["title"], messages)
    print(f"Imported session: {info['id']}")


def tell(event, session):
    """Has the plugin of this launch hear of it, if there is one."""
    config = json.loads(os.environ.get("OPENCODE_CONFIG_CONTENT", "{}"))
    for plugin in config.get("plugin", []):
        with open(plugin.removeprefix("file://")) as file:
            exe = json.loads(re.search(r'spawn\(("[^"]*")', file.read())[1])
        said = json.dumps({"hook_event_name": event, "session_id": session})
        subprocess.run([exe, "capsule", "report"], input=said, text=True, check=False)
