"""The sandbox pool on a real engine: seed 002's own code beside ours, and many clients at once."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError

from accessportal.audit import queries as audit
from accessportal.kernel.actors import system
from accessportal.kernel.clock import SystemClock, to_epoch
from accessportal.kernel.errors import NotAllowed, Unavailable
from accessportal.kernel.pages import every
from accessportal.kernel.proofs import Proof, Waiting
from accessportal.sandboxes import ledger, operations, queries
from accessportal.sandboxes.ledger import Receipt
from accessportal.sandboxes.states import CleanReport, Due, NoneFree, Sandbox, Status, Taken
from accessportal.sandboxes.store import free_list, keys
from accessportal.store.base import current_settings
from accessportal.twin.sandbox_provider import SandboxProviderTwin
from accessportal.twin.settings import TwinSettings
from tests.depth import examples
from tests.engine.stage import at_once, lost, won
from tests.fixtures_provider import TwinAdapter, provider_on
from tests.sandboxes import seed_examples as seed

pytestmark = pytest.mark.usefixtures("engine")
CLIENT = system("client")
CLOCK = SystemClock()
THREADS = 64
POOL = 50
ROUNDS = examples(4)
TAKES = max(2, ROUNDS // 2)
_MOST_SECONDS = 60 * ROUNDS


def fill(count: int) -> list[Sandbox]:
    def add(number: int) -> Sandbox:
        name, external_id = f"lab-{number:03}", f"ext-{number:03}"
        return operations.add(external_id=external_id, name=name, lab_duration_hours=4, actor=CLIENT, now=CLOCK.now())

    return [add(number) for number in range(count)]


def take(track: str, *, key: str = "") -> Taken:
    return operations.take(key=key or track, track=track, actor=CLIENT, now=CLOCK.now())


def table() -> Any:
    return seed.table_named(f"{current_settings().table_prefix}SandboxPool")


# The seed's code, in both directions


def test_what_the_seeds_code_allocates_is_ours_too() -> None:
    (sandbox,) = fill(1)
    rows = table()
    (found,) = seed.find_available(rows)
    now = to_epoch(CLOCK.now())
    seed.allocate(rows, found["sandbox_id"], track="track-9", now=now)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        seed.allocate(rows, found["sandbox_id"], track="track-8", now=now)

    seen = queries.get(sandbox_id=sandbox.sandbox_id)
    assert (seen.status, seen.track, seen.key) == (Status.ALLOCATED, "track-9", "track-9")
    assert seen.expires_at is not None
    assert to_epoch(seen.expires_at) == now + 4 * 3600
    with pytest.raises(NoneFree):
        take("track-1")
    answered = take("track-9")
    assert (answered.is_repeat, answered.sandbox.sandbox_id, answered.sandbox.fence) == (True, sandbox.sandbox_id, 1)
    with pytest.raises(NotAllowed):
        operations.release(sandbox_id=sandbox.sandbox_id, track="track-1", actor=CLIENT, now=CLOCK.now())
    operations.release(sandbox_id=sandbox.sandbox_id, track="track-9", actor=CLIENT, now=CLOCK.now())
    assert seed.get(rows, sandbox.sandbox_id)["status"] == "pending_deletion"
    check_whole()


def test_what_we_allocate_the_seeds_code_sees_and_marks() -> None:
    fill(2)
    rows = table()
    lent = take("track-1").sandbox

    assert [item["sandbox_id"] for item in seed.find_of_track(rows, "track-1")] == [lent.sandbox_id]
    (item,) = seed.find_of_key(rows, "track-1")
    assert item == seed.get(rows, lent.sandbox_id)
    assert lent.sandbox_id not in [one["sandbox_id"] for one in seed.find_available(rows)]
    assert (item["status"], item["allocated_to_track"], item["idempotency_key"]) == ("allocated", "track-1", "track-1")
    assert lent.allocated_at is not None
    assert item["allocated_at"] == to_epoch(lent.allocated_at)
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        seed.allocate(rows, lent.sandbox_id, track="track-8", now=to_epoch(CLOCK.now()))

    seed.mark_for_deletion(rows, lent.sandbox_id, track="track-1", now=to_epoch(CLOCK.now()))
    # The mark closed the key, though the program that made it knows no key.
    newer = take("track-1")
    assert not newer.is_repeat
    assert newer.sandbox.sandbox_id != lent.sandbox_id
    operations.mend(sandbox_id=lent.sandbox_id, actor=CLIENT, now=CLOCK.now())
    assert queries.get(sandbox_id=lent.sandbox_id).due is Due.CLEAN
    released = operations.release(sandbox_id=lent.sandbox_id, track="track-1", fence=1, actor=CLIENT, now=CLOCK.now())
    assert released.fence == 1
    check_whole()


def test_rows_that_the_seeds_program_made_are_lent_too() -> None:
    rows = table()
    seed.insert_available(rows, "abc123", now=to_epoch(CLOCK.now()))

    lent = take("track-1").sandbox

    assert (lent.sandbox_id, lent.fence, lent.version) == ("abc123", 1, 2)
    assert seed.get(rows, "abc123")["status"] == "allocated"
    check_whole()


# Many at once


def test_one_key_from_fifty_clients_gives_one_sandbox_and_after_release_a_new_one_once() -> None:
    fill(20)
    for _ in range(3):
        outcomes = at_once([partial(take, "track-1", key="one-key")] * 50)

        assert lost(outcomes) == []
        assert len({(one.sandbox.sandbox_id, one.sandbox.fence) for one in won(outcomes)}) == 1
        assert [one.is_repeat for one in won(outcomes)].count(False) == 1
        held = won(outcomes)[0].sandbox
        operations.release(sandbox_id=held.sandbox_id, track="track-1", actor=CLIENT, now=CLOCK.now())
    assert len([one for one in everything() if one.status is Status.PENDING_DELETION]) == 3
    check_whole()


def test_of_many_cleaners_each_sandbox_has_one() -> None:
    added = fill(12)
    for number in range(len(added)):
        take(f"track-{number}")
    for row in everything():
        operations.release(sandbox_id=row.sandbox_id, track=row.track, actor=CLIENT, now=CLOCK.now())
    twin = SandboxProviderTwin(clock=CLOCK, settings=TwinSettings())
    for one in added:
        twin.create(one.external_id, name=one.name)

    def clean() -> CleanReport:
        provider = provider_on(TwinAdapter(twin), CLOCK)
        return operations.clean(provider=provider, clock=CLOCK, pace_seconds=0, workers=2)

    reports = won(at_once([clean] * 8))

    cleaned = [sandbox_id for report in reports for sandbox_id in report.cleaned]
    assert sorted(cleaned) == sorted(one.sandbox_id for one in added)
    assert sorted(twin.deletions) == sorted(one.external_id for one in added)
    assert [report.failures for report in reports] == [()] * 8
    check_whole()


def test_the_last_sandboxes_go_to_as_many_clients_as_there_are() -> None:
    fill(5)

    outcomes = at_once([partial(take, f"track-{number}") for number in range(40)])

    assert len({one.sandbox.sandbox_id for one in won(outcomes)}) == 5
    assert {type(error) for error in lost(outcomes)} == {NoneFree}
    check_whole()


class Clients:
    """Many clients that take and give back, beside cleaners; what each was told, and when, is written down."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []
        self.cleaned: list[tuple[str, float]] = []
        self.undecided: list[str] = []
        # Now and then a deletion fails or its answer is lost; such a sandbox is away for some seconds.
        self.twin = SandboxProviderTwin(clock=CLOCK, settings=TwinSettings(sandbox_fail_delete=0.02, sandbox_lose_answer=0.02))
        for number in range(POOL):
            self.twin.create(f"ext-{number:03}", name=f"lab-{number:03}")
        self._done = threading.Event()

    def run(self, threads: int, takes: int, cleaners: int) -> None:
        """Each client takes so many sandboxes, however often it must ask for them."""
        with ThreadPoolExecutor(threads + cleaners) as pool:
            cleaning = [pool.submit(self._clean) for _ in range(cleaners)]
            for client in [pool.submit(self._client, number, takes) for number in range(threads)]:
                client.result()
            self._done.set()
            for cleaner in cleaning:
                cleaner.result()

    def _client(self, number: int, takes: int) -> None:
        chance, track, taken = random.Random(number), f"track-{number}", 0
        last = time.monotonic() + _MOST_SECONDS
        while taken < takes:
            assert time.monotonic() < last, f"{track} got {taken} sandboxes of {takes} in {_MOST_SECONDS} s"
            key, asked = str(uuid.uuid4()), time.time()
            try:
                lent = take(track, key=key).sandbox
            except NoneFree:
                self.receipts.append(Receipt("none", track, asked, time.time()))
                time.sleep(chance.uniform(0.1, 0.5))
                continue
            except Unavailable as error:
                # Never "none" for that: it says that it does not know, and to try again.
                self.undecided.append(error.code)
                time.sleep(chance.uniform(0.1, 0.5))
                continue
            self.receipts.append(Receipt("taken", track, asked, time.time(), lent.sandbox_id, lent.fence, key))
            taken += 1
            time.sleep(chance.uniform(0, 0.02))
            self._give_back(lent, track)

    def _give_back(self, lent: Sandbox, track: str) -> None:
        """From the first question on nobody is sure to hold it; who is told to try again does."""
        asked = time.time()
        for _ in range(10):
            try:
                operations.release(sandbox_id=lent.sandbox_id, track=track, fence=lent.fence, actor=CLIENT, now=CLOCK.now())
            except Unavailable as error:
                self.undecided.append(error.code)
                continue
            self.receipts.append(Receipt("released", track, asked, time.time(), lent.sandbox_id, lent.fence))
            return
        raise AssertionError(f"{lent.sandbox_id} could not be given back")

    def _clean(self) -> None:
        provider = provider_on(TwinAdapter(self.twin), CLOCK)
        while not self._done.is_set():
            report = operations.clean(provider=provider, clock=CLOCK, limit=20, pace_seconds=0, workers=1)
            # Later than it was: what is surely free is what this is for.
            self.cleaned += [(sandbox_id, time.time()) for sandbox_id in report.cleaned]
            time.sleep(0.02)

    def free_spans(self, added: Sequence[Sandbox], since: float) -> list[ledger.Span]:
        """When each sandbox was surely free: from when its cleaning was known to the question of its next taker.

        The n-th cleaning ends hand-over n, so the next taker's fence is n + 1; noted after that question, it tells nothing.
        """
        asked = {(one.sandbox_id, one.fence): one.asked_at for one in self.receipts if one.kind == "taken"}
        begins = {one.sandbox_id: [since] for one in added}
        for sandbox_id, at in sorted(self.cleaned, key=lambda pair: pair[1]):
            begins[sandbox_id].append(at)
        return [
            (begin, asked.get((sandbox_id, cleanings + 1), float("inf")))
            for sandbox_id, found in begins.items()
            for cleanings, begin in enumerate(found)
        ]


def test_of_many_clients_no_two_hold_one_sandbox_none_is_lost_and_none_is_refused_while_one_is_free(
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    added, clients = fill(POOL), Clients()
    since = time.time()

    clients.run(THREADS, TAKES, cleaners=6)

    kinds = [receipt.kind for receipt in clients.receipts]
    counts = f"{kinds.count('taken')} taken, {kinds.count('none')} none, {len(clients.undecided)} undecided"
    record_testsuite_property("sandboxes", f"{counts}, {time.time() - since:.1f} s")
    assert kinds.count("taken") == kinds.count("released") == THREADS * TAKES
    assert set(clients.undecided) <= {"pool_contended", "sandbox_contended", "store_contended"}
    histories = {one.sandbox_id: queries.history(sandbox_id=one.sandbox_id) for one in everything()}
    assert list(ledger.problems_of_receipts(clients.receipts, histories, slack_seconds=0)) == []
    nones = [receipt for receipt in clients.receipts if receipt.kind == "none"]
    assert list(ledger.refused_while_free(nones, clients.free_spans(added, since))) == []
    assert len(everything()) == POOL
    check_whole()


def everything() -> list[Sandbox]:
    pages = [every(partial(_by_status, status)) for status in Status]
    found = [one for page in pages for one in page]
    assert all(isinstance(one, Sandbox) for one in found)
    return [one for one in found if isinstance(one, Sandbox)]


def check_whole() -> None:
    """The free list is what is available, every chain ends where its row says, and the events alone show nothing wrong."""
    rows = everything()
    free = {entry.sandbox_id for shard in free_list.shards() for entry in free_list.page(shard, cursor=None, limit=1000).items}
    assert free == {one.sandbox_id for one in rows if one.status is Status.AVAILABLE}
    for one in rows:
        assert audit.check_head(one.entity, version=one.version, audit_head=one.audit_head) == [], one
        assert list(ledger.problems_of_events(queries.history(sandbox_id=one.sandbox_id), one)) == [], one


def _by_status(status: Status, cursor: str | None) -> Any:
    return queries.list_by_status(status=status, cursor=cursor)


# Claims of requests


def hold(claim: str, *, key: str = "", track: str = "person:alice@example.com", most_held: int = 1) -> Proof | Waiting:
    return operations.hold(
        claim=claim,
        key=f"request:{key or claim}",
        track=track,
        name_prefix="",
        ends_at=CLOCK.now().replace(microsecond=0) + timedelta(hours=1),
        most_held=most_held,
        is_first=not key,
        guards=(),
        actor=CLIENT,
        clock=CLOCK,
    )


def let_go(claim: str, *, key: str = "") -> Proof | Waiting:
    return operations.let_go(claim=claim, key=f"request:{key or claim}", track="person:alice@example.com", actor=CLIENT, clock=CLOCK)


def test_many_requests_of_one_person_get_as_many_as_the_limit_says() -> None:
    fill(10)
    answers = at_once([partial(hold, f"r-{number}", most_held=2) for number in range(16)])
    proofs = [one for one in won(answers) if isinstance(one, Proof)]
    assert len(proofs) == 2
    assert {one.code for one in won(answers) if isinstance(one, Waiting)} == {"too_many_held"}
    assert lost(answers) == []
    check_whole()


def test_many_workers_with_one_request_get_one_sandbox() -> None:
    fill(10)
    answers = at_once([partial(hold, "r-1") for _ in range(16)])
    assert {one.job_id for one in won(answers) if isinstance(one, Proof)} == {keys.get_key("request:r-1").sandbox_id}  # type: ignore[union-attr]
    assert lost(answers) == []
    check_whole()


def test_extensions_against_the_end_leave_all_of_them_or_none() -> None:
    fill(ROUNDS)
    for round_ in range(ROUNDS):
        first = f"first-{round_}"
        hold(first)
        extensions = [partial(hold, f"{first}-{number}", key=first) for number in range(4)]
        answers = at_once([partial(let_go, first), *extensions])
        assert lost(answers) == []
        held = queries.find_by_key(key=f"request:{first}")
        kept = set(held.claims) if held is not None else set()
        assert first not in kept
        for number in range(4):
            let_go(f"{first}-{number}", key=first)
        assert queries.find_by_key(key=f"request:{first}") is None
    check_whole()
