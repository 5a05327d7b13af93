"""The tour of README.md, walked by its own text: what it tells people to do is done, and what they are to see then is there.

In its numbered steps **bold** is clicked and `code` is typed, into the field that *italics* name after it. An address of a person
is whom one goes on as, and “quotes” are seen. A block of code is run in a second terminal.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.people import at_the_portal
from tests.browser.running import RunningPortal, environment, portal_in
from tests.fixtures_browser import Desk

pytestmark = [pytest.mark.browser, pytest.mark.slow]

README = Path(__file__).resolve().parent.parent.parent / "README.md"
_STEP = re.compile(r"^\d+\. ", re.MULTILINE)
_TOLD = re.compile(
    r"```\n(?P<run>.+?)```|`(?P<person>[a-z]+)@example\.com`(?! for)|`(?P<typed>[^`]+)` for \*(?P<field>[^*]+)\*"
    r"|\*\*(?P<click>[^*]+)\*\*|“(?P<seen>[^”]+)”",
    re.DOTALL,
)
_CLICKED: tuple[Literal["button", "link", "checkbox", "radio", "tab"], ...] = ("button", "link", "checkbox", "radio", "tab")
_COMMAND_SECONDS = 120


@pytest.fixture(scope="module")
def portal(past: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPortal]:
    with portal_in(tmp_path_factory.mktemp("tour"), past=past) as running:
        yield running


def steps_of(text: str) -> list[str]:
    """The numbered steps of the section of the tour, each with all that belongs to it."""
    section = text.split("\n## A tour", 1)[1].split("\n## ", 1)[0]
    return _STEP.split(section)[1:]


@dataclass
class Walk:
    """Somebody who follows the steps, as one person after another."""

    desk: Desk
    portal: RunningPortal
    pages: dict[str, Page] = field(default_factory=dict)
    page: Page | None = None
    popup: Page | None = None
    output: str | None = None

    def follow(self, step: str) -> int:
        """Do and look for all that the step tells, in its order; say how much that was."""
        told = list(_TOLD.finditer(step))
        for one in told:
            if one["seen"]:
                self._look_for(_one_line(one["seen"]))
            elif one["run"]:
                self._run(one["run"])
            elif one["person"]:
                self._go_on_as(one["person"])
            elif one["field"]:
                self._field(_one_line(one["field"])).fill(one["typed"])
            else:
                self._click(_one_line(one["click"]))
        return len(told)

    def _go_on_as(self, name: str) -> None:
        if name not in self.pages:
            self.pages[name] = at_the_portal(self.desk, self.portal, name)
        self._leave_popup()
        self.page, self.output = self.pages[name], None

    def _look_for(self, text: str) -> None:
        if self.output is not None:
            assert text in self.output, self.output
            return
        page = self.popup or self._here()
        expect(page.get_by_text(text).filter(visible=True).first).to_be_visible()

    def _field(self, label: str) -> Locator:
        self._leave_popup()
        page = self._here()
        named = page.get_by_label(re.compile(f"^{re.escape(label)}"))
        return page.locator("input, textarea").and_(named).filter(visible=True).first

    def _click(self, name: str) -> None:
        self._leave_popup()
        page = self._here()
        sheet = page.get_by_role("dialog").filter(visible=True)
        # Looked for anew each time: a sheet that was sent is there until its answer comes.
        place = page.locator("dialog[open], body:not(:has(dialog[open]))")
        # What has exactly this name, or else what begins with it: a number or more words may follow.
        expect(_named(place, re.compile(f"^{re.escape(name)}(?!\\w)")).first).to_be_enabled()
        exact = _named(place, re.compile(f"^{re.escape(name)}$"))
        wanted = (exact if exact.count() else _named(place, re.compile(f"^{re.escape(name)}(?!\\w)"))).first
        if wanted.get_attribute("target") == "_blank":
            with page.expect_popup() as opened:
                wanted.click()
            self.popup = opened.value
            return
        opens_sheet = wanted.get_attribute("data-sheet") is not None
        wanted.click()
        if opens_sheet:
            expect(sheet).to_be_visible()

    def _run(self, script: str) -> None:
        script = script.replace(".venv/bin/python", sys.executable)
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.portal.home,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=_COMMAND_SECONDS,
            check=False,
        )
        self.output = done.stdout + done.stderr

    def _here(self) -> Page:
        assert self.page is not None, "the tour begins with an address to sign in as"
        return self.page

    def _leave_popup(self) -> None:
        if self.popup is not None:
            self.popup.close()
        self.popup, self.output = None, None


def _named(place: Locator, name: re.Pattern[str]) -> Locator:
    found = place.get_by_role(_CLICKED[0], name=name)
    for role in _CLICKED[1:]:
        found = found.or_(place.get_by_role(role, name=name))
    return found.filter(visible=True)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def test_every_sentence_of_the_tour_happens(portal: RunningPortal, desk: Desk) -> None:
    walk = Walk(desk, portal)
    steps = steps_of(README.read_text())

    told = [walk.follow(step) for step in steps]

    assert len(steps) >= 8
    assert all(told), "a step that tells nothing to do or to see"
    assert set(walk.pages) >= {"alice", "bob", "priya", "olga", "ana"}
