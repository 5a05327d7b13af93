"""Care of the pool over HTTP: lists with signed cursors, counts, runs to poll, single sandboxes."""

from __future__ import annotations

import pytest

from accessportal.kernel.pages import Page
from accessportal.sandboxes import operations, queries
from accessportal.sandboxes.states import Unreadable
from tests.api.conftest import Lab
from tests.sandboxes import seed_examples as seed

ADMIN_ONLY = [
    ("GET", "sandboxes?status=available"),
    ("GET", "stats"),
    ("POST", "sync"),
    ("POST", "cleanup"),
    ("GET", "jobs/some"),
    ("POST", "sandboxes/some/restore"),
    ("POST", "sandboxes/some/quarantine"),
]


@pytest.mark.parametrize(("method", "path"), ADMIN_ONLY)
def test_a_token_of_a_track_does_not_reach_the_pool(lab: Lab, method: str, path: str) -> None:
    assert lab.send(method, f"admin/{path}").error == (403, "INSUFFICIENT_SCOPE")
    assert lab.send(method, f"admin/{path}", token="").error == (401, "INVALID_TOKEN")


def test_an_admin_may_what_tracks_may(lab: Lab) -> None:
    lab.pool.fill(1)
    lab.track_token = lab.admin_token

    lent = lab.allocate()

    assert lent.status == 201
    assert lab.give_back(lent.body["sandbox_id"]).status == 200


def test_a_list_is_paged_to_its_end(lab: Lab) -> None:
    expected = {one.sandbox_id for one in lab.pool.fill(7)}
    seen: list[str] = []
    page = lab.admin("GET", "sandboxes?status=available&limit=3").body
    seen += [one["sandbox_id"] for one in page["items"]]
    while page["next_cursor"]:
        page = lab.admin("GET", f"sandboxes?status=available&limit=3&cursor={page['next_cursor']}").body
        seen += [one["sandbox_id"] for one in page["items"]]

    assert sorted(seen) == sorted(expected)
    assert lab.admin("GET", "sandboxes?status=stale").body == {"items": [], "unreadable": [], "next_cursor": None}


def test_a_cursor_is_good_for_its_own_list_alone(lab: Lab) -> None:
    lab.pool.fill(4)
    cursor = lab.admin("GET", "sandboxes?status=available&limit=2").body["next_cursor"]

    for path in (
        f"sandboxes?status=allocated&cursor={cursor}",
        f"sandboxes?status=available&cursor={cursor[:-4]}AAAA",
        "sandboxes?status=available&cursor=forged",
        "sandboxes?status=available&cursor=ü",
    ):
        refused = lab.admin("GET", path)
        assert refused.error == (400, "INVALID_CURSOR"), path
        assert refused.body["error"]["field"] == "cursor"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "status"),
        ("?status=free", "status"),
        ("?status=stale&limit=0", "limit"),
        ("?status=stale&limit=201", "limit"),
        ("?status=stale&limit=x", "limit"),
    ],
)
def test_parameters_that_break_a_rule_are_named(lab: Lab, query: str, field: str) -> None:
    refused = lab.admin("GET", f"sandboxes{query}")

    assert refused.error == (400, "INVALID_REQUEST")
    assert refused.body["error"]["field"] == field


def test_counts_say_when_they_were_made(lab: Lab) -> None:
    assert lab.admin("GET", "stats").body == {
        "counted_at": None,
        "counts": None,
        "total": None,
        "last_sync": None,
        "next_return_at": None,
    }
    lab.pool.fill(3)
    lent = lab.allocate().body
    operations.count(clock=lab.pool.clock)

    told = lab.admin("GET", "stats").body

    assert told["counts"] | {"available": 2, "allocated": 1} == told["counts"]
    assert told["total"] == 3
    assert told["counted_at"] == lent["allocated_at"]
    assert told["next_return_at"] == lent["expires_at"] + 300 + 60


@pytest.mark.parametrize(("path", "kind"), [("sync", "sync"), ("cleanup", "cleanup")])
def test_a_run_is_ordered_and_polled(lab: Lab, path: str, kind: str) -> None:
    ordered = lab.admin("POST", path)

    assert ordered.status == 202
    assert ordered.body["kind"] == kind
    assert ordered.body["state"] == "queued"
    assert ordered.headers["Location"] == ordered.body["status_url"] == f"/v1/admin/jobs/{ordered.body['job_id']}"
    assert lab.admin("POST", path).body["job_id"] == ordered.body["job_id"], "an equal order that waits is enough"
    polled = lab.admin("GET", f"jobs/{ordered.body['job_id']}").body
    assert polled | ordered.body == polled
    assert (polled["started_at"], polled["ended_at"], polled["report"], polled["error"]) == (None, None, {}, None)


def test_a_run_is_polled_to_its_end(lab: Lab) -> None:
    job_id = lab.admin("POST", "sync").body["job_id"]

    operations.perform_run(run_id=job_id, provider=None, clock=lab.pool.clock)

    polled = lab.admin("GET", f"jobs/{job_id}").body
    assert polled["state"] == "failed"
    assert polled["error"], "there is no provider"
    assert polled["ended_at"] is not None


@pytest.mark.parametrize("job_id", ["nothing", "x" * 300])
def test_an_unknown_job_is_not_found(lab: Lab, job_id: str) -> None:
    assert lab.admin("GET", f"jobs/{job_id}").error == (404, "NOT_FOUND")


def test_quarantine_and_restore(lab: Lab) -> None:
    (sandbox,) = lab.pool.fill(1)
    path = f"sandboxes/{sandbox.sandbox_id}"

    kept = lab.admin("POST", f"{path}/quarantine", body={"reason": "The disk is corrupt."})
    assert (kept.status, kept.body["status"], kept.body["problem"]) == (200, "quarantined", "The disk is corrupt.")
    assert lab.admin("POST", f"{path}/quarantine", body={"reason": "again"}).error == (409, "CONFLICT")

    restored = lab.admin("POST", f"{path}/restore")
    assert (restored.status, restored.body["status"]) == (200, "pending_deletion")
    assert lab.admin("POST", f"{path}/restore").error == (409, "CONFLICT")
    (_, quarantined, restoring) = queries.history(sandbox_id=sandbox.sandbox_id)
    assert quarantined.actor == restoring.actor == f"client:{lab.tokens[lab.admin_token].token_id}"


@pytest.mark.parametrize("deed", ["quarantine", "restore"])
def test_an_unknown_sandbox_is_not_tended(lab: Lab, deed: str) -> None:
    assert lab.admin("POST", f"sandboxes/nothing/{deed}", body={"reason": "why"}).error == (404, "SANDBOX_NOT_FOUND")


def test_a_row_that_cannot_be_read_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "list_by_status", lambda **_: Page((Unreadable("sbx-1", "ext-1"),)))

    told = lab.admin("GET", "sandboxes?status=available").body

    assert told["unreadable"] == [{"sandbox_id": "sbx-1", "external_id": "ext-1"}]


def test_a_list_tells_of_another_programs_allocation_what_a_look_at_it_tells(lab: Lab) -> None:
    (one,) = lab.pool.fill(1)
    now = int(lab.pool.clock.now().timestamp())
    rows = seed.table_named("SandboxPool")
    seed.allocate(rows, one.sandbox_id, track="outside", now=now)

    (listed,) = lab.admin("GET", "sandboxes?status=allocated").body["items"]

    assert listed == lab.send("GET", f"sandboxes/{one.sandbox_id}", token=lab.admin_token).body
    assert (listed["expires_at"], listed["grace_ends_at"]) == (now + 4 * 3600, now + 4 * 3600 + 300)
