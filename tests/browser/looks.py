"""Whether a page is fit for people: axe finds nothing, nothing sticks out on a phone, and a picture to look at."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SCREENSHOTS = Path(__file__).resolve().parent.parent.parent / "screenshots"
SIZES = {"desktop": (1280, 860), "phone": (390, 844)}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# Preloading would have axe fetch style sheets a second time, at addresses that it guesses.
_AXE_OPTIONS: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
_COLOURS = ["color-contrast", "link-in-text-block"]
# They take three quarters of axe's time, which asks for each element what lies above and below it. The light page at the desk is judged
# whole; the dark one has the same elements in the same places, and the phone's the same elements: one of each colouring is enough there.
_ONE_OF_EACH_COLOURING = """
() => {
  const known = new Map(), seen = new Set();
  const colouring = (element) => {
    if (!known.has(element)) {
      const style = getComputedStyle(element);
      const own = ["color", "backgroundColor", "backgroundImage", "opacity", "fontSize", "fontWeight", "textDecorationLine"];
      const above = element.parentElement ? colouring(element.parentElement) : "";
      known.set(element, `${above}|${own.map((name) => style[name]).join(";")}`);
    }
    return known.get(element);
  };
  const hasText = (node) => node.nodeType === Node.TEXT_NODE && node.data.trim();
  return [...document.querySelectorAll("body *")].filter((element) => {
    if (![...element.childNodes].some(hasText) && !element.matches("input, select, textarea")) return false;
    if (!element.checkVisibility({ visibilityProperty: true })) return false;
    const fresh = !seen.has(colouring(element));
    seen.add(colouring(element));
    return fresh;
  });
}
"""
_WITH_PICTURES = os.environ.get("PORTAL_TESTS_PICTURES") == "1"
# Also the frame after: a change of colours is drawn a moment after it was ordered.
_SETTLED = """
(scheme) => document.readyState === "complete"
  && !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling")
  && document.documentElement.dataset.bsTheme === scheme
  && new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))
"""
# Half way from one colour to the other, no text has the contrast that it has at the end.
_STILL = "() => document.getAnimations().every((one) => one.playState !== 'running' || one.effect.getComputedTiming().endTime === Infinity)"

_CUT = """
() => [...document.querySelectorAll("input:placeholder-shown")].filter((input) => {
  const style = getComputedStyle(input), pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  // A search field keeps room for the cross that empties it.
  const room = input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - (input.type === "search" ? 12 : 0);
  return input.checkVisibility() && pen.measureText(input.placeholder).width > room;
}).map((input) => input.placeholder)
"""


_WATCH = """
() => {
  window.moved = [];
  const place = ({ previousRect: was, currentRect: is, node }) => `${node?.id || node?.className || node?.nodeName} ${was.y} to ${is.y}`;
  new PerformanceObserver((list) => {
    for (const shift of list.getEntries()) if (shift.value > 0.001) window.moved.push(shift.sources.map(place).join(", "));
  }).observe({ type: "layout-shift" });
}
"""


def watch_for_jumps(page: Page) -> None:
    """From now on :func:`jumps` tells what moved on the page by itself."""
    page.evaluate(_WATCH)


def jumps(page: Page) -> list[str]:
    """Chromium's own layout shifts, one line for each: what moved, and from where to where down the page."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")
    return list(page.evaluate("window.moved"))


def look_at(page: Page, name: str, *, full: bool = True) -> None:
    """Check the page as it stands, at both sizes and in both colours. ``PORTAL_TESTS_PICTURES=1`` leaves a picture of each,
    ``screenshots/<name>-<size>-<scheme>.png``.

    :raises AssertionError: with everything that is wrong with it.
    """
    if _WITH_PICTURES:
        SCREENSHOTS.mkdir(exist_ok=True)
    before = page.viewport_size
    faults: list[str] = []
    for size, (width, height) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            page.wait_for_function(_SETTLED, arg=scheme)
            if _WITH_PICTURES:
                page.screenshot(path=SCREENSHOTS / f"{name}-{size}-{scheme}.png", full_page=full)
            found = _judge(page, size, scheme)
            faults += [f"{name}, {size}, {scheme}: {fault}" for fault in [*found, *_overflow(page, width)]]
    if before is not None:
        page.set_viewport_size(before)
    page.emulate_media(color_scheme="light")
    assert not faults, "\n".join(faults)


def _judge(page: Page, size: str, scheme: str) -> list[str]:
    if scheme == "light" and size == "desktop":
        return axe_violations(page)
    # What is dark on the phone alone is not judged.
    colours = [] if (size, scheme) == ("phone", "dark") else axe_violations(page, is_by_colouring=True, runOnly=_COLOURS)
    return colours if scheme == "dark" else [*axe_violations(page, rules={rule: {"enabled": False} for rule in _COLOURS}), *colours]


def _overflow(page: Page, width: int) -> list[str]:
    needed = int(page.evaluate("document.documentElement.scrollWidth"))
    return [f"needs {needed} pixels of {width}"] if needed > width else []


def cut_placeholders(page: Page) -> list[str]:
    """Return those for which their fields have no room, at any of the sizes."""
    before, found = page.viewport_size, []
    for width, height in SIZES.values():
        page.set_viewport_size({"width": width, "height": height})
        found += page.evaluate(_CUT)
    if before is not None:
        page.set_viewport_size(before)
    return found


def axe_violations(page: Page, *, is_by_colouring: bool = False, **options: Any) -> list[str]:
    """One line for each violation, with the elements and what axe says about the first. Of the whole page, or of one element of each
    colouring, once nothing on it changes its looks any more."""
    lines = []
    page.wait_for_function(_STILL)
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    context = f"{{ include: ({_ONE_OF_EACH_COLOURING})() }}" if is_by_colouring else "document"
    for violation in page.evaluate(f"(options) => axe.run({context}, options).then((found) => found.violations)", _AXE_OPTIONS | options):
        nodes = violation["nodes"]
        where = ", ".join(" ".join(node["target"]) for node in nodes[:4])
        why = re.sub(r"\s+", " ", nodes[0]["failureSummary"])
        lines.append(f"axe {violation['id']} ({violation['impact']}) at {where}: {why}")
    return lines
