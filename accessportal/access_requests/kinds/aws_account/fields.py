"""What the form for an AWS account asks, and what its pages say."""

from __future__ import annotations

from collections import Counter

from accessportal.access_requests.kind import Field, Fields
from accessportal.access_requests.kinds.aws_account.terms import facts_of
from accessportal.access_requests.offers import NOT_SERVED, Choice, Offers, Seeker, sift, sift_places
from accessportal.catalog import queries as catalog
from accessportal.catalog.states import Account
from accessportal.kernel.errors import Conflict

# More than that no picker looks through; whoever has more accounts types on.
_LOOKED_THROUGH = 5_000


def _accounts(text: str, seeker: Seeker) -> Offers:
    found = catalog.search_accounts(text=text, limit=_LOOKED_THROUGH)
    names = Counter(account.name.casefold() for account in found)

    def show(account: Account) -> Choice:
        # The name is what people know; where two accounts share one, only the id says which is meant.
        value = account.name if names[account.name.casefold()] == 1 else account.account_id
        tags = [f"{key}={tag}" for key, tag in (account.tags or {}).items()]
        return Choice(
            value, account.name, " ".join(account.account_id[at : at + 4] for at in (0, 4, 8)), " · ".join([account.ou_path, *tags])
        )

    known = [account for account in found if not account.is_management]
    if not text:
        known.sort(key=lambda account: account.account_id not in seeker.lately)
    return sift_places(known, seeker, facts_of, show)


def _spell(value: str) -> str:
    """The account's name, unless several carry it or nobody knows it."""
    try:
        account = catalog.find_account(account=value)
        is_alone = account is not None and catalog.find_account(account=account.name) == account
    except Conflict:
        return value
    return account.name if account is not None and is_alone else value


def permission_sets(text: str, seeker: Seeker) -> Offers:
    """By the account that is chosen; without one, those that some rule offers. First what takes the fewest approvals, and of that what the
    rules name first."""
    try:
        account = catalog.find_account(account=seeker.given.get("account", ""))
    except Conflict:
        account = None
    offers = seeker.offers

    def weighed(name: str) -> tuple[int, str]:
        """How many approvals it takes, and why it can't be had."""
        if account is None:
            return 0, "" if name in offers else NOT_SERVED
        decision = seeker.decision(facts_of(account, name))
        if decision.rule is None or not decision.allowed:
            return 0, decision.reason
        return decision.rule.approval.quorum if decision.rule.approval.required else 0, ""

    found = [(weighed(one.name), one) for one in catalog.search_permission_sets(text=text)]
    places = {name: place for place, name in enumerate(offers)}
    found.sort(key=lambda pair: (pair[0][0], places.get(pair[1].name, len(places))))
    return sift((Choice(one.name, one.name, about=one.description), refusal) for (_, refusal), one in found)


FIELDS = Fields(
    name="AWS account",
    about="A permission set in one account, for minutes to days, through IAM Identity Center.",
    icon="cloud",
    heading="Request access to an AWS account",
    target=(
        Field(
            name="account",
            label="Account",
            missing="Choose an account, or type its name or 12-digit id.",
            placeholder="Name, id, path or tag",
            search=_accounts,
            spell=_spell,
            about="the account, by 12-digit id or by name",
            metavar="ID",
        ),
        Field(
            name="permission_set",
            label="Permission set",
            missing="Choose a permission set.",
            placeholder="For example ReadOnlyAccess",
            search=permission_sets,
            about="the permission set",
            metavar="NAME",
        ),
    ),
    has_subject=True,
    hint="Choose an account and a permission set to see who decides, and how long it may last.",
    lengths=("30m", "1h", "4h", "8h"),
    usual="1h",
    place="IAM Identity Center",
)
