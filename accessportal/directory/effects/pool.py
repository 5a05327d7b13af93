"""Finding or making the user pool."""

from __future__ import annotations

from accessportal.aws import cognito
from accessportal.aws.errors import OutsideError, Refused
from accessportal.directory.states import UserPool
from accessportal.kernel.errors import Conflict, Unavailable


def ensure_user_pool(name: str) -> UserPool:
    """The pool of that name; a new one if there is none.

    :raises Conflict: when Cognito refuses, or has several pools of that name.
    :raises Unavailable: when Cognito did not answer; trying again finds what was made.
    """
    try:
        pool_id = cognito.find_user_pool(name)
        return UserPool(pool_id, is_new=False) if pool_id else UserPool(cognito.create_user_pool(name), is_new=True)
    except Refused as error:
        raise Conflict(f"Cognito refused: {error}", code="cognito_refused") from error
    except OutsideError as error:
        raise Unavailable(f"Cognito did not answer: {error}", code="cognito_unavailable") from error
