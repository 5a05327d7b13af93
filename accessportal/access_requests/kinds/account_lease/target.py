"""What is asked for: an account out of a pool, by size and tags, with a permission set; or more time with the one that is held."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from accessportal.access_requests.kind import Resolved, require_person
from accessportal.access_requests.kinds.account_lease.terms import LeaseAsked, tag_words
from accessportal.access_requests.kinds.aws_account.target import permission_set_in, principal_of
from accessportal.access_requests.kinds.lending import LentTarget
from accessportal.access_requests.states import AccessRequest, Subject
from accessportal.catalog import queries as catalog
from accessportal.directory.queries import Book
from accessportal.kernel.errors import InvalidRequest
from accessportal.kernel.ids import is_request_id
from accessportal.leases import queries as leases
from accessportal.leases.policy import check_word, fits
from accessportal.leases.states import Lease

_MOST_TAGS = 10
_LONGEST_TAGS = 500


class LeaseTarget(LentTarget):
    """Given as ``{"pool": label, "size": or empty, "tags": like env=dev, or empty, "permission_set": name}``, and ``continues`` (the id of
    the first request) where a lease that is held is asked for longer. The subject is a person."""

    parts = ("pool", "size", "tags", "permission_set", "permission_set_arn", "principal_type", "principal_id", "continues")
    wishes = ("pool", "size", "tags", "permission_set")

    def resolve(
        self, *, target: Mapping[str, str], subject: Subject, duration_seconds: int | None, ticket_id: str | None, book: Book, now: datetime
    ) -> Resolved:
        require_person(subject, "An account is lent to a person: ask for yourself. Whoever else needs one asks for themselves.")
        pool, size, tags = target.get("pool", "").strip(), target.get("size", "").strip(), read_tags(target.get("tags", ""))
        if not pool:
            raise InvalidRequest("A pool is needed: choose one.", code="pool_missing", field="pool")
        check_word(pool, field="pool")
        if size:
            check_word(size, field="size")
        permission_set = permission_set_in(target)
        principal = principal_of(subject.subject_id)
        continues = target.get("continues", "").strip()
        asked = LeaseAsked(pool, size, tags, permission_set.name)
        held = _continued(continues, asked, subject) if continues else None
        facts = {"pool": pool, "size": size, "tags": tag_words(tags)} | ({"account_id": held.account_id} if held else {})
        return Resolved(
            stored={
                "pool": pool,
                "size": size,
                "tags": tag_words(tags),
                "permission_set": permission_set.name,
                "permission_set_arn": permission_set.arn,
                "principal_type": principal.principal_type.value,
                "principal_id": principal.principal_id,
                "continues": continues,
            },
            scope=f"accountpool/{pool}",
            account_id=held.account_id if held else "",
            permission_set=permission_set.name,
            session_seconds=permission_set.session_seconds,
            evidence=facts | {"tags": tags, "session_seconds": permission_set.session_seconds},
            facts=facts,
            question=subject.question(asked, duration_seconds=duration_seconds, ticket_id=ticket_id),
        )

    def title(self, request: AccessRequest) -> str:
        return f"{request.account_id or request.target['pool']} · {request.permission_set}"

    def facts(self, request: AccessRequest) -> tuple[tuple[str, str], ...]:
        return (
            ("Account", request.account_id),
            ("Pool", str(request.target["pool"])),
            ("Size", str(request.target["size"])),
            ("Tags", str(request.target["tags"])),
            ("Permission set", request.permission_set),
        )

    def title_of(self, request: AccessRequest) -> str:
        """By the name of its account as soon as it has one, also after its end."""
        account = catalog.find_account(account=request.account_id) if request.account_id else None
        return f"{account.name} · {request.permission_set}" if account else self.title(request)

    def same_target(self, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
        return all(one[name] == other[name] for name in self.parts if name != "permission_set")


def read_tags(text: str) -> dict[str, str]:
    """``env=dev, team=web``. InvalidRequest for what is no list of tags."""
    if len(text) > _LONGEST_TAGS:
        raise InvalidRequest(f"The tags have at most {_LONGEST_TAGS} characters. Name fewer.", code="tags_unusable", field="tags")
    parts = [part.strip() for part in text.split(",") if part.strip()]
    tags = {key.strip(): value.strip() for key, _, value in (part.partition("=") for part in parts)}
    if len(tags) != len(parts) or len(tags) > _MOST_TAGS or not all(key and value for key, value in tags.items()) or not text.isprintable():
        text = f"Tags are written like env=dev, team=web: each key once with its value, at most {_MOST_TAGS}."
        raise InvalidRequest(text, code="tags_unusable", field="tags")
    return tags


def _continued(lease_id: str, asked: LeaseAsked, subject: Subject) -> Lease:
    """The lease that is held, where it is what is asked for: rules judge what is asked for."""
    lease = leases.find_lease(lease_id=lease_id) if is_request_id(lease_id) else None
    if lease is None or lease.user != subject.subject_id:
        text = "The lease that this goes on with is not held, or no longer. Ask for a new one."
        raise InvalidRequest(text, code="lease_over", field="continues")
    account = leases.get_account(account_id=lease.account_id)
    if not fits(account, pool=asked.pool, size=asked.size, tags=asked.tags):
        text = "The account that is held is another one than this asks for. Ask for a new one."
        raise InvalidRequest(text, code="lease_of_another", field="pool")
    return lease
