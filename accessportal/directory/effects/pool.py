"""Finding or making the user pool."""

from __future__ import annotations

from accessportal.aws import cognito
from accessportal.aws.errors import OutsideError, Refused
from accessportal.directory.config import current
from accessportal.directory.states import UserPool
from accessportal.kernel.errors import Conflict, Unavailable


def ensure_user_pool(name: str) -> UserPool:
    """The pool of that name; a new one if there is none.

    :raises Conflict: when Cognito refuses, or has several pools of that name.
    :raises Unavailable: when Cognito did not answer; trying again finds what was made.
    """
    try:
        found = cognito.find_user_pool(name)
        pool_id = found or cognito.create_user_pool(name)
        cognito.require_one_case(pool_id)
    except Refused as error:
        raise Conflict(f"Cognito refused: {error}", code="cognito_refused") from error
    except OutsideError as error:
        raise Unavailable(f"Cognito did not answer: {error}", code="cognito_unavailable") from error
    return UserPool(pool_id, is_new=found is None, is_set=pool_id == current().user_pool_id)
