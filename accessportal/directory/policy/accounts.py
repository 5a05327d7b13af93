"""What is said when an account of the sign-in service is somebody else's."""

from __future__ import annotations

from accessportal.directory.states import Person


def account_taken(other: Person, wanted: Person) -> str:
    """``wanted`` can't come in with the account, because it is ``other``'s. An address is for life, so being renamed at the
    sign-in service is followed by an admin, who moves what the person may do."""
    return (
        f"The account of the sign-in service is known here as {other.email}, and one account is one person. Sign in as {other.email}. "
        f"If the person is called {wanted.email} from now on, an admin of / gives {wanted.email} the groups and disables {other.email}."
    )
