"""How long events stay: what is old, over and in evidence goes; nothing else does, and nobody can claim that something went so."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from datetime import datetime

import pytest
from pydantic import SecretStr, ValidationError
from pytest_django.fixtures import Settings

from accessportal.apps import check_audit_keys
from accessportal.audit import operations as audit
from accessportal.audit import queries
from accessportal.audit.models import AuditItem
from accessportal.audit.operations import prepare_event
from accessportal.audit.states import RETENTION, AuditEvent, Draft
from accessportal.conf import Conf
from accessportal.evidence import config, retention
from accessportal.evidence.states import RemovalReport
from accessportal.jobs import tasks
from accessportal.kernel.actors import person, system
from accessportal.kernel.errors import Conflict, NotAllowed
from accessportal.observe.heartbeats import last_beat
from accessportal.store.transactions import transact
from tests.commands.conftest import run
from tests.crashing import MOMENTS, Killed, Process, living
from tests.evidence.conftest import DAY, OTHER, SIGNER, TODAY, Office
from tests.evidence.forging import Tables
from tests.evidence.test_heads import breaks, cut, verified
from tests.fixtures_story import Story

OLD = ["request#0", "request#1", "request#2"]
KEY = "A" * 43 + "="


@pytest.fixture
def aged(installed: Office) -> Office:
    """Three requests that ended within four days, all in evidence; that was 94 days ago."""
    installed.work(4)
    installed.export()
    installed.clock.advance(94 * 24 * 3600)
    return installed


def remove(office: Office, **given: object) -> RemovalReport:
    asked = {
        "files": office.files,
        "public_keys": [SIGNER.public_key.encode()],
        "keep_days": 90,
        "most_share": 1.0,
        "actor": system("test"),
        "clock": office.clock,
    }
    return retention.remove_old(**{**asked, **given})  # type: ignore[arg-type]


def left(*entities: str) -> list[str]:
    return [entity for entity in entities if queries.chain_of(entity)]


def write(office: Office, entity: str, action: str, *, at: datetime | None = None) -> None:
    sequence, head = office.chains.get(entity, (0, ""))
    draft, actor = Draft(action, "alice@example.com", {}), person("bob@example.com")
    event = prepare_event(draft, entity=entity, sequence=sequence + 1, prev_hash=head, actor=actor, now=at or office.clock.now())
    transact([event.step])
    office.chains[entity] = sequence + 1, event.head


def test_what_is_old_goes_and_everything_still_verifies(aged: Office) -> None:
    aged.write("request#young")
    assert breaks() == []
    dry = remove(aged, is_dry=True)
    assert (dry.removed, dry.events, left(*OLD), left(RETENTION)) == (3, 12, OLD, [])

    report = remove(aged)

    assert (report.removed, report.events, report.unproved, report.left, report.is_ok) == (3, 12, 0, 0, True)
    assert left(*OLD, "request#young", RETENTION) == ["request#young", RETENTION]
    (order,) = queries.chain_of(RETENTION)
    cutoff = (aged.clock.now() - 90 * DAY).replace(hour=0, minute=0, second=0, microsecond=0)
    assert (order.action, order.data) == ("audit_log.removal_ordered", {"before_at": cutoff.timestamp(), "keep_days": 90})
    whole = verified()
    assert (whole.code, whole.json["breaks"], whole.json["removed"]) == (0, [], 3)
    assert "3 chains of requests were removed" in run("verify_audit").out
    # The whole line of files, also after the next days were written.
    aged.write("request#later")
    aged.clock.advance(2 * 24 * 3600)
    aged.export()
    assert aged.breaks() == []
    assert (breaks(), verified().json["removed"]) == ([], 3)
    assert remove(aged).removed == 0
    assert len(queries.chain_of(RETENTION)) == 1


def test_a_request_that_was_spoken_about_after_its_end_goes_when_the_last_word_is_old(installed: Office) -> None:
    installed.write("request#0")
    installed.clock.advance(3 * 24 * 3600)
    write(installed, "request#0", "request.commented")
    installed.clock.advance(24 * 3600)
    installed.write("request#1")
    installed.clock.advance(2 * 24 * 3600)
    installed.export()
    installed.clock.advance(87 * 24 * 3600)
    assert remove(installed).removed == 0
    installed.clock.advance(24 * 3600)
    assert remove(installed).removed == 1
    assert (left("request#0", "request#1"), breaks(), verified().json["removed"]) == (["request#1"], [], 1)
    # Whoever took the file of the last word away would hide how young it was.
    (installed.folder / f"events/{TODAY + 3 * DAY}.jsonl.gz").unlink()
    assert "request#0" in {entity for entity, _, _ in breaks()}


def _not_exported(office: Office) -> None:
    write(office, "request#0", "request.denied", at=datetime.fromisoformat(f"{TODAY + 2 * DAY}T23:59:00Z"))


def _broken(office: Office) -> None:
    AuditItem("request#0", 2).update(actions=[AuditItem.actor.set("mallory@example.com")])


def _without_beginning(office: Office) -> None:
    cut("request#0", 1)


def _file_gone(office: Office) -> None:
    (office.folder / f"events/{TODAY}.jsonl.gz").unlink()


def _file_changed(office: Office) -> None:
    (office.folder / f"events/{TODAY}.jsonl.gz").write_bytes((office.folder / f"events/{TODAY + DAY}.jsonl.gz").read_bytes())


def _digest_gone(office: Office) -> None:
    (office.folder / f"digests/{TODAY}.json").unlink()


def _digest_forged(office: Office) -> None:
    path = office.folder / f"digests/{TODAY}.json"
    path.write_text(path.read_text().replace('"lines": 3', '"lines": 2'))


@pytest.mark.parametrize(
    ("wrong", "stays"),
    [
        (_not_exported, OLD[:1]),
        (_broken, OLD[:1]),
        (_without_beginning, OLD[:1]),
        (_file_gone, OLD),
        (_file_changed, OLD),
        (_digest_gone, OLD),
        (_digest_forged, OLD),
    ],
)
def test_what_evidence_does_not_have_as_it_is_stays(aged: Office, wrong: Callable[[Office], None], stays: list[str]) -> None:
    wrong(aged)
    report = remove(aged)
    assert (left(*OLD), report.removed, report.unproved + report.left) == (stays, 3 - len(stays), len(stays))


def test_a_digest_by_another_key_proves_nothing(aged: Office) -> None:
    assert remove(aged, public_keys=[OTHER.public_key.encode()]).unproved == 3
    assert remove(aged, public_keys=[OTHER.public_key.encode(), SIGNER.public_key.encode()]).removed == 3


def test_what_is_young_or_not_over_or_of_another_kind_stays(installed: Office) -> None:
    write(installed, "request#held", "request.submitted")
    write(installed, "request#held", "request.granted")
    write(installed, "lease#1", "lease.ended")
    write(installed, "person#alice@example.com", "user.deleted")
    installed.clock.advance(3 * 24 * 3600)
    installed.write("request#young")
    installed.clock.advance(24 * 3600)
    installed.export()
    # To the day: over on the day before the 90th is old enough, on the 90th not.
    installed.clock.advance(89 * 24 * 3600)
    assert remove(installed).removed == 0
    installed.clock.advance(24 * 3600)
    assert remove(installed).removed == 1
    assert left("request#held", "lease#1", "person#alice@example.com", "request#young") == [
        "request#held",
        "lease#1",
        "person#alice@example.com",
    ]


def test_what_still_has_its_request_or_waits_for_the_topic_stays(story: Story, installed: Office) -> None:
    asked = story.deny(story.ask_for_prod())
    installed.write("request#gone")
    installed.clock.advance(2 * 24 * 3600)
    installed.export()
    installed.clock.advance(94 * 24 * 3600)
    assert remove(installed, keeps_unpublished=True).left == 2
    for event in (*queries.chain_of("request#gone"), *queries.chain_of(asked.entity)):
        AuditItem(event.entity, event.sequence).update(actions=[AuditItem.outbox.remove()])
    report = remove(installed, keeps_unpublished=True)
    assert (report.removed, report.left, left(asked.entity, "request#gone")) == (1, 1, [asked.entity])
    assert breaks() == []
    # Its time to live is over.
    Tables().delete("ActiveRequests", {"request_id": {"S": asked.request_id}})
    assert remove(installed).removed == 1
    assert breaks() == []


def _nothing_ordered(_: Office) -> None:
    cut("request#0", 1, 2, 3, 4)


def _too_young(office: Office) -> None:
    remove(office)
    cut("request#young", 1)


def _not_over(office: Office) -> None:
    remove(office)
    cut("request#held", 1)


def _a_part(office: Office) -> None:
    remove(office, is_dry=False, keep_days=95)
    audit.order_removal(before=office.clock.now() - 90 * DAY, keep_days=90, actor=system("test"), now=office.clock.now())
    cut("request#0", 3, 4)


def _of_another_kind(office: Office) -> None:
    remove(office)
    cut("lease#1", 1)


def _orders_rewritten(office: Office) -> None:
    """By somebody without the key: up to now."""
    remove(office)
    cut("request#young", 1)
    AuditItem(RETENTION, 1).update(actions=[AuditItem.data["before_at"].set(int(office.clock.now().timestamp()))])


def _orders_far_ahead(office: Office) -> None:
    """By somebody with the key: not even so."""
    audit.order_removal(before=office.clock.now() + DAY, keep_days=90, actor=system("test"), now=office.clock.now())
    cut("request#young", 1)


def _file_of_another_end(office: Office) -> None:
    """The bucket tells that it was over, and the digest does not."""
    remove(office)
    cut("request#held", 1)
    path = office.folder / f"events/{TODAY + 4 * DAY}.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes()).replace(b"request.granted", b"request.revoked")))


def _end_by_somebody_without_the_key(office: Office) -> None:
    """Long before, so that the files have it, with its flaw."""
    remove(office)
    cut("request#ended by mallory", 1, 2)


@pytest.mark.parametrize(
    ("forge", "found"),
    [
        (_end_by_somebody_without_the_key, "request#ended by mallory"),
        (_nothing_ordered, "request#0"),
        (_too_young, "request#young"),
        (_not_over, "request#held"),
        (_a_part, "request#0"),
        (_of_another_kind, "lease#1"),
        (_orders_rewritten, "request#young"),
        (_orders_far_ahead, "request#young"),
        (_file_of_another_end, "request#held"),
    ],
)
def test_whoever_deletes_a_chain_can_not_claim_that_it_was_old(aged: Office, forge: Callable[[Office], None], found: str) -> None:
    at = datetime.fromisoformat(f"{TODAY + 4 * DAY}T12:00:00Z")
    write(aged, "request#held", "request.granted", at=at)
    write(aged, "lease#1", "lease.ended", at=at)
    write(aged, "request#ended by mallory", "request.granted", at=at)
    write(aged, "request#ended by mallory", "request.granted", at=at)
    AuditItem("request#ended by mallory", 2).update(actions=[AuditItem.action.set("request.revoked")])
    aged.write("request#young", at=aged.clock.now() - 80 * DAY)
    aged.export()

    forge(aged)

    assert found in {entity for entity, _, _ in breaks()}


@pytest.mark.parametrize("are_removed", [True, False])
def test_an_old_form_sent_again_is_refused_and_begins_no_chain_anew(story: Story, installed: Office, are_removed: bool) -> None:
    """Its request has the same name: evidence would have two chains of it."""
    asked = story.deny(story.ask_for_prod())
    installed.clock.advance(2 * 24 * 3600)
    installed.export()
    installed.clock.advance(94 * 24 * 3600)
    Tables().delete("ActiveRequests", {"request_id": {"S": asked.request_id}})
    if are_removed:
        assert remove(installed).removed == 1

    with pytest.raises(Conflict, match="Open the form anew") as refused:
        story.ask(account="payments-prod", permission_set="ReadOnlyAccess", ticket="CHG-20817", submission_id=asked.submission_id)

    assert (refused.value.code, refused.value.present) == ("submission_reused", None)
    assert left(asked.entity) == ([] if are_removed else [asked.entity])
    assert story.ask_for_prod().request_id != asked.request_id
    installed.clock.advance(2 * 24 * 3600)
    installed.export()
    assert (installed.breaks(), breaks()) == ([], [])


def test_much_at_once_is_a_mistake_until_an_operator_says_otherwise(story: Story, installed: Office, settings: Settings) -> None:
    for number in range(8):
        installed.write(f"request#{number}")
    installed.clock.advance(2 * 24 * 3600)
    installed.export()
    installed.clock.advance(94 * 24 * 3600)
    assert run("remove_old_events", "--as", "olga@example.com").code == 1
    settings.AUDIT_KEEP_DAYS = 90
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "SEGMENTS", 1)
        stopped = remove(installed, segments=[0], most_share=0.2)
    assert stopped.stopped.startswith("8 of 8 chains of requests would go that were over before 2026-03-08, more than the share of 20%")
    assert left(RETENTION) == []
    for somebody in ("mallory@example.com", "alice@example.com"):
        assert run("remove_old_events", "--most-share", "1", "--as", somebody).code == 1
    with pytest.raises(NotAllowed):
        remove(installed, actor=story.ana)
    assert run("remove_old_events", "--most-share", "1", "--dry-run", "--as", "olga@example.com", "--json").json["removed"] == 8
    assert run("remove_old_events", "--most-share", "1", "--as", "olga@example.com", "--json").json["removed"] == 8
    assert queries.chain_of(RETENTION)[0].actor == "olga@example.com"


def test_a_run_whose_time_is_over_before_anything_goes_says_so(aged: Office) -> None:
    report = remove(aged, until=aged.clock.now())

    assert (report.removed, left(*OLD), left(RETENTION)) == (0, OLD, [])
    assert "The time of the run was over" in report.stopped


def test_nothing_goes_while_the_orders_are_broken(aged: Office) -> None:
    """What goes then would be told of as deleted by somebody."""
    audit.order_removal(before=aged.clock.now() - 95 * DAY, keep_days=95, actor=system("test"), now=aged.clock.now())
    AuditItem(RETENTION, 1).update(actions=[AuditItem.data["before_at"].set(0)])

    report = remove(aged)

    assert (report.removed, left(*OLD), len(queries.chain_of(RETENTION))) == (0, OLD, 1)
    assert "See verify_audit." in report.stopped


@pytest.mark.parametrize("after", MOMENTS)
def test_killed_after_each_write(aged: Office, monkeypatch: pytest.MonkeyPatch, after: bool) -> None:
    monkeypatch.setattr(retention, "each", lambda items, action, **_: [action(item) for item in items])
    process, lives = Process(fatal=0, after=after), 0
    with living(process, monkeypatch, reads=frozenset({"GetItem", "BatchGetItem", "Query", "Scan"})):
        while True:
            process._fatal = len(process.names)
            try:
                remove(aged)
            except Killed:
                process.reboot()
                lives += 1
                if after:
                    assert breaks() == []
                    process._fatal = -1
                continue
            break
    assert lives >= 4
    assert (left(*OLD), len(queries.chain_of(RETENTION)), breaks()) == ([], 1, [])


def test_two_at_once(aged: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_chain, others = audit.remove_chain, list[RemovalReport]()

    def slow(events: Sequence[AuditEvent]) -> bool:
        monkeypatch.setattr(audit, "remove_chain", remove_chain)
        others.append(remove(aged))
        return remove_chain(events)

    monkeypatch.setattr(retention, "each", lambda items, action, **_: [action(item) for item in items])
    monkeypatch.setattr(audit, "remove_chain", slow)
    first = remove(aged)
    assert (first.removed + others[0].removed, first.is_ok, left(*OLD), breaks()) == (3, True, [], [])
    assert len(queries.chain_of(RETENTION)) == 1


def test_the_job_comes_to_every_part_within_a_week(db: None, aged: Office, settings: Settings) -> None:
    assert tasks.remove_old_events() == "PORTAL_AUDIT_KEEP_DAYS is not set"
    settings.AUDIT_KEEP_DAYS = 90
    for _ in range(retention.SEGMENTS):
        tasks.remove_old_events()
        aged.clock.advance(24 * 3600)
    assert left(*OLD) == []
    beat = last_beat("remove_old_events")
    assert beat is not None
    assert {"removed", "events", "unproved", "left"} <= beat.detail.keys()
    config.configure(None)
    with pytest.raises(tasks.ItemsFailed, match="no evidence is set up"):
        tasks.remove_old_events()


@pytest.mark.parametrize("given", [0, 89, 36_501, -1])
def test_events_stay_for_a_quarter_of_a_year_at_least(given: int) -> None:
    with pytest.raises(ValidationError, match="PORTAL_AUDIT_KEEP_DAYS must be from 90 to 36500 days"):
        Conf(audit_keep_days=given)


def test_no_value_is_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Conf().audit_keep_days is None
    monkeypatch.setenv("PORTAL_AUDIT_KEEP_DAYS", "")
    assert Conf().audit_keep_days is None
    monkeypatch.setenv("PORTAL_AUDIT_KEEP_DAYS", "400")
    assert Conf().audit_keep_days == 400


def test_a_deployment_is_told_that_nothing_can_go(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = Conf(audit_keys=SecretStr(f"k:{KEY}"), pseudonym_key=SecretStr(KEY), audit_keep_days=90)
    monkeypatch.setattr("accessportal.apps.conf", lambda: conf)
    assert [one.id for one in check_audit_keys(None)] == ["accessportal.W004"]
