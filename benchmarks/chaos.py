"""Two web and two worker hosts, people who go on working, and one fault after the other; what was said and done is compared after each:

    python -m benchmarks.chaos [--seconds 20] [--only dynamodb-hangs]

Exit code 1 when requests, claims and real assignments do not agree, somebody was told what is not so, or it does not become quiet;
3 where this machine lacks a program.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accessportal.demo.supervisor import StopAsked, stoppable
from benchmarks import chaos_place
from benchmarks.chaos_faults import FAULTS
from benchmarks.chaos_people import Book, Crowd, Desk
from benchmarks.chaos_probes import Probes

if TYPE_CHECKING:
    from benchmarks.chaos_place import Place
    from benchmarks.chaos_report import Outcome

# The shortest access lasts a minute: some is to end during the fault.
_LEAD_SECONDS = 50.0
_TAIL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Plan:
    """``gap_seconds``: between two things that people do, each of which is one to three requests."""

    faults: Sequence[str]
    seconds: float
    gap_seconds: float
    slow_seconds: float
    drop_share: float
    seed: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long each fault lasts (default: %(default)s)")
    parser.add_argument("--only", metavar="NAME", action="append", choices=FAULTS, help=f"one of {', '.join(FAULTS)}; may be repeated")
    parser.add_argument("--gap", type=float, default=1.2, help="seconds between two things that people do (default: %(default)s)")
    parser.add_argument("--slow", type=float, default=1.0, help="seconds by which a slow DynamoDB is late (default: %(default)s)")
    parser.add_argument("--drop", type=float, default=0.5, help="share of the answers that are dropped (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of people and proxies (default: %(default)s)")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="a new folder, to leave the logs and what people were told in")
    options = parser.parse_args()
    if options.keep is not None and options.keep.exists():
        # The twin would go on with what an earlier run left there.
        parser.error(f"--keep: {options.keep} is there already; name a new folder")
    plan = Plan(options.only or list(FAULTS), options.seconds, options.gap, options.slow, options.drop, options.seed)
    try:
        with stoppable(), ExitStack() as stack:
            folder = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chaos-")))
            folder.mkdir(parents=True, exist_ok=options.keep is None)
            place = stack.enter_context(
                chaos_place.place(folder.resolve(), slow_seconds=plan.slow_seconds, drop_share=plan.drop_share, seed=plan.seed)
            )
            return _run(plan, place)
    except chaos_place.Missing as error:
        print(f"This can't run here: {error}", file=sys.stderr)
        return 3
    except StopAsked:
        print("Stopped.", file=sys.stderr)
        return 130


def _run(plan: Plan, place: Place) -> int:
    from benchmarks import chaos_report, chaos_watch

    desks = _sit_down(place)
    outcomes: list[Outcome] = []
    for name in plan.faults:
        outcomes.append(_endure(plan, name, place, desks))
        chaos_report.show_one(outcomes[-1])
        if not outcomes[-1].is_quiet:
            print("What follows would be judged by what is still under way: stopped here.")
            break
    chaos_report.show_all(outcomes)
    chaos_watch.write_down(place.folder / "told.jsonl", [saying for outcome in outcomes for saying in outcome.book.sayings])
    print(f"Load of this machine {os.getloadavg()[2]:.1f} on {os.cpu_count()} cores.")
    return 1 if any(outcome.problems for outcome in outcomes) else 0


def _sit_down(place: Place) -> tuple[list[Desk], list[Desk]]:
    """Everybody has signed in, once: those who ask, and those who approve."""
    from accessportal.catalog import queries as catalog
    from benchmarks.chaos_watch import word_of
    from benchmarks.installation import PEOPLE

    urls = tuple(f"http://127.0.0.1:{web.port}" for web in place.webs)
    found = catalog.list_accounts(limit=100).items
    accounts = tuple(one.name for one in found if not one.is_management and not one.ou_path.startswith("/Security"))
    desks = [Desk(one.email, urls, accounts, Book(), word_of) for one in PEOPLE]
    for desk in desks:
        if not desk.sign_in():
            raise SystemExit(f"{desk.email} could not sign in; see the logs of the web hosts.")
    askers = [desk for desk in desks if desk.email.startswith("alice")]
    return askers, [desk for desk in desks if desk.email.startswith("bob")]


def _endure(plan: Plan, name: str, place: Place, desks: tuple[list[Desk], list[Desk]]) -> Outcome:
    """One fault, with people at work before, during and after it; then what was said and done is compared."""
    from benchmarks import chaos_truth, chaos_watch
    from benchmarks.chaos_report import Outcome

    book = Book()
    for desk in (*desks[0], *desks[1]):
        desk.book = book
    ports = tuple(web.port for web in place.webs)
    with Probes(ports, metrics_token=chaos_place.METRICS_TOKEN) as probes:
        with Crowd(*desks, gap_seconds=plan.gap_seconds, seed=plan.seed):
            time.sleep(_LEAD_SECONDS)
            began_at = time.time()
            with FAULTS[name](place):
                time.sleep(plan.seconds)
            ended_at = time.time()
            time.sleep(_TAIL_SECONDS)
        is_quiet = chaos_watch.wait_until_quiet()
    return Outcome(
        fault=name,
        began_at=began_at,
        ended_at=ended_at,
        is_quiet=is_quiet,
        book=book,
        probes=tuple(probes.answers),
        truth=chaos_truth.read(place.journal),
    )


if __name__ == "__main__":
    sys.exit(main())
