"""Retention classes and decay in the settings: what they become, and what is refused."""

from datetime import date

import pytest
from pillion.bootstrap import start
from pillion.config import SettingsError, load_settings
from pillion.domain.retention import RetentionClass

DAY = 86_400_000_000


@pytest.fixture
def loaded(tmp_path):
    def load(text):
        path = tmp_path / "pillion.toml"
        path.write_text(text)
        return load_settings({}, path)

    return load


def test_a_class_has_an_owner_a_review_and_an_end(loaded):
    settings = loaded(
        '[retention_classes.chat]\nowner = "privacy"\nkeep_days = 0.5\nreview_on = 2027-01-31\n'
        '[retention_classes.ledger]\nowner = "finance"\n'
    )
    assert settings.retention_classes["chat"].retention_class() == RetentionClass(
        owner="privacy", keep_for=DAY // 2, review_on=date(2027, 1, 31)
    )
    assert settings.retention_classes["ledger"].retention_class() == RetentionClass(owner="finance")


def test_nothing_ages_by_default(loaded):
    assert (loaded("").retention_classes, loaded("").decay_below) == ({}, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[retention_classes.chat]\nkeep_days = 3\n", "retention_classes.chat.owner"),
        (
            '[retention_classes.chat]\nowner = "x"\nkeep_days = 0\n',
            "retention_classes.chat.keep_days",
        ),
        (
            '[retention_classes.chat]\nowner = "x"\nkeep_days = inf\n',
            "retention_classes.chat.keep_days",
        ),
        (
            '[retention_classes.chat]\nowner = "x"\nkeep_dyas = 3\n',
            "retention_classes.chat.keep_dyas: no such setting",
        ),
        (
            '[retention_classes.chat]\nowner = "x"\nreview_on = "soon"\n',
            "retention_classes.chat.review_on",
        ),
        ("[decay_below]\nepisodic = 1.5\n", "decay_below.episodic"),
        ("[decay_below]\nepisode = 0.5\n", "decay_below.episode"),
        ("ageing_interval_seconds = 1\n", "ageing_interval_seconds"),
    ],
)
def test_a_wrong_setting_is_named_with_what_is_wrong(loaded, text, message):
    with pytest.raises(SettingsError, match=message):
        loaded(text)


def test_a_server_ages_by_its_settings(tmp_path):
    settings = load_settings(
        {
            "directory": tmp_path / "d",
            "store": "ram",
            "embedder": "none",
            "decay_below": {"episodic": 0.1},
            "retention_classes": {"chat": {"owner": "privacy", "keep_days": 1}},
        }
    )
    running = start(settings)
    names = [closer.__qualname__ for closer in running.use_cases.closers]
    running.stop()
    assert "AgeingJob.stop" in names
