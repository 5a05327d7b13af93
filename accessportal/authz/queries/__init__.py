"""Checks, lists and counts, and the words in which one asks. What is over is in none of them."""

from accessportal.authz.policy.checks import Answer, Why
from accessportal.authz.policy.ends import GoverningPolicy
from accessportal.authz.policy.rights import Caller, caller_of
from accessportal.authz.policy.scopes import read_scope
from accessportal.authz.queries.checks import Asked, check, check_chain, check_many, check_set
from accessportal.authz.queries.counting import Counting, count_further
from accessportal.authz.queries.lists import (
    count_in_scope,
    find_scope,
    get_record,
    governing_policy,
    list_ending,
    list_in_scope,
    list_of_holder,
    list_of_target,
    list_scopes,
)
from accessportal.authz.store import APPROVALS, LEDGERS, RELATIONSHIPS, Ledger, every_scope, get_scope

__all__ = [
    "APPROVALS",
    "LEDGERS",
    "RELATIONSHIPS",
    "Answer",
    "Asked",
    "Caller",
    "Counting",
    "GoverningPolicy",
    "Ledger",
    "Why",
    "caller_of",
    "check",
    "check_chain",
    "check_many",
    "check_set",
    "count_further",
    "count_in_scope",
    "every_scope",
    "find_scope",
    "get_record",
    "get_scope",
    "governing_policy",
    "list_ending",
    "list_in_scope",
    "list_of_holder",
    "list_of_target",
    "list_scopes",
    "read_scope",
]
