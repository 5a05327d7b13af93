"""The story with a pool of sandboxes: engineers take a lab for two hours at once, and any sandbox for eight with an approval."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from accessportal.access_requests import operations
from accessportal.access_requests import queries as access_requests
from accessportal.access_requests.states import AccessRequest
from accessportal.kernel.actors import Actor, system
from accessportal.rules import operations as rules
from accessportal.sandboxes import operations as sandboxes
from accessportal.sandboxes import queries
from accessportal.sandboxes.states import Sandbox
from accessportal.upstream import client as upstream
from accessportal.upstream.errors import UpstreamError
from accessportal.upstream.provider import UpstreamSandbox
from tests.fixtures_provider import URL
from tests.fixtures_story import RULES, Story

POOL_RULES = """
  - name: labs
    kind: sandbox
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {name_prefixes: [lab-]}
    duration: {min: 1m, default: 1h, max: 2h, max_total: 8h}
    approval: {required: false}
    most_per_person: 2
  - name: long-sandboxes
    kind: sandbox
    effect: allow
    subjects: {groups: [/engineering]}
    targets: {pool: all}
    duration: {min: 1m, default: 4h, max: 8h}
    approval: {required: true, quorum: 1, approvers: {groups: [/security]}}
    most_per_person: 2
"""
_SETUP = system("setup")


@dataclass
class Labs:
    """Short words for what happens to the pool, at the story's time."""

    story: Story

    def fill(self, *names: str, hours: float = 12) -> list[Sandbox]:
        return [self._add(name, hours) for name in names]

    def _add(self, name: str, hours: float) -> Sandbox:
        now = self.story.clock.now()
        return sandboxes.add(external_id=f"ext-{name}", name=name, lab_duration_hours=hours, actor=_SETUP, now=now)

    def count(self) -> None:
        sandboxes.count(clock=self.story.clock)

    def ask(self, *, prefix: str = "lab-", seconds: int = 3600, actor: Actor | None = None, submission_id: str = "") -> AccessRequest:
        """With the prefix of the labs and at most two hours it is approved at once."""
        self.story._submissions += 1
        return operations.submit(
            kind="sandbox",
            subject_id=None,
            target={"name_prefix": prefix},
            duration_seconds=seconds,
            reason="Try the new parser",
            ticket_id="",
            submission_id=submission_id or f"form-{self.story._submissions}",
            actor=actor or self.story.alice,
            now=self.story.clock.now(),
        )

    def held(self, *, seconds: int = 3600) -> AccessRequest:
        """Alice asked, and has one."""
        return self.story.carry_out(self.ask(seconds=seconds))

    def open_of_alice(self) -> list[AccessRequest]:
        """Hers that are not over, as they stand."""
        return [self.story.now_of(one) for one in access_requests.list_open(subject_id=self.story.alice.name)]

    def of(self, request: AccessRequest) -> Sandbox:
        """The sandbox that the request holds."""
        found = queries.find_by_key(key=f"request:{request.target.get('continues') or request.request_id}")
        assert found is not None
        return found

    def take_elsewhere(self, track: str = "track-1", *, name_prefix: str = "") -> Sandbox:
        """As a client of the API does."""
        now = self.story.clock.now()
        return sandboxes.take(key=track, track=track, name_prefix=name_prefix, duration_seconds=None, actor=_SETUP, now=now).sandbox


class SilentProvider:
    """It answers nothing, and no name is looked up for that."""

    def get_sandbox(self, external_id: str) -> UpstreamSandbox | None:
        raise UpstreamError("unreachable", external_id)


@pytest.fixture
def labs(story: Story, monkeypatch: pytest.MonkeyPatch) -> Iterator[Labs]:
    """A provider is set, which gives no answer, and rules let engineers ask; no sandbox yet."""
    rules.apply_rules(text=RULES + POOL_RULES, actor=_SETUP, now=story.clock.now())
    upstream.configure(upstream.UpstreamSettings(url=URL))
    monkeypatch.setattr(upstream, "_provider", SilentProvider())
    yield Labs(story)
    upstream.configure(upstream.UpstreamSettings())
