"""The books of a campaign: what clients were told against what every partition holds at the end.

The checker finds an order that explains what was seen. The books need no search: each value is
written once, so History says of each write at which revision it took effect, if it did.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field

from pillion_histories.client import COUNTERS

FINDINGS_SHOWN = 20


@dataclass
class Books:
    """What was found. Empty lists are what a sound server leaves."""

    lost_updates: list[str] = field(default_factory=list)
    double_effects: list[str] = field(default_factory=list)
    acknowledged_lost: list[str] = field(default_factory=list)
    half_batches: list[str] = field(default_factory=list)
    unasked: list[str] = field(default_factory=list)
    outcomes: Counter = field(default_factory=Counter)
    increments: int = 0

    @property
    def findings(self):
        return {
            name: found for name, found in asdict(self).items() if isinstance(found, list) and found
        }


def read_histories(paths):
    """Return the records of histories in files."""
    records = []
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            records += [json.loads(line) for line in lines]
    return records


def audit(records, readbacks):
    """Return the books of these records and what was read back at the end."""
    books = Books()
    for record in records:
        books.outcomes[record["op"]] += 1
        if record["op"] == "write":
            books.outcomes["write " + record["outcome"]] += 1
            books.outcomes["sendings of writes"] += record["attempts"]
            books.outcomes["writes sent again"] += record["attempts"] > 1
            books.outcomes["batches"] += len(record["puts"]) > 1
            books.outcomes["answered by the first answer"] += record.get("replayed", False)
    for back in readbacks:
        of_partition = [one for one in records if one["partition"] == back.partition]
        _Partition(books, back, of_partition).audit()
    return books


class _Partition:
    """The books of one partition."""

    def __init__(self, books, back, records):
        self.books = books
        self.back = back
        self.writes = {one["id"]: one for one in records if one["op"] == "write"}
        self.replays = [one for one in records if one["op"] == "replay"]
        # At which revisions each write took effect, by its id: for each its keys.
        self.effects: dict[str, dict[int, set[str]]] = {name: {} for name in self.writes}

    def audit(self):
        self._answers()
        for key, rows in self.back.timelines.items():
            for revision, value in rows:
                self._attribute(key, revision, value)
        for name, write in self.writes.items():
            self._effects_of(name, write)
        self._revisions()
        for key in COUNTERS:
            values = [value for _, value in self.back.timelines[key]]
            self.books.increments += len(values)
            if values != [str(n) for n in range(1, len(values) + 1)]:
                self._find("lost_updates", f"{key} went through {values}")

    def _find(self, kind, text):
        found = getattr(self.books, kind)
        if len(found) < FINDINGS_SHOWN:
            found.append(f"{self.back.partition}: {text}")

    def _answers(self):
        """Whoever asked again heard the same, and nobody was taken for somebody else."""
        for replay in self.replays:
            first = self.writes[replay["id"]]
            same = all(replay.get(name) == first.get(name) for name in ("revision", "versions"))
            if not (same and replay.get("replayed")):
                self._find("double_effects", f"asked again: {replay}, at first: {first}")
        for write in self.writes.values():
            alone = write["attempts"] == 1 and not write.get("client_retries")
            if alone and write.get("replayed"):
                self._find("unasked", f"the first answer is said to be a repeated one: {write}")

    def _attribute(self, key, revision, value):
        """Find the write that made a row."""
        writers = [
            name
            for name, write in self.writes.items()
            if any(put["key"] == key and put["value"] == value for put in write["puts"])
        ]
        acknowledged = [name for name in writers if self.writes[name].get("revision") == revision]
        unknown = [name for name in writers if self.writes[name]["outcome"] == "unknown"]
        if acknowledged or unknown:
            effects = self.effects[(acknowledged or unknown)[0]]
            effects.setdefault(revision, set()).add(key)
            return
        row = f"{key} = {value} at revision {revision}"
        if any(self.writes[name]["outcome"] == "ok" for name in writers):
            self._find("double_effects", f"{row} again, by {writers}")
        else:
            self._find("unasked", f"{row}, by nobody or by refused {writers}")

    def _effects_of(self, name, write):
        effects = self.effects[name]
        keys = {put["key"] for put in write["puts"]}
        if len(effects) > 1:
            self._find("double_effects", f"{write} took effect at {sorted(effects)}")
        if any(there != keys for there in effects.values()):
            self._find("half_batches", f"{write} took effect as {effects}")
        if write["outcome"] == "ok":
            missing = keys - effects.get(write["revision"], set())
            if missing and missing <= set(COUNTERS):  # it counted what was counted already
                self._find("lost_updates", f"{write} did not count")
            elif missing:
                self._find("acknowledged_lost", f"{write} is not there")
        if write["outcome"] == "unknown":
            self.books.outcomes["unknown, took effect"] += bool(effects)

    def _revisions(self):
        """Each revision was made by one write, and changed only the keys of that write."""
        made = Counter(revision for effects in self.effects.values() for revision in effects)
        if strange := [one for one in range(1, self.back.head + 1) if made[one] != 1]:
            self._find("double_effects", f"revisions that not exactly one write made: {strange}")
        whose = {
            revision: keys
            for effects in self.effects.values()
            for revision, keys in effects.items()
        }
        for key, touched in self.back.touched.items():
            for revision in touched:
                if key not in whose.get(revision, ()):
                    self._find("unasked", f"{key} changed at revision {revision}")
