"""Cleaning as stories: what is cleaned, what never is, what becomes of failures, and what a certificate proves."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.audit.operations import begin_restore
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound
from accessportal.kernel.proofs import Waiting
from accessportal.leases import effects, operations
from accessportal.leases.states import AccountState
from accessportal.leases.store import rows
from accessportal.store.transactions import update_one
from tests.fixtures_twin import MANAGEMENT_ACCOUNT, when
from tests.leases.conftest import ALICE, CARL, MALLORY, OLGA, Cleaning
from tests.leases.reading import lists, lists_by_rows

NO_NAMES: list[str] = []


def test_a_new_account_is_cleaned_once_and_then_free(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    first = cleaning.run()
    assert (first.begun, first.cleaned, first.is_ok) == ((one,), (), True)
    assert (cleaning.state_of(one), cleaning.accounts.get(one).run, lists()) == (
        AccountState.INITIAL,
        f"{one}-0-1",
        {"initial": [one], "all": [one]},
    )
    begun_at = cleaning.clock.now()
    assert cleaning.run().counts == dict.fromkeys(cleaning.run().counts, 0)
    cleaning.clock.advance(60)
    last = cleaning.run()
    assert (last.begun, last.cleaned, last.is_ok) == ((), (one,), True)
    account = cleaning.accounts.get(one)
    assert (account.state, account.run, account.error, account.cleaned_at) == (AccountState.AVAILABLE, "", "", cleaning.clock.now())
    certificate = {
        "run": f"{one}-0-1",
        "started_at": int(begun_at.timestamp()),
        "ended_at": int(begun_at.timestamp()) + 5,
        "found": 12,
        "removed": 12,
        "left": 0,
        "not_looked_at": 1,
        "left_names": NO_NAMES,
        "not_looked_at_names": ["AWS::Support::Case"],
    }
    assert dict(account.certificate) == certificate
    assert cleaning.events(one, "cleaned")[0]["certificate"] == certificate
    assert cleaning.actions(one) == ["added", "cleaning_begun", "cleaned"]
    assert audit.check_head(account.entity, version=account.version, audit_head=account.audit_head) == []
    assert cleaning.runs() == [f"{one}-0-1"]
    (execution,) = cleaning.twin.front.cleaner.executions()
    assert json.loads(execution.execution_input) == {"account_id": one, "fence": 0, "pool": "default", "run": f"{one}-0-1"}
    assert lists() == lists_by_rows() == {"available": [one], "all": [one]}


def test_what_is_given_back_is_cleaned_after_the_moment_in_which_it_can_be_taken_back(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.clean(one)
    lease = cleaning.accounts.started()
    cleaning.accounts.let_go(lease)
    cleaning.clock.advance(119)
    assert cleaning.run().begun == ()
    cleaning.clock.advance(1)
    assert cleaning.run().begun == (one,)
    assert cleaning.runs() == [f"{one}-0-1", f"{one}-1-1"]
    with pytest.raises(Conflict) as refused:
        cleaning.accounts.revive(lease, "again")
    assert refused.value.code == "undo_over"


# What must never be cleaned


def outside(cleaning: Cleaning, one: str) -> None:
    cleaning.move(one, "/Workloads")


def on_the_list(cleaning: Cleaning, one: str) -> None:
    cleaning.set(never=frozenset({one}))


def left_the_organization(cleaning: Cleaning, one: str) -> None:
    cleaning.twin.organizations.remove_account_from_organization(AccountId=one)


def of_another_pool(cleaning: Cleaning, _one: str) -> None:
    cleaning.set(units={cleaning.twin.organizational_units["/Pool"]: "another"})


def without_units(cleaning: Cleaning, _one: str) -> None:
    cleaning.set(units={})


BARRED = [
    (outside, "outside_units", "It is not below an organizational unit of the pool default."),
    (on_the_list, "never_cleaned", "It is on the list of accounts that are never cleaned (PORTAL_LEASES_NEVER)."),
    (left_the_organization, "outside_organization", "It is not in the organization."),
    (of_another_pool, "outside_units", "It is not below an organizational unit of the pool default."),
    (without_units, "outside_units", "It is not below an organizational unit of the pool default."),
]


@pytest.mark.parametrize(("bar", "code", "reason"), BARRED, ids=lambda value: getattr(value, "__name__", ""))
def test_what_must_not_be_cleaned_is_refused_each_time_and_then_out_of_use(cleaning: Cleaning, bar: Any, code: str, reason: str) -> None:
    (one,) = cleaning.fill("one")
    bar(cleaning, one)
    with pytest.raises(Conflict) as asked:
        operations.clean_account(account_id=one, clock=cleaning.clock, actor=OLGA)
    assert (asked.value.code, asked.value.message) == (code, f"{one} is not cleaned. {reason}")
    check_refused_until_out_of_use(cleaning, one, code, reason)


def test_the_management_account_is_never_cleaned(cleaning: Cleaning) -> None:
    cleaning.accounts.add([MANAGEMENT_ACCOUNT])
    reason = "It is the organization's management account."
    with pytest.raises(Conflict) as asked:
        operations.clean_account(account_id=MANAGEMENT_ACCOUNT, clock=cleaning.clock, actor=OLGA)
    assert (asked.value.code, asked.value.message) == ("management_account", f"{MANAGEMENT_ACCOUNT} is not cleaned. {reason}")
    check_refused_until_out_of_use(cleaning, MANAGEMENT_ACCOUNT, "management_account", reason)


def check_refused_until_out_of_use(cleaning: Cleaning, one: str, code: str, reason: str) -> None:
    """The sweep refuses it five times, ever later, and no call is seen."""
    gaps = []
    for attempt in range(1, 6):
        report = cleaning.run()
        assert (report.refused, report.begun, report.is_ok, report.out_of_use) == ((one,), (), False, (one,) if attempt == 5 else ())
        due_at = cleaning.accounts.get(one).due_at
        if due_at is not None:
            gaps.append((due_at - cleaning.clock.now()).total_seconds() / 60)
            assert cleaning.run().refused == ()
            cleaning.clock.advance(gaps[-1] * 60)
    assert gaps == [5, 10, 20, 40]
    account = cleaning.accounts.get(one)
    assert (account.state, account.reason) == (AccountState.FAILED, f"Cleaning failed 5 times in a row, at last: {reason}")
    told = cleaning.events(one, "clean_refused")
    assert [event["error_code"] for event in told] == [code] * 6
    assert [(event.get("attempts"), event["state"]) for event in told] == [
        (None, "initial"),
        *[(number, "initial") for number in range(1, 5)],
        (5, "failed"),
    ]
    assert cleaning.runs() == []
    assert lists() == lists_by_rows() == {"failed": [one], "all": [one]}


def test_a_cleaning_that_is_asked_for_is_refused_for_what_is_lent_moved_or_out_of_use(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.clean(one)
    before = cleaning.runs()

    def code(**asked: Any) -> str:
        with pytest.raises(Conflict) as refused:
            operations.clean_account(**{"account_id": one, "clock": cleaning.clock, "actor": OLGA, **asked})
        return refused.value.code

    assert code() == "nothing_to_clean"
    lease = cleaning.accounts.started()
    assert code() == "account_leased"
    cleaning.accounts.let_go(lease)
    assert code() == "may_be_taken_back"
    cleaning.clock.advance(120)
    assert code(fence=0) == "account_moved_on"
    operations.quarantine(account_id=one, reason="odd", actor=OLGA, now=cleaning.clock.now())
    assert code() == "nothing_to_clean"
    with pytest.raises(NotFound):
        operations.clean_account(account_id="999999999999", clock=cleaning.clock, actor=OLGA)
    with pytest.raises(NotAllowed):
        operations.clean_account(account_id=one, clock=cleaning.clock, actor=MALLORY)
    codes = ["nothing_to_clean", "account_leased", "may_be_taken_back", "account_moved_on", "nothing_to_clean"]
    assert [event["error_code"] for event in cleaning.events(one, "clean_refused")] == codes
    assert [event["error_code"] for event in cleaning.events("999999999999", "clean_refused")] == ["account_not_found"]
    assert cleaning.runs() == before
    # What was refused as unknown may still come into the pool: its chain goes on.
    cleaning.accounts.add(["999999999999"])
    assert cleaning.actions("999999999999") == ["clean_refused", "added"]


def test_a_lease_that_a_row_does_not_tell_of_keeps_its_account_from_being_cleaned(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.clean(one)
    cleaning.accounts.started()
    leased = cleaning.accounts.get(one)
    # As after a mistake of another program: the row says that it is to be cleaned.
    damaged = replace(leased, state=AccountState.DIRTY, due_at=cleaning.clock.now(), since=cleaning.clock.now() - timedelta(hours=1))
    update_one(rows.accounts.change(leased, damaged))
    before = cleaning.runs()
    assert cleaning.run().refused == (one,)
    assert [event["error_code"] for event in cleaning.events(one, "clean_refused")] == ["account_leased"]
    assert cleaning.runs() == before


# What the cleaner answers, and when


def test_a_success_for_an_account_that_moved_on_is_dropped(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.run()
    cleaning.clock.advance(60)
    moved: list[Any] = []

    def meanwhile(_asked: dict[str, Any]) -> None:
        if not moved:
            account = cleaning.accounts.get(one)
            moved.append(update_one(rows.accounts.change(account, replace(account, fence=7))))

    with when("DescribeExecution", meanwhile):
        report = cleaning.run()
    assert (report.dropped, report.cleaned, cleaning.state_of(one)) == ((one,), (), AccountState.INITIAL)
    (told,) = cleaning.events(one, "result_dropped")
    assert told == {"fence": 7, "state": "initial", "run": f"{one}-0-1", "reason": "the account has moved on"}
    cleaning.clean(one)
    assert cleaning.runs() == [f"{one}-0-1", f"{one}-7-1"]


def test_a_run_of_an_earlier_hand_over_is_waited_for_and_dropped(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.twin.settings.cleaner_seconds = 600
    cleaning.run()
    account = cleaning.accounts.get(one)
    # As after a restore of the tables.
    update_one(rows.accounts.change(account, replace(account, fence=7)))
    cleaning.clock.advance(60)
    assert (cleaning.run().waiting, cleaning.runs()) == ((one,), [f"{one}-0-1"])
    cleaning.clock.advance(600)
    assert cleaning.run().dropped == (one,)
    assert cleaning.events(one, "result_dropped")[0]["reason"] == "the hand-over has changed"
    cleaning.clean(one)
    assert cleaning.runs() == [f"{one}-0-1", f"{one}-7-1"]


def test_nothing_is_cleaned_while_a_restore_of_the_tables_is_not_confirmed(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    now = cleaning.clock.now()
    begin_restore(restored_to=now - timedelta(hours=1), actor=OLGA, now=now)
    words = "The tables were restored, and nothing is cleaned until an operator has confirmed that."
    assert (cleaning.run().stopped, cleaning.runs()) == (words, [])
    with pytest.raises(Conflict) as refused:
        operations.clean_account(account_id=one, clock=cleaning.clock, actor=OLGA)
    assert (refused.value.code, cleaning.runs()) == ("restore_held", [])


@pytest.mark.parametrize("is_retired", [False, True])
def test_a_success_for_an_account_that_was_put_out_of_use_or_has_left_is_dropped(cleaning: Cleaning, *, is_retired: bool) -> None:
    (one,) = cleaning.fill("one")
    cleaning.run()
    cleaning.clock.advance(60)
    done: list[bool] = []

    def meanwhile(_asked: dict[str, Any]) -> None:
        if not done:
            done.append(True)
            operations.quarantine(account_id=one, reason="odd", actor=OLGA, now=cleaning.clock.now())
            if is_retired:
                operations.retire(account_id=one, reason="gone", actor=OLGA, now=cleaning.clock.now())

    with when("DescribeExecution", meanwhile):
        report = cleaning.run()
    assert (report.dropped, report.cleaned) == ((one,), ())
    (told,) = cleaning.events(one, "result_dropped")
    assert told["run"] == f"{one}-0-1"
    if not is_retired:
        assert cleaning.state_of(one) is AccountState.FAILED
        operations.restore(account_id=one, actor=OLGA, now=cleaning.clock.now())
        cleaning.clean(one)
        # What was cleaned before it was put out of use proves nothing.
        assert cleaning.runs() == [f"{one}-0-1", f"{one}-0-2"]


def test_a_run_goes_on_for_an_account_that_was_put_out_of_use_and_restored_meanwhile(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.twin.settings.cleaner_seconds = 3_600
    cleaning.run()
    operations.quarantine(account_id=one, reason="odd", actor=OLGA, now=cleaning.clock.now())
    operations.restore(account_id=one, actor=OLGA, now=cleaning.clock.now())
    assert cleaning.run().begun == (one,)
    cleaning.clock.advance(3_600)
    assert cleaning.run().cleaned == (one,)
    assert cleaning.runs() == [f"{one}-0-1"]


def test_nobody_gets_an_account_while_it_is_cleaned_and_a_call_that_comes_late_cleans_nothing(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.run()
    late = cleaning.twin.front.cleaner.executions()[0]
    assert isinstance(cleaning.accounts.take(), Waiting)
    cleaning.clock.advance(60)
    cleaning.run()
    assert cleaning.accounts.get(one).user == ALICE
    # The worker that had died before it could call is back, and calls now.
    found = effects.cleaner()
    assert found is not None
    found.start(late.name, late.execution_input)
    assert cleaning.runs() == [f"{one}-0-1"]
    assert cleaning.state_of(one) is AccountState.LEASED


def test_five_failures_and_then_a_success_and_others_wait_for_none_of_it(cleaning: Cleaning) -> None:
    bad, good = cleaning.fill("bad", "good")
    cleaning.set(most_attempts=6)
    cleaning.twin.settings.cleaner_failures = {bad: 5}
    began = cleaning.clock.now()
    gaps: list[float] = []
    cleaned_after: dict[str, float] = {}
    for _ in range(200):
        report = cleaning.run()
        for one in report.cleaned:
            cleaned_after[one] = (cleaning.clock.now() - began).total_seconds()
        if report.failures:
            gaps.append(((cleaning.accounts.get(bad).due_at or began) - cleaning.clock.now()).total_seconds() / 60)
        if len(cleaned_after) == 2:
            break
        cleaning.clock.advance(60)
    assert gaps == [5, 10, 20, 40, 60]
    assert cleaned_after[good] == 60
    assert cleaned_after[bad] > (5 + 10 + 20 + 40 + 60) * 60
    failures = cleaning.events(bad, "clean_failed")
    words = "The cleaner ended with FAILED. Cleaner.Failed: The cleaner ended with code 1"
    assert [(event["attempts"], event["error"]) for event in failures] == [(number, words) for number in range(1, 6)]
    assert [name for name in cleaning.runs() if name.startswith(bad)] == [f"{bad}-0-{number}" for number in range(1, 7)]
    assert lists() == lists_by_rows() == {"available": sorted([bad, good]), "all": sorted([bad, good])}


def test_failing_for_ever_ends_out_of_use_and_restore_tries_again(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.twin.settings.cleaner_failures = {one: 6}
    out: list[str] = []
    for _ in range(120):
        out += cleaning.run().out_of_use
        cleaning.clock.advance(60)
    account = cleaning.accounts.get(one)
    words = "Cleaning failed 5 times in a row, at last: The cleaner ended with FAILED. Cleaner.Failed: The cleaner ended with code 1"
    assert (out, account.state, account.reason, account.due_at) == ([one], AccountState.FAILED, words, None)
    assert len(cleaning.runs()) == 5
    assert lists() == lists_by_rows() == {"failed": [one], "all": [one]}
    operations.restore(account_id=one, actor=OLGA, now=cleaning.clock.now())
    cleaning.clean(one)
    assert cleaning.runs() == [f"{one}-0-{number}" for number in range(1, 8)]
    assert cleaning.accounts.get(one).reason == ""


OTHERS = {"account_id": "210987654321", "found": 1, "removed": 1, "left": NO_NAMES, "not_looked_at": NO_NAMES}
BAD = [
    ("", "What the cleaner answered can't be used: it is not a JSON object"),
    ("[]", "What the cleaner answered can't be used: it is not a JSON object"),
    ("{", "What the cleaner answered can't be used: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
    (json.dumps(OTHERS), "What the cleaner answered can't be used: it tells of the account '210987654321'"),
    ({"found": -1}, "What the cleaner answered can't be used: found is not a whole number"),
    ({"removed": True}, "What the cleaner answered can't be used: removed is not a whole number"),
    ({"left": 0}, "What the cleaner answered can't be used: left is not a list of texts"),
    ({"not_looked_at": [""]}, "What the cleaner answered can't be used: not_looked_at is not a list of texts"),
    ({"removed": 2}, "3 resources were found and 2 removed, and none is told to be left"),
    ({"removed": 1, "left": ["bucket a", "bucket b"]}, "2 of 3 resources are left, the first is bucket a"),
]


@pytest.mark.parametrize(("output", "error"), BAD)
def test_an_account_is_clean_by_a_certificate_alone(cleaning: Cleaning, output: str | dict[str, Any], error: str) -> None:
    (one,) = cleaning.fill("one")
    good = {"account_id": one, "found": 3, "removed": 3, "left": NO_NAMES, "not_looked_at": NO_NAMES}
    cleaning.twin.front.cleaner.output_of = lambda _given: output if isinstance(output, str) else json.dumps(good | output)
    cleaning.run()
    cleaning.clock.advance(60)
    report = cleaning.run()
    account = cleaning.accounts.get(one)
    assert (report.cleaned, [failure.error for failure in report.failures]) == ((), [error])
    assert (account.state, account.attempts, account.error, account.run) == (AccountState.INITIAL, 1, error, "")
    left = 2 if "resources are left" in error else 0
    assert account.certificate.get("left", 0) == left
    cleaning.twin.front.cleaner.output_of = lambda _given: json.dumps(good)
    cleaning.clean(one)


def test_long_lists_are_counted_whole_and_named_in_part(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    unseen = [f"{'x' * 300}{number}" for number in range(1_000)]
    output = {"account_id": one, "found": 0, "removed": 0, "left": NO_NAMES, "not_looked_at": unseen}
    cleaning.twin.front.cleaner.output_of = lambda _given: json.dumps(output)
    cleaning.clean(one)
    certificate = cleaning.accounts.get(one).certificate
    assert (certificate["not_looked_at"], certificate["not_looked_at_names"]) == (1_000, ["x" * 200] * 50)


def test_a_run_of_that_name_with_another_input_proves_nothing(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    found = effects.cleaner()
    assert found is not None
    found.start(f"{one}-0-1", json.dumps({"account_id": "210987654321"}))
    cleaning.run()
    cleaning.clock.advance(60)
    (failure,) = cleaning.run().failures
    assert failure.error == f"The run {one}-0-1 was started by somebody else, with another input"
    cleaning.clean(one)


# Trouble that is not the account's


def test_no_account_fails_because_the_cleaner_does_not_answer(cleaning: Cleaning) -> None:
    ids = cleaning.fill(*(f"lab-{number}" for number in range(7)))
    for change in ({"cleaner_throttle": 1}, {"cleaner_outage": True}, {"cleaner_server_error": 1}):
        cleaning.twin.settings.change(change)
        for _ in range(6):
            assert cleaning.run().stopped.startswith("The cleaner can't be worked with: ")
            cleaning.clock.advance(60)
        cleaning.twin.settings.change({name: type(value)(0) for name, value in change.items()})
    assert (cleaning.runs(), [cleaning.accounts.get(one).attempts for one in ids]) == ([], [0] * 7)
    for one in ids:
        cleaning.clean(one)


def test_a_lost_answer_is_looked_for_and_not_believed(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.twin.settings.cleaner_lose_answer = 0.5
    for _ in range(60):
        cleaning.run()
        if cleaning.state_of(one) is AccountState.AVAILABLE:
            break
        cleaning.clock.advance(60)
    assert cleaning.state_of(one) is AccountState.AVAILABLE
    assert (cleaning.runs(), cleaning.events(one, "clean_failed")) == ([f"{one}-0-1"], [])


def test_a_machine_that_is_gone_or_express_stops_the_run(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    arn = operations_arn()
    cleaning.set(cleaner_arn=f"{arn}-other")
    assert "StateMachineDoesNotExist" in cleaning.run().stopped
    assert (cleaning.accounts.get(one).attempts, cleaning.runs()) == (0, [])
    cleaning.set(cleaner_arn=arn)
    cleaning.clean(one)


def test_an_express_machine_is_not_called_for_one_account_either(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    with when("DescribeStateMachine", lambda _asked: {"type": "EXPRESS"}), pytest.raises(Conflict, match="may run twice under one name"):
        operations.clean_account(account_id=one, clock=cleaning.clock, actor=OLGA)
    assert (cleaning.runs(), cleaning.accounts.get(one).run) == ([], "")


def operations_arn() -> str:
    found = effects.cleaner()
    assert isinstance(found, effects.StepFunctionsCleaner)
    return found.machine_arn


def test_a_run_that_takes_very_long_is_told_and_nobody_begins_beside_it(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    cleaning.twin.settings.cleaner_seconds = 1_000_000
    cleaning.run()
    cleaning.clock.advance(11 * 3600)
    assert cleaning.run().is_ok
    cleaning.clock.advance(2 * 3600)
    (failure,) = cleaning.run().failures
    assert failure.error.startswith("The cleaner is at work since 2026-03-02 09:00 UTC")
    assert (cleaning.runs(), cleaning.state_of(one)) == ([f"{one}-0-1"], AccountState.INITIAL)


def test_without_a_cleaner_nothing_is_called(cleaning: Cleaning) -> None:
    cleaning.fill("one")
    cleaning.set(cleaner_arn="")
    assert not operations.is_cleaner_set()
    calls: list[str] = []
    told = [when(name, lambda _asked: calls.append("called")) for name in ("DescribeStateMachine", "ListParents")]
    with told[0], told[1], pytest.raises(Conflict) as refused:
        cleaning.run()
    assert (refused.value.code, calls) == ("no_cleaner", [])


# Two at once, and the hand-over


def test_two_cleaners_at_once_are_one_execution(cleaning: Cleaning) -> None:
    (one,) = cleaning.fill("one")
    inner: list[Any] = []

    def meanwhile(_asked: dict[str, Any]) -> None:
        # The other one comes when this one is about to call, and after its gap again: it finds nothing, and calls too.
        if len(inner) < 2:
            cleaning.clock.advance(60)
            inner.append(None)
            inner[-1] = cleaning.run()

    with when("StartExecution", meanwhile):
        cleaning.run()
    assert cleaning.runs() == [f"{one}-0-1"]
    cleaning.clock.advance(60)
    cleaning.run()
    assert (cleaning.state_of(one), cleaning.runs()) == (AccountState.AVAILABLE, [f"{one}-0-1"])
    assert cleaning.actions(one) == ["added", "cleaning_begun", "cleaned"]


@pytest.mark.parametrize("operation", ["DescribeExecution", "ListParents"])
def test_of_two_cleaners_that_begin_together_one_begins(cleaning: Cleaning, operation: str) -> None:
    (one,) = cleaning.fill("one")
    inner: list[Any] = []

    def meanwhile(_asked: dict[str, Any]) -> None:
        if not inner:
            inner.append(None)
            inner[0] = cleaning.run()

    with when(operation, meanwhile):
        outer = cleaning.run()
    assert (inner[0].begun, outer.begun, outer.is_ok) == ((one,), (), True)
    assert cleaning.runs() == [f"{one}-0-1"]
    assert cleaning.actions(one) == ["added", "cleaning_begun"]


def test_a_retiring_account_leaves_when_its_cleaning_has_ended_well_or_badly(cleaning: Cleaning) -> None:
    good, bad = cleaning.fill("good", "bad")
    cleaning.twin.settings.cleaner_failures = {bad: 1}
    cleaning.run()
    for one in (good, bad):
        assert operations.retire(account_id=one, reason="over", actor=OLGA, now=cleaning.clock.now()).is_retiring
    cleaning.clock.advance(60)
    cleaning.run()
    assert lists() == lists_by_rows() == {}
    assert [cleaning.actions(one)[-1] for one in (good, bad)] == ["retired", "retired"]


def test_an_account_that_was_closed_is_set_aside_and_the_next_goes_out(cleaning: Cleaning) -> None:
    ids = cleaning.fill("one", "two", "three")
    for one in ids:
        cleaning.clean(one)
    for one in ids[:2]:
        cleaning.twin.organizations.close_account(AccountId=one)
    assert cleaning.accounts.taken().account_id == ids[2]
    words = "AWS Organizations does not list it as an active account."
    aside = [cleaning.accounts.get(one) for one in ids[:2] if cleaning.state_of(one) is AccountState.FAILED]
    assert {account.reason for account in aside} <= {words}
    assert isinstance(cleaning.accounts.take(CARL), Waiting)
    assert {cleaning.accounts.get(one).reason for one in ids[:2]} == {words}
