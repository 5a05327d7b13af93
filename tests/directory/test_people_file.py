"""The file of an import: what is read, and every mistake with its line."""

from __future__ import annotations

import pytest

from accessportal.directory.importing.file import PeopleFile, Problem, read_people_file
from accessportal.directory.states import GroupRole

HEADER = "email,name,group,role\n"


def read(text: str) -> PeopleFile:
    return read_people_file((HEADER + text).encode())


def problem(text: str) -> Problem:
    (one,) = read(text).problems
    return one


def test_one_row_is_a_membership_and_several_rows_are_one_person() -> None:
    file = read("Alice@Example.com,Alice Archer,/a,admin\nbob@example.com,Bob,,\nalice@example.com,,/a/b,Reader\n")

    assert file.problems == []
    alice, bob = file.people.values()
    assert (alice.key, alice.email, alice.name, alice.line) == ("alice@example.com", "Alice@Example.com", "Alice Archer", 2)
    assert [(one.group_id, one.role, one.line) for one in alice.memberships] == [
        ("/a", GroupRole.ADMIN, 2),
        ("/a/b", GroupRole.READER, 4),
    ]
    assert (bob.name, bob.memberships) == ("Bob", [])
    assert file.groups == {"/a": 2, "/a/b": 4}


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfemail,name,group,role\r\nalice@example.com,In\xc3\xaas,/a,reader\r\n",
        "role,group,name,email\nreader,/a,Inês,alice@example.com".encode(),
        ' Email , NAME ,group,role\n\n,,,\n "alice@example.com" ,Inês,/a, reader \n'.replace(' "', '"').replace('" ', '"').encode(),
        "email,name,group,role\nalice@example.com,Inês,/a,reader\n\n\n".encode(),
    ],
    ids=["byte order mark and CRLF", "other order", "space and empty rows", "empty rows at the end"],
)
def test_files_as_programs_write_them_are_read(content: bytes) -> None:
    file = read_people_file(content)

    assert file.problems == []
    (person,) = file.people.values()
    assert (person.name, person.memberships[0].role) == ("Inês", GroupRole.READER)


def test_a_quoted_cell_may_hold_commas_and_the_line_is_where_the_row_begins() -> None:
    file = read('alice@example.com,"Archer, Alice",/a,reader\nbob@example.com,"Bob\nBaker",/a,reader\ncarl@example.com,Carl,/a,boss\n')

    assert file.people["alice@example.com"].name == "Archer, Alice"
    assert [(one.line, one.message.split(":")[0][:12]) for one in file.problems] == [(3, "A name has 1"), (5, "“boss” is no")]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", 1),
        (b"alice@example.com,Alice,/a,reader\n", 1),
        (b"email;name;group;role\nalice@example.com;Alice;/a;reader\n", 1),
        (b"email,name,group,role,team\nalice@example.com,Alice,/a,reader,x\n", 1),
        (b"email,name,group\n", 1),
        (b"email,email,group,role\n", 1),
        (b"\n\nemail,name\n", 3),
    ],
)
def test_without_its_header_nothing_is_read(content: bytes, line: int) -> None:
    file = read_people_file(content)

    assert [one.line for one in file.problems] == [line]
    assert "email,name,group,role" in file.problems[0].message
    assert file.people == {}


def test_text_that_is_not_utf_8_is_named_with_its_line() -> None:
    (one,) = read_people_file((HEADER + "alice@example.com,Inês,/a,reader\n").encode("latin-1")).problems

    assert one == Problem(2, "This line is not UTF-8 text. Save the file as “CSV UTF-8”.")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("alice@example.com,Alice,/a", "3 cells instead of 4"),
        ("alice@example.com,Archer, Alice,/a,reader", "5 cells instead of 4"),
        ("alice,Alice,/a,reader", "is not an e-mail address"),
        (",Alice,/a,reader", "is not an e-mail address"),
        ("alice@example.com,,/a,reader", "A name has"),
        (f"alice@example.com,{'x' * 201},/a,reader", "A name has"),
        ("alice@example.com,Ali\0ce,/a,reader", "A name has"),
        ("alice@example.com,Alice,a,reader", "is not a group path"),
        ("alice@example.com,Alice,/A B,reader", "is not a group path"),
        ("alice@example.com,Alice,/a/,reader", "is not a group path"),
        ("alice@example.com,Alice,/a,owner", "is not a role: give admin, contributor, reader"),
        ("alice@example.com,Alice,/a,", "Group and role go together"),
        ("alice@example.com,Alice,,reader", "Group and role go together"),
        ('alice@example.com,"Alice,/a,reader', "can't be read as CSV"),
        ('alice@example.com,"Alice"x,/a,reader', "can't be read as CSV"),
    ],
)
def test_each_mistake_is_told_with_line_and_remedy(row: str, words: str) -> None:
    found = problem(f"bob@example.com,Bob,/a,reader\n{row}\n")

    assert found.line == 3
    assert words in found.message


def test_rows_that_contradict_each_other_are_told() -> None:
    assert problem("alice@example.com,Alice,/a,reader\nALICE@example.com,Alicia,/b,reader\n").message.endswith("“Alice” on line 2.")
    assert "on line 2 already" in problem("alice@example.com,Alice,/a,reader\nalice@example.com,Alice,/a,admin\n").message


def test_every_mistake_of_the_file_is_told_at_once() -> None:
    file = read("x,Alice,/a,reader\nbob@example.com,Bob,b,boss\ncarl@example.com,Carl,/c,reader\n")

    assert [one.line for one in file.problems] == [2, 3, 3]
    assert list(file.people) == ["bob@example.com", "carl@example.com"]


def test_the_root_is_a_group_too() -> None:
    assert read("alice@example.com,Alice,/,reader\n").groups == {"/": 2}
