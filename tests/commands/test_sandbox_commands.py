"""Running the sandbox pool from a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from accessportal.conf import Conf
from accessportal.demo import loading as demo
from accessportal.demo.env import PROVIDER_PATH, take_environment
from accessportal.jobs import tasks
from accessportal.observe import heartbeats
from accessportal.sandboxes import models, operations
from accessportal.sandboxes.states import Status
from accessportal.sandboxes.store import free_list
from accessportal.store.transactions import Remove, transact
from accessportal.upstream import client as upstream_client
from accessportal.upstream.client import HttpProvider
from tests.commands.conftest import run
from tests.fixtures_provider import URL, TwinAdapter
from tests.fixtures_story import Story
from tests.sandboxes.conftest import Pool, Upstream

OLGA = ("--as", "olga@example.com")


@pytest.fixture
def sandboxes(story: Story, provider: HttpProvider, provider_adapter: TwinAdapter, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    """Four sandboxes in the pool; commands and jobs reach the twin's provider, on the story's clock."""
    monkeypatch.setattr(upstream_client, "_settings", upstream_client.UpstreamSettings(url=URL))
    monkeypatch.setattr(upstream_client, "_provider", provider)
    monkeypatch.setattr(tasks, "_CLOCK", story.clock)
    told = Upstream(Pool(story.clock), provider_adapter.twin, provider_adapter, provider)
    told.fill(4)
    return told


def test_a_sandbox_is_lent_shown_given_back_and_cleaned(sandboxes: Upstream) -> None:
    lent = run("allocate_sandbox", *OLGA, "--track", "track-1", "--duration", "30m", "--json").json
    assert (lent["status"], lent["track"], lent["fence"], lent["is_repeat"]) == ("allocated", "track-1", 1, False)
    assert run("allocate_sandbox", *OLGA, "--track", "track-1", "--duration", "30m", "--json").json["is_repeat"]

    shown = run("show_sandbox", lent["sandbox_id"])
    assert "It is lent to track-1 until" in shown.out
    assert "sandbox.taken" in shown.lines[-1]
    listed = run("list_sandboxes", "--track", "track-1", "--json").json["sandboxes"]
    assert [one["sandbox_id"] for one in listed] == [lent["sandbox_id"]]
    assert len(run("list_sandboxes", "--status", "available", "--limit", "2", "--json").json["sandboxes"]) == 2
    assert "allocated" in run("list_sandboxes").out

    released = run("release_sandbox", lent["sandbox_id"], *OLGA, "--track", "track-1", "--fence", "1", "--json").json
    assert run("release_sandbox", lent["sandbox_id"], *OLGA, "--track", "track-1", "--json").json == released
    assert run("clean_sandboxes", "--json").json["cleaned"] == [lent["sandbox_id"]]
    assert run("verify_sandboxes").lines[-1] == "4 sandboxes, 0 receipts, 0 problems."
    assert run("verify_audit").code == 0


@pytest.mark.parametrize(
    "arguments",
    [("allocate_sandbox", "--track", "track-1"), ("release_sandbox", "some-id", "--reason", "Smoke")],
    ids=lambda arguments: arguments[0],
)
def test_only_operators_lend_and_take_back_by_hand(sandboxes: Upstream, arguments: tuple[str, ...]) -> None:
    refused = run(arguments[0], "--as", "mallory@example.com", "--json", *arguments[1:])
    allowed = run(arguments[0], *OLGA, "--json", *arguments[1:])

    assert refused.json["error"]["code"] == "operators_only"
    assert allowed.code == 0 or allowed.json["error"]["code"] == "sandbox_not_found"


def test_with_a_fence_only_that_hand_over_is_taken_back(sandboxes: Upstream) -> None:
    lent = sandboxes.given_back()
    assert run("clean_sandboxes").code == 0
    anew = sandboxes.pool.take("track-2", name_prefix=lent.name).sandbox
    take_back = ("release_sandbox", lent.sandbox_id, *OLGA, "--reason", "Track 1 mines coins.", "--json", "--fence")

    refused = run(*take_back, str(lent.fence))

    assert (refused.code, refused.json["error"]["code"]) == (1, "sandbox_moved_on")
    assert "hand-over 2 now, lent to track-2" in refused.problem
    assert sandboxes.pool.now_of(anew) == anew
    assert run(*take_back, "two").json["error"]["code"] == "number_unreadable"
    assert run(*take_back, str(anew.fence)).json["track"] == "track-2"
    assert sandboxes.pool.status_of(anew) is Status.PENDING_DELETION


def test_time_runs_out(sandboxes: Upstream) -> None:
    lent = run("allocate_sandbox", *OLGA, "--track", "track-1", "--json").json
    sandboxes.later(4 * 3600 + 300)

    assert run("expire_sandboxes", "--json").json["expired"] == [lent["sandbox_id"]]


def test_a_stopped_sync_says_what_and_how_to_go_on(sandboxes: Upstream) -> None:
    sandboxes.later()
    sandboxes.set(list_share=0)

    told = run("sync_sandboxes", "--json")

    assert told.code == 1
    assert "--most-share 1" in told.problem
    assert told.json["listed"] == 0
    assert "“2” is not a share" in run("sync_sandboxes", "--most-share", "2").problem
    sandboxes.set(list_share=1)
    assert run("sync_sandboxes", "--dry-run").code == 0
    assert "is_applied: True" in run("sync_sandboxes").out


def test_without_a_provider_nothing_is_called(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_client, "_settings", upstream_client.UpstreamSettings())
    monkeypatch.setattr(upstream_client, "_provider", None)
    monkeypatch.setattr(tasks, "_CLOCK", story.clock)

    assert run("sync_sandboxes", "--json").json["error"]["code"] == "provider_unset"
    assert run("clean_sandboxes").code == 1
    # Whoever holds one has no longer time for it because cleaning is not set up.
    assert tasks.expire_sandboxes() == "expired 0, mended 0, failed 0"
    assert tasks.clean_sandboxes() == "no provider is set"
    assert tasks.sync_sandboxes() == "no provider is set; 0 sandboxes counted"


def test_the_ledger_fails_when_something_is_wrong(sandboxes: Upstream, tmp_path: Path) -> None:
    mine = sandboxes.pool.take("track-1").sandbox
    sandboxes.later(60)
    now = sandboxes.pool.clock.now().timestamp()
    times = {"asked_at": now, "answered_at": now}
    taken = {"kind": "taken", "sandbox_id": mine.sandbox_id, "fence": 1, "track": "track-1", "key": "a", **times}
    file = tmp_path / "receipts.jsonl"

    file.write_text(json.dumps(taken) + "\n")
    assert run("verify_sandboxes", "--receipts", str(file)).code == 0
    file.write_text("".join(json.dumps(taken | {"key": key}) + "\n" for key in "ab"))
    assert run("verify_sandboxes", "--receipts", str(file), "--json").json["problems"][0]["kind"] == "overlap"
    file.write_text(json.dumps(taken | {"fence": 9}))
    told = run("verify_sandboxes", "--receipts", str(file))
    assert (told.code, told.lines[-1]) == (1, "4 sandboxes, 1 receipt, 1 problem.")
    none = {"kind": "none", "track": "track-2", **times}
    file.write_text(json.dumps(none))
    assert "refused" in run("verify_sandboxes", "--receipts", str(file)).out
    file.write_text("{}")
    assert "Line 1" in run("verify_sandboxes", "--receipts", str(file)).problem
    assert run("verify_sandboxes", "--receipts", str(tmp_path / "none")).code == 2


def test_an_entry_lost_from_the_free_list_is_found(sandboxes: Upstream) -> None:
    (free, *_) = sandboxes.pool.everything()
    pk, sk = models.free_key(free.sandbox_id)
    transact([Remove(models.SandboxItem, pk, models.SandboxItem.pk.exists(), range_key=sk)])

    assert "not in the free list" in run("verify_sandboxes").out
    assert not free_list.is_listed(free.sandbox_id)


def test_jobs_do_the_same_and_leave_a_heartbeat(sandboxes: Upstream) -> None:
    lent = sandboxes.pool.take("track-1").sandbox
    sandboxes.later(4 * 3600 + 300)

    assert tasks.expire_sandboxes() == "expired 1, mended 0, failed 0"
    assert tasks.clean_sandboxes().startswith("cleaned 1")
    assert tasks.sync_sandboxes().startswith("listed 4, known 4, new 0")
    assert sandboxes.pool.status_of(lent) is Status.AVAILABLE
    sandboxes.set(list_share=0)
    sandboxes.later()
    with pytest.raises(tasks.ItemsFailed, match="list is empty"):
        tasks.sync_sandboxes()
    beat = heartbeats.last_beat("sync_sandboxes")
    assert beat is not None
    assert not beat.is_ok
    sandboxes.given_back()
    sandboxes.set(fail_delete=1)
    with pytest.raises(tasks.ItemsFailed):
        tasks.clean_sandboxes()


def test_the_demo_reaches_the_twins_provider_alone(tmp_path: Path) -> None:
    environ = {"PORTAL_SANDBOX_PROVIDER_URL": "https://real.example.com", "PORTAL_SANDBOX_PROVIDER_TOKEN": "a-real-one"}

    take_environment(environ, home=tmp_path)

    assert environ["PORTAL_SANDBOX_PROVIDER_URL"] == environ["AWS_ENDPOINT_URL"] + PROVIDER_PATH
    assert environ["PORTAL_SANDBOX_PROVIDER_TOKEN"] == ""
    assert Conf.model_fields["sandbox_provider_url"].default == ""


def test_the_demo_adds_sandboxes(sandboxes: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    def seed(*, provider_url: str, count: int, progress: object) -> None:
        assert provider_url == URL
        for number in range(count):
            sandboxes.twin.create(f"demo-{number}", name=f"demo-{number}")

    monkeypatch.setattr(demo, "seed_sandboxes", seed)

    assert [demo.load_sandboxes(count=count, clock=sandboxes.pool.clock, progress=lambda *_: None) for count in (3, 3, 5)] == [3, 0, 2]
    assert operations.count(clock=sandboxes.pool.clock).total == 9
