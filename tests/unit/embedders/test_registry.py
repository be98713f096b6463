"""Plug-ins by entry point: real distributions in a folder on the path, the built-ins among them."""

from __future__ import annotations

import logging
import tomllib
from pathlib import Path

import pytest
from pillion.embedders import weights
from pillion.embedders.e5 import E5Embedder
from pillion.embedders.entry_points import PluginError, installed, load_factory
from pillion.embedders.errors import EmbedderMisconfigured
from pillion.embedders.hashing import HashingEmbedder
from pillion.embedders.registry import GROUP, create_embedder

PYPROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
BUILT_IN = PYPROJECT["project"]["entry-points"][GROUP]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Announce entry points as an installed distribution does."""

    def add(distribution: str, points: dict[str, str]) -> Path:
        folder = tmp_path / distribution
        info = folder / f"{distribution}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        )
        lines = "".join(f"{name} = {target}\n" for name, target in points.items())
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")
        monkeypatch.syspath_prepend(str(folder))
        return folder

    # Whether or not this tree is installed: what its pyproject announces is announced.
    add("pillion_tree", BUILT_IN)
    return add


def test_the_built_ins_are_announced(install) -> None:
    assert {name: point.value for name, point in installed(GROUP).items()} == BUILT_IN
    for name in BUILT_IN:
        assert callable(load_factory(GROUP, name))


def test_by_name(install) -> None:
    embedder = create_embedder("hashing", {"dimension": 128})
    assert isinstance(embedder, HashingEmbedder)
    assert embedder.identity.dimension == 128


@pytest.mark.parametrize("present", [True, False])
def test_auto(install, present: bool, monkeypatch, caplog) -> None:
    monkeypatch.setattr(weights, "installed_path", lambda: Path("there") if present else None)
    with caplog.at_level(logging.INFO):
        embedder = create_embedder("auto", {})
    assert isinstance(embedder, E5Embedder if present else HashingEmbedder)
    assert ("embedder: e5" if present else "pip install 'pillion[e5]'") in caplog.text


def test_auto_takes_no_options(install) -> None:
    with pytest.raises(EmbedderMisconfigured, match="name the embedder"):
        create_embedder("auto", {"dimension": 128})


def test_an_unknown_name_lists_the_known(install) -> None:
    with pytest.raises(EmbedderMisconfigured, match="known: e5, hashing, openai"):
        create_embedder("nonsense", {})


def test_wrong_options_are_named_and_not_quoted(install) -> None:
    with pytest.raises(EmbedderMisconfigured) as caught:
        create_embedder("openai", {"api_key": "sk-secret", "model": "m", "dimension": "many"})
    assert "api_key" in str(caught.value)
    assert "dimension" in str(caught.value)
    assert "sk-secret" not in str(caught.value)
    assert "many" not in str(caught.value)


def test_one_target_announced_twice_is_one(install) -> None:
    install("again", {"hashing": BUILT_IN["hashing"]})
    assert create_embedder("hashing", {}).identity.name == "hashing"


def test_two_targets_of_one_name_are_refused(install) -> None:
    install("rival", {"hashing": "rival:create"})
    with pytest.raises(EmbedderMisconfigured, match="two plug-ins"):
        create_embedder("hashing", {})


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import no_such_module_at_all", "cannot be loaded"),
        ("other = 1", "cannot be loaded"),
        ("create = 1", "not callable"),
        ("def create(options): return object()", "no usable identity"),
        (
            (
                "from pillion.domain.embedding import EmbedderIdentity\n"
                "class E: identity = EmbedderIdentity('e', '1', 4, '', 0.0)\n"
                "def create(options): return E()"
            ),
            "no method embed_passages",
        ),
    ],
)
def test_a_broken_plug_in_is_found_at_start_up(
    install, code: str, message: str, monkeypatch
) -> None:
    name = f"broken_{abs(hash(code))}"
    folder = install(name, {"broken": f"{name}:create"})
    (folder / f"{name}.py").write_text(code)
    with pytest.raises(EmbedderMisconfigured, match=message):
        create_embedder("broken", {})


def test_plugin_errors_have_their_own_type(install) -> None:
    with pytest.raises(PluginError, match="no plug-in"):
        load_factory("pillion.nothing", "x")
