"""The tables of where every check stands: the newest outcome of each check and subject, and what changed before."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

VERSION = 1
WELL, FAILING, UNKNOWN, SKIPPED, KNOWN, ON_TRIAL, TRIED_WELL = range(7)
"""How a check stands; the first four are the verdicts. What a known issue excuses, or a check on trial says, decides
nothing."""

KEPT_S = 30 * 86400
"""Changes are kept for so long; what stands is kept for ever."""

SCHEMA = f"""
CREATE TABLE told (n INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, at REAL NOT NULL, spec TEXT NOT NULL);
CREATE TABLE check_ (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, area TEXT NOT NULL, fault TEXT NOT NULL,
  phases TEXT NOT NULL);
CREATE TABLE subject (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, scope TEXT NOT NULL, holder TEXT NOT NULL);
CREATE INDEX of_holder ON subject (holder);
CREATE TABLE text (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE state (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, stands INTEGER NOT NULL, reason INTEGER,
  known INTEGER, measured REAL NOT NULL, run INTEGER NOT NULL, first INTEGER NOT NULL, micros INTEGER NOT NULL,
  PRIMARY KEY (subject, check_)) WITHOUT ROWID;
CREATE INDEX amiss ON state (stands, run) WHERE stands NOT IN ({WELL}, {TRIED_WELL});
CREATE TABLE past (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, run INTEGER NOT NULL, stood INTEGER NOT NULL,
  PRIMARY KEY (subject, check_, run)) WITHOUT ROWID;
CREATE TRIGGER changed AFTER UPDATE OF stands ON state WHEN old.stands != new.stands
  BEGIN INSERT OR IGNORE INTO past VALUES (new.subject, new.check_, new.run, old.stands); END;
CREATE TABLE measurement (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, n INTEGER NOT NULL, name TEXT NOT NULL,
  value REAL NOT NULL, unit TEXT NOT NULL, at_least REAL, at_most REAL, source TEXT NOT NULL,
  PRIMARY KEY (subject, check_, n)) WITHOUT ROWID;
CREATE TABLE artefact (subject INTEGER NOT NULL, check_ INTEGER NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,
  bytes INTEGER NOT NULL, PRIMARY KEY (subject, check_, name)) WITHOUT ROWID;
CREATE TABLE trend (run INTEGER NOT NULL, pool TEXT NOT NULL, well INTEGER NOT NULL, decided INTEGER NOT NULL,
  holders INTEGER NOT NULL, ill INTEGER NOT NULL, PRIMARY KEY (run, pool)) WITHOUT ROWID;
PRAGMA user_version = {VERSION};
"""  # noqa: S608 — our numbers


def opened(path: Path) -> sqlite3.Connection:
    """Return a connection to the tables at `path`. They can always be made anew from the runs, and are when damaged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _connected(path)
    except sqlite3.DatabaseError:
        path.unlink()
        return _connected(path)


def _connected(path: Path) -> sqlite3.Connection:
    where = f"file:{quote(str(path.resolve()))}"
    connection = sqlite3.connect(where, uri=True, isolation_level=None, timeout=60)
    connection.execute("PRAGMA journal_mode = MEMORY")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -131072")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version == 0:
        connection.executescript(f"BEGIN IMMEDIATE;{SCHEMA}COMMIT;")
    elif version != VERSION:
        connection.close()
        raise sqlite3.DatabaseError(f"version {version}")
    return connection
