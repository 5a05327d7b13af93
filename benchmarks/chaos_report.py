"""What came of each fault, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from benchmarks.chaos_people import Book, Told
from benchmarks.chaos_probes import ADDRESSES, Answer, summary
from benchmarks.chaos_truth import Truth, contradictions, differences, late_works, lateness, never_granted, taken_early

_SHOWN = 40
_BAD = frozenset({"no answer", "signed out"})
# An address that is not there says nothing.
_GOOD = frozenset({"200", "404"})


@dataclass(frozen=True)
class Outcome:
    """``book`` is of this fault alone, ``truth`` of everything until now. Moments are epoch seconds."""

    fault: str
    began_at: float
    ended_at: float
    is_quiet: bool
    book: Book
    probes: tuple[Answer, ...]
    truth: Truth

    @cached_property
    def contradictions(self) -> list[str]:
        return [*self.book.contradictions, *contradictions(self.truth, self.book.sayings)]

    @cached_property
    def differences(self) -> list[str]:
        return list(differences(self.truth))

    @cached_property
    def taken_early(self) -> list[str]:
        return list(taken_early(self.truth, since=self.began_at))

    @property
    def problems(self) -> list[str]:
        found = [*self.contradictions, *self.differences, *self.book.faults]
        done = {one.verb for one in self.book.sayings if one.told is Told.DONE}
        found += [f"nobody could {verb} anything, so nothing was shown" for verb in ("ask", "approve") if verb not in done]
        # A host can't know that its clock is ahead; that it takes back too soon and not too late is the better of the two.
        found += [] if self.fault == "clock-ahead" else self.taken_early
        found += [f"“our mistake” (500) was the answer to {count} × {name}" for name, count in self.mistakes.items()]
        return found if self.is_quiet else [*found, "it did not become quiet"]

    @property
    def recovery_seconds(self) -> float:
        """From the end of the fault until the last trace of it: a bad answer to people or probes, or work that was late."""
        traces = [at for at, _, shown in self.book.answers if shown in _BAD or shown.startswith("5")]
        traces += [one.at for one in self.probes if one.told not in _GOOD]
        traces += late_works(self.truth)
        return max((at - self.ended_at for at in traces if at >= self.ended_at), default=0.0)

    @property
    def mistakes(self) -> Counter[str]:
        return Counter(name for _, name, shown in self.book.answers if shown == "500")

    def latest(self, *, is_after: bool) -> float | None:
        """The longest lateness of what ended during the fault, or after it; ``None`` where nothing did."""
        since, until = (self.ended_at, float("inf")) if is_after else (self.began_at, self.ended_at)
        return max((late for request, late in lateness(self.truth) if since <= request.expires_at.timestamp() < until), default=None)

    @property
    def never_granted(self) -> int:
        return sum(one.requested_at.timestamp() >= self.began_at for one in never_granted(self.truth))


def show_one(outcome: Outcome) -> None:
    print(f"\n## {outcome.fault}, {outcome.ended_at - outcome.began_at:.0f} s")
    print("people were answered: " + _counted(shown for _, _, shown in outcome.book.answers))
    for address in ADDRESSES:
        during = [one for one in outcome.probes if outcome.began_at <= one.at < outcome.ended_at]
        after = [one for one in outcome.probes if one.at >= outcome.ended_at]
        print(f"{address}: during: {summary(during, address)}; after: {summary(after, address)}")
    problems = outcome.problems
    for problem in problems[:_SHOWN]:
        print(f"NOT GOOD ENOUGH: {problem}")
    if len(problems) > _SHOWN:
        print(f"NOT GOOD ENOUGH: and {len(problems) - _SHOWN} more")


def show_all(outcomes: Sequence[Outcome]) -> None:
    head = ("fault", "requests", "answers", "contradicted", "differ", "late during", "late after", "early", "never granted", "recovery")
    rows = [_row(outcome) for outcome in outcomes]
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    print()
    for row in (head, tuple("-" * width for width in widths), *rows):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |", flush=True)


def _row(outcome: Outcome) -> tuple[str, ...]:
    return (
        outcome.fault,
        str(len(outcome.book.answers)),
        _counted(shown for _, _, shown in outcome.book.answers),
        str(len(outcome.contradictions)),
        str(len(outcome.differences)),
        _seconds(outcome.latest(is_after=False)),
        _seconds(outcome.latest(is_after=True)),
        str(len(outcome.taken_early)),
        str(outcome.never_granted),
        f"{outcome.recovery_seconds:.0f} s",
    )


def _counted(words: Iterable[str]) -> str:
    return ", ".join(f"{word} × {count}" for word, count in sorted(Counter(words).items()))


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f} s"
