"""``import_people``: what it tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from rich.console import Console

from accessportal.commands import terminal
from accessportal.commands.base import Outcome, command, facts
from accessportal.commands.flags import Flag, read_file
from accessportal.commands.terminal import Document, say
from accessportal.directory.importing.carrying_out import Imported, Progress, carry_out
from accessportal.directory.importing.file import Problem, read_people_file
from accessportal.directory.importing.plan import THREADS, Plan, make_plan
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import Clock
from accessportal.kernel.counts import counted
from accessportal.mirror import operations as mirror

_COUNTS = {
    "new_groups": ("group to create", "groups to create"),
    "new_people": ("person to create", "people to create"),
    "new_memberships": ("membership to create", "memberships to create"),
    "role_changes": ("role to change", "roles to change"),
    "unchanged": ("row that is so already", "rows that are so already"),
    "names_kept": (
        "person who is called otherwise in the directory, and stays so",
        "people who are called otherwise in the directory, and stay so",
    ),
}
_SHOWN_PROBLEMS = 50
_SWEEP_SECONDS = 5.0


def _show(document: Document, console: Console) -> None:
    if "problems" in document:
        _show_lines(document["problems"][:_SHOWN_PROBLEMS], console)
        return
    if document["dry_run"] or not terminal.is_watched():
        _show_plan(document["plan"], console)
    if document["dry_run"]:
        console.print("Nothing was changed (--dry-run).")
        return
    _show_lines(document["failures"], console)
    made = document["imported"]
    groups, people = counted(made["groups"], "group", "groups"), counted(made["people"], "person", "people")
    memberships = counted(made["memberships"], "membership", "memberships")
    console.print(f"Created: {groups}, {people}; granted or changed: {memberships}.")
    if document["waiting_for_cognito"]:
        changes = counted(document["waiting_for_cognito"], "change", "changes")
        console.print(f"Cognito has not followed {changes} yet. The sweep goes on by itself.")


@command("people.csv --dry-run --as olga@example.com", show=_show)
def import_people(
    file: Annotated[bytes, Flag("CSV in UTF-8", "FILE", read_file)],
    *,
    dry_run: Annotated[bool, Flag("show the plan and change nothing")] = False,
    create_groups: Annotated[bool, Flag("make groups that do not exist yet, with all groups above them")] = False,
    actor: Actor,
    clock: Clock,
) -> Outcome:
    """Import people from a CSV file with the columns email,name,group,role: one row for each membership. The whole file is checked
    first, and a mistake in it stops everything. May be repeated: what is there already stays, and a run that was stopped goes on."""
    people = read_people_file(file)
    if people.problems:
        return _refused(people.problems)
    plan = make_plan(people, create_groups=create_groups, actor=actor, now=clock.now())
    if plan.problems:
        return _refused(plan.problems)
    if dry_run:
        return Outcome({"plan": plan.counts(), "dry_run": True})
    with terminal.progress() as progress:
        if terminal.is_watched():
            _show_plan(plan.counts(), progress.console)
        tell = terminal.bars(progress)
        imported = carry_out(plan, actor=actor, clock=clock, progress=tell)
        waiting = 0 if imported.was_stopped else _follow(clock, tell)
    return _told(plan, imported, waiting)


def _follow(clock: Clock, progress: Progress) -> int:
    """Make Cognito follow everything that waits, and say how many people and groups still wait. It stops when a sweep got no further: then
    Cognito is throttling or down, and the worker's sweeps go on with it."""
    done = 0
    while True:
        report = mirror.sweep_mirror(clock=clock, limit_seconds=_SWEEP_SECONDS, workers=THREADS)
        done += report.done
        if done or report.waiting:
            progress("in Cognito", done, done + report.waiting)
        if not report.done or not report.waiting:
            return report.waiting


def _refused(problems: Sequence[Problem]) -> Outcome:
    more = f", the first {_SHOWN_PROBLEMS} of them above" if len(problems) > _SHOWN_PROBLEMS else ""
    return Outcome({"problems": problems}, f"{counted(len(problems), 'mistake', 'mistakes')} in the file{more}. Nothing was written.")


def _told(plan: Plan, imported: Imported, waiting: int) -> Outcome:
    document: dict[str, Any] = {"plan": plan.counts(), "dry_run": False, "imported": facts(imported, "groups", "people", "memberships")}
    problems = []
    if imported.failures:
        problems.append(f"{counted(len(imported.failures), 'row', 'rows')} could not be carried out; see above.")
    if imported.was_stopped:
        problems.append("Stopped before the end. Run it again: it goes on where it stopped.")
    return Outcome(document | facts(imported, "failures", "was_stopped") | {"waiting_for_cognito": waiting}, " ".join(problems))


def _show_plan(counts: Mapping[str, int], console: Console) -> None:
    for name, words in _COUNTS.items():
        if counts[name]:
            console.print(counted(counts[name], *words))
    if not any(counts[name] for name in ("new_groups", "new_people", "new_memberships", "role_changes")):
        console.print("Nothing to do: the directory holds all of it.")


def _show_lines(lines: Sequence[Document], console: Console) -> None:
    for one in lines:
        say(console, f"line {one['line']}: {one['message']}")
