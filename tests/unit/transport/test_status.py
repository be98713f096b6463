"""The error map is total both ways, and a status always fits its trailer."""

import inspect
import json

import grpc
import pytest
from google.rpc import error_details_pb2
from hypothesis import given
from hypothesis import strategies as st
from pillion.domain.errors import FieldViolation, PillionError, Reason
from pillion.embedders import errors as embedder_errors
from pillion.transport import status
from pillion_storage import errors as store_errors

# What a store raises when its caller built a wrong batch: a bug of this product.
BUGS = {
    store_errors.StoreError,
    store_errors.InvalidBatch,
    store_errors.KeyTooLong,
    store_errors.ValueTooLong,
    store_errors.BatchTooLarge,
    store_errors.InvalidRange,
    store_errors.KeyStillLive,
}


def details(made):
    found = {}
    for packed in made.details:
        for kind in (
            error_details_pb2.ErrorInfo,
            error_details_pb2.BadRequest,
            error_details_pb2.RetryInfo,
        ):
            if packed.Is(kind.DESCRIPTOR):
                found[kind.__name__] = kind()
                packed.Unpack(found[kind.__name__])
    return found


def test_every_reason_has_a_code_and_no_other_has():
    assert set(status.CODES) == set(Reason)
    assert grpc.StatusCode.OK not in status.CODES.values()
    assert grpc.StatusCode.UNKNOWN not in status.CODES.values()


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_becomes_a_status_with_error_info(reason):
    made = status.status_of(PillionError(reason, "m", metadata={"current_version": "7"}))
    info = details(made)["ErrorInfo"]
    assert made.code == status.CODES[reason].value[0]
    assert (info.domain, info.reason) == ("pillion.memory.v1", reason.value)
    assert dict(info.metadata) == {"current_version": "7"}


def _store_error(kind):
    arguments = [
        {"str": "secret", "int": 3, "int | None": 3, "Collection[bytes]": [b"secret"]}[
            str(parameter.annotation)
        ]
        for parameter in list(inspect.signature(kind.__init__).parameters.values())[1:]
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    return kind(*(arguments or ["secret"]))


def _all(kind):
    return {kind}.union(*map(_all, kind.__subclasses__()))


@pytest.mark.parametrize(
    "kind", sorted(_all(store_errors.StoreError), key=lambda kind: kind.__name__)
)
def test_every_error_of_a_store_has_a_reason_and_leaks_nothing(kind):
    error = status.error_of(_store_error(kind))
    assert (error.reason is Reason.INTERNAL) == (kind in BUGS)
    assert "secret" not in error.message


def test_the_stores_revisions_travel():
    gone = status.error_of(store_errors.HistoryGone(3, 9))
    assert (gone.reason, gone.metadata) == (Reason.HISTORY_GONE, {"oldest_revision": "9"})
    future = status.error_of(store_errors.FutureRevision(9, 3))
    assert (future.reason, future.metadata) == (Reason.FUTURE_REVISION, {"newest_revision": "3"})


def test_embedder_errors():
    unavailable = embedder_errors.EmbedderUnavailable("secret", retry_after_ms=70)
    error = status.error_of(unavailable)
    assert (error.reason, error.retry_after_ms) == (Reason.PLUGIN_UNAVAILABLE, 70)
    misconfigured = status.error_of(embedder_errors.EmbedderMisconfigured("secret"))
    assert misconfigured.reason is Reason.PLUGIN_UNAVAILABLE
    rejected = status.error_of(embedder_errors.EmbedderInputRejected("secret"))
    assert rejected.reason is Reason.INVALID_FIELD
    for one in (error, misconfigured, rejected):
        assert "secret" not in one.message


def test_a_bug_says_nothing_but_an_id():
    first, second = status.error_of(KeyError("secret")), status.error_of(KeyError("secret"))
    assert first.reason is Reason.INTERNAL
    assert "secret" not in json.dumps([first.message, first.metadata])
    assert first.metadata["error_id"] in first.message
    assert first.metadata["error_id"] != second.metadata["error_id"]


def test_overload_always_says_when_to_try_again():
    retry = details(status.status_of(PillionError(Reason.OVERLOADED, "m")))["RetryInfo"]
    assert retry.retry_delay.ToMilliseconds() == 100
    given_ = PillionError(Reason.OVERLOADED, "m", retry_after_ms=2500)
    assert details(status.status_of(given_))["RetryInfo"].retry_delay.ToMilliseconds() == 2500
    assert "RetryInfo" not in details(status.status_of(PillionError(Reason.NOT_FOUND, "m")))


def test_more_than_twenty_violations_are_counted():
    many = [FieldViolation(f"f{at}", "d") for at in range(50)]
    made = details(status.status_of(PillionError(Reason.INVALID_FIELD, "m", violations=many)))
    listed = made["BadRequest"].field_violations
    assert [one.field for one in listed[:20]] == [f"f{at}" for at in range(20)]
    assert [one.description for one in listed[20:]] == ["and 30 more"]


texts = st.text(max_size=40) | st.text(min_size=1, max_size=3).map(lambda text: text * 2000)


@given(
    texts,
    st.lists(st.builds(FieldViolation, texts, texts), max_size=60),
    st.dictionaries(texts, texts, max_size=30),
)
def test_a_status_always_fits_and_counts_what_it_left_out(message, violations, metadata):
    error = PillionError(
        Reason.INVALID_FIELD, message, violations=violations, metadata=metadata, retry_after_ms=1
    )
    made = status.status_of(error)
    assert made.ByteSize() <= status.STATUS_BYTES_MAX
    assert len(made.message.encode()) <= status.MESSAGE_BYTES_MAX
    listed = details(made).get("BadRequest")
    if listed is not None:
        whole = [one for one in listed.field_violations if not _is_note(one)]
        note = [one for one in listed.field_violations if _is_note(one)]
        left = int(note[0].description.split()[1]) if note else 0
        assert len(whole) + left == len(violations)


def _is_note(violation):
    return not violation.field and violation.description.startswith("and ")
