"""``pillion search``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from pillion_client import GraphExpansion

from pillion.cli.documents import document
from pillion.cli.selecting import (
    condition_options,
    ranking_options,
    read_options,
    taken_filter,
    taken_ranking,
    taken_read,
)
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import MEMORY_COLUMNS, memory_row, path_text

if TYPE_CHECKING:
    from pillion_client import SearchHit, SearchResult


@click.command()
@click.argument("text", required=False)
@click.option("-k", "--top-k", type=int, default=10, show_default=True, help="How many.")
@click.option("--score-min", type=float, default=0.0, help="Drop hits with a lower score.")
@click.option("--parts", is_flag=True, help="Show the parts of each score.")
@click.option("--expand", type=int, help="Also what is connected with the hits, so many edges far.")
@ranking_options
@condition_options
@read_options
@shared_options()
@pass_session
def search(
    session: Session,
    /,
    text: str | None,
    *,
    top_k: int,
    score_min: float,
    parts: bool,
    expand: int | None,
    **given: Any,  # noqa: ANN401  (see `selecting`)
) -> None:
    """Find the best memories for a text.

    Without TEXT: the most recent and important ones.
    """
    chosen, read, order = taken_filter(given), taken_read(given), taken_ranking(given)
    with session.client() as client:
        result = client.search(
            text,
            top_k=top_k,
            score_min=score_min,
            include_parts=parts,
            filter=chosen,
            expansion=None if expand is None else GraphExpansion(expand),
            **order,
            **read,
        )
        if session.json:
            session.output.document(_document(result))
        else:
            _show(session, result, parts=parts)


def _document(result: SearchResult) -> dict[str, Any]:
    return {
        "hits": document(result.hits),
        "revision": result.revision,
        "exactness": result.exactness.value,
        "path": result.path.value,
        "admitted": result.admitted,
        "vectors_pending": result.vectors_pending,
    }


def _show(session: Session, result: SearchResult, *, parts: bool) -> None:
    output = session.output
    if not result.hits:
        output.line("nothing matched")
        return
    columns = ["score", *(("parts",) if parts else ()), *MEMORY_COLUMNS]
    found = [hit for hit in result.hits if not hit.path]
    walked = [hit for hit in result.hits if hit.path]
    output.records(columns, [_row(hit, parts=parts) for hit in found], lead=3 if parts else 2)
    if walked:
        output.line("connected with these:")
        rows = [(*_row(hit, parts=parts), path_text(hit.path)) for hit in walked]
        output.records([*columns, "path"], rows, lead=3 if parts else 2)
    output.line(
        f"{len(found)} of {result.admitted or 'the'} admitted memories, "
        f"{result.exactness.value}, at revision {result.revision}"
    )
    if result.vectors_pending:
        output.line(f"{result.vectors_pending} of them have no vector yet: ask again for relevance")


def _row(hit: SearchHit, *, parts: bool) -> tuple[str, ...]:
    older = " (older)" if hit.older_statement else ""
    folded = f" (+{len(hit.folded_ids)} older)" if hit.folded_ids else ""
    scored = [f"{hit.score:.3f}{older}{folded}"]
    if parts:
        scored.append(_parts(hit))
    return (*scored, *memory_row(hit.memory))


def _parts(hit: SearchHit) -> str:
    """Return the parts of a score; words are told of where one matched."""
    given = hit.parts
    if given is None:
        return ""
    words = "" if given.lexical is None else f" words {given.lexical:.2f}"
    return f"rel {given.relevance:.2f} rec {given.recency:.2f} imp {given.importance:.2f}{words}"
