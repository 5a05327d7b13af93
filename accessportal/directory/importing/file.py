"""The file of ``import_people``: CSV with one row for each membership, read and checked whole before anything is written."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from accessportal.directory.policy.words import clean_email, clean_group_id, clean_name
from accessportal.directory.states import ROOT, GroupRole
from accessportal.kernel.actors import fold_email
from accessportal.kernel.errors import InvalidRequest

COLUMNS = ("email", "name", "group", "role")
_ROLES = ", ".join(role.value for role in GroupRole)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong on one line of the file, and what to do about it."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class WantedMembership:
    group_id: str
    role: GroupRole
    line: int


@dataclass(slots=True)
class WantedPerson:
    """One person of the file, by folded address, with the memberships of all their rows. ``line`` is their first."""

    key: str
    email: str
    name: str
    line: int
    memberships: list[WantedMembership] = field(default_factory=list)


@dataclass(slots=True)
class PeopleFile:
    """Everybody in the file, in its order; and everything that is wrong with it, in the order of the lines."""

    people: dict[str, WantedPerson] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def groups(self) -> dict[str, int]:
        """The groups that are named, each with the first line that does."""
        lines: dict[str, int] = {}
        for person in self.people.values():
            for membership in person.memberships:
                lines[membership.group_id] = min(membership.line, lines.get(membership.group_id, membership.line))
        return lines


def read_people_file(content: bytes) -> PeopleFile:
    """The people of ``content``, a CSV file in UTF-8 with the columns ``email,name,group,role`` in any order."""
    file = PeopleFile()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        file.problems.append(Problem(line, "This line is not UTF-8 text. Save the file as “CSV UTF-8”."))
        return file
    rows = _rows(text, file)
    header = next(rows, (1, []))
    places = _places(header, file)
    if places:
        for line, cells in rows:
            _take(line, cells, places, file)
    file.problems.sort(key=lambda problem: problem.line)
    return file


def _rows(text: str, file: PeopleFile) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not empty, with the line where it begins (a quoted cell may go over several)."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            # What the rest of the file means is not known after this.
            file.problems.append(Problem(line, f"This row can't be read as CSV ({error}). Mend its quotes."))
            return
        if any(cell.strip() for cell in cells):
            yield line, [cell.strip() for cell in cells]


def _places(header: tuple[int, list[str]], file: PeopleFile) -> dict[str, int]:
    """Where each column is; nothing, and a problem, when the first row is not a header."""
    line, cells = header
    names = [cell.casefold() for cell in cells]
    if sorted(names) != sorted(COLUMNS):
        file.problems.append(Problem(line, f"The first row must name the columns {','.join(COLUMNS)}, with commas between them."))
        return {}
    return {name: names.index(name) for name in COLUMNS}


def _take(line: int, cells: list[str], places: dict[str, int], file: PeopleFile) -> None:
    """Add what the row says to ``file``, or what is wrong with it."""
    if len(cells) != len(places):
        file.problems.append(
            Problem(line, f"This row has {len(cells)} cells instead of {len(places)}. Put quotes around cells with a comma in them.")
        )
        return
    email, name, group, role = (cells[places[column]] for column in COLUMNS)
    address = _checked(line, file, lambda: clean_email(email))
    person = _person(line, address, name, file) if address else None
    membership = _membership(line, group, role, file)
    if person is None or membership is None:
        return
    double = next((other for other in person.memberships if other.group_id == membership.group_id), None)
    if double is not None:
        file.problems.append(Problem(line, f"{person.email} is put into {membership.group_id} on line {double.line} already."))
        return
    person.memberships.append(membership)


def _person(line: int, email: str, name: str, file: PeopleFile) -> WantedPerson | None:
    """The person of this row. The name may be left out after their first row."""
    key = fold_email(email)
    known = file.people.get(key)
    if known is not None and not name:
        return known
    clean = _checked(line, file, lambda: clean_name(name))
    if clean is None:
        return known
    if known is not None and known.name != clean:
        file.problems.append(Problem(line, f"{email} is called “{clean}” here and “{known.name}” on line {known.line}."))
    return file.people.setdefault(key, WantedPerson(key, email, clean, line))


def _membership(line: int, group: str, role: str, file: PeopleFile) -> WantedMembership | None:
    """``None`` for a row without one, and for one with a mistake."""
    if not group and not role:
        return None
    if not group or not role:
        file.problems.append(Problem(line, "Group and role go together: give both or neither."))
        return None
    group_id = _checked(line, file, lambda: group if group == ROOT else clean_group_id(group))
    if role.casefold() not in set(GroupRole):
        file.problems.append(Problem(line, f"“{role[:40]}” is not a role: give {_ROLES}."))
        return None
    return WantedMembership(group_id, GroupRole(role.casefold()), line) if group_id else None


def _checked(line: int, file: PeopleFile, check: Callable[[], T]) -> T | None:
    try:
        return check()
    except InvalidRequest as error:
        file.problems.append(Problem(line, error.message))
        return None
