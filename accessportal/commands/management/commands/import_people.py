from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandParser
from rich.console import Console
from rich.progress import Progress

from accessportal.commands.base import Document, Outcome, PortalCommand, plain, progress_bars, read_file
from accessportal.directory.importing.carrying_out import Imported, carry_out, follow
from accessportal.directory.importing.file import Problem, read_people_file
from accessportal.directory.importing.plan import Plan, make_plan
from accessportal.kernel.clock import SystemClock
from accessportal.kernel.counts import counted

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


class Command(PortalCommand):
    help = (
        "Import people from a CSV file with the columns email,name,group,role: one row for each membership. The whole file is checked "
        "first, and a mistake in it stops everything. May be repeated: what is there already stays, and a run that was stopped goes on."
    )
    example = "import_people people.csv --dry-run --as olga@example.com"
    takes_actor = True

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("file", metavar="FILE", help="CSV in UTF-8")
        parser.add_argument("--dry-run", action="store_true", help="show the plan and change nothing")
        parser.add_argument("--create-groups", action="store_true", help="make groups that do not exist yet, with all groups above them")

    def run(self, options: Mapping[str, Any]) -> Outcome:
        actor, clock = self.actor(options), SystemClock()
        file = read_people_file(read_file(options["file"]))
        if file.problems:
            return _refused(file.problems)
        plan = make_plan(file, create_groups=options["create_groups"], actor=actor, now=clock.now())
        if plan.problems:
            return _refused(plan.problems)
        if options["dry_run"]:
            return Outcome({"plan": plan.counts(), "dry_run": True})
        with Progress(console=self.progress_console(), disable=not self.is_watched) as progress:
            if self.is_watched:
                _show_plan(plan.counts(), progress.console)
            tell = progress_bars(progress)
            imported = carry_out(plan, actor=actor, clock=clock, progress=tell)
            waiting = 0 if imported.was_stopped else follow(clock=clock, progress=tell)
        return _told(plan, imported, waiting)

    def show(self, document: Document, console: Console) -> None:
        if "problems" in document:
            _show_lines(document["problems"][:_SHOWN_PROBLEMS], console)
            return
        if document["dry_run"] or not self.is_watched:
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


def _refused(problems: list[Problem]) -> Outcome:
    more = f", the first {_SHOWN_PROBLEMS} of them above" if len(problems) > _SHOWN_PROBLEMS else ""
    line = f"{counted(len(problems), 'mistake', 'mistakes')} in the file{more}. Nothing was written."
    return Outcome({"problems": plain(problems)}, ok=False, problem=line)


def _told(plan: Plan, imported: Imported, waiting: int) -> Outcome:
    document = {
        "plan": plan.counts(),
        "dry_run": False,
        "imported": {"groups": imported.groups, "people": imported.people, "memberships": imported.memberships},
        "failures": plain(imported.failures),
        "was_stopped": imported.was_stopped,
        "waiting_for_cognito": waiting,
    }
    problems = []
    if imported.failures:
        problems.append(f"{counted(len(imported.failures), 'row', 'rows')} could not be carried out; see above.")
    if imported.was_stopped:
        problems.append("Stopped before the end. Run it again: it goes on where it stopped.")
    return Outcome(document, ok=not problems, problem=" ".join(problems))


def _show_plan(counts: Mapping[str, int], console: Console) -> None:
    for name, words in _COUNTS.items():
        if counts[name]:
            console.print(counted(counts[name], *words))
    if not any(counts[name] for name in ("new_groups", "new_people", "new_memberships", "role_changes")):
        console.print("Nothing to do: the directory holds all of it.")


def _show_lines(lines: list[Document], console: Console) -> None:
    for one in lines:
        console.print(f"line {one['line']}: {one['message']}", soft_wrap=True)
