"""Former people on the admin pages: found by their address, and erased by an operator who types it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import pytest
from django.test import Client

from accessportal.audit import config, queries
from accessportal.audit.config import AuditKeys
from accessportal.directory import operations as directory
from accessportal.identity import erasing
from accessportal.jobs import tasks
from accessportal.kernel.actors import system
from accessportal.kernel.pseudonyms import Pseudonyms
from accessportal.store.erasures import find_erasure
from tests.crashing import Killed
from tests.evidence.test_erasing import settle, telling_of
from tests.fixtures_story import Story

SignIn = Callable[[str], Client]
LIST = "/admin/former-people/"
SAM = "sam@example.com"
PAGE = f"{LIST}{SAM}/"
ERASE = f"{PAGE}do/erase/"


@pytest.fixture
def gone(story: Story, monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    """Sam has left."""
    before = config.current()
    config.configure(AuditKeys({"k1": b"1" * 32}, pseudonyms=Pseudonyms(b"p" * 32)))
    directory.rename_person(email=SAM, name="Samuel Pepys", actor=system("test"), now=story.clock.now())
    directory.delete_person(email=SAM, actor=story.olga, now=story.clock.now())
    settle(story)
    monkeypatch.setattr(tasks, "_CLOCK", story.clock)
    yield story
    config.configure(before)


def text(answer: object) -> str:
    return " ".join(answer.content.decode().split())  # type: ignore[attr-defined]


def test_the_list_is_a_file_before_and_after(gone: Story, as_person: SignIn) -> None:
    olga = as_person("olga")

    def row() -> dict[str, Any]:
        answer = olga.get(f"{LIST}export/json/?q={SAM}")
        assert answer.status_code == 200
        (told,) = json.loads(b"".join(answer.streaming_content))["rows"]  # type: ignore[attr-defined]
        return dict(told)

    before = row()
    assert (before["person"], before["erasing_begun_at"], before["erased_at"]) == (SAM, None, None)
    erasing.erase_person(email=SAM, actor=gone.olga, clock=gone.clock)
    after = row()
    assert (after["person"], bool(after["erasing_begun_at"]), bool(after["erased_at"])) == (queries.nameless(SAM), True, True)


def test_an_operator_erases_somebody_who_left(gone: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    assert PAGE in text(olga.get(f"{LIST}?q={SAM}"))
    page = text(olga.get(PAGE))
    assert ERASE in page
    assert "ends where the record says" not in page
    assert "The chain is whole" in text(olga.get(f"{PAGE}history/?check=1"))
    asked = text(olga.get(ERASE))
    for words in ("A pseudonym takes the place of sam@example.com", "It can’t be undone", "Type the address"):
        assert words in asked, words
    assert find_erasure(queries.nameless(SAM)) is None

    for typed, status in (("", 400), ("bob@example.com", 400)):
        assert olga.post(ERASE, {"confirmed": "yes", "address": typed}).status_code == status
    assert find_erasure(queries.nameless(SAM)) is None
    done = olga.post(ERASE, {"confirmed": "yes", "address": " Sam@Example.com"})

    pseudonym = queries.nameless(SAM)
    here = f"{LIST}{pseudonym}/"
    assert (done.status_code, done.headers["Location"]) == (302, PAGE)
    assert "It was ordered, and has not begun yet." in text(olga.get(PAGE))
    assert find_erasure(pseudonym) is None
    assert tasks.erase_former(pseudonym=pseudonym, operator="olga@example.com") == "erased"
    assert telling_of(SAM, "Samuel Pepys") == []
    for page in (text(olga.get(here)), text(olga.get(PAGE))):
        assert "Erased" in page
        assert "do/erase/" not in page
        assert SAM not in page.replace(PAGE, "")
    assert "by olga@example.com" in text(olga.get(here))
    assert olga.post(ERASE, {"confirmed": "yes", "address": SAM}).status_code == 409


def test_who_is_being_erased_is_shown_so(gone: Story, as_person: SignIn) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(erasing, "_carry_out", Mock(side_effect=Killed))
        with pytest.raises(Killed):
            tasks.erase_former(pseudonym=queries.nameless(SAM), operator="olga@example.com")
    page = text(as_person("olga").get(PAGE))
    assert "Being erased" in page
    assert "do/erase/" not in page
    assert erasing.go_on_erasing(actor=system("test"), clock=gone.clock).erased == 1
    assert "Erased" in text(as_person("olga").get(PAGE))


def test_whoever_is_here_or_never_was_is_no_former_person(gone: Story, as_person: SignIn) -> None:
    olga = as_person("olga")
    answer = olga.get(f"{LIST}?q=alice@example.com")
    assert answer.status_code == 400
    assert "alice@example.com is still in the directory. Delete the person first." in text(answer)
    assert olga.get(f"{LIST}alice@example.com/").status_code == 409
    assert "Nobody with this address was ever here" in text(olga.get(f"{LIST}?q=nobody@example.com"))
    assert olga.get(f"{LIST}nobody@example.com/").status_code == 404


def test_why_it_was_not_done_stands_on_the_page(gone: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accessportal.identity.erasing.requests.list_open", lambda **_: [object()])
    olga, pseudonym = as_person("olga"), queries.nameless(SAM)
    olga.post(ERASE, {"confirmed": "yes", "address": SAM})
    why = tasks.erase_former(pseudonym=pseudonym, operator="olga@example.com")
    assert why == f"1 request for {pseudonym} is still open. End what is open first, and wait until that is proved."
    page = text(olga.get(PAGE))
    assert f"Not erased. {why}" in page
    assert "do/erase/" in page
    assert find_erasure(pseudonym) is None
    assert "Only operators" in tasks.erase_former(pseudonym=pseudonym, operator="ana@example.com")


def test_an_order_whose_job_ends_by_an_error_does_not_wait_for_ever(
    gone: Story, as_person: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    olga, pseudonym = as_person("olga"), queries.nameless(SAM)
    olga.post(ERASE, {"confirmed": "yes", "address": SAM})
    with monkeypatch.context() as patch:
        patch.setattr(erasing, "_require_gone", Mock(side_effect=RuntimeError("what nobody thought of")))
        with pytest.raises(RuntimeError):
            tasks.erase_former(pseudonym=pseudonym, operator="olga@example.com")
    page = text(olga.get(PAGE))
    assert "Not erased. It was ended by an error" in page
    assert "has not begun yet" not in page
    assert tasks.erase_former(pseudonym=pseudonym, operator="olga@example.com") == "erased"


def test_auditors_look_and_nobody_else(gone: Story, as_person: SignIn) -> None:
    ana = as_person("ana")
    page = text(ana.get(PAGE))
    assert "do/erase/" not in page
    assert "operators can have it done" in page
    assert ana.post(ERASE, {"confirmed": "yes", "address": SAM}).status_code == 403
    for name in ("alice", "bob", "mallory"):
        assert [as_person(name).get(url).status_code for url in (LIST, PAGE, ERASE)] == [403] * 3
    assert find_erasure(queries.nameless(SAM)) is None


def test_without_a_key_of_pseudonyms_nobody_is_erased(gone: Story, as_person: SignIn) -> None:
    config.configure(AuditKeys())
    olga = as_person("olga")
    assert "do/erase/" not in text(olga.get(PAGE))
    assert olga.post(ERASE, {"confirmed": "yes", "address": SAM}).status_code == 403
