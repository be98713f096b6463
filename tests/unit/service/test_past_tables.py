"""Tables of the past: built once for all who want the same, few at once, and in the budget."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from pillion.domain.errors import PillionError, Reason
from pillion.domain.memory import MemoryKind
from pillion.domain.queries import ReadAt
from pillion.domain.scope import Partition
from pillion.service.past import Past
from pillion.service.past_tables import PastTables
from pillion_testing.service import add, ram_service

HERE = Partition("default", "default")
THERE = Partition("default", "elsewhere")


class Deadline:
    def __init__(self, seconds=10.0):
        self.seconds = seconds

    def remaining_seconds(self):
        return self.seconds

    def check(self):
        if self.seconds <= 0:
            raise PillionError(Reason.DEADLINE_EXCEEDED, "the deadline has passed")


class Table:
    """What the ranker's table is asked for here."""

    def __init__(self, size=100):
        self.size = size

    def memory_bytes(self):
        return self.size


class Taken:
    """Adds up what it hears."""

    def __init__(self):
        self.total = 0
        self.most = 0

    def __call__(self, grown):
        self.total += grown
        self.most = max(self.most, self.total)


def test_all_searches_of_one_holder_share_a_table():
    tables, built = PastTables(Taken()), []

    def build(grown):
        built.append(Table())
        return built[-1]

    with tables.holding(HERE, 7, Deadline()) as outer:
        for _ in range(3):
            with tables.holding(HERE, 7, Deadline()) as held:
                assert held is outer
                assert held.table(build, Deadline()) is built[0]
    assert len(built) == 1
    with tables.holding(HERE, 7, Deadline()) as held:
        held.table(build, Deadline())
    assert len(built) == 2, "nothing is kept that nobody holds"


def test_those_who_come_meanwhile_wait_for_the_one_who_builds():
    tables, began, go_on = PastTables(Taken()), threading.Event(), threading.Event()
    built = []

    def build(grown):
        began.set()
        assert go_on.wait(10)
        built.append(Table())
        return built[-1]

    def search(_):
        with tables.holding(HERE, 7, Deadline()) as held:
            return held.table(build, Deadline())

    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(search, one) for one in range(4)]
        assert began.wait(10)
        go_on.set()
        assert {one.result(10) for one in found} == {built[0]}
    assert len(built) == 1


@pytest.mark.parametrize(("partition", "revision"), [(THERE, 7), (HERE, 8)])
def test_there_are_no_more_than_allowed_and_the_next_is_told(partition, revision):
    tables = PastTables(Taken(), tables_max=1, wait_seconds_max=0.0)
    with tables.holding(HERE, 7, Deadline()):
        with (
            pytest.raises(PillionError) as refused,
            tables.holding(partition, revision, Deadline()),
        ):
            pytest.fail("two tables at once")
        assert refused.value.reason is Reason.OVERLOADED
        assert refused.value.retry_after_ms > 0
        with tables.holding(HERE, 7, Deadline()):
            pass  # the same one is no more than there is
    with tables.holding(partition, revision, Deadline()):
        pass


def test_whoever_waits_goes_on_when_one_goes():
    tables = PastTables(Taken(), tables_max=1)
    waits, done = threading.Event(), threading.Event()

    class Waiting(Deadline):
        def remaining_seconds(self):
            waits.set()
            return super().remaining_seconds()

    def search():
        with tables.holding(THERE, 1, Waiting()):
            done.set()

    with tables.holding(HERE, 7, Deadline()):
        thread = threading.Thread(target=search)
        thread.start()
        assert waits.wait(10)
        assert not done.is_set()
    thread.join(10)
    assert done.is_set()


def test_a_deadline_that_passes_is_named_as_such():
    tables = PastTables(Taken(), tables_max=1)
    with (
        tables.holding(HERE, 7, Deadline()),
        pytest.raises(PillionError) as refused,
        tables.holding(THERE, 7, Deadline(0.0)),
    ):
        pytest.fail("two tables at once")
    assert refused.value.reason is Reason.DEADLINE_EXCEEDED


def test_what_is_there_is_counted_while_it_is_built_and_gone_with_it():
    taken = Taken()
    tables = PastTables(taken)
    seen = []

    def build(grown):
        for size in (10, 60):
            grown(size)
            seen.append(taken.total)
        return Table(50)

    with tables.holding(HERE, 7, Deadline()) as held:
        held.table(build, Deadline())
        assert taken.total == 50
    assert (seen, taken.total, taken.most) == ([10, 60], 0, 60)


def test_a_build_that_fails_leaves_nothing_and_the_next_tries_again():
    taken = Taken()
    tables = PastTables(taken)

    def fails(grown):
        grown(1000)
        raise PillionError(Reason.CANCELLED, "the caller is gone")

    with tables.holding(HERE, 7, Deadline()) as held:
        with pytest.raises(PillionError):
            held.table(fails, Deadline())
        assert taken.total == 0
        held.table(lambda _: Table(5), Deadline())
        assert taken.total == 5
    assert taken.total == 0


# --- over a whole service --------------------------------------------------------------------


@pytest.fixture
def service():
    made = ram_service()
    for number in range(5):
        made.write(
            add(f"Mira likes harbour {number}."),
            add(f"To visit harbour {number}, ask.", kind=MemoryKind.PROCEDURAL),
        )
        made.put(f"Harbour {number}", attribute=f"port {number}")
    yield made
    made.close()


def builds_of(monkeypatch):
    """Count whole tables as they are built."""
    built = []
    whole = Past._whole

    def counted(self, dimension, grown):
        built.append(self._revision)
        return whole(self, dimension, grown)

    monkeypatch.setattr(Past, "_whole", counted)
    return built


def test_a_recall_of_the_past_reads_the_partition_once(service, monkeypatch):
    built = builds_of(monkeypatch)
    revision = service.revision
    then = service.recall(text="which harbour?")
    assert built == []
    service.write(add("Mira likes no harbour."))
    again = service.recall(text="which harbour?", read=ReadAt(exact_revision=revision))
    assert built == [revision]
    assert again.context.text == then.context.text
    assert service.recall(read=ReadAt(exact_revision=revision)).context.lines
    assert built == [revision], "without words nothing needs the whole"


def test_partitions_leave_for_tables_of_the_past_and_these_go_at_once(service, monkeypatch):
    residents = service.use_cases.searcher._residents
    other = Partition("default", "another")
    service.write(add("elsewhere"), partition=other)
    for partition in (other, service.partition):
        service.search(text="harbour", partition=partition)
    residents._memory_bytes_max = sum(one.bytes for one in residents._loaded.values())
    seen = []
    whole = Past._whole

    def watched(self, dimension, grown):
        table = whole(self, dimension, grown)
        seen.append((residents._bytes_elsewhere, residents.peek(other)))
        return table

    monkeypatch.setattr(Past, "_whole", watched)
    read = ReadAt(exact_revision=service.revision)
    assert service.search(text="harbour", read=read).hits
    ((taken, left),) = seen
    assert taken > 0
    assert left is None, "the one that was not used for longest made room"
    assert residents._bytes_elsewhere == 0
    assert residents.peek(service.partition) is not None


def test_a_search_that_is_cut_short_leaves_nothing_counted(service, monkeypatch):
    residents = service.use_cases.searcher._residents

    def fails(self, dimension, grown):
        grown(1000)
        raise PillionError(Reason.CANCELLED, "the caller is gone")

    monkeypatch.setattr(Past, "_whole", fails)
    with service.refuses(Reason.CANCELLED):
        service.search(text="harbour", read=ReadAt(exact_revision=service.revision))
    assert residents._bytes_elsewhere == 0
    assert not service.use_cases.searcher._past._tables._there
