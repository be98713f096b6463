"""docs/data-file.md shows the schema as it is."""

from __future__ import annotations

from pathlib import Path

from pillion_storage import schema
from pillion_storage.lmdb import environment, upkeep, writer
from pillion_storage.lmdb.store import FEATURES

DOCUMENT = Path(__file__).parents[3] / "docs" / "data-file.md"
TEXT = DOCUMENT.read_text()


def test_the_table_is_the_schema():
    header = "| no. | name | key | value | purpose | since format |\n|---|---|---|---|---|---|\n"
    table = TEXT.split(header)[1].split("\n\n")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    assert cells == [
        [str(d.number), f"`{d.name}`", d.key, d.value, d.purpose, str(d.since_format)]
        for d in schema.DATABASES
    ]
    assert f"Format version: **{schema.FORMAT_VERSION}**" in TEXT


def test_numbers_and_names_are_unique_and_handles_are_in_order():
    assert len({d.number for d in schema.DATABASES}) == len(schema.DATABASES)
    assert tuple(d.name for d in schema.DATABASES) == environment.Databases._fields


def test_the_numbers_in_the_prose_are_those_in_the_code():
    for said in (
        f"a key has 1 to {FEATURES.key_bytes_max} bytes",
        f"a value up to {FEATURES.value_bytes_max >> 10} KiB",
        f"longest key in the file has {4 + FEATURES.key_bytes_max + 1} bytes",
        f"up to {writer._GROUP_JOBS_MAX} batches or {writer._GROUP_BYTES_MAX >> 20} MiB",
        (
            f"takes {FEATURES.batch_ops_max} operations (and as many expectations) "
            f"and {FEATURES.batch_bytes_max >> 20} MiB"
        ),
        f"steps of {upkeep._STEP_ROWS} rows",
        (
            f"(1/{environment._RESERVE_FRACTION} of the limit, "
            f"at least {environment._RESERVE_BYTES_MIN >> 20} MiB)"
        ),
    ):
        assert said in TEXT
