"""Ranking profiles in the settings: what they become, and what is refused by its name."""

import pytest
from pillion.bootstrap import start
from pillion.config import SettingsError, load_settings
from pillion.domain.memory import MemoryKind, SourceKind
from pillion.domain.queries import RankingProfile, RecencyAnchor


@pytest.fixture
def loaded(tmp_path):
    def load(text):
        path = tmp_path / "pillion.toml"
        path.write_text(text)
        return load_settings({}, path)

    return load


def test_a_profile_says_what_it_changes(loaded):
    settings = loaded(
        "[profiles.fresh]\nrecency_weight = 0.8\nconsolidated_factor = 0.25\ndiversity = 0.5\n"
        "half_life_days = {episodic = 2, semantic = 'none'}\n"
        "source_confidence = {inference = 0.7}\n[profiles.default]\nimportance_weight = 1\n"
    )
    assert settings.profiles["fresh"].ranking() == RankingProfile(
        recency_weight=0.8,
        usual_half_lives={MemoryKind.EPISODIC: 2 * 86_400_000_000, MemoryKind.SEMANTIC: None},
        consolidated_factor=0.25,
        source_confidence={SourceKind.INFERENCE: 0.7},
        diversity=0.5,
    )
    assert settings.profiles["default"].ranking() == RankingProfile(importance_weight=1.0)


def test_a_variable_may_hold_a_profile(monkeypatch):
    monkeypatch.setenv("PILLION_PROFILES", '{"fresh": {"recency_weight": 1}}')
    assert load_settings({}).profiles["fresh"].recency_weight == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[profiles.Fresh]\n", "profiles.Fresh"),
        ("[profiles.x]\nrecency_weight = 2\n", "profiles.x.recency_weight: .* less than or equal"),
        ("[profiles.x]\nrecency_weight = nan\n", "profiles.x.recency_weight"),
        ("[profiles.x]\nrecency_wieght = 1\n", "profiles.x.recency_wieght: no such setting"),
        ("[profiles.x.half_life_days]\nepisodic = 0\n", "episodic: write days, from 1 minute"),
        ("[profiles.x.half_life_days]\nepisodic = 36501\n", "episodic: write days"),
        ("[profiles.x.half_life_days]\nepisode = 3\n", "half_life_days.episode.*'open_item'"),
        ("[profiles.x.source_confidence]\ninference = 1.1\n", "source_confidence.inference"),
        (
            "[profiles.x]\nrelevance_weight = 0\nrecency_weight = 0\nimportance_weight = 0\n",
            "profiles.x: at least one of the three weights",
        ),
    ],
)
def test_a_wrong_profile_is_named_with_what_is_wrong(loaded, text, message):
    with pytest.raises(SettingsError, match=message):
        loaded(text)


def test_more_profiles_than_people_choose_among_are_refused(loaded):
    loaded("".join(f"[profiles.p{number}]\n" for number in range(64)))
    with pytest.raises(SettingsError, match="profiles"):
        loaded("".join(f"[profiles.p{number}]\n" for number in range(65)))


def test_recency_may_count_from_the_last_use(tmp_path):
    settings = load_settings(
        {
            "directory": tmp_path / "d",
            "store": "ram",
            "embedder": "none",
            "profiles": {"used": {"recency_anchor": "last_used"}},
        }
    )
    running = start(settings)
    profile = running.use_cases.profiles.named("used")
    running.stop()
    assert profile.recency_anchor is RecencyAnchor.LAST_USED
