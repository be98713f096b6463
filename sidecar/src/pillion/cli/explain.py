"""``pillion explain``: how a search came to its answer, or where one memory was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from pillion.cli.diagnosis import LOST, Question, diagnosed
from pillion.cli.selecting import (
    condition_options,
    ranking_options,
    read_options,
    taken_filter,
    taken_ranking,
    taken_read,
)
from pillion.cli.session import Session, pass_session, shared_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pillion_client import SearchResult

    from pillion.cli.diagnosis import Finding


@click.command()
@click.argument("text", required=False)
@click.option("-k", "--top-k", type=int, default=10, show_default=True, help="How many.")
@click.option("--score-min", type=float, default=0.0, help="Drop hits with a lower score.")
@click.option("--memory", "memory_id", metavar="ID", help="Say where this memory was lost.")
@click.option(
    "--budget", type=int, default=1000, show_default=True, help="With --memory: tokens of Recall."
)
@ranking_options
@condition_options
@read_options
@shared_options()
@pass_session
def explain(
    session: Session,
    /,
    text: str | None,
    *,
    top_k: int,
    score_min: float,
    memory_id: str | None,
    budget: int,
    **given: Any,  # noqa: ANN401  (see `selecting`)
) -> None:
    """Show how a search came to its answer, or where a memory was lost.

    Every near candidate, its score, and what dropped it; no content. With --memory the layers in
    order: stored, committed, indexed, scope, filters, ranked, recalled.
    """
    chosen, read, order = taken_filter(given), taken_read(given), taken_ranking(given)
    with session.client() as client:
        if memory_id is None:
            result = client.search(
                text,
                top_k=top_k,
                score_min=score_min,
                include_trace=True,
                without_access=True,  # to look at an answer is not to use it
                filter=chosen,
                **order,
                **read,
            )
            _show_trace(session, result)
            return
        asked = Question(
            text=text,
            chosen=chosen,
            read=read,
            order=order,
            top_k=top_k,
            score_min=score_min,
            token_budget=budget,
        )
        findings = list(diagnosed(client, memory_id, asked))
    _show_findings(session, memory_id, findings)


def _show_trace(session: Session, result: SearchResult) -> None:
    trace, output = result.trace, session.output
    candidates = trace.candidates if trace is not None else ()
    steps = {one.step: one.duration.ToMicroseconds() for one in trace.timings} if trace else {}
    if session.json:
        output.document(
            {
                "path": result.path.value,
                "exactness": result.exactness.value,
                "revision": result.revision,
                "memories": trace.memories if trace else 0,
                "admitted": trace.admitted if trace else 0,
                "scored": trace.scored if trace else 0,
                "candidates": [_candidate(one) for one in candidates],
                "timings_us": steps,
            }
        )
        return
    columns = ("score", "id", "relevance", "recency", "importance", "cosine", "by", "dropped")
    output.records(columns, [_row(one) for one in candidates], lead=2)
    if trace is not None:
        output.line(
            f"{result.path.value}, {result.exactness.value}: {len(result.hits)} hits, "
            f"{trace.scored} scored of {trace.memories} memories, at revision {result.revision}"
        )
    output.line(", ".join(f"{step} {taken} us" for step, taken in steps.items()))


def _candidate(one: Any) -> dict[str, Any]:  # noqa: ANN401  (a message of the contract)
    parts = one.parts
    return {
        "memory_id": one.memory_id,
        "score": one.score,
        "relevance": parts.relevance,
        "recency": parts.recency,
        "importance": parts.importance,
        "cosine": parts.cosine if parts.HasField("cosine") else None,
        "lexical": parts.lexical if parts.HasField("lexical") else None,
        "proposed_by": list(one.proposed_by),
        "dropped_by": one.dropped_by,
    }


def _row(one: Any) -> tuple[str, ...]:  # noqa: ANN401  (as above)
    parts = one.parts
    return (
        f"{one.score:.3f}",
        one.memory_id,
        f"{parts.relevance:.2f}",
        f"{parts.recency:.2f}",
        f"{parts.importance:.2f}",
        f"{parts.cosine:.2f}" if parts.HasField("cosine") else "",
        ", ".join(one.proposed_by),
        one.dropped_by or "returned",
    )


def _show_findings(session: Session, memory_id: str, findings: Sequence[Finding]) -> None:
    output = session.output
    if session.json:
        output.document(
            {
                "memory_id": memory_id,
                "lost_at": next((one.layer for one in findings if one.verdict == LOST), None),
                "layers": [
                    {
                        "layer": one.layer,
                        "verdict": one.verdict,
                        "detail": one.detail,
                        "advice": one.advice,
                    }
                    for one in findings
                ],
            }
        )
        return
    rows = [(one.layer, one.verdict, one.detail, one.advice) for one in findings]
    output.records(("layer", "verdict", "what was seen", "what to do"), rows, lead=2)
