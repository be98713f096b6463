"""Where one memory was lost on its way to an answer: the layers in order, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pillion_client import Memory, NotFound

from pillion.cli.show import interval, moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pillion_client import Client, Filter
    from pillion_client.options import ReadOptions

OK: Final = "ok"
LOST: Final = "lost"
LATE: Final = "late"
SKIPPED: Final = "skipped"
# The most that one search returns: beyond it nobody looks.
RESULTS_MAX: Final = 1000

_ADVICE: Final = {
    "include_retracted": "it was retracted or corrected; `pillion history` says when",
    "validity": "it does not hold at that instant; ask --as-of another one, or with --superseded",
    "include_expired": "it has expired or was forgotten",
    "subjects": "the search names other subjects",
    "contexts": "the search looks in other contexts: name its own with --context",
    "kinds": "the search names other kinds",
    "statuses": "it is a candidate: confirm it (`pillion confirm`), or ask for candidates",
    "attributes": "the search names other attributes",
    "labels_all": "it lacks a label that the search wants",
    "session_ids": "it is of another session",
}
_DROPS: Final = {
    "score_min": "its score is below --score-min: lower it",
    "below_top_k": "others score higher: ask for more (-k), or say more in the query",
    "folded": "it is an older statement, folded into the latest one",
    "diversity": "it repeats what is there already: ask with less diversity",
    "not_proposed": "the vector index did not propose it: ask for more, or reindex",
    "gone": "it was changed while the search ran: ask again",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one layer says: ``verdict`` is ok, late (found, but not by meaning yet), lost, skipped.

    ``advice``: what to do about it; "": nothing.
    """

    layer: str
    verdict: str
    detail: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The search that a memory is missed in; ``order``: its arguments that say how to rank."""

    text: str | None
    chosen: Filter
    read: ReadOptions
    order: dict[str, Any]
    top_k: int
    score_min: float
    token_budget: int


def diagnosed(client: Client, memory_id: str, asked: Question) -> Iterator[Finding]:
    """Yield what each layer says of a memory, up to the first that lost it."""
    recorded = _recorded(asked.read)
    try:
        memory = client.get(memory_id, **recorded)
    except NotFound:
        where = "in that recorded state" if recorded else "in this partition"
        yield Finding(
            "stored",
            LOST,
            f"no record of this id {where}",
            "check the id, --namespace and --tenant; it may never have been written, or be erased",
        )
        return
    yield Finding("stored", OK, f"a memory about {memory.subject}, {memory.kind.value}")
    at = moment(memory.updated_at)
    yield Finding("committed", OK, f"revision {memory.version}, recorded {at}")
    if memory.vector_pending:
        yield Finding(
            "indexed",
            LATE,
            "its vector is not there yet: words, recency and importance find it, meaning does not",
            "wait until `pillion stats` shows no vectors pending",
        )
    else:
        yield Finding("indexed", OK, "no vector is pending")
    scope = _scope(memory, asked.chosen)
    yield scope
    if scope.verdict == LOST:
        return
    findings = list(_ranked(client, memory, asked))
    yield from findings
    if findings[-1].verdict != LOST:
        yield _recalled(client, memory, asked)


def _recorded(read: ReadOptions) -> ReadOptions:
    """Return the recorded state that is read; the instant of validity is the filter's business."""
    kept = read.copy()
    kept.pop("as_of", None)
    return kept if any(kept.values()) else {}


def _scope(memory: Memory, chosen: Filter) -> Finding:
    if chosen.subjects and str(memory.subject) not in {str(one) for one in chosen.subjects}:
        return Finding("scope", LOST, f"it is about {memory.subject}", _ADVICE["subjects"])
    contexts = chosen.contexts or ("",)
    if not chosen.all_contexts and memory.context not in contexts:
        where = f"context {memory.context!r}" if memory.context else "the main context"
        return Finding("scope", LOST, f"it is in {where}", _ADVICE["contexts"])
    return Finding("scope", OK, "partition, subject and context fit")


def _ranked(client: Client, memory: Memory, asked: Question) -> Iterator[Finding]:
    result = client.search(
        asked.text,
        top_k=asked.top_k,
        score_min=asked.score_min,
        include_trace=True,
        without_access=True,
        filter=asked.chosen,
        **asked.order,
        **asked.read,
    )
    ids = [hit.id for hit in result.hits]
    valid = interval(memory.valid_from, memory.valid_to)
    if memory.id in ids:
        yield Finding("filters", OK, f"it is admitted; valid {valid}")
        place = ids.index(memory.id)
        older = result.hits[place].older_statement
        detail = f"place {place + 1} of {len(ids)}, score {result.hits[place].score:.3f}"
        if older:
            detail += "; a later statement of the same thing stands before it"
        yield Finding("ranked", OK, detail)
        return
    candidates = result.trace.candidates if result.trace is not None else ()
    traced = next((one for one in candidates if one.memory_id == memory.id), None)
    if traced is not None and traced.dropped_by.startswith("filter:"):
        name = traced.dropped_by.removeprefix("filter:")
        advice = _ADVICE.get(name, "change this condition of the search")
        yield Finding("filters", LOST, f"{name} keeps it out; valid {valid}", advice)
        return
    last = f"the last hit has {result.hits[-1].score:.3f}" if result.hits else "nothing matched"
    if traced is not None:
        yield Finding("filters", OK, f"it is admitted; valid {valid}")
        detail = f"{traced.dropped_by}: score {traced.score:.3f}, {last}"
        yield Finding("ranked", LOST, detail, _DROPS.get(traced.dropped_by, ""))
        return
    # Too far down for the trace: look for it among everything that one search may return.
    wide = client.search(
        asked.text,
        top_k=RESULTS_MAX,
        without_access=True,
        filter=asked.chosen,
        **asked.order,
        **asked.read,
    )
    found = [hit.id for hit in wide.hits]
    if memory.id in found:
        yield Finding("filters", OK, f"it is admitted; valid {valid}")
        place = found.index(memory.id)
        detail = f"place {place + 1}, score {wide.hits[place].score:.3f}, {last}"
        yield Finding("ranked", LOST, detail, _DROPS["below_top_k"])
    elif len(found) < RESULTS_MAX:
        detail = f"a condition keeps it out, and it is not near; valid {valid}"
        yield Finding("filters", LOST, detail, "repeat with fewer conditions")
    else:
        detail = f"not among the first {RESULTS_MAX}; {last}"
        yield Finding("ranked", LOST, detail, _DROPS["below_top_k"])


def _recalled(client: Client, memory: Memory, asked: Question) -> Finding:
    if "recall" not in client.info().capabilities:
        return Finding("recalled", SKIPPED, "this server does not serve Recall")
    found = client.recall(
        memory.subject,
        asked.text or "",
        token_budget=asked.token_budget,
        contexts=asked.chosen.contexts or (memory.context,),
        **asked.read,
    )
    if any(line.citation.memory_id == memory.id for line in found.lines):
        return Finding("recalled", OK, f"within {asked.token_budget} tokens")
    left = next((one for one in found.omitted if one.memory_id == memory.id), None)
    if left is not None:
        advice = "give it more tokens (--budget)" if left.reason == "budget" else ""
        return Finding("recalled", LOST, f"left out of {left.section.value}: {left.reason}", advice)
    return Finding("recalled", LOST, "no section took it", "say more in the query")
