"""One account of the sign-in service is one enabled person, whatever happens in whatever order, and at whatever moment."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accessportal.audit import queries as audit
from accessportal.directory import operations, queries
from accessportal.directory.states import GroupRole, Person, State
from accessportal.directory.store.accounts import get_kept_identity, get_owner
from accessportal.kernel.actors import person
from accessportal.kernel.errors import Conflict, NotAllowed, NotFound, PortalError
from accessportal.store.transactions import transact
from tests.depth import examples
from tests.directory.conftest import NOW, OLGA, add_person, table

ALICE, BOB = "alice@example.com", "bob@example.com"
ONE, TWO = "https://login.example.com#1", "https://login.example.com#2"
_VERBS = ("sign in", "forget", "disable", "enable", "delete", "create", "leave the last group")


def sign_in(email: str, identity: str) -> Person:
    return operations.record_sign_in(email=email, identity=identity, method="openid_connect", actor=person(email), now=NOW)


def forget(email: str) -> Any:
    return operations.forget_identity(email=email, actor=OLGA, now=NOW)


def set_state(email: str, state: State) -> Any:
    return operations.set_person_state(email=email, state=state, actor=OLGA, now=NOW)


def delete(email: str) -> Any:
    return operations.delete_person(email=email, actor=OLGA, now=NOW)


def create(email: str) -> None:
    add_person(email, "/eng", GroupRole.READER)


def leave_last(email: str) -> None:
    operations.revoke_membership(email=email, group_id="/eng", actor=OLGA, now=NOW)


def enabled_with(identity: str, *emails: str) -> list[str]:
    found = queries.find_people(emails=emails)
    return [key for key, one in found.items() if one.is_enabled and one.identity == identity]


def bind_as_before(email: str, identity: str) -> None:
    """As earlier versions did: at the person alone."""
    table().update_item(
        Key={"pk": f"U:{email}", "sk": f"U:{email}"},
        UpdateExpression="SET #i = :i",
        ExpressionAttributeNames={"#i": "identity"},
        ExpressionAttributeValues={":i": identity},
    )


pytestmark = pytest.mark.usefixtures("directory")


@dataclass
class Model:
    """``people`` who exist: whether enabled, with which account. ``kept`` by address; ``owners`` by account."""

    people: dict[str, tuple[bool, str]] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)

    def take(self, who: str, account: str) -> bool:
        owner = self.owners.get(account, who)
        if owner != who and self.people.get(owner) == (True, account):
            return False
        self.owners[account], self.kept[who] = who, account
        return True

    def step(self, verb: str, who: str, account: str) -> bool:
        """Whether it is done."""
        is_enabled, own = self.people.get(who, (False, ""))
        kept = own or self.kept.get(who, "")
        match verb:
            case "sign in":
                if not is_enabled or kept not in {"", account} or not self.take(who, account):
                    return False
                self.people[who] = (True, account)
            case "forget":
                if not kept:
                    return False
                self.kept.pop(who, None)
                if self.owners.get(kept) == who:
                    del self.owners[kept]
                if who in self.people:
                    self.people[who] = (is_enabled, "")
            case "disable":
                if not is_enabled:
                    return False
                self.people[who] = (False, own)
            case "enable":
                if who not in self.people or is_enabled or (own and not self.take(who, own)):
                    return False
                self.people[who] = (True, own)
            case "delete" | "leave the last group":
                if who not in self.people or (verb != "delete" and not is_enabled):
                    return False
                del self.people[who]
            case _:
                if who in self.people or (kept and not self.take(who, kept)):
                    return False
                self.people[who] = (True, kept)
        return True


_numbers = itertools.count()
_steps = st.lists(st.tuples(st.sampled_from(_VERBS), st.sampled_from([0, 1]), st.sampled_from([ONE, TWO])), max_size=12)


@pytest.mark.deep
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_steps)
@example(steps=[("sign in", 0, ONE), ("disable", 0, ONE), ("sign in", 1, ONE), ("enable", 0, ONE)])
@example(steps=[("sign in", 0, ONE), ("delete", 0, ONE), ("sign in", 1, ONE), ("create", 0, ONE), ("forget", 0, ONE), ("create", 0, ONE)])
@example(steps=[("sign in", 0, ONE), ("leave the last group", 0, ONE), ("create", 0, ONE), ("sign in", 0, TWO), ("sign in", 1, ONE)])
@example(steps=[("sign in", 0, ONE), ("forget", 0, ONE), ("sign in", 1, ONE), ("sign in", 0, ONE), ("sign in", 0, TWO)])
def test_whatever_happens_an_account_is_one_enabled_person(steps: list[tuple[str, int, str]]) -> None:
    number = next(_numbers)
    people = [f"one-{number}@example.com", f"two-{number}@example.com"]
    accounts = {ONE: f"{ONE}-{number}", TWO: f"{TWO}-{number}"}
    model = Model()
    for email in people:
        create(email)
        model.step("create", email, "")
    does: dict[str, Callable[[str, str], Any]] = {
        "sign in": sign_in,
        "forget": lambda email, _: forget(email),
        "disable": lambda email, _: set_state(email, State.DISABLED),
        "enable": lambda email, _: set_state(email, State.ENABLED),
        "delete": lambda email, _: delete(email),
        "create": lambda email, _: create(email),
        "leave the last group": lambda email, _: leave_last(email),
    }
    for verb, which, account in steps:
        email, identity = people[which], accounts[account]
        # A disabled person stays when their last group goes.
        if verb == "leave the last group" and not model.people.get(email, (False, ""))[0]:
            continue
        try:
            does[verb](email, identity)
            is_done = True
        except PortalError:
            is_done = False
        assert is_done is model.step(verb, email, identity), (verb, email, identity)
        found = {key: (one.is_enabled, one.identity) for key, one in queries.find_people(emails=people).items()}
        assert found == model.people
        for identity in accounts.values():
            assert len(enabled_with(identity, *people)) <= 1
    assert all(audit.find_breaks(f"person#{email}") == [] for email in people)


def test_the_other_person_is_told_who_they_are_known_as() -> None:
    sign_in(ALICE, ONE)
    with pytest.raises(NotAllowed) as refused:
        sign_in(BOB, ONE)
    assert refused.value.code == "account_taken"
    assert "known here as Alice@Example.com" in refused.value.message
    assert "disables Alice@Example.com" in refused.value.message

    set_state(ALICE, State.DISABLED)
    assert sign_in(BOB, ONE).identity == ONE
    with pytest.raises(Conflict) as taken:
        set_state(ALICE, State.ENABLED)
    assert (taken.value.code, taken.value.present) == ("account_taken", None)
    assert "bob@example.com" not in taken.value.message
    forget(ALICE)
    set_state(ALICE, State.ENABLED)
    assert (enabled_with(ONE, ALICE, BOB), sign_in(ALICE, TWO).identity) == ([BOB], TWO)


def test_an_address_keeps_its_account_while_nobody_has_it() -> None:
    """Whoever may remove somebody from their last group and make them anew would choose who comes in as them."""
    create("nina@example.com")
    sign_in("nina@example.com", ONE)
    leave_last("nina@example.com")
    create("nina@example.com")
    with pytest.raises(NotAllowed) as refused:
        sign_in("nina@example.com", TWO)
    assert refused.value.code == "identity_differs"
    assert sign_in("nina@example.com", ONE).identity == ONE

    delete("nina@example.com")
    with pytest.raises(NotAllowed):
        operations.forget_identity(email="nina@example.com", actor=person(ALICE), now=NOW)
    assert operations.forget_identity(email="nina@example.com", actor=OLGA, now=NOW) is None
    with pytest.raises(NotFound):
        forget("nina@example.com")
    create("nina@example.com")
    assert sign_in("nina@example.com", TWO).identity == TWO
    assert audit.find_breaks("person#nina@example.com") == []


def test_a_person_of_another_program_has_the_account_of_the_address_too() -> None:
    create("nina@example.com")
    sign_in("nina@example.com", ONE)
    item = {"pk": "U:nina@example.com", "sk": "U:nina@example.com", "siKey1": "U", "email": "nina@example.com", "state": "enabled"}
    table().put_item(Item={**item, "createdAt": "2022-08-10T23:55:20.322Z"})
    with pytest.raises(NotAllowed) as refused:
        sign_in("nina@example.com", TWO)
    assert refused.value.code == "identity_differs"


class TestDataOfTheVersionBefore:
    def test_it_goes_on_working_and_two_with_one_account_are_caught(self) -> None:
        bind_as_before(ALICE, ONE)
        bind_as_before(BOB, ONE)
        assert sign_in(ALICE, ONE).identity == ONE
        with pytest.raises(NotAllowed, match="known here as"):
            sign_in(BOB, ONE)
        assert sign_in(ALICE, ONE).identity == ONE

    def test_the_account_of_somebody_who_never_signed_in_since_goes_with_the_address(self) -> None:
        bind_as_before(BOB, ONE)
        delete(BOB)
        add_person(BOB)
        with pytest.raises(NotAllowed):
            sign_in(BOB, TWO)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """The given change is made right before the next transaction is written."""

    def arrange(rival: Callable[[], Any]) -> None:
        waiting = [rival]

        def late(steps: Any) -> None:
            if waiting:
                waiting.pop()()
            transact(steps)

        for module in ("people", "accounts"):
            monkeypatch.setattr(f"accessportal.directory.store.{module}.transact", late)

    return arrange


_STORIES: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]] = {
    "two first sign-ins": (lambda: None, lambda: sign_in(ALICE, ONE), lambda: sign_in(BOB, ONE)),
    "enabled meanwhile": (
        lambda: (sign_in(ALICE, ONE), set_state(ALICE, State.DISABLED)),
        lambda: sign_in(BOB, ONE),
        lambda: set_state(ALICE, State.ENABLED),
    ),
    "taken while being enabled": (
        lambda: (sign_in(ALICE, ONE), set_state(ALICE, State.DISABLED)),
        lambda: set_state(ALICE, State.ENABLED),
        lambda: sign_in(BOB, ONE),
    ),
    "made anew meanwhile": (
        lambda: (sign_in(ALICE, ONE), delete(ALICE)),
        lambda: sign_in(BOB, ONE),
        lambda: add_person(ALICE),
    ),
    "taken while being made anew": (
        lambda: (sign_in(ALICE, ONE), delete(ALICE)),
        lambda: add_person(ALICE),
        lambda: sign_in(BOB, ONE),
    ),
    "forgotten meanwhile": (lambda: sign_in(ALICE, ONE), lambda: sign_in(ALICE, ONE), lambda: forget(ALICE)),
    "forgotten and taken while signing in": (
        lambda: sign_in(ALICE, ONE),
        lambda: sign_in(ALICE, ONE),
        lambda: (forget(ALICE), sign_in(BOB, ONE)),
    ),
}


@pytest.mark.parametrize("story", _STORIES)
def test_of_two_at_once_one_gets_the_account(between: Callable[[Callable[[], Any]], None], story: str) -> None:
    before, first, rival = _STORIES[story]
    before()
    between(rival)
    try:
        first()
    except PortalError as refused:
        assert refused.code in {"account_taken", "identity_differs"}  # noqa: PT017 - either order is right
    holders = enabled_with(ONE, ALICE, BOB)
    owner = get_owner(ONE)
    assert len(holders) == 1
    assert owner is not None
    assert holders == [owner.key]
    assert audit.find_breaks(f"person#{ALICE}") == audit.find_breaks(f"person#{BOB}") == []


def test_forgetting_for_somebody_who_is_made_anew_meanwhile(between: Callable[[Callable[[], Any]], None]) -> None:
    create("nina@example.com")
    sign_in("nina@example.com", ONE)
    delete("nina@example.com")
    between(lambda: add_person("nina@example.com"))
    forget("nina@example.com")
    found = queries.find_person(email="nina@example.com")
    assert found is not None
    assert (found.identity, get_kept_identity("nina@example.com"), get_owner(ONE)) == ("", "", None)
    assert audit.find_breaks("person#nina@example.com") == []
