"""What the daily tasks take a person in a real Chromium: clicks, fields, pages loaded, seconds. ``docs/benchmarks.md`` explains the table.

Starts the whole demo in a temporary folder, with 60 accounts and a past of 400 requests, and does each task as somebody does who knows
the pages. The seconds by hand are those of the keystroke-level model, to compare with; the others are what the machine took.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright
from playwright.sync_api import Error as PlaywrightError

from tests.browser.running import RunningPortal, portal_in

# Card, Moran and Newell: to think, to point and press, to press a key, to move the hand between keyboard and mouse.
_THINK, _POINT, _KEY, _MOVE = 1.35, 1.3, 0.2, 0.4
_REQUESTS = 400
_MANY = 20
_LONGEST_MILLISECONDS = 60_000
_A_REQUEST = re.compile(r"/requests/[0-9a-f-]{36}/$")
_CHROMIUM = "/usr/bin/chromium"


@dataclass
class Hand:
    """A person at a page, and what they have done so far. Pages are counted from the one where they start. The hand begins at the mouse,
    and moves when it is needed elsewhere."""

    page: Page
    is_at_keys: bool = False
    clicks: int = 0
    fields: int = 0
    loads: int = 0
    by_hand: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.page.on("domcontentloaded", self._loaded)

    def _loaded(self, _page: Page) -> None:
        self.loads += 1

    def click(self, what: Locator) -> None:
        what.click()
        self.clicks += 1
        self._move(to_keys=False)
        self.by_hand += _THINK + _POINT

    def type(self, what: Locator, text: str, *keys: str) -> None:
        """Into one field; ``keys`` are pressed after it."""
        what.press_sequentially(text, delay=15)
        for key in keys:
            what.press(key)
        self.fields += 1
        self._move(to_keys=True)
        self.by_hand += _THINK + _KEY * (len(text) + len(keys))

    def press(self, key: str, *, is_thought_of: bool = True) -> None:
        """One key, or some together (``Control+k``), where the focus is."""
        self.page.keyboard.press(key)
        self._move(to_keys=True)
        self.by_hand += (_THINK if is_thought_of else 0) + _KEY * len(key.split("+"))

    def _move(self, *, to_keys: bool) -> None:
        self.by_hand += _MOVE if to_keys is not self.is_at_keys else 0
        self.is_at_keys = to_keys

    @contextlib.contextmanager
    def held(self, key: str) -> Iterator[None]:
        """While the other hand holds a key."""
        self.page.keyboard.down(key)
        yield
        self.page.keyboard.up(key)
        self.by_hand += _KEY

    def told(self, task: str) -> str:
        seconds = time.monotonic() - self.began
        return f"| {task} | {self.clicks} | {self.fields} | {self.loads} | {self.by_hand:.1f} | {seconds:.1f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", metavar="URL", help="a demo that runs and has its past already, instead of one of its own")
    parser.add_argument("--password", default="", help="of that demo's people")
    parser.add_argument("--requests", type=int, default=_REQUESTS, help="requests of the past (default: %(default)s)")
    parser.add_argument("--task", action="append", metavar="WORDS", help="only the tasks with these words in their name (default: all)")
    options = parser.parse_args()
    tasks = {name: task for name, task in TASKS.items() if any(words in name for words in options.task or [""])}
    failed: list[str] = []
    expect.set_options(timeout=_LONGEST_MILLISECONDS)
    with contextlib.ExitStack() as stack:
        if options.at:
            portal = RunningPortal(options.at.rstrip("/"), options.password, Path())
        else:
            portal = stack.enter_context(portal_in(Path(stack.enter_context(tempfile.TemporaryDirectory()))))
        playwright = stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        print("| task | clicks | fields | pages | s by hand | s by machine |")
        print("| --- | --- | --- | --- | --- | --- |", flush=True)
        is_loaded = bool(options.at) or not options.requests
        for task, (name, do) in tasks.items():
            if do is not _from_a_chip and not is_loaded:
                # After that much is held all at once, and what is held has no chip.
                portal.command("load_demo", "--requests", str(options.requests))
                is_loaded = True
            page = _signed_in(browser, portal, name)
            if do is _from_a_chip:
                _give_back(page)
            hand = Hand(page)
            try:
                do(hand)
            except (PlaywrightError, AssertionError) as error:
                failed.append(f"{task}: {error}")
            print(hand.told(task), flush=True)
            page.context.close()
        browser.close()
    for line in failed:
        print(f"NOT DONE: {line}")
    return 1 if failed else 0


def _signed_in(browser: Browser, portal: RunningPortal, name: str) -> Page:
    """At ``My access``."""
    context = browser.new_context(base_url=portal.url, viewport={"width": 1280, "height": 860}, locale="en-GB")
    context.set_default_timeout(_LONGEST_MILLISECONDS)
    page = context.new_page()
    page.goto("/")
    page.get_by_label("E-mail address").fill(f"{name}@example.com")
    page.get_by_label("Password").fill(portal.password)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", name="My access")).to_be_visible()
    page.wait_for_load_state("networkidle")
    return page


def _request(hand: Hand) -> None:
    hand.press("Control+k")
    _find_and_explain(hand)
    hand.press("Control+Enter")
    hand.page.wait_for_url(_A_REQUEST)


def _request_by_mouse(hand: Hand) -> None:
    page = hand.page
    hand.click(page.get_by_role("combobox", name="What do you need?"))
    _find_and_explain(hand)
    hand.click(page.get_by_role("button", name="Send request"))
    page.wait_for_url(_A_REQUEST)


def _find_and_explain(hand: Hand) -> None:
    """The first that the one box finds is the account with what is wanted there."""
    page = hand.page
    hand.type(page.get_by_role("combobox", name="What do you need?"), "recon", "Enter")
    expect(page.get_by_role("combobox", name="Permission set")).to_have_value("ReadOnlyAccess")
    _explain(hand)


def _explain(hand: Hand) -> None:
    """The number of the ticket is enough: the rule says what stands before it."""
    page = hand.page
    ticket = page.get_by_label(re.compile("^Ticket"))
    expect(ticket).to_be_focused()
    hand.type(ticket, "20817")
    hand.press("Tab", is_thought_of=False)
    expect(ticket).to_have_value("CHG-20817")
    hand.type(page.get_by_label("Why"), "Incident 4711: read the payment logs")


def _request_on_the_form(hand: Hand) -> None:
    account = _begin_the_form(hand)
    hand.type(account, "recon", "Enter")
    hand.click(hand.page.get_by_role("option", name=re.compile("ReadOnly")))
    _explain_and_send(hand)


def _request_by_first_choices(hand: Hand) -> None:
    """The list of permission sets opens with that of the fewest approvals, and a mark that Enter takes it."""
    account = _begin_the_form(hand)
    hand.type(account, "recon", "Enter")
    hand.press("Enter", is_thought_of=False)
    expect(hand.page.get_by_role("combobox", name="Permission set")).to_have_value("ReadOnlyAccess")
    _explain_and_send(hand)


def _begin_the_form(hand: Hand) -> Locator:
    hand.click(hand.page.get_by_role("link", name="Request access"))
    account = hand.page.get_by_role("combobox", name="Account")
    expect(account).to_be_focused()
    return account


def _explain_and_send(hand: Hand) -> None:
    page = hand.page
    _explain(hand)
    hand.click(page.get_by_role("button", name="Send request"))
    page.wait_for_url(_A_REQUEST)


def _give_back(page: Page) -> None:
    """End what is held of an account for which no ticket is needed: only what is not held has a chip. No part of the task."""
    last = time.monotonic() + _LONGEST_MILLISECONDS / 1000
    while not _chips(page).count() and time.monotonic() < last:
        held = page.locator("#open").get_by_role("link", name=re.compile("^End now.*-dev"))
        if held.count():
            page.goto(str(held.first.get_attribute("href")))
            page.get_by_role("button", name="End now").click()
            page.wait_for_load_state("networkidle")
        page.wait_for_timeout(1_000)
        page.goto("/")


def _chips(page: Page) -> Locator:
    """Of things for which no ticket is needed: that of then is in no chip."""
    return page.get_by_role("navigation", name="Ask again").get_by_role("link", name=re.compile("-dev|^Sandbox"))


def _from_a_chip(hand: Hand) -> None:
    page = hand.page
    hand.click(_chips(page).first)
    hand.click(page.get_by_role("button", name="Send request"))
    page.wait_for_url(_A_REQUEST)


def _request_again(hand: Hand) -> None:
    page = hand.page
    hand.click(page.get_by_role("link", name=re.compile("^Ask again for payments-dev")).first)
    hand.click(page.get_by_role("button", name="Send request"))
    page.wait_for_url(_A_REQUEST)


def _approve_one(hand: Hand) -> None:
    page = hand.page
    hand.click(page.get_by_role("region", name="Waiting for me").get_by_role("button", name=re.compile("^Approve ")).first)
    expect(page.get_by_text(re.compile("^Approved:")).first).to_be_visible()


def _approve_many(hand: Hand) -> None:
    """All on the page, so many or more."""
    page = hand.page
    hand.click(page.get_by_role("link", name=re.compile(r"Approvals \d")))
    hand.click(page.get_by_role("button", name=re.compile(r"^Approve all \d\d…")))
    hand.click(page.get_by_role("button", name=re.compile(r"^Approve \d\d$")))
    _told_of_many(page)


def _approve_some(hand: Hand) -> None:
    """So many of the page: from the first to the last of them, by Shift."""
    page = hand.page
    hand.click(page.get_by_role("link", name=re.compile(r"Approvals \d")))
    boxes = page.locator("input[name=key]")
    hand.click(boxes.first)
    with hand.held("Shift"):
        hand.click(boxes.nth(_MANY - 1))
    hand.click(page.get_by_role("button", name=f"Approve {_MANY}…"))
    hand.click(page.get_by_role("button", name=f"Approve {_MANY}", exact=True))
    _told_of_many(page)


def _told_of_many(page: Page) -> None:
    title = page.get_by_role("heading", name=re.compile(r"^Approve: \d+ of \d+ done"))
    expect(title).to_be_visible()
    done, total = map(int, re.findall(r"\d+", title.inner_text()))
    if not _MANY <= done == total:
        raise PlaywrightError(f"{done} of {total} were approved")


def _who_had(hand: Hand) -> None:
    """All requests of the last thirty days for one account, to the last page that has any."""
    page = hand.page
    hand.click(page.get_by_role("link", name="Administration"))
    hand.type(page.get_by_label("Person, group, account, ticket or request id"), "payments-dev", "Enter")
    hand.click(page.get_by_role("button", name="Last 30 days"))
    page.wait_for_url(re.compile("since=20"))
    expect(page.get_by_text(re.compile(r"^\d+ found by account"))).to_be_visible()
    following = page.get_by_role("link", name="Next page")
    while following.count():
        before = page.url
        hand.click(following)
        page.wait_for_function("before => location.href !== before", arg=before)
        page.wait_for_load_state("networkidle")


def _extend(hand: Hand) -> None:
    page = hand.page
    hand.click(page.get_by_role("link", name=re.compile("^Extend payments-dev")).first)
    hand.click(page.get_by_role("button", name=re.compile("^\\+30 min")))
    page.wait_for_url(_A_REQUEST)


TASKS: dict[str, tuple[str, Callable[[Hand], None]]] = {
    "from a chip of recent requests": ("alice", _from_a_chip),
    "request AWS access, by keys": ("alice", _request),
    "request AWS access, by mouse": ("alice", _request_by_mouse),
    "request AWS access, by mouse, account and permission set on the form": ("alice", _request_on_the_form),
    "request AWS access, on the form, with Enter for the first permission set": ("alice", _request_by_first_choices),
    "request it again": ("alice", _request_again),
    "approve one": ("priya", _approve_one),
    f"approve {_MANY} or more, all on the page": ("priya", _approve_many),
    f"approve {_MANY} of those on the page": ("bob", _approve_some),
    "who had this account last month": ("olga", _who_had),
    "extend": ("alice", _extend),
}


if __name__ == "__main__":
    sys.exit(main())
