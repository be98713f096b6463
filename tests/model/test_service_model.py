"""The whole Write, Get, List, Search and Forget surface against plain Python, on both stores.

Three worlds get the same calls: the service over RAM, the service over LMDB, and a model of plain
dictionaries. The two stores share clock, ids and secrets, so their records must be equal byte for
byte. The model knows what each memory should look like; of facts it knows which value holds when
(how a timeline is cut is the business of ``tests/property``). Searches are compared with brute
force over ``Filter.admits`` and the ranker's reference formulas.
"""

# ruff: noqa: PLR0917 -- rules get what Hypothesis draws, by name

from __future__ import annotations

import itertools
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import UUID

import numpy as np
import pillion_ranker as ranker
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from pillion.domain.commands import ForgetMode
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import (
    FOREVER,
    EndReason,
    MemoryKind,
    MemoryStatus,
    Source,
    SourceKind,
)
from pillion.domain.mutations import ConflictPolicy, Guard, Outcome
from pillion.domain.queries import Filter, ReadAt
from pillion.domain.scope import FactKey, Partition, Subject
from pillion.domain.timeline import Statement
from pillion_ranker.reference import recency_of, score_of, semantic_of
from pillion_storage.api import StoreSettings
from pillion_storage.lmdb import open_store as open_lmdb
from pillion_storage.sealed import FileMasterKey, SealSettings, open_sealed
from pillion_testing.fakes import DAY, SECOND, START, CountingIds, FakeClock, uuid7
from pillion_testing.owners import OwnersChecked
from pillion_testing.service import (
    ANY,
    EVERYTHING,
    EXISTS,
    NEW,
    Service,
    add,
    close_item,
    confirm,
    episode,
    floats,
    patch,
    put_fact,
    refusal,
    restore,
    retract,
    version_is,
)
from pillion_testing.timeline import PureTimeline

# Names that would run into each other if they were joined, cut or folded anywhere.
PARTITIONS = [
    Partition("a", "b"),
    Partition("a", "bc"),
    Partition("ab", "c"),
    Partition("a", "b/c"),
    Partition("a/b", "c"),
    Partition("a\0b", "c"),
    Partition("a", "\0b"),
    Partition("a", "b\0"),
    Partition("A", "b"),
    Partition("a", "é"),
    Partition("a", "e\u0301"),
    Partition("a", "../b"),
    Partition("%61", "b"),
]
SUBJECTS = [Subject("user", "mira"), Subject("user", "mir"), Subject("us", "ermira")]
ATTRIBUTES = ["deadline", "dead"]
VECTORS = [
    b"",
    floats(1, 0, 0, 0, 0, 0, 0, 0),
    floats(1, 1, 0, 0, 0, 0, 0, 0),
    floats(-1, 2, 0.5, 0, 0, 0, 0, 1),
    floats(3e-20, 0, 0, 0, 0, 0, 0, 4e-20),
    floats(*[0.125] * 8),
]
NEVER = float("inf")
# By kind, from 1: the published defaults.
HALF_LIVES = [NEVER, 30.0 * DAY, 365.0 * DAY, NEVER, 30.0 * DAY, NEVER]
LABELS = ["red", "blue", "re"]
INSTANTS = st.integers(0, 9)

tenants = st.integers(0, 1)
subjects = st.sampled_from(SUBJECTS)
contexts = st.sampled_from(["", "work"])
picks = st.integers(0, 10_000)
shares = st.sampled_from([0.0, 0.25, 0.3, 0.5, 1.0])
label_sets = st.frozensets(st.sampled_from(LABELS), max_size=2)
# At most three conditions at once, or hardly anything would ever be admitted.
CONDITIONS = {
    "subjects": st.frozensets(subjects, min_size=1, max_size=2),
    "contexts": st.sampled_from([None, frozenset({""}), frozenset({"work"}), frozenset()]),
    "kinds": st.frozensets(st.sampled_from(list(MemoryKind)), min_size=1, max_size=3),
    "statuses": st.sampled_from([frozenset(MemoryStatus), frozenset()]),
    "attributes": st.frozensets(st.sampled_from(ATTRIBUTES), max_size=1),
    "labels_all": label_sets,
    "labels_none": st.frozensets(st.sampled_from(LABELS), max_size=1),
    "importance_min": shares,
    "include_retracted": st.just(True),
    "include_expired": st.just(True),
    "valid_only": st.just(False),
}


@st.composite
def filters(draw):
    names = draw(st.lists(st.sampled_from(sorted(CONDITIONS)), max_size=3, unique=True))
    return replace(Filter(contexts=None), **{name: draw(CONDITIONS[name]) for name in names})


@st.composite
def drafts(draw):
    return {
        "subject": draw(subjects),
        "context": draw(contexts),
        # Without a word that says what it is about: groups of statements have laws of their own.
        "text": draw(st.sampled_from(["no 1", "no 2", "ñö 3"])),
        "kind": draw(st.sampled_from(list(MemoryKind))),
        "importance": draw(shares),
        "labels": draw(label_sets),
        "vector": draw(st.sampled_from(VECTORS)),
        "age": draw(st.sampled_from([0, 5, DAY // SECOND, 100 * DAY // SECOND])),
        "lasts": draw(st.sampled_from([None, None, 3, 10**9])),
        "expires": draw(st.sampled_from([None, None, 2, 10**6])),
        "status": draw(
            st.sampled_from([None, None, MemoryStatus.CANDIDATE, MemoryStatus.CONFIRMED])
        ),
    }


def at(instant: int) -> int:
    return START + (instant - 100) * SECOND


# What an erasure takes is modelled in tests/property/test_erasure_service.py.
MODES = (ForgetMode.EXPIRE, ForgetMode.RETRACT)


@dataclass
class Tenant:
    """What the model knows of one tenant."""

    partition: Partition
    memories: dict[UUID, dict] = field(default_factory=dict)
    episodes: dict[UUID, dict] = field(default_factory=dict)
    timelines: dict[FactKey, PureTimeline] = field(default_factory=dict)
    heads: dict[FactKey, int] = field(default_factory=dict)
    requests: list = field(default_factory=list)
    listing: tuple | None = None
    past: list = field(default_factory=list)
    claims: dict[tuple, UUID] = field(default_factory=dict)

    def claim_of(self, model: dict) -> tuple | None:
        """What an open candidate says; None: it is none."""
        is_open = (
            model["status"] is MemoryStatus.CANDIDATE
            and model["end_reason"] not in (EndReason.WITHDRAWN, EndReason.RETRACTED)
            and model["expired_at"] == FOREVER
            and not model.get("closed")
        )
        names = ("subject", "context", "kind", "text", "valid_to")
        return tuple(model[name] for name in names) if is_open else None

    def claimed(self, claim: tuple | None, now: int) -> UUID | None:
        """The candidate that makes a claim, if it can be recalled."""
        one = self.claims.get(claim)
        return one if one is not None and now < self.memories[one]["expires_at"] else None

    def change(self, memory_id: UUID, now: int, **changes) -> None:
        """Change a memory; its claim follows."""
        model = self.memories[memory_id]
        before = self.claim_of(model)
        model.update(changes)
        after = self.claim_of(model)
        if before == after:
            return
        if self.claims.get(before) == memory_id:
            del self.claims[before]
        if after is not None and self.claimed(after, now) is None:
            self.claims[after] = memory_id


class ServiceMachine(RuleBasedStateMachine):
    """Every rule calls both services and the model, and compares."""

    @initialize(
        first=st.sampled_from(PARTITIONS),
        second=st.sampled_from(PARTITIONS),
        one=st.lists(drafts(), min_size=3, max_size=8),
        other=st.lists(drafts(), min_size=1, max_size=4),
    )
    def open(self, first, second, one, other):
        if first == second:
            second = PARTITIONS[(PARTITIONS.index(first) + 1) % len(PARTITIONS)]
        self.directory = Path(tempfile.mkdtemp(prefix="pillion-model-"))
        self.clock = FakeClock()
        self.services = [
            self._service(OwnersChecked, StoreSettings()),
            self._service(
                self._open_sealed,
                StoreSettings(
                    directory=self.directory / "store",
                    size_bytes_initial=1 << 20,
                    size_bytes_max=64 << 20,
                ),
            ),
        ]
        self.tenants = [Tenant(first), Tenant(second)]
        self.requests = itertools.count()
        self._add(self.tenants[0], one)
        self._add(self.tenants[1], other)

    def _service(self, open_store, store_settings):
        # One secret for all: tenants must be kept apart by more than their secrets.
        store = open_store(
            replace(store_settings, clock_us=self.clock.now_us, random_bytes=lambda n: b"s" * n)
        )
        return Service(store, clock=self.clock, ids=CountingIds())

    def _open_sealed(self, store_settings):
        self.directory.joinpath("store").mkdir()
        master = FileMasterKey(self.directory / "master.key")
        seals = SealSettings(self.directory / "store" / "keys", master)
        return open_sealed(open_lmdb, store_settings, seals)

    def teardown(self):
        for service in getattr(self, "services", ()):
            service.close()
        if hasattr(self, "directory"):
            shutil.rmtree(self.directory)

    # --- calling both ------------------------------------------------------------------------

    def both(self, tenant: Tenant, call):
        """Make a call on both services; return what both answer, an error as its reason."""
        answers = []
        for service in self.services:
            service.partition = tenant.partition
            try:
                answers.append(call(service))
            except PillionError as error:
                index = error.metadata.get("index")
                answers.append((error.reason, index, error.metadata.get("current_version")))
        assert answers[0] == answers[1]
        return answers[0]

    def write(self, tenant, *mutations, **more):
        """Write to both under a request_id of its own, which may be retried later."""
        request_id = f"r{next(self.requests)}"
        call = dict(mutations=mutations, request_id=request_id, **more)

        def run(service):
            return service.write(*mutations, request_id=request_id, **more)

        answer = self.both(tenant, run)
        if not isinstance(answer, tuple):
            tenant.requests.append((call, answer))
        return answer

    def records(self, tenant):
        return self.services[0].records(tenant.partition)

    def pick(self, mapping, number):
        return list(mapping)[number % len(mapping)]

    def now(self):
        return self.clock.now

    # --- untyped memories --------------------------------------------------------------------

    @rule(who=tenants, drafts=st.lists(drafts(), min_size=1, max_size=4))
    def add_memories(self, who, drafts):
        self._add(self.tenants[who], drafts)

    def _add(self, tenant, drafts):
        mutations = []
        models = []
        for draft in drafts:
            begin = self.now() - draft["age"] * SECOND
            end = None if draft["lasts"] is None else begin + draft["lasts"] * SECOND
            gone = None if draft["expires"] is None else self.now() + draft["expires"] * SECOND
            stated = {
                name: draft[name]
                for name in ("subject", "context", "text", "kind", "importance", "vector")
            }
            mutations.append(
                add(
                    labels=tuple(draft["labels"]),
                    valid_from=begin,
                    valid_to=end,
                    expires_at=gone,
                    status=draft["status"],
                    **stated,
                )
            )
            models.append(
                {
                    **stated,
                    "labels": tuple(sorted(draft["labels"])),
                    "valid_from": begin,
                    "valid_to": FOREVER if end is None else end,
                    "expires_at": FOREVER if gone is None else gone,
                    "expired_at": FOREVER,
                    "status": draft["status"] or MemoryStatus.STATED,
                    "confirmation": None,
                    "created_at": self.now(),
                    "updated_at": self.now(),
                    "end_reason": EndReason.OPEN if end is None else EndReason.STATED,
                }
            )
        answer = self.write(tenant, *mutations)
        for result, model in zip(answer.results, models, strict=True):
            known = tenant.claimed(tenant.claim_of(model), self.now())
            if known is None:
                assert result.outcome is Outcome.CREATED
                tenant.memories[result.id] = {**model, "version": answer.revision}
                tenant.claims[tenant.claim_of(model)] = result.id
                tenant.claims.pop(None, None)
                continue
            assert (result.id, result.outcome) == (known, Outcome.EVIDENCE)
            candidate = tenant.memories[known]
            gone = candidate["expires_at"]
            if model["expires_at"] != FOREVER:
                gone = max(gone, model["expires_at"])
            candidate.update(
                valid_from=min(candidate["valid_from"], model["valid_from"]),
                expires_at=gone
                if model["expires_at"] == FOREVER
                else max(gone, model["expires_at"]),
                updated_at=self.now(),
                version=answer.revision,
            )

    @rule(who=tenants, subject=subjects, context=contexts, indexed=st.booleans())
    def capture_episode(self, who, subject, context, indexed):
        tenant = self.tenants[who]
        answer = self.write(
            tenant, episode("no 4", subject=subject, context=context, indexed=indexed)
        )
        (result,) = answer.results
        tenant.episodes[result.id] = {
            "subject": subject,
            "context": context,
            "content": "no 4",
            "memory_id": result.memory_id,
            "expired_at": FOREVER,
            "version": answer.revision,
        }
        assert (result.memory_id is not None) == indexed
        if indexed:
            tenant.memories[result.memory_id] = {
                "subject": subject,
                "context": context,
                "text": "no 4",
                "kind": MemoryKind.EPISODIC,
                "status": MemoryStatus.STATED,
                "confirmation": None,
                "valid_from": self.now(),
                "valid_to": FOREVER,
                "expires_at": FOREVER,
                "expired_at": FOREVER,
                "end_reason": EndReason.OPEN,
                "version": answer.revision,
                "vector": b"",
            }

    @precondition(lambda self: any(one.memories for one in self.tenants))
    @rule(
        who=tenants,
        which=picks,
        stale=st.sampled_from([None, False, True]),
        importance=shares,
        labels=label_sets,
        text=st.sampled_from([None, "no 1", "no 5"]),
        vector=st.sampled_from(VECTORS),
    )
    def patch_memory(self, who, which, stale, importance, labels, text, vector):
        tenant = self.tenants[who]
        if not tenant.memories:
            return
        memory_id = self.pick(tenant.memories, which)
        model = tenant.memories[memory_id]
        version = model["version"]
        demanded = ANY if stale is None else version_is(version + (7 if stale else 0))
        fields = {"importance": importance, "labels": tuple(labels)}
        if text is not None:
            fields["text"] = text
        if vector:
            fields["vector"] = vector
        answer = self.write(tenant, patch(memory_id, demanded, **fields))
        if stale:
            assert answer == (Reason.VERSION_MISMATCH, "0", str(version))
            return
        (result,) = answer.results
        changed = {
            "importance": importance,
            "labels": tuple(sorted(labels)),
            "text": text or model["text"],
        }
        if vector:
            changed["vector"] = vector
        elif changed["text"] != model["text"]:
            changed["vector"] = b""
        known = {name: model.get(name, value) for name, value in changed.items()}
        seen = {"importance": 0.5, "labels": (), **model}
        if not vector and all(seen[name] == changed[name] for name in changed):
            assert (result.outcome, result.version) == (Outcome.UNCHANGED, version)
            return
        assert known.keys() == changed.keys()
        assert (result.outcome, result.version) == (Outcome.UPDATED, answer.revision)
        tenant.change(
            memory_id, self.now(), **changed, version=answer.revision, updated_at=self.now()
        )

    @precondition(lambda self: any(one.memories for one in self.tenants))
    @rule(who=tenants, which=picks)
    def confirm_memory(self, who, which):
        tenant = self.tenants[who]
        if not tenant.memories:
            return
        memory_id = self.pick(tenant.memories, which)
        model = tenant.memories[memory_id]
        answer = self.write(tenant, confirm(memory_id))
        if model["end_reason"] is EndReason.WITHDRAWN:
            assert answer[0] is Reason.ALREADY_ENDED
            return
        tenant.change(
            memory_id,
            self.now(),
            status=MemoryStatus.CONFIRMED,
            confirmation=Source(SourceKind.USER_CONFIRMATION),
            version=answer.revision,
            updated_at=self.now(),
        )

    @precondition(lambda self: any(one.memories for one in self.tenants))
    @rule(who=tenants, which=picks, ago=st.sampled_from([0, 3, 1000]))
    def retract_memory(self, who, which, ago):
        tenant = self.tenants[who]
        if not tenant.memories:
            return
        memory_id = self.pick(tenant.memories, which)
        instant = self.now() - ago * SECOND
        answer = self.write(tenant, retract(memory_id, valid_to=instant))
        tried = dict(tenant.memories[memory_id])
        if not self._retracted(tried, instant):
            assert answer[0] is Reason.ALREADY_ENDED
            return
        tried.update(version=answer.revision, updated_at=self.now())
        tenant.change(memory_id, self.now(), **tried)

    @staticmethod
    def _retracted(model, instant) -> bool:
        """Retract in the model; return whether there was anything to retract."""
        if model["end_reason"] is EndReason.WITHDRAWN or instant >= model["valid_to"]:
            return False
        if instant <= model["valid_from"]:
            model["end_reason"] = EndReason.WITHDRAWN
        else:
            model.update(valid_to=instant, end_reason=EndReason.RETRACTED)
        return True

    @precondition(lambda self: any(one.memories for one in self.tenants))
    @rule(who=tenants, which=picks)
    def close_open_item(self, who, which):
        tenant = self.tenants[who]
        if not tenant.memories:
            return
        memory_id = self.pick(tenant.memories, which)
        model = tenant.memories[memory_id]
        answer = self.write(tenant, close_item(memory_id))
        if model["kind"] is not MemoryKind.OPEN_ITEM:
            assert answer[0] is Reason.INVALID_FIELD
        elif model.get("closed") or model["end_reason"] is EndReason.WITHDRAWN:
            assert answer[0] is Reason.ALREADY_ENDED
        elif self.now() <= model["valid_from"]:
            assert answer[0] is Reason.INTERVAL_EMPTY
        else:
            changes = {"closed": True, "version": answer.revision, "updated_at": self.now()}
            if self.now() < model["valid_to"]:
                changes |= {"valid_to": self.now(), "end_reason": EndReason.STATED}
            tenant.change(memory_id, self.now(), **changes)

    # --- facts -------------------------------------------------------------------------------

    def _hidden(self, tenant):
        """Rows that are out of recall, as the service has them."""
        return {
            one.id
            for one in self.services[0].listed(EVERYTHING, partition=tenant.partition)
            if not one.recallable_at(self.now())
        }

    @rule(
        who=tenants,
        subject=subjects,
        context=contexts,
        attribute=st.sampled_from(ATTRIBUTES),
        instant=INSTANTS,
        length=st.sampled_from([None, None, 1, 4]),
        value=st.sampled_from(["a", "b"]),
        policy=st.sampled_from([ConflictPolicy.REJECT, ConflictPolicy.CORRECT]),
        demand=st.sampled_from(["any", "any", "right", "right", "stale", "new", "exists"]),
        vector=st.sampled_from(VECTORS),
    )
    def state_fact(
        self, who, subject, context, attribute, instant, length, value, policy, demand, vector
    ):
        tenant = self.tenants[who]
        key = FactKey(subject, context, attribute)
        head = tenant.heads.get(key, 0)
        demanded = {
            "any": ANY,
            "right": version_is(head) if head else NEW,
            "stale": version_is(head + 9),
            "new": NEW,
            "exists": EXISTS,
        }[demand]
        end = None if length is None else at(instant + length)
        hidden = self._hidden(tenant)
        answer = self.write(
            tenant,
            put_fact(
                value,
                when=demanded,
                policy=policy,
                subject=subject,
                context=context,
                attribute=attribute,
                valid_from=at(instant),
                valid_to=end,
                vector=vector,
            ),
        )
        if demand == "stale":
            assert answer == (Reason.VERSION_MISMATCH, "0", str(head))
            return
        if demand == "new" and head:
            assert answer == (Reason.ALREADY_EXISTS, "0", str(head))
            return
        if demand == "exists" and not head:
            assert answer[0] is Reason.NOT_FOUND
            return
        timeline = tenant.timelines.setdefault(key, PureTimeline())
        statement = Statement(at(instant), value.encode(), SourceKind.USER_STATEMENT, end, policy)
        before = dict(timeline.entries)
        result = None if isinstance(answer, tuple) else answer.results[0]
        row_id = result.id if result is not None else None
        outcomes = []
        error = refusal(lambda: outcomes.append(timeline.put(statement, hidden, row_id)))
        if error is not None:
            assert answer[0] is error.reason
            assert timeline.entries == before
            return
        assert result is not None, answer
        assert [result.outcome] == outcomes
        assert result.fact_version == answer.revision
        tenant.heads[key] = answer.revision
        self._adopt(tenant, key)

    def _adopt(self, tenant, key):
        """Take over the ids of rows that the service made by itself."""
        rows = {
            (one.fact_key, one.valid_from): one.id
            for one in self.services[0].listed(EVERYTHING, partition=tenant.partition)
            if one.is_fact and one.on_timeline and one.status is not MemoryStatus.CANDIDATE
        }
        timeline = tenant.timelines[key]
        for instant, entry in timeline.entries.items():
            if entry.is_row:
                timeline.entries[instant] = replace(entry, memory_id=rows[key, instant])

    @rule(
        who=tenants,
        subject=subjects,
        context=contexts,
        attribute=st.sampled_from(ATTRIBUTES),
        instant=INSTANTS,
    )
    def retract_fact(self, who, subject, context, attribute, instant):
        tenant = self.tenants[who]
        key = FactKey(subject, context, attribute)
        timeline = tenant.timelines.setdefault(key, PureTimeline())
        answer = self.write(tenant, retract(key=key, valid_to=at(instant)))
        if timeline.holding(at(instant)) is None:
            assert answer[0] is Reason.NOT_FOUND
            return
        timeline.retract(at(instant))
        tenant.heads[key] = answer.revision
        self._adopt(tenant, key)

    @rule(who=tenants, which=picks)
    def restore_fact(self, who, which):
        """Take a retraction of a fact back, or hear why not."""
        tenant = self.tenants[who]
        places = [(key, one) for key, line in tenant.timelines.items() for one in line.taken]
        if not places:
            return
        key, row_id = places[which % len(places)]
        timeline = tenant.timelines[key]
        answer = self.write(tenant, restore(row_id))
        if isinstance(answer, tuple) and answer[0] is Reason.ALREADY_ENDED:
            del timeline.taken[row_id]  # it was corrected since
            return
        error = refusal(lambda: timeline.restore(row_id))
        if error is not None:
            assert answer[0] is error.reason
            return
        tenant.heads[key] = answer.revision
        self._adopt(tenant, key)

    # --- forgetting --------------------------------------------------------------------------

    @precondition(lambda self: any(one.memories for one in self.tenants))
    @rule(who=tenants, which=picks, mode=st.sampled_from(MODES), dry=st.booleans())
    def forget_ids(self, who, which, mode, dry):
        tenant = self.tenants[who]
        known = [*tenant.memories, *tenant.episodes]
        if not known:
            return
        ids = (known[which % len(known)], known[which // 7 % len(known)])
        self._forget(tenant, mode, dry, set(ids), ids=ids)

    @rule(
        who=tenants,
        subject=subjects,
        contexts=st.sampled_from([None, frozenset({"work"}), frozenset({"work"})]),
        mode=st.sampled_from(MODES),
        dry=st.booleans(),
    )
    def forget_subject(self, who, subject, contexts, mode, dry):
        tenant = self.tenants[who]
        if any(key.subject == subject and t.rows() for key, t in tenant.timelines.items()):
            return  # the model does not follow what that does to timelines
        ids = {
            one
            for records in (tenant.memories, tenant.episodes)
            for one, model in records.items()
            if model["subject"] == subject and (contexts is None or model["context"] in contexts)
        }
        self._forget(tenant, mode, dry, ids, subject=subject, contexts=contexts)

    def _forget(self, tenant, mode, dry, chosen, **selector):
        before = self.records(tenant)
        request_id = f"f{next(self.requests)}"
        report = self.both(
            tenant,
            lambda service: service.forget(mode, dry_run=dry, request_id=request_id, **selector),
        )
        changed = self._forgotten(tenant, mode, chosen, apply=not dry)
        memories = sum(one in tenant.memories for one in changed)
        assert (report.memories, report.episodes) == (memories, len(changed) - memories)
        assert set(report.sample_ids) == changed
        if dry:
            assert self.records(tenant) == before
            return
        after = self.records(tenant)
        again = self.both(
            tenant, lambda service: service.forget(mode, request_id=request_id, **selector)
        )
        assert again == report
        assert self.records(tenant) == after
        stored = {
            one.id: one.version
            for listing in (False, True)
            for one in self.services[0].listed(
                EVERYTHING, partition=tenant.partition, episodes=listing
            )
        }
        for one in changed:
            model = tenant.memories.get(one) or tenant.episodes[one]
            assert stored[one] > model["version"]
            model["version"] = stored[one]

    def _forgotten(self, tenant, mode, ids, *, apply) -> set[UUID]:
        changed = set()
        for one in list(ids):
            recalling = tenant.episodes.get(one, {}).get("memory_id")
            if recalling is not None:
                ids.add(recalling)
        for one in ids:
            model = tenant.memories.get(one) or tenant.episodes[one]
            tried = dict(model)
            if one in tenant.episodes or mode is ForgetMode.EXPIRE:
                done = tried["expired_at"] == FOREVER
                tried["expired_at"] = self.now()
            else:
                done = self._retracted(tried, self.now())
            if done:
                changed.add(one)
                if apply:
                    if one in tenant.memories:
                        tenant.change(one, self.now(), **{**tried, "updated_at": self.now()})
                    else:
                        model.update(tried)
        return changed

    @precondition(
        lambda self: any(t.rows() for one in self.tenants for t in one.timelines.values())
    )
    @rule(who=tenants, which=picks)
    def forget_fact(self, who, which):
        tenant = self.tenants[who]
        keys = [key for key, timeline in tenant.timelines.items() if timeline.rows()]
        if not keys:
            return
        key = keys[which % len(keys)]
        self.both(tenant, lambda service: service.forget(fact=key))
        for row in tenant.timelines[key].rows():
            assert row.memory_id in self._hidden(tenant)

    # --- promises across calls ---------------------------------------------------------------

    @precondition(lambda self: any(one.requests for one in self.tenants))
    @rule(who=tenants, which=picks, other=st.booleans())
    def retry(self, who, which, other):
        tenant = self.tenants[who]
        if not tenant.requests:
            return
        call, first = tenant.requests[which % len(tenant.requests)]
        before = self.records(tenant)
        more = {**call, **({"digest": b"other"} if other else {})}
        mutations = more.pop("mutations")
        answer = self.both(tenant, lambda service: service.write(*mutations, **more))
        if other:
            assert answer[0] is Reason.REQUEST_ID_REUSED
        else:
            assert answer.replayed
            assert (answer.results, answer.revision) == (first.results, first.revision)
        assert self.records(tenant) == before

    @rule(
        who=tenants,
        place=st.integers(0, 3),
        bad=st.sampled_from(["missing", "stale", "taken", "malformed", "dimension", "guard"]),
    )
    def a_batch_that_fails(self, who, place, bad):
        tenant = self.tenants[who]
        before = self.records(tenant)
        taken = next(iter(tenant.memories), None)
        failing, reason = {
            "missing": (retract(uuid7(99)), Reason.NOT_FOUND),
            "stale": (put_fact(when=version_is(10**6), attribute="z"), Reason.VERSION_MISMATCH),
            "taken": (add(id=taken), Reason.ALREADY_EXISTS),
            "malformed": (add(""), Reason.INVALID_FIELD),
            "dimension": (add(vector=floats(1)), Reason.DIMENSION_MISMATCH),
            "guard": (add(), Reason.NOT_FOUND),
        }[bad]
        if bad == "taken" and taken is None:
            return
        mutations = [
            add("a", vector=VECTORS[1]),
            put_fact("v", attribute="new"),
            episode("e"),
        ]
        mutations.insert(place, failing)
        if bad == "dimension" and place == 0 and b"aembedder" not in before:
            mutations.reverse()
            place = 3
        guards = (Guard(EXISTS, memory_id=uuid7(98)),) if bad == "guard" else ()
        answer = self.both(tenant, lambda service: service.write(*mutations, guards=guards))
        assert answer[:2] == (reason, None if bad == "guard" else str(place))
        assert self.records(tenant) == before

    @precondition(lambda self: any(one.memories for one in self.tenants))
    @rule(who=tenants, which=picks)
    def another_tenants_ids_are_not_there(self, who, which):
        tenant, other = self.tenants[who], self.tenants[1 - who]
        known = [*other.memories, *other.episodes]
        known = [one for one in known if one not in tenant.memories | tenant.episodes]
        if not known:
            return
        theirs = known[which % len(known)]
        before = self.records(other)
        for call in (
            lambda service: service.get(theirs),
            lambda service: service.write(patch(theirs, pinned=True)),
            lambda service: service.write(retract(theirs)),
            lambda service: service.forget(ids=(theirs,)),
            lambda service: service.history(memory_id=theirs),
        ):
            assert self.both(tenant, call)[0] is Reason.NOT_FOUND
        assert self.records(other) == before

    @rule(seconds=st.sampled_from([1, 2, 3600, 40 * 86_400]))
    def time_passes(self, seconds):
        self.clock.advance(seconds * SECOND)

    # --- reading -----------------------------------------------------------------------------

    @rule(
        who=tenants,
        wanted=filters(),
        vector=st.sampled_from(VECTORS),
        top_k=st.sampled_from([1, 3, 100]),
    )
    def search(self, who, wanted, vector, top_k):
        tenant = self.tenants[who]
        answer = self.both(
            tenant,
            lambda service: service.search(vector=vector, top_k=top_k, filter=wanted),
        )
        everything = self.services[0].listed(EVERYTHING, partition=tenant.partition)
        admitted = [one for one in everything if wanted.admits(one, self.now(), self.now())]
        has_space = b"aembedder" in self.records(tenant)
        expected = sorted(
            (-self._score(one, vector if has_space else b""), one.id) for one in admitted
        )[:top_k]
        assert answer.admitted == len(admitted)
        assert len(answer.hits) == len(expected)
        scores = {one.id: self._score(one, vector if has_space else b"") for one in admitted}
        for hit, (negative, _) in zip(answer.hits, expected, strict=True):
            assert hit.memory == next(one for one in admitted if one.id == hit.memory.id)
            assert abs(hit.score - scores[hit.memory.id]) < 1e-5
            assert abs(hit.score + negative) < 1e-5
        for one, following in itertools.pairwise(answer.hits):
            assert (-one.score, one.memory.id) < (-following.score, following.memory.id)

    def _score(self, memory, query) -> float:
        profile = ranker.Profile(half_life=HALF_LIVES)
        relevance = np.float32(0)
        vector = self.vectors.get(memory.id, b"")
        if query and vector:
            one, other = (np.frombuffer(v, "<f4").astype(np.float64) for v in (query, vector))
            cosine = np.dot(one / np.linalg.norm(one), other / np.linalg.norm(other))
            relevance = semantic_of(profile, np.float32(cosine))
        recency = recency_of(
            profile,
            kind=memory.kind,
            attribute=0,  # none is registered
            valid_from=memory.valid_from,
            last_used=memory.last_used_at,
            now=self.now(),
        )
        return float(
            score_of(
                profile,
                relevance=relevance,
                recency=recency,
                importance=np.float32(memory.importance),
                flags=0,
            )
        )

    @property
    def vectors(self):
        """Vectors as stored, of both tenants: ids differ."""
        return {
            UUID(bytes=key[1:]): value
            for tenant in self.tenants
            for key, (_, value) in self.records(tenant).items()
            if key[:1] == b"v"
        }

    @rule(who=tenants, size=st.integers(1, 3), episodes=st.booleans())
    def list_a_page(self, who, size, episodes):
        """Go on with a listing that began some steps ago: it still shows what was then."""
        tenant = self.tenants[who]
        wanted = Filter(contexts=None, valid_only=False, include_expired=True)
        if tenant.listing is None:
            now = self.both(
                tenant,
                lambda service: [one.id for one in service.listed(wanted, episodes=episodes)],
            )
            tenant.listing = ("", now, episodes)
        token, left, episodes = tenant.listing
        page = self.both(
            tenant,
            lambda service: service.list(
                wanted, page_size=size, page_token=token, episodes=episodes
            ),
        )
        ids = [(one.memory or one.episode).id for one in page.records]
        assert ids == left[:size]
        left = left[size:]
        assert bool(page.next_token) == bool(left)
        tenant.listing = (page.next_token, left, episodes) if left else None

    @rule(who=tenants, which=picks, wanted=filters(), vector=st.sampled_from(VECTORS))
    def read_the_past(self, who, which, wanted, vector):
        """A state of the past is the same on both stores, and the same each time it is read."""
        tenant = self.tenants[who]
        head = self.services[0].store.head(tenant.partition)
        read = ReadAt(exact_revision=which % (head.revision + 1))
        asked = (read, wanted, vector)

        def answers(service):
            listed = service.list(wanted, read=read)
            found = service.search(vector=vector, top_k=3, filter=wanted, read=read)
            assert found.admitted == len(listed.records)
            return listed, found

        tenant.past.append((asked, self.both(tenant, answers)))
        (read, wanted, vector), before = tenant.past[which % len(tenant.past)]
        assert self.both(tenant, answers) == before

    # --- what always holds -------------------------------------------------------------------

    @invariant()
    def stores_agree_with_each_other_and_the_model(self):
        if not hasattr(self, "services"):
            return
        for tenant in self.tenants:
            ram, lmdb = (service.records(tenant.partition) for service in self.services)
            assert ram == lmdb
            stored = {
                one.id: one
                for one in self.services[0].listed(EVERYTHING, partition=tenant.partition)
            }
            facts = {one.id for one in stored.values() if one.is_fact}
            assert stored.keys() - facts == tenant.memories.keys()
            for memory_id, model in tenant.memories.items():
                for name, value in model.items():
                    if name not in ("vector", "closed"):
                        assert getattr(stored[memory_id], name) == value, name
                assert ram.get(b"v" + memory_id.bytes, (0, b""))[1] == model["vector"]
            episodes = {
                one.id: one
                for one in self.services[0].listed(
                    EVERYTHING, partition=tenant.partition, episodes=True
                )
            }
            assert episodes.keys() == tenant.episodes.keys()
            for episode_id, model in tenant.episodes.items():
                for name, value in model.items():
                    assert getattr(episodes[episode_id], name) == value
            rows = {
                (one.fact_key, one.valid_from, one.valid_to, one.value.data.encode())
                for one in stored.values()
                if one.is_fact and one.on_timeline
            }
            assert rows == {
                (key, row.valid_from, row.valid_to, row.fingerprint)
                for key, timeline in tenant.timelines.items()
                for row in timeline.rows()
            }


ServiceMachine.TestCase.settings = settings(
    max_examples=settings.default.max_examples,
    stateful_step_count=settings.default.stateful_step_count + 10,
)
TestServiceModel = ServiceMachine.TestCase
