"""Migrations that go on only when a test says so, and what they are tried on."""

from __future__ import annotations

from pillion.domain.memory import Source, SourceKind
from pillion.domain.migrations import Convert, ValueType
from pillion.domain.operations import MigrateCommand
from pillion.domain.schemas import ExistingValues
from pillion.jobs.operations import OperationsJob

from pillion_testing.service import ram_service

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TO_INT = (Convert(ValueType.INT),)
INFERRED = Source(SourceKind.INFERENCE)


class ByHand:
    """A service whose long work goes on only when a test says so."""

    def __init__(self, **more):
        self.service = ram_service(**more)
        cases = self.service.use_cases
        for close in cases.closers:
            if isinstance(getattr(close, "__self__", None), OperationsJob):
                close()
        self.operator = cases.operator

    def migrate(self, steps=(), *, to=2, **more):
        command = MigrateCommand(attribute="deadline", schema_version=to, steps=steps, **more)
        service = self.service
        return service.use_cases.migrator.migrate(service.partition, command, service.patience)

    def roll_back(self, operation):
        service = self.service
        return service.use_cases.migrator.roll_back(
            service.partition, str(operation.id), service.patience
        )

    def get(self, operation):
        return self.service.use_cases.operations.get(self.service.partition, str(operation.id))

    def cancel(self, operation):
        service = self.service
        return service.use_cases.operations.cancel(
            service.partition, str(operation.id), service.patience
        )

    def step(self, operation):
        return self.operator.advance(self.service.partition, operation.id)

    def finish(self, operation):
        while self.step(operation):
            pass
        return self.get(operation)

    def stated(self):
        """Every fact as it can be read: value, text and version of the schema by id."""
        return {
            one.id: (one.value.data, one.text, one.schema_version, one.valid_from, one.valid_to)
            for one in self.service.listed()
        }


def versions(service):
    service.register(TEXT)
    service.register(NUMBER, existing=ExistingValues.MAY_DIFFER)


def history(hand, count=5):
    """A timeline of several rows with evidence, under the first version; then the second."""
    service = hand.service
    service.register(TEXT)
    for number in range(count):
        service.put(str(number), valid_from=10 * number + 1)
        service.put(str(number), valid_from=10 * number + 5)
    service.register(NUMBER, existing=ExistingValues.MAY_DIFFER)
