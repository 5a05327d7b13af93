"""Whose a pseudonym is, for as long as anything here still knows the person: there is no list of pseudonyms beside the evidence."""

from __future__ import annotations

from accessportal.audit import operations as audit
from accessportal.audit import queries as audit_queries
from accessportal.directory import queries as directory
from accessportal.kernel.actors import Actor
from accessportal.kernel.errors import NotAllowed, NotFound
from accessportal.kernel.pages import Unreadable, every
from accessportal.store.erasures import find_erasure

# Entities that are named by the address of a person.
_OF_PEOPLE = ("person", "sign_in")


def find_person_of(*, pseudonym: str, actor: Actor) -> str:
    """The address whose pseudonym this is, of a name the address of somebody who has that name. Reads the whole directory, and then the
    names of all chains.

    :raises NotAllowed: unless the actor is an operator.
    :raises NotFound: also for somebody who was erased: then nothing can tell any more.
    :raises Conflict: where the installation has no pseudonyms.
    :raises UnreadableItem: when nobody is found, and somebody in the directory can't be read.
    """
    if not actor.is_operator:
        raise NotAllowed("Only operators may ask whose a pseudonym is. Ask an operator.", code="operators_only")
    pseudonyms, wanted, unread = audit.pseudonyms(), pseudonym.strip().lower(), list[Unreadable]()
    for person in every(lambda cursor: directory.list_people(cursor=cursor, limit=500), past=unread.append):
        if wanted in (pseudonyms.of(person.key), pseudonyms.of_name(person.name)):
            return person.key
    for entity in audit_queries.every_entity():
        kind, _, address = entity.partition("#")
        # A chain may go on under a pseudonym.
        if kind in _OF_PEOPLE and "@" in address and pseudonyms.of(address) == wanted:
            return address
    if find_erasure(wanted) is not None:
        words = f"Whoever {wanted} was, they were erased: the portal does not know it any more, and the key alone can't tell."
        raise NotFound(words, code="person_erased")
    if unread:
        raise unread[0].error()
    words = (
        "Nobody who is or was here has this pseudonym, with the present PORTAL_PSEUDONYM_KEY. A name is known of those alone who are here."
    )
    raise NotFound(words, code="pseudonym_unknown")
