"""Page tokens are input like any other, and pages end before a message would overflow."""

import base64

import pytest
from pillion.domain.errors import Reason
from pillion.domain.limits import PAGE_BYTES_MAX
from pillion.domain.queries import Filter
from pillion_storage import codec
from pillion_testing.service import MIRA, add, episode, patch

BAD_TOKEN = Reason.PAGE_TOKEN_INVALID
LONG = "ä" * 15_000  # 30,000 bytes: as much as one text may have, nearly


def forge(token, place):
    body = codec.unpack(base64.urlsafe_b64decode(token))
    body[2] = place
    return base64.urlsafe_b64encode(codec.pack(body)).decode()


@pytest.mark.parametrize("subjects", [frozenset(), frozenset({MIRA})])
@pytest.mark.parametrize("episodes", [False, True])
def test_a_forged_place_of_a_listing_is_refused(service, subjects, episodes):
    service.write(*[episode(str(number)) for number in range(3)])
    wanted = Filter(subjects=subjects)
    token = service.list(wanted, page_size=1, episodes=episodes).next_token
    place = codec.unpack(base64.urlsafe_b64decode(token))[2]
    other = bytes([place[0] ^ 1]) + place[1:]
    for forged in (place[:1] + b"x" * 1000, place[:-1], place + b"\x00", other):
        with service.refuses(BAD_TOKEN, "page_token"):
            service.list(wanted, page_token=forge(token, forged), episodes=episodes)


def test_a_forged_place_of_a_history_is_refused(service):
    made = service.one(add("0"))
    service.write(patch(made.id, text="1"))
    _, token, _ = service.history(memory_id=made.id, page_size=1)
    for forged in (b"\xff" * 1000, b"\x01"):
        with service.refuses(BAD_TOKEN, "page_token"):
            service.history(memory_id=made.id, page_token=forge(token, forged))
    last = forge(token, b"\xff" * 8)
    assert service.history(memory_id=made.id, page_token=last)[0] == ()


@pytest.mark.parametrize("episodes", [False, True])
def test_a_page_of_long_records_ends_early_and_goes_on(service, episodes):
    made = [episode(LONG) if episodes else add(LONG) for _ in range(200)]
    for at in range(0, len(made), 20):
        service.write(*made[at : at + 20])
    sizes, token = [], ""
    while token or not sizes:
        page = service.list(Filter(), page_size=1000, page_token=token, episodes=episodes)
        sizes.append(len(page.records))
        token = page.next_token
    assert sum(sizes) == 200
    assert len(sizes) == 2
    assert PAGE_BYTES_MAX * 0.9 < sizes[0] * 30_000 <= PAGE_BYTES_MAX + 30_000


def test_a_page_of_a_long_history_ends_early_and_goes_on(service):
    made = service.one(add("0"))
    for number in range(1, 150):
        service.write(patch(made.id, text=f"{number} {LONG}"))
    first, token, _ = service.history(memory_id=made.id, page_size=1000)
    rest, end, _ = service.history(memory_id=made.id, page_size=1000, page_token=token)
    assert len(first) + len(rest) == 150
    assert rest
    assert end == ""
