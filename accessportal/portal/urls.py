"""Addresses of the pages for people."""

from django.urls import path

from accessportal.portal import accounts, my_history, pools, sandboxes, stand_ins
from accessportal.portal.directory import groups, people
from accessportal.portal.help import show as show_help
from accessportal.portal.requests import find, home, mine, new, page
from accessportal.web import addresses, tally  # noqa: F401  # the converters of addresses

urlpatterns = [
    path("", home.show, name="home"),
    path("requests/", mine.show, name="my_requests"),
    path("requests/find/", find.show, name="find"),
    path("requests/new/", new.start, name="new"),
    path("requests/new/<slug:kind>/", new.ask, name="new_request"),
    path("requests/new/<slug:kind>/choices/<slug:name>/", new.choices, name="choices"),
    path("requests/new/<slug:kind>/preview/", new.preview, name="preview_request"),
    path("requests/<item:request_id>/", page.show, name="request"),
    path("requests/<item:request_id>/live/", page.live, name="request_live"),
    path("requests/<item:request_id>/extend/", new.extend, name="extend"),
    path("requests/<item:request_id>/<slug:deed>/", page.confirm, name="request_deed"),
    path("groups/", groups.index, name="groups"),
    path("groups/search/", groups.choices, name="search_groups"),
    path("groups/branch/at<group:group_id>", groups.branch, name="group_branch"),
    path("groups/live/at<group:group_id>", groups.live, name="group_live"),
    path("groups/at<group:group_id>", groups.show, name="group"),
    path("groups/<slug:deed>/at<group:group_id>", groups.confirm, name="group_deed"),
    path("accounts/", pools.show, {"pool": accounts.POOL}, name="accounts"),
    path("sandboxes/", pools.show, {"pool": sandboxes.POOL}, name="sandboxes"),
    path("stand-ins/", stand_ins.show, name="stand_ins"),
    path("stand-ins/<email:email>/<item:stand_in_id>/end/", stand_ins.end, name="end_stand_in"),
    path("history/", my_history.show, name="my_history"),
    path("history/export/<slug:form>/", my_history.export, name="my_history_export"),
    path("people/search/", people.choices, name="search_people"),
    path("people/<email:email>/", people.show, name="person"),
    path("people/<email:email>/live/", people.live, name="person_live"),
    path("people/<email:email>/<slug:deed>/", people.confirm, name="person_deed"),
    path("fragments/for-me/", home.for_me, name="for_me"),
    path("help/", show_help, name="help"),
    path("fragments/approvals/", tally.show, name="approvals_tally"),
]
