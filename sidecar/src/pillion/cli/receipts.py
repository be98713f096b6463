"""``pillion receipts``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pillion.cli.documents import document
from pillion.cli.session import Session, pass_session, shared_options

if TYPE_CHECKING:
    from pillion_client import ErasureReceipt

    from pillion.cli.output import Output


@click.command()
@click.argument("receipt_id", required=False)
@click.option("--all", "every_partition", is_flag=True, help="Of every partition.")
@click.option("--limit", default=20, show_default=True, help="At most so many.")
@shared_options()
@pass_session
def receipts(
    session: Session, *, receipt_id: str | None, every_partition: bool, limit: int
) -> None:
    """Show what was erased, from where, and how that was proved."""
    if receipt_id is not None and every_partition:
        message = "a receipt is named in its own partition: leave --all out"
        raise click.UsageError(message)
    with session.client() as client:
        if receipt_id is not None:
            found: tuple[ErasureReceipt, ...] = (client.erasure_receipt(receipt_id),)
        else:
            found, _ = client.erasure_receipts(every_partition=every_partition, page_size=limit)
    if session.json:
        session.output.document(document(found))
        return
    for one in found:
        show_receipt(session.output, one)
    if not found:
        session.output.line("nothing was erased")


def show_receipt(output: Output, receipt: ErasureReceipt) -> None:
    """Print one receipt."""
    output.pairs(
        f"receipt {receipt.id}",
        [
            ("partition", f"{receipt.partition.namespace}/{receipt.partition.tenant}"),
            ("proved at", receipt.erased_at.isoformat() if receipt.erased_at else ""),
            ("revision", str(receipt.revision)),
            *((one.place, f"{one.removed} ({one.method})") for one in receipt.places),
            ("proved by", receipt.verification),
            ("ledger entry", receipt.audit_entry_id or ""),
        ],
    )
