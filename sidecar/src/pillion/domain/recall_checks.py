"""What a Recall must look like. Raises with the field's path, or does nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pillion.domain import limits
from pillion.domain.errors import PillionError, Reason
from pillion.domain.field_checks import check_count, check_subject, check_text, check_vector_shape
from pillion.domain.queries import PLAIN_RANKING, PLAIN_READ
from pillion.domain.validation import check_ranking, check_read

if TYPE_CHECKING:
    from collections.abc import Collection

    from pillion.domain.recall import RecallQuery
    from pillion.domain.scope import Subject


def check_recall(query: RecallQuery, counters: Collection[str]) -> None:
    """Refuse a malformed Recall, or one that asks for a token counter that is not there.

    Args:
        query: What is asked.
        counters: The names of the token counters that this server has.
    """
    check_subjects(query.subjects)
    check_count("contexts", len(query.contexts), limits.FILTER_CONTEXTS_MAX)
    for context in query.contexts:
        check_text("contexts", context, limits.CONTEXT_BYTES_MAX)
    check_text("query", query.text, limits.QUERY_BYTES_MAX)
    check_vector_shape("query_vector", query.vector)
    _check_budgets(query)
    if query.token_counter not in counters:
        known = ", ".join(sorted(counters))
        raise PillionError.of_field("token_counter", f"this server has: {known}")
    if query.read is not PLAIN_READ:
        check_read(query.read)
    if query.ranking is not PLAIN_RANKING:
        check_ranking(query.ranking)


def check_subjects(subjects: Collection[Subject]) -> None:
    """Refuse no subject, too many, the same one twice, and malformed ones."""
    if not subjects:
        raise PillionError.of_field("subjects", "name 1 to 16 subjects")
    check_count("subjects", len(subjects), limits.RECALL_SUBJECTS_MAX)
    seen: set[Subject] = set()
    for at, subject in enumerate(subjects):
        check_subject(f"subjects[{at}]", subject)
        if subject in seen:
            raise PillionError.of_field(f"subjects[{at}]", "the subject is named twice")
        seen.add(subject)


def _check_budgets(query: RecallQuery) -> None:
    if query.token_budget < 1:
        raise PillionError.of_field("token_budget", "must be 1 or more")
    if query.token_budget > limits.RECALL_TOKENS_MAX:
        raise PillionError.of_field(
            "token_budget",
            f"is {query.token_budget}; at most {limits.RECALL_TOKENS_MAX} are allowed",
            Reason.LIMIT_EXCEEDED,
        )
    together = 0
    for at, tokens in enumerate(query.section_budgets.values()):
        if tokens < 0:
            raise PillionError.of_field(f"section_budgets[{at}].tokens", "must not be negative")
        together += tokens
    if together > query.token_budget:
        raise PillionError.of_field(
            "section_budgets", f"come to {together} tokens; token_budget is {query.token_budget}"
        )
