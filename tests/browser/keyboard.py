"""Somebody without a mouse: Tab until the control has the focus, arrows in lists, Enter."""

from __future__ import annotations

import re

from playwright.sync_api import Page

_MOST_STEPS = 60
# What somebody sees or hears of the element that has the focus, and whether its focus can be seen.
_FOCUSED = """
() => {
  const element = document.activeElement;
  const style = getComputedStyle(element);
  const name = element.getAttribute("aria-label") || element.labels?.[0]?.innerText || element.innerText || "";
  return {
    name: name.replace(/\\s+/g, " ").trim(),
    isNowhere: element === document.body,
    isSeen: element.matches(":focus-visible, :focus-within") && (style.outlineStyle !== "none" || style.boxShadow !== "none"),
  };
}
"""


def tab_to(page: Page, name: str, *, key: str = "Tab") -> None:
    """The control whose name is like the pattern ``name`` has the focus, and all on the way there, by ``key``, showed that it had it.

    :raises AssertionError: when Tab does not come there, or the focus can't be seen somewhere.
    """
    page.wait_for_load_state()
    passed: list[str] = []
    for _ in range(_MOST_STEPS):
        page.keyboard.press(key)
        focused = page.evaluate(_FOCUSED)
        if focused["isNowhere"] and not passed:
            # A page that has just come may not take keys yet.
            continue
        passed.append(focused["name"])
        if not focused["isSeen"] and focused["name"]:
            raise AssertionError(f"The focus can't be seen on “{focused['name'][:60]}” of {page.url}, after {passed[:-1]}")
        if re.fullmatch(name, focused["name"]):
            return
    raise AssertionError(f"{key} does not lead to “{name}” on {page.url}; it went over {passed}")


def write(page: Page, text: str) -> None:
    page.keyboard.type(text)


def press(page: Page, *keys: str) -> None:
    page.wait_for_load_state()
    for key in keys:
        page.keyboard.press(key)
