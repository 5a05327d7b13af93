"""Importing people: checked whole, planned, carried out, resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accessportal.audit import queries as audit
from accessportal.directory import operations, queries
from accessportal.directory.states import Changed, GroupRole, Person
from accessportal.kernel.errors import Conflict, Unavailable
from accessportal.mirror import operations as mirror
from accessportal.mirror.states import MirrorReport
from tests.commands.conftest import Ran, by_olga, run
from tests.conftest import FakeClock

FILE = """email,name,group,role
alice@example.com,Alice Park,/engineering,admin
bob@example.com,Bob Ito,/engineering/payments,contributor
Carl@example.com,Carl Crane,/engineering/payments,reader
carl@example.com,,/security,reader
dora@example.com,Dora Diaz,,
"""
WITH_GROUPS = """email,name,group,role
erin@example.com,Erin,/design/brand/print,reader
femi@example.com,Femi,/engineering/web/shop,admin
"""
Import = Callable[..., Ran]


@pytest.fixture
def import_file(town: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    # Moto copies its tables in a transaction and can't be written to from several threads.
    for module in ("plan", "carrying_out"):
        monkeypatch.setattr(f"accessportal.directory.importing.{module}.THREADS", 1)

    def import_it(text: str, *flags: str, who: str = "olga@example.com") -> Ran:
        file = tmp_path / "people.csv"
        file.write_text(text)
        return run("import_people", str(file), *flags, "--as", who)

    return import_it


def roles(town: FakeClock, email: str) -> dict[str, GroupRole]:
    return {role.group_id: role.role for role in queries.roles_of(email=email, now=town.now())}


def test_a_dry_run_tells_the_plan_and_writes_nothing(import_file: Import, town: FakeClock) -> None:
    told = import_file(FILE, "--dry-run", "--json")

    assert told.code == 0
    assert told.json == {
        "plan": {"new_groups": 0, "new_people": 2, "new_memberships": 2, "role_changes": 1, "unchanged": 1, "names_kept": 0},
        "dry_run": True,
    }
    assert queries.find_person(email="carl@example.com") is None
    assert roles(town, "bob@example.com") == {"/engineering/payments": GroupRole.READER}
    assert import_file(FILE, "--dry-run").lines == [
        "2 people to create",
        "2 memberships to create",
        "1 role to change",
        "1 row that is so already",
        "Nothing was changed (--dry-run).",
    ]


def test_everything_in_the_file_is_so_afterwards(import_file: Import, town: FakeClock) -> None:
    told = import_file(FILE, "--json")

    assert told.code == 0
    assert told.json["imported"] == {"groups": 0, "people": 2, "memberships": 3}
    assert (told.json["failures"], told.json["was_stopped"], told.json["waiting_for_cognito"]) == ([], False, 0)
    assert roles(town, "bob@example.com") == {"/engineering/payments": GroupRole.CONTRIBUTOR}
    assert roles(town, "carl@example.com") == {"/engineering/payments": GroupRole.READER, "/security": GroupRole.READER}
    carl = queries.find_person(email="carl@example.com")
    assert carl is not None
    assert (carl.email, carl.name) == ("Carl@example.com", "Carl Crane")
    assert roles(town, "dora@example.com") == {}
    assert (
        run("verify_directory_chains") if False else audit.check_head(carl.entity, version=carl.version, audit_head=carl.audit_head) == []
    )


def test_a_person_comes_with_the_first_membership_in_one_change(import_file: Import) -> None:
    import_file(FILE)

    told = audit.history("person#carl@example.com", newest_first=False).items
    assert [(event.action, event.scope) for event in told] == [
        ("user.created", ""),
        ("user.granted", "/engineering/payments"),
        ("user.granted", "/security"),
    ]
    assert {event.actor for event in told} == {"olga@example.com"}


def test_doing_it_again_changes_nothing(import_file: Import) -> None:
    import_file(FILE)
    before = audit.history("person#carl@example.com").items

    told = import_file(FILE, "--json")

    assert told.json["plan"] == {
        "new_groups": 0, "new_people": 0, "new_memberships": 0, "role_changes": 0, "unchanged": 5, "names_kept": 0,
    }  # fmt: skip
    assert told.json["imported"] == {"groups": 0, "people": 0, "memberships": 0}
    assert audit.history("person#carl@example.com").items == before
    assert "Nothing to do: the directory holds all of it." in import_file(FILE).lines


def test_nobody_is_renamed_or_taken_out_by_an_import(import_file: Import, town: FakeClock) -> None:
    by_olga("grant_role", "bob@example.com", "/security", "reader")

    told = import_file("email,name,group,role\nbob@example.com,Robert,/engineering/payments,reader\n", "--json")

    assert told.json["plan"] | {"unchanged": 1, "names_kept": 1} == told.json["plan"]
    bob = queries.find_person(email="bob@example.com")
    assert bob is not None
    assert bob.name == "Bob Ito"
    assert "/security" in roles(town, "bob@example.com")


def test_missing_groups_are_a_mistake_until_told_to_make_them(import_file: Import, town: FakeClock) -> None:
    refused = import_file(WITH_GROUPS, "--json")
    assert refused.code == 1
    assert [one["line"] for one in refused.json["problems"]] == [2, 3]
    assert "--create-groups" in refused.json["problems"][0]["message"]

    made = import_file(WITH_GROUPS, "--create-groups", "--json")

    assert made.json["plan"]["new_groups"] == 5
    assert made.json["imported"] == {"groups": 5, "people": 2, "memberships": 2}
    design = queries.find_group(group_id="/design/brand/print")
    assert design is not None
    assert (design.ancestors, design.name) == (("/", "/design", "/design/brand"), "print")
    assert roles(town, "femi@example.com") == {"/engineering/web/shop": GroupRole.ADMIN}


def test_every_mistake_is_told_with_its_line_and_nothing_is_written(import_file: Import) -> None:
    told = import_file(FILE + "nobody,X,/security,reader\nerin@example.com,Erin,/security,owner\n")

    assert told.code == 1
    assert [line.partition(":")[0] for line in told.lines] == ["line 7", "line 8"]
    assert told.problem == "2 mistakes in the file. Nothing was written."
    assert queries.find_person(email="carl@example.com") is None


def test_many_mistakes_are_cut_on_a_terminal_and_whole_in_json(import_file: Import) -> None:
    text = "email,name,group,role\n" + "x,X,/security,reader\n" * 60

    told = import_file(text)

    assert len(told.lines) == 50
    assert told.problem == "60 mistakes in the file, the first 50 of them above. Nothing was written."
    assert len(import_file(text, "--json").json["problems"]) == 60


@pytest.mark.parametrize(
    ("prepare", "row", "words"),
    [
        (("disable_group", "/security"), "carl@example.com,Carl,/security,reader", "/security is disabled: enable it first"),
        (("disable_group", "/security"), "carl@example.com,Carl,/security/new,reader", "/security is disabled: enable it first"),
        (("disable_user", "bob@example.com"), "bob@example.com,Bob,/security,reader", "bob@example.com is disabled"),
        ((), "carl@example.com,Carl," + "/x" * 21 + ",reader", "more than 20 groups above it"),
    ],
)
def test_what_can_not_be_is_told_before_anything_is_written(import_file: Import, prepare: tuple[str, ...], row: str, words: str) -> None:
    if prepare:
        by_olga(*prepare)

    told = import_file(f"email,name,group,role\ndora@example.com,Dora,/engineering,reader\n{row}\n", "--create-groups", "--json")

    assert told.code == 1
    assert [(one["line"], words in one["message"]) for one in told.json["problems"]] == [(3, True)]
    assert queries.find_person(email="dora@example.com") is None


def test_a_moved_group_counts_where_it_stands(import_file: Import) -> None:
    by_olga("move_group", "/engineering/payments", "--parent", "/security")

    import_file("email,name,group,role\ncarl@example.com,Carl,/engineering/payments/cards,reader\n", "--create-groups")

    found = queries.find_group(group_id="/engineering/payments/cards")
    assert found is not None
    assert found.ancestors == ("/", "/security", "/engineering/payments")


def test_nobody_gets_into_more_groups_than_cognito_has_room_for(import_file: Import) -> None:
    rows = "".join(f"carl@example.com,Carl,/engineering/g{number},reader\n" for number in range(101))

    told = import_file("email,name,group,role\n" + rows, "--create-groups", "--json")

    assert told.code == 1
    assert [(one["line"], "101 groups" in one["message"]) for one in told.json["problems"]] == [(2, True)]


def test_an_admin_imports_into_their_own_groups_alone(import_file: Import) -> None:
    inside = "email,name,group,role\ncarl@example.com,Carl,/engineering/web,reader\n"

    refused = import_file(
        inside + "dora@example.com,Dora,/security,reader\nerin@example.com,Erin,,\n", "--create-groups", "--json", who="alice@example.com"
    )

    assert refused.code == 1
    assert [one["line"] for one in refused.json["problems"]] == [3, 4]
    assert queries.find_person(email="carl@example.com") is None
    assert import_file(inside, "--create-groups", who="alice@example.com").code == 0
    assert import_file(inside, who="bob@example.com").code == 0, "there is nothing left to do that would need a right"
    more = inside + "dora@example.com,Dora,/engineering/web,reader\n"
    for who in ("bob@example.com", "mallory@example.com", "ana@example.com", "otto@example.com"):
        assert import_file(more, who=who).code == 1
    assert queries.find_person(email="dora@example.com") is None


def test_a_file_that_can_not_be_read_is_bad_usage(town: FakeClock, tmp_path: Path) -> None:
    told = run("import_people", str(tmp_path / "missing.csv"), "--as", "olga@example.com", "--json")

    assert (told.code, told.json["error"]["code"]) == (2, "file_unreadable")


MANY = "email,name,group,role\n" + "".join(f"p{number}@example.com,P {number},/engineering,reader\n" for number in range(40))


def dies_at(monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException) -> None:
    """The ``number``-th creation of a person ends with ``error``."""
    real, calls = operations.create_person, iter(range(1, 1000))

    def create(**given: Any) -> Changed[Person]:
        if next(calls) >= number:
            raise error
        return real(**given)

    monkeypatch.setattr(operations, "create_person", create)


def test_an_import_that_was_stopped_goes_on_where_it_stopped(import_file: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        dies_at(patched, 11, KeyboardInterrupt())
        stopped = import_file(MANY, "--json")

    assert (stopped.code, stopped.json["was_stopped"]) == (1, True)
    assert "Run it again: it goes on where it stopped." in stopped.problem
    there = {person.key for person in queries.list_people(prefix="p", limit=100).items}
    assert 1 <= len(there) <= 10
    going_on = import_file(MANY, "--json")
    assert (going_on.code, going_on.json["plan"]["new_people"], going_on.json["plan"]["unchanged"]) == (0, 40 - len(there), len(there))
    assert len(queries.list_people(prefix="p", limit=100).items) == 40


class Killed(BaseException):
    """The process is gone: nothing is told, nothing is tidied up."""


def test_an_import_that_was_killed_goes_on_where_it_died(import_file: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        dies_at(patched, 26, Killed())
        with pytest.raises(Killed):
            import_file(MANY)

    told = import_file(MANY, "--json")

    assert (told.code, told.json["imported"]["people"], told.json["plan"]["unchanged"]) == (0, 15, 25)
    people = queries.list_people(prefix="p", limit=100).items
    assert len(people) == 40
    assert all(audit.check_head(one.entity, version=one.version, audit_head=one.audit_head) == [] for one in people)


def test_a_person_without_the_second_membership_gets_it_in_the_next_run(
    import_file: Import, monkeypatch: pytest.MonkeyPatch, town: FakeClock
) -> None:
    def dies(**_given: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(operations, "grant_membership", dies)
        assert import_file(FILE).code == 1
    assert len(roles(town, "carl@example.com")) <= 1

    assert import_file(FILE).code == 0
    assert len(roles(town, "carl@example.com")) == 2


def test_what_somebody_else_was_first_with_is_no_failure(import_file: Import, monkeypatch: pytest.MonkeyPatch, town: FakeClock) -> None:
    """Between plan and work somebody makes the same group, person and membership."""
    real = operations.create_group

    def create_group(**given: Any) -> object:
        result = real(**given)
        if given["group_id"] == "/engineering/web":
            operations.create_group(group_id="/engineering/web/shop", name="Shop", description="", actor=given["actor"], now=town.now())
            by_olga("create_user", "femi@example.com", "--name", "Femi", "--group", "/engineering/web/shop", "--role", "reader")
        return result

    with monkeypatch.context() as patched:
        patched.setattr(operations, "create_group", create_group)
        told = import_file(WITH_GROUPS, "--create-groups", "--json")

    assert (told.code, told.json["failures"]) == (0, [])
    assert roles(town, "femi@example.com") == {"/engineering/web/shop": GroupRole.ADMIN}


def test_a_row_that_fails_is_told_with_its_line_and_stops_no_other(
    import_file: Import, monkeypatch: pytest.MonkeyPatch, town: FakeClock
) -> None:
    real = operations.grant_membership

    def grant(**given: Any) -> object:
        if given["group_id"] == "/security":
            raise Conflict("The group /security is disabled. Enable it first.", code="group_disabled")
        return real(**given)

    monkeypatch.setattr(operations, "grant_membership", grant)

    told = import_file(FILE)
    as_json = import_file(FILE, "--json")

    assert told.code == 1
    assert "line 5: The group /security is disabled. Enable it first." in told.lines
    assert told.problem == "1 row could not be carried out; see above."
    assert as_json.json["failures"] == [
        {"line": 5, "code": "group_disabled", "message": "The group /security is disabled. Enable it first."}
    ]
    assert roles(town, "carl@example.com") == {"/engineering/payments": GroupRole.READER}


def test_an_outage_stops_it_soon(import_file: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f"q{number}@example.com,Q,/engineering,reader\n" for number in range(200))
    with monkeypatch.context() as patched:
        dies_at(patched, 1, Unavailable("The database did not answer.", code="store_unavailable"))
        told = import_file("email,name,group,role\n" + rows, "--json")

    assert (told.code, told.json["was_stopped"]) == (1, True)
    assert len(told.json["failures"]) < 60
    assert {one["code"] for one in told.json["failures"]} == {"store_unavailable"}


def test_cognito_follows_after_the_writing_and_what_waits_is_said(import_file: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = iter([MirrorReport(done=3, waiting=2, failures=()), MirrorReport(done=0, waiting=2, failures=())])
    monkeypatch.setattr(mirror, "sweep_mirror", lambda **_given: next(reports))

    told = import_file(FILE)

    assert told.code == 0
    assert told.lines[-1] == "Cognito has not followed 2 changes yet. The sweep goes on by itself."


def test_somebody_who_watches_sees_plan_and_progress(import_file: Import, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int, int]] = []
    monkeypatch.setattr("accessportal.commands.terminal.is_watched", lambda: True)
    monkeypatch.setattr("accessportal.commands.terminal.bars", lambda _progress: lambda *told: seen.append(told))

    told = import_file(WITH_GROUPS, "--create-groups")

    assert told.lines == ["Created: 5 groups, 2 people; granted or changed: 2 memberships."]
    assert seen[:5] == [("groups", done, 5) for done in range(1, 6)]
    assert seen[5:] == [("people", 1, 2), ("people", 2, 2)]
