"""The twin's stand-in for the AWS access portal: the page behind *Open in AWS*, which shows what would be opened there.

It holds nothing of the twin, so any page may lead to it.
"""

from __future__ import annotations

from accessportal.twin.protocol import Answer

PATH = "/twin/start"
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>AWS access portal (local twin)</title><link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; display: grid; place-items: center; min-height: 100vh; }
body { background: light-dark(#f2f3f3, #0f1620); color: light-dark(#16191f, #e9ebed); }
main { width: min(34rem, calc(100vw - 2rem)); padding: 1.5rem; border-radius: .75rem; background: light-dark(#fff, #192534);
  border: 1px solid light-dark(#d5dbdb, #414d5c); box-sizing: border-box; }
h1 { font-size: 1.25rem; margin: 0 0 1rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .35rem 1rem; margin: 0 0 1rem; }
dt { color: light-dark(#545b64, #a9b3c0); } dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; } p { margin: 0; }
</style></head><body><main>
<h1>You would be in the AWS console now</h1>
<dl><dt>Account</dt><dd id="account">the one that you chose</dd><dt>Role</dt><dd id="role">the one that you chose</dd></dl>
<p>This is the demo: its AWS is a twin on this machine, and has no console. With your own AWS access portal in PORTAL_AWS_START_URL, the
same button signs you in to the account with this role.</p>
</main><script>
const asked = new URLSearchParams(location.hash.split("?")[1]);
for (const [id, name] of [["account", "account_id"], ["role", "role_name"]]) {
  if (asked.get(name)) document.getElementById(id).textContent = asked.get(name);
}
</script></body></html>
"""


def start_page() -> Answer:
    return Answer(200, {"Content-Type": "text/html; charset=utf-8", "X-Frame-Options": "DENY"}, _PAGE.encode())
