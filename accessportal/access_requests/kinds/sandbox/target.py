"""What is asked for: a sandbox of the pool by the beginning of its name, or more time with the one that is held."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from accessportal.access_requests.kind import Resolved, require_person, text_of
from accessportal.access_requests.kinds.lending import LentTarget, chain_of
from accessportal.access_requests.kinds.sandbox.terms import LONGEST_PREFIX, SandboxAsked
from accessportal.access_requests.states import AccessRequest, Subject, Work
from accessportal.directory.queries import Book
from accessportal.kernel.durations import format_duration
from accessportal.kernel.errors import InvalidRequest, NotFound, Unavailable
from accessportal.sandboxes import queries as pool
from accessportal.sandboxes.states import PEOPLES_KEYS, PEOPLES_TRACKS, Sandbox


class SandboxTarget(LentTarget):
    """Given as ``{"name_prefix": how its name begins, or empty}``, and ``continues`` (the id of the first request)
    where a sandbox that is held is asked for longer. The subject is a person."""

    parts = ("name_prefix", "continues")
    wishes = ("name_prefix",)

    def resolve(
        self, *, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, book: Book, now: datetime
    ) -> Resolved:
        require_person(subject, "A sandbox is for a person: ask for yourself. Whoever else needs one asks for themselves.")
        prefix = _prefix(target.get("name_prefix", ""))
        continues = target.get("continues", "").strip()
        held = _continued(continues, prefix, subject, now) if continues else None
        longest = _longest_seconds(held, now)
        _require_within(duration_seconds, longest, held)
        facts = {"name_prefix": prefix}
        if held is not None:
            facts |= {"sandbox_id": held.sandbox_id, "sandbox_name": held.name}
        return Resolved(
            stored={"name_prefix": prefix, "continues": continues},
            scope="sandboxes",
            evidence=facts | {"longest_seconds": longest},
            facts=facts,
            question=subject.question(SandboxAsked(prefix), duration_seconds=duration_seconds, ticket_id=ticket_id),
            longest_seconds=longest,
        )

    def title(self, request: AccessRequest) -> str:
        prefix = str(request.target["name_prefix"])
        return f"Sandbox · {prefix}…" if prefix else "Sandbox"

    def facts(self, request: AccessRequest) -> tuple[tuple[str, str], ...]:
        prefix = str(request.target["name_prefix"])
        return (("Names", f"{prefix}…" if prefix else "any"), ("Goes on with", text_of(request.evidence, "sandbox_name")))

    def title_of(self, request: AccessRequest) -> str:
        """By its name as soon as it has one, also after its end."""
        held = [receipt.job_id for receipt in request.receipts if receipt.work is Work.GRANT and receipt.job_id]
        try:
            if held:
                return f"Sandbox {pool.get(sandbox_id=held[-1]).name}"
        except (NotFound, Unavailable) as error:
            # Gone from the pool, or a row of its own that can't be read: that hinders no list of requests.
            if isinstance(error, Unavailable) and error.code != "item_unreadable":
                raise
        return self.title(request)


def key_in_pool(request: AccessRequest) -> str:
    return _key_of(chain_of(request))


def _key_of(first_request_id: str) -> str:
    """What the pool knows the sandbox of a request by."""
    return f"{PEOPLES_KEYS}{first_request_id}"


def track_of(subject_id: str) -> str:
    return f"{PEOPLES_TRACKS}{subject_id}"


def _prefix(text: str) -> str:
    wanted = text.strip()
    if len(wanted) > LONGEST_PREFIX or not wanted.isprintable():
        text = f"The beginning of a name has at most {LONGEST_PREFIX} printable characters. Choose one, or leave it empty."
        raise InvalidRequest(text, code="name_prefix_unusable", field="name_prefix")
    return wanted


def _continued(first_request_id: str, prefix: str, subject: Subject, now: datetime) -> Sandbox:
    """The sandbox that is held, where it is what is asked for: rules judge what is asked for."""
    held = pool.find_by_key(key=_key_of(first_request_id)) if len(first_request_id) <= 100 and first_request_id.isprintable() else None
    if held is None or held.track != track_of(subject.subject_id) or held.is_over(now):
        text = "The sandbox that this goes on with is not held, or no longer. Ask for a new one."
        raise InvalidRequest(text, code="allocation_over", field="continues")
    if not held.name.startswith(prefix):
        text = "The sandbox that is held has another name than this asks for. Ask for a new one."
        raise InvalidRequest(text, code="allocation_of_another", field="name_prefix")
    return held


def _longest_seconds(held: Sandbox | None, now: datetime) -> int:
    """For how long a sandbox could be had from now on: the lab's time, which an extension does not begin anew."""
    if held is None or held.allocated_at is None:
        return pool.shortest_lab_seconds()
    ends_at = held.allocated_at + timedelta(hours=held.lab_duration_hours)
    return max(int((ends_at - now).total_seconds()), 0)


def _require_within(duration_seconds: int | None, longest: int, held: Sandbox | None) -> None:
    if duration_seconds is None or duration_seconds <= longest:
        return
    if held is None:
        text = f"A sandbox is lent for at most {format_duration(longest)}. Ask for that or less."
    elif longest >= 60:
        left = format_duration(longest - longest % 60)
        text = f"This sandbox can be had for {left} more, then it has been lent as long as it may be. Ask for that or less."
    else:
        text = "This sandbox has been lent as long as it may be. Ask for a new one when it is over."
    raise InvalidRequest(text, code="duration_over_lab", field="duration")
