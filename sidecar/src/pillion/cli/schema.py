"""``pillion schema``: register attributes, look at what is registered, migrate values."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import click
from pillion_client import (
    Cardinality,
    ConflictPolicy,
    ExistingValues,
    must_exist,
    must_not_exist,
    unconditional,
    version_equals,
)

from pillion.cli.documents import document
from pillion.cli.following import follow
from pillion.cli.migration_steps import read_steps
from pillion.cli.parameters import SPAN
from pillion.cli.session import Session, pass_session, shared_options
from pillion.cli.show import moment, shortened

if TYPE_CHECKING:
    from datetime import timedelta

    from pillion_client import AttributeSchema, MigrateResult, Operation, Precondition

_COLUMNS = ("attribute", "version", "values", "subjects", "registered", "schema")
_CARDINALITIES = [one.value for one in Cardinality if one is not Cardinality.UNSPECIFIED]
_POLICIES = [one.value for one in ConflictPolicy if one is not ConflictPolicy.UNSPECIFIED]
_SHOWN_IDS = 10


@click.group()
@shared_options()
def schema() -> None:
    """Register attributes with a JSON Schema, and look at what is registered."""


@schema.command()
@click.argument("attribute")
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option("--subject-type", "subject_types", multiple=True, help="Only these may have it.")
@click.option("--cardinality", type=click.Choice(_CARDINALITIES), help="Values at one instant.")
@click.option("--half-life", type=SPAN, help="In ranking, as in 12h or 30d.")
@click.option("--retention-class", default="", help="Of new values.")
@click.option("--pii", "pii_labels", multiple=True, help="A kind of personal data in its values.")
@click.option("--conflict-policy", type=click.Choice(_POLICIES), help="Where a statement has none.")
@click.option("--may-differ", is_flag=True, help="Even if values that are there do not fit.")
@click.option("--new", is_flag=True, help="Only if it is not registered yet.")
@click.option("--if-version", type=click.IntRange(min=1), help="Only if this is its version token.")
@click.option("--existing", is_flag=True, help="Only if it is registered already.")
@click.option("--validate-only", is_flag=True, help="Check everything, change nothing.")
@shared_options()
@pass_session
def register(
    session: Session,
    /,
    *,
    attribute: str,
    file: IO[str],
    subject_types: tuple[str, ...],
    cardinality: str | None,
    half_life: timedelta | None,
    retention_class: str,
    pii_labels: tuple[str, ...],
    conflict_policy: str | None,
    may_differ: bool,
    new: bool,
    if_version: int | None,
    existing: bool,
    validate_only: bool,
) -> None:
    """Register ATTRIBUTE with the JSON Schema in FILE ("-": stdin)."""
    try:
        text = file.read()
    except UnicodeDecodeError as error:
        message = f"{file.name} is not UTF-8"
        raise click.UsageError(message) from error
    precondition = _precondition(if_version, new=new, existing=existing)
    with session.client() as client:
        done = client.register_attribute(
            attribute,
            text,
            precondition=precondition,
            subject_types=subject_types,
            cardinality=cardinality or Cardinality.UNSPECIFIED,
            half_life=half_life,
            retention_class=retention_class,
            pii_labels=pii_labels,
            conflict_policy=conflict_policy or ConflictPolicy.UNSPECIFIED,
            existing_values=ExistingValues.MAY_DIFFER if may_differ else ExistingValues.MUST_FIT,
            validate_only=validate_only,
        )
    if session.json:
        session.output.document(document(done))
        return
    would = "would be " if validate_only else ""
    session.output.line(f"{attribute}: {would}schema version {done.schema.schema_version}")
    if done.misfits:
        shown = ", ".join(done.misfit_ids[:_SHOWN_IDS])
        session.output.line(f"{done.misfits} values that are there do not fit: {shown}")


def _precondition(if_version: int | None, *, new: bool, existing: bool) -> Precondition:
    if sum((new, existing, if_version is not None)) > 1:
        message = "--new, --existing and --if-version exclude each other: give one"
        raise click.UsageError(message)
    if if_version is not None:
        return version_equals(if_version)
    if new:
        return must_not_exist
    return must_exist if existing else unconditional


@schema.command()
@click.argument("attribute")
@click.option(
    "--schema-version", type=click.IntRange(min=0), default=0, help="Which; 0: the latest."
)
@shared_options()
@pass_session
def show(session: Session, attribute: str, *, schema_version: int) -> None:
    """Show a registered attribute."""
    with session.client() as client:
        found = client.get_attribute(attribute, schema_version=schema_version)
    if session.json:
        session.output.document(document(found))
        return
    session.output.pairs(
        "",
        [
            ("attribute", found.attribute),
            ("schema version", str(found.schema_version)),
            ("version token", str(found.version)),
            ("registered", moment(found.registered_at)),
            ("values at once", found.cardinality.value),
            ("half-life", "" if found.half_life is None else str(found.half_life)),
            ("subject types", ", ".join(found.subject_types)),
            ("retention class", found.retention_class or ""),
            ("personal data", ", ".join(found.pii_labels)),
            ("conflict policy", _said(found.conflict_policy)),
        ],
    )
    session.output.line(found.json_schema)


def _said(policy: ConflictPolicy) -> str:
    return "" if policy is ConflictPolicy.UNSPECIFIED else policy.value


@schema.command(name="list")
@shared_options()
@pass_session
def list_(session: Session) -> None:
    """List the registered attributes by name."""
    output = session.output
    with session.client() as client:
        found = client.list_attributes()
        if session.json:
            for one in found:
                output.document(document(one))
            return
        rows = [_row(one) for one in found]
    if rows:
        output.records(_COLUMNS, rows, lead=1, labelled=True)
    else:
        output.line("no attribute is registered")


def _row(found: AttributeSchema) -> tuple[str, ...]:
    return (
        found.attribute,
        str(found.schema_version),
        found.cardinality.value,
        ", ".join(found.subject_types) or "any",
        moment(found.registered_at),
        shortened(found.json_schema),
    )


@schema.command()
@click.argument("attribute")
@click.argument("to", metavar="SCHEMA_VERSION", type=click.IntRange(min=1))
@click.option("--steps", type=click.File(encoding="utf-8"), help="A JSON list of steps.")
@click.option("--yes", is_flag=True, help="Do it, and not only show what would change.")
@shared_options()
@pass_session
def migrate(
    session: Session, attribute: str, to: int, *, steps: IO[str] | None, yes: bool
) -> int | None:
    """Bring values of older schema versions to SCHEMA_VERSION.

    What would change is shown first; --yes shows it and does it. Steps are objects of one key:
    {"convert": "int"}, {"replace": {"from": 1, "to": 2}}, {"rename_property": {"from": "a", "to":
    "b"}}, {"default_property": {"name": "a", "value": 1}}, {"remove_property": "a"}, {"wrap":
    "a"}, {"unwrap": "a"}.
    """
    chosen = read_steps(steps) if steps is not None else ()
    with session.client() as client:
        plan = client.migrate_attribute(attribute, to, steps=chosen, dry_run=True)
        if not yes:
            _show_plan(session, plan)
            return None
        begun = client.migrate_attribute(attribute, to, steps=chosen)
        if begun.operation is None:
            raise AssertionError("a migration that is no dry run has an operation")
        return follow(session, client, begun.operation, _show_end)


def _show_plan(session: Session, plan: MigrateResult) -> None:
    if session.json:
        session.output.document(document(plan))
        return
    session.output.line(f"{plan.values} values would be migrated")
    if plan.misfit_ids:
        shown = ", ".join(plan.misfit_ids[:_SHOWN_IDS])
        session.output.line(f"at least {len(plan.misfit_ids)} would not fit: {shown}")
    session.output.note("nothing was changed; say --yes to do it")


@schema.command()
@click.argument("operation")
@shared_options()
@pass_session
def rollback(session: Session, operation: str) -> int | None:
    """Take a migration back before its end, by the name of its OPERATION."""
    with session.client() as client:
        return follow(session, client, client.roll_back_migration(operation), _show_end)


def _show_end(session: Session, operation: Operation) -> None:
    report = operation.migration
    if report is None:
        why = f": {operation.failure_reason}" if operation.failure_reason else ""
        session.output.line(f"{operation.state.value}{why}")
        return
    session.output.line(f"{report.migrated} values done, {report.misfits} left as they are")
    if report.misfit_ids:
        session.output.line(f"left: {', '.join(report.misfit_ids[:_SHOWN_IDS])}")
