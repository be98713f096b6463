"""Tokens: who may do what, where; and which token files are refused."""

import hashlib
import json

import pytest
from pillion.domain.errors import PillionError, Reason
from pillion.domain.scope import Partition
from pillion.transport.identity import (
    Identity,
    LocalAuthenticator,
    Role,
    TokenFileError,
    load_tokens,
)

TOKEN = "correct horse"  # noqa: S105
ENTRY = {
    "name": "agent",
    "sha256": hashlib.sha256(TOKEN.encode()).hexdigest(),
    "namespaces": ["production"],
    "tenants": ["acme"],
    "roles": ["reader", "writer"],
}


@pytest.fixture
def token_file(tmp_path):
    def write(*entries, mode=0o600):
        path = tmp_path / "tokens.json"
        path.write_text(json.dumps(entries))
        path.chmod(mode)
        return path

    return write


def bearer(token):
    return [("authorization", f"Bearer {token}"), ("other", "x")]


def test_a_known_token_is_its_entry(token_file):
    known = load_tokens(token_file(ENTRY, ENTRY | {"name": "b", "sha256": "0" * 64}))
    identity = known.identify(bearer(TOKEN))
    assert identity == Identity(
        "agent",
        frozenset({"production"}),
        frozenset({"acme"}),
        frozenset({Role.READER, Role.WRITER}),
    )
    assert identity.only_partition == Partition("production", "acme")
    assert not identity.reaches(Partition("production", "other"))
    assert not identity.reaches(Partition("default", "acme"))


def test_a_star_reaches_everything(token_file):
    entry = ENTRY | {"namespaces": ["*"], "tenants": ["*", "acme"]}
    identity = load_tokens(token_file(entry)).identify(bearer(TOKEN))
    assert identity.reaches_everything
    assert identity.only_partition is None


@pytest.mark.parametrize(
    "metadata",
    [
        [],
        bearer("wrong"),
        bearer(""),
        bearer(TOKEN + " "),
        bearer("x" * 5000),
        bearer("\udcff"),
        [("authorization", TOKEN)],
        [("authorization", f"Basic {TOKEN}")],
        bearer(TOKEN) + bearer(TOKEN),
        [("authorization-bin", b"x")],
    ],
)
def test_anything_else_is_unauthenticated(token_file, metadata):
    with pytest.raises(PillionError) as caught:
        load_tokens(token_file(ENTRY)).identify(metadata)
    assert caught.value.reason is Reason.UNAUTHENTICATED


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602])
def test_a_file_that_everybody_can_open_is_refused(token_file, mode):
    with pytest.raises(TokenFileError, match="chmod o-rwx"):
        load_tokens(token_file(ENTRY, mode=mode))


@pytest.mark.parametrize(
    ("entries", "named"),
    [
        ([], "at least 1"),
        ([ENTRY | {"sha256": "secret"}], "0.sha256"),
        ([ENTRY | {"roles": []}], "0.roles"),
        ([ENTRY | {"roles": ["owner"]}], "0.roles"),
        ([ENTRY | {"tenants": []}], "0.tenants"),
        ([{key: ENTRY[key] for key in ENTRY if key != "tenants"}], "0.tenants"),
        ([ENTRY | {"token": "secret"}], "0.token"),
        ([ENTRY, ENTRY], "twice"),
    ],
)
def test_a_bad_file_is_refused_by_its_field_and_not_quoted(token_file, entries, named):
    with pytest.raises(TokenFileError) as caught:
        load_tokens(token_file(*entries))
    assert named in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TokenFileError, match=r"nowhere\.json"):
        load_tokens(tmp_path / "nowhere.json")


def test_without_a_file_everybody_local_has_every_role():
    identity = LocalAuthenticator().identify([])
    assert identity.reaches_everything
    assert identity.roles == set(Role)
