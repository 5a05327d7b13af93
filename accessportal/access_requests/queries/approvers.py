"""Who may decide, from live facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from accessportal.access_requests import store
from accessportal.access_requests.config import current
from accessportal.access_requests.kind import kind_named
from accessportal.access_requests.policy import Standing, count_apart
from accessportal.access_requests.stand_in import StandIn
from accessportal.access_requests.states import AccessRequest, ApprovalDemand, Approver, Approvers, Status, Tally
from accessportal.directory import queries as directory
from accessportal.directory.queries import Book, Named
from accessportal.directory.states import END_OF_TIME, GroupRole, Person
from accessportal.kernel.actors import Actor
from accessportal.kernel.clock import to_epoch
from accessportal.kernel.pages import Unreadable
from accessportal.rules import queries as rules
from accessportal.rules.matching import includes
from accessportal.rules.states import Effect, Question, Rule, RuleDecision

_NOBODY = Approvers(people=(), quorum=0, is_fallback=False, missing_groups=())


class ApproverBook:
    """Approvers and holders of many requests: each person, group and rule is read once. Made for one web request or one decision, never
    kept (docs/decisions/0064-what-a-web-request-remembers.md). ``now`` is the moment at which memberships are judged: they can end.
    ``unreadable``: stand-ins that can't be read, and give nothing."""

    def __init__(self, *, now: datetime) -> None:
        self.now = now
        self.directory = Book()
        self.unreadable: list[Unreadable] = []
        self._stand_ins: dict[str, tuple[StandIn, ...]] = {}

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """Return the rules in force, by name, in their order."""
        return {rule.name: rule for rule in rules.current_rules()}

    def decide(self, question: Question) -> RuleDecision:
        """Ask the rules, with the whole explanation."""
        return rules.decide(question=question, among=self.rules.values())

    def expect(self, requests: Iterable[AccessRequest]) -> None:
        """Read the groups that these requests are about at once."""
        self.directory.groups(_membership(one)[0] for one in requests)

    def expect_approvers(self, requests: Collection[AccessRequest]) -> None:
        """Read at once what tells who decides on these requests where those directly in the groups are enough; not who stands in where
        they are too few."""
        named = {one.request_id: _named_by(demand) for one in requests if (demand := self._demand_of(one)).required}
        for_groups = [one for one in requests if one.subject_id.startswith("/") and one.request_id in named]
        within = {(named[one.request_id], one.subject_id) for one in for_groups}
        self.directory.look_up_direct(set(named.values()), within=within)
        self.expect(requests)

    def expect_standings(self, requests: Collection[AccessRequest], actor: Actor) -> None:
        """Read at once what tells whether the actor decides on these; of an operator who stands in, how many others there are."""
        self.expect(requests)
        if actor.is_operator:
            named = (self._is_named(self._demand_of(one), actor.name, self._moment_of(one)) for one in requests)
            self.expect_approvers([one for one, is_named in zip(requests, named, strict=True) if not is_named])

    def of_request(self, request: AccessRequest) -> Approvers:
        """List who may decide it now, without those who may not because it is their own: by the rule as it is now; by the request's own
        copy when the rule is gone or asks for no approval any more."""
        return self.of_demand(
            self._demand_of(request),
            requested_by=request.requested_by,
            subject_id=request.subject_id,
            identity=request.identities.get(request.requested_by, ""),
            at=self._moment_of(request),
        )

    def is_approver(self, request: AccessRequest, email: str) -> bool:
        """Whether :meth:`of_request` has this person. Of their own groups alone: the others are listed only for an operator, who
        stands in only where they are too few."""
        at = self._moment_of(request)
        if not self._could_decide(request, email, at):
            return False
        return self._is_named(self._demand_of(request), email, at) or self._decides_as_operator(request, email, at)

    def approved_rules(self, actor: Actor) -> tuple[str, ...]:
        """The names of the rules by which the actor decides, or somebody for whom they stand in now."""
        deciders = (actor.name, *(one.approver for one in self.stand_ins_of(actor)))
        return tuple(dict.fromkeys(name for email in deciders for name in self.rules_of_approver(email)))

    def decides(self, actor: Actor) -> bool:
        """Whether the actor decides by some rule, or in the place of somebody who does."""
        return bool(self.rules_of_approver(actor.name) or self.approved_rules(actor))

    def rules_of_approver(self, email: str) -> tuple[str, ...]:
        """The names of the rules by which this person or one of their groups is named as an approver, or which leave a group's requests to
        its admins, and they are one of some group."""
        asking = self._asking()
        named = [rule.name for rule in self._naming(email, asking)]
        by_admins = [rule.name for rule in asking if rule.asks_admins]
        return (*named, *(by_admins if by_admins and self._is_admin_somewhere(email) else ()))

    def beside(self, email: str) -> tuple[tuple[str, ...], frozenset[str]]:
        """Who decides by the rules that name this person: the groups by which these do, of those that they are in directly and so see the
        members of, and the people whom these name."""
        named = [rule.approval.approvers for rule in self._naming(email, self._asking())]
        groups, direct = self._groups_of(email, self.now)
        with_those_below = groups & frozenset[str]().union(*(one.groups for one in named))
        alone = frozenset[str]().union(*(one.groups_only for one in named))
        by = [
            one.group_id
            for one in self.directory.groups(direct).values()
            if one.group_id in alone or not with_those_below.isdisjoint({one.group_id, *one.ancestors})
        ]
        return tuple(sorted(by)), frozenset(user for one in named for user in one.users)

    def _asking(self) -> list[Rule]:
        return [rule for rule in self.rules.values() if rule.effect is Effect.ALLOW and rule.approval.required]

    def _naming(self, email: str, among: Iterable[Rule]) -> list[Rule]:
        """Of these rules those that name this person, or a group of theirs, as an approver."""
        groups, direct = self._groups_of(email, self.now)
        return [rule for rule in among if includes(rule.approval.approvers, subject=email, groups=groups, direct=direct)]

    def stand_ins_of(self, actor: Actor) -> tuple[StandIn, ...]:
        """By which the actor may decide in the place of others now: of people who are those who they were when it was written."""
        if actor.is_system or actor.is_program:
            return ()
        if actor.name not in self._stand_ins:
            found = store.stand_ins_of(actor.name, now=self.now, past=self.unreadable.append)
            counting = [one for one in found if one.counts_at(self.now)]
            self.directory.hold(email for one in counting for email in (one.stand_in, one.approver))
            self._stand_ins[actor.name] = tuple(filter(self._is_as_named, counting))
        return self._stand_ins[actor.name]

    def in_place_of(self, request: AccessRequest, actor: Actor) -> StandIn | None:
        """By which stand-in the actor may decide it now, should they be no approver themselves: in the place of somebody whom the rule
        names at this moment, first of one who has not approved it (docs/decisions/0090-stand-ins.md)."""
        at = self._moment_of(request)
        # What only a right without an end decides is over by then.
        standing_in = [one for one in self.stand_ins_of(actor) if one.counts_at(at)]
        may = [one for one in standing_in if self._could_stand_in(request, actor.name, one.approver, at)]
        counted = request.approvals | set(request.in_place_of.values())
        return min(may, key=lambda one: (one.approver in counted, one.approver), default=None)

    def counted_in_place(self, request: AccessRequest) -> dict[str, str]:
        """Of the approvals of those who were no approvers themselves those that count now, each with the approver in whose place it was
        given: the approver could still decide."""
        at = self._moment_of(request)
        if at == END_OF_TIME:
            return {}
        return {
            email: approver
            for email, approver in request.in_place_of.items()
            if email in request.approvals and not self.is_approver(request, email) and self._could_stand_in(request, email, approver, at)
        }

    def standing(self, request: AccessRequest, actor: Actor) -> Standing:
        """What ``actor`` is to ``request`` now."""
        return Standing(
            is_requester=actor.name in (request.requested_by, request.asked_through),
            is_holder=not actor.is_system and self._is_served(request.subject_id, actor.name, self.now),
            is_approver=lambda: not actor.is_system and self.is_approver(request, actor.name),
            in_place_of=lambda: one.approver if (one := self.in_place_of(request, actor)) else "",
            counted_in_place=lambda: self.counted_in_place(request),
            approvers=lambda: self.of_request(request),
            identity=lambda: "" if actor.is_system else self._identity_of(actor.name),
        )

    def tally(self, request: AccessRequest) -> Tally:
        """How many of its approvals count now: those of people who may decide, or were given in the place of one. Somebody disabled since
        does not, two of one account of the sign-in service count once, so do an approver and who stood in for them, and one of the
        requester's account never."""
        demand, at = self._demand_of(request), self._moment_of(request)
        valid = [email for email in request.approvals if self.is_approver(request, email)]
        is_fallback = any(not self._is_named(demand, email, at) for email in valid)
        given = [(email,) for email in valid] + list(self.counted_in_place(request).items())
        humans = [frozenset(request.identities.get(email, email) for email in one) for one in given]
        asker = request.identities.get(request.requested_by)
        count = count_apart(one for one in humans if asker not in one)
        return Tally(given=count, quorum=max(1, demand.quorum) if demand.required else 0, is_fallback=is_fallback)

    def of_demand(self, demand: ApprovalDemand, *, requested_by: str, subject_id: str, identity: str = "", at: datetime) -> Approvers:
        """List live, enabled approvers ``at`` the :meth:`moment_for` it, enough to tell whether they are: without the requester and
        whoever the access would serve. The requester by another address is among them, and counts for nothing. Where they are fewer than
        the quorum the operators decide, so that no request is undecidable."""
        if not demand.required:
            return _NOBODY
        quorum = max(1, demand.quorum)

        def others(people: Sequence[Person], known: Collection[str] = ()) -> list[Person]:
            keys = {person.key for person in people}.difference(known, {requested_by, subject_id})
            keys -= self._served(subject_id, keys, at)
            return [person for person in people if person.key in keys]

        def count(people: Sequence[Person]) -> int:
            return sum(1 for one in people if not identity or one.identity != identity)

        crowd = self.directory.find_enough(_named_by(demand), now=at, is_enough=lambda people: count(others(people)) >= quorum)
        people = others(crowd.people)
        if (own := count(people)) >= quorum:
            return Approvers(_as_approvers(people), quorum, is_fallback=False, missing_groups=crowd.missing_groups, is_whole=crowd.is_whole)
        known = {person.key for person in people}
        named = Named(groups=(current().operator_group,))
        operators = self.directory.find_enough(named, now=at, is_enough=lambda found: own + len(others(found, known)) >= quorum)
        people += others(operators.people, known)
        return Approvers(_as_approvers(people), quorum, is_fallback=True, missing_groups=crowd.missing_groups, is_whole=operators.is_whole)

    def moment_for(self, *, group_id: str, role: str) -> datetime:
        """Return when those must be approvers who decide about this membership (``group_id`` empty: about something else). Where it gives
        the right to let others decide, only rights without an end count: two who have it for a time would keep each other for ever."""
        return END_OF_TIME if group_id and self._is_power(group_id, role) else self.now

    def _moment_of(self, request: AccessRequest) -> datetime:
        group_id, role = _membership(request)
        return self.moment_for(group_id=group_id, role=role)

    def _is_power(self, group_id: str, role: str) -> bool:
        """Whether whoever is in the group with this role decides on requests, by any rule or as an operator."""
        if role == GroupRole.ADMIN.value:
            return True
        group = self.directory.groups([group_id]).get(group_id)
        approvers = [rule.approval.approvers for rule in self.rules.values()]
        named = {current().operator_group}.union(*(one.groups for one in approvers))
        is_above = not named.isdisjoint({group_id, *(group.ancestors if group else ())})
        return is_above or any(group_id in one.groups_only for one in approvers)

    def _could_decide(self, request: AccessRequest, email: str, at: datetime) -> bool:
        """Somebody enabled whom it is not for, if it is decided by people at all."""
        if not self._demand_of(request).required or email == request.requested_by or self._is_served(request.subject_id, email, at):
            return False
        person, _ = self.directory.held_by(email)
        return person is not None and person.is_enabled

    def _is_named(self, demand: ApprovalDemand, email: str, at: datetime) -> bool:
        """Whether the rule itself lets this person decide, who is enabled."""
        if demand.admins_of:
            role = directory.role_on(email=email, group_id=demand.admins_of, now=at, book=self.directory)
            return role is GroupRole.ADMIN
        groups, direct = self._groups_of(email, at)
        return email in demand.users or not groups.isdisjoint(demand.groups) or not direct.isdisjoint(demand.groups_only)

    def _could_stand_in(self, request: AccessRequest, email: str, approver: str, at: datetime) -> bool:
        """Whether neither asked for it nor is served by it, by whatever address, and the rule itself names the approver: what is left to
        operators is left to nobody in their place."""
        if not (self._could_decide(request, email, at) and self._could_decide(request, approver, at)):
            return False
        identity = self._identity_of(approver)
        is_asker = bool(identity) and identity == request.identities.get(request.requested_by)
        return not is_asker and self._is_named(self._demand_of(request), approver, at)

    def _is_as_named(self, one: StandIn) -> bool:
        """Whether both are there and enabled, and neither was deleted and made anew since: that would be somebody else."""
        people = (self.directory.held_by(email)[0] for email in (one.approver, one.stand_in))
        return all(person is not None and person.is_enabled and to_epoch(person.created_at) <= to_epoch(one.named_at) for person in people)

    def _decides_as_operator(self, request: AccessRequest, email: str, at: datetime) -> bool:
        """Where the rule's own approvers are too few: of somebody who could decide, and whom the rule does not name."""
        return current().operator_group in self._groups_of(email, at)[0] and self.of_request(request).is_fallback

    def _is_admin_somewhere(self, email: str) -> bool:
        return any(one.role is GroupRole.ADMIN for one in directory.roles_of(email=email, now=self.now, book=self.directory))

    def identities_of(self, emails: Iterable[str]) -> dict[str, str]:
        """With which accounts of the sign-in service these people come in, of those who have one."""
        return {email: identity for email in emails if (identity := self._identity_of(email))}

    def _identity_of(self, email: str) -> str:
        """Which account of the sign-in service is theirs; empty for none."""
        person, _ = self.directory.held_by(email)
        return person.identity if person is not None else ""

    def _groups_of(self, email: str, at: datetime) -> tuple[frozenset[str], frozenset[str]]:
        """All groups that they are in, and those of them directly."""
        _, groups, direct = directory.find_person_with_groups(email=email, now=at, book=self.directory)
        return groups, direct

    def _is_served(self, subject_id: str, email: str, at: datetime) -> bool:
        """The subject, or somebody in the subject group."""
        return subject_id in self._groups_of(email, at)[0] if subject_id.startswith("/") else subject_id == email

    def _served(self, subject_id: str, people: Collection[str], at: datetime) -> set[str]:
        """Of these people those in the subject group."""
        return self.directory.those_in(subject_id, people, now=at) if subject_id.startswith("/") else set()

    def _demand_of(self, request: AccessRequest) -> ApprovalDemand:
        rule = self.rules.get(request.rule_name)
        if rule is None or rule.effect is not Effect.ALLOW or not rule.approval.required:
            return request.approval
        return demand_of(rule, group_id=_membership(request)[0])

    def with_identities(self, request: AccessRequest) -> AccessRequest:
        """The request with the accounts of the sign-in service that it does not tell of (an earlier version's), as they are now."""
        unknown = {request.requested_by, *request.approvals} - request.identities.keys() if request.status is Status.PENDING else set()
        live = self.identities_of(sorted(unknown))
        return replace(request, identities={**live, **request.identities}) if live else request


def demand_of(rule: Rule, *, group_id: str) -> ApprovalDemand:
    """What a rule asks for, as a request keeps it. ``group_id`` is the group that is asked for, if one."""
    approval = rule.approval
    return ApprovalDemand(
        required=approval.required,
        quorum=approval.quorum,
        groups=approval.approvers.groups,
        users=approval.approvers.users,
        admins_of=group_id if rule.asks_admins else "",
        groups_only=approval.approvers.groups_only,
    )


def _membership(request: AccessRequest) -> tuple[str, str]:
    return kind_named(request.kind).target.membership(request.target)


def _named_by(demand: ApprovalDemand) -> Named:
    if demand.admins_of:
        return Named(admins_of=demand.admins_of)
    return Named(groups=demand.groups, groups_only=demand.groups_only, users=demand.users)


def _as_approvers(people: Iterable[Person]) -> tuple[Approver, ...]:
    return tuple(Approver(email=person.key, name=person.name or person.email, identity=person.identity) for person in people)
