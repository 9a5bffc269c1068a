"""Which requests for the service's own page a page of strangers could have made."""

from __future__ import annotations

import pytest

from farm.service.auth.origins import allowed_hosts, is_from_elsewhere, page_refusal

HOSTS = allowed_hosts(port=8700, names=["farm.example"])
HOST = ("host", "127.0.0.1:8700")
ORIGIN = ("origin", "http://127.0.0.1:8700")
FORM = ("content-type", "application/x-www-form-urlencoded")
LINK = (("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document"))


def raw(*headers: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def asked(*headers: tuple[str, str], method: str = "GET", scheme: str = "http") -> int | None:
    """Return the status with which a request of these headers is refused, None when it is answered."""
    found = page_refusal(method, scheme, raw(*headers), hosts=HOSTS)
    return found and found.status


def test_a_person_types_the_address_and_sends_the_form() -> None:
    assert asked(HOST, ("sec-fetch-site", "none"), *LINK) is None
    assert asked(HOST, ORIGIN, FORM, ("sec-fetch-site", "same-origin"), method="POST") is None


def test_an_old_browser_says_only_its_origin() -> None:
    assert asked(HOST) is None
    assert asked(HOST, ORIGIN, FORM, method="POST") is None


def test_a_proxy_may_take_https_off_and_not_put_it_on() -> None:
    name = ("host", "farm.example")
    assert asked(name, ("origin", "https://farm.example"), FORM, method="POST") is None
    assert asked(name, ("origin", "http://farm.example"), FORM, method="POST", scheme="https") == 403


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "null",
            "",
            "http://evil.example",
            "http://127.0.0.1",
            "http://127.0.0.1:8701",
            "http://localhost:8700",
        ),
        *("http://127.0.0.1:8700.evil.example", "http://127.0.0.1:8700@evil.example", "ftp://127.0.0.1:8700"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_origin_is_refused(origin: str, method: str) -> None:
    assert asked(HOST, ("origin", origin), FORM, method=method) == 403


def test_two_origins_are_refused() -> None:
    assert asked(HOST, ORIGIN, ORIGIN, FORM, method="POST") == 403


def test_a_form_without_an_origin_is_refused() -> None:
    assert asked(HOST, FORM, method="POST") == 403
    assert asked(HOST, FORM, ("sec-fetch-site", "same-origin"), method="POST") == 403


@pytest.mark.parametrize(
    "kind", ["text/plain", "multipart/form-data", "application/json", "", FORM[1] + "; x=y"]
)
def test_another_kind_of_body_is_refused(kind: str) -> None:
    assert asked(HOST, ORIGIN, ("content-type", kind), method="POST") == 415


@pytest.mark.parametrize("site", ["cross-site", "same-site", "odd", ""])
def test_what_a_page_of_another_site_loads_is_refused(site: str) -> None:
    assert asked(HOST, ("sec-fetch-site", site)) == 403
    for dest in ("iframe", "image", "script", "empty"):
        asking = (("sec-fetch-mode", "navigate"), ("sec-fetch-dest", dest))
        assert asked(HOST, ("sec-fetch-site", site), *asking) == 403
    assert asked(HOST, ORIGIN, FORM, ("sec-fetch-site", site), *LINK, method="POST") == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_link_of_another_site_is_known_as_one(site: str) -> None:
    headers = (HOST, ("sec-fetch-site", site), *LINK)
    assert asked(*headers) is None
    assert is_from_elsewhere("GET", raw(*headers))
    assert not is_from_elsewhere("POST", raw(*headers))


def test_a_link_of_its_own_is_none_of_another_site() -> None:
    for site in ("none", "same-origin"):
        assert not is_from_elsewhere("GET", raw(HOST, ("sec-fetch-site", site), *LINK))


@pytest.mark.parametrize("host", ["evil.example:8700", "127.0.0.1", "127.0.0.1:8701", ""])
def test_another_name_of_the_machine_is_refused(host: str) -> None:
    assert asked(("host", host)) == 403
    assert asked(("host", host), ("origin", f"http://{host}"), FORM, method="POST") == 403
    assert asked() == 403
