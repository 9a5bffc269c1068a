"""Which requests a page in a browser could have made, header by header as browsers send them."""

from __future__ import annotations

import pytest

from farm.errors import UsageError
from farm.service.auth.origins import Refusal, allowed_hosts, refusal

HOSTS = allowed_hosts(port=8700)
JSON = ("content-type", "application/json")


def asked(
    *headers: tuple[str, str], method: str = "GET", scheme: str = "http", hosts: frozenset[str] = HOSTS
) -> int | None:
    """Return the status with which a request of these headers is refused, None when it is answered."""
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    found = refusal(method, scheme, raw, hosts=hosts)
    assert found is None or (isinstance(found, Refusal) and found.words)
    return found and found.status


@pytest.mark.parametrize("host", ["localhost:8700", "127.0.0.1:8700", "[::1]:8700", "LOCALHOST:8700"])
def test_a_program_on_this_machine_reads_and_submits(host: str) -> None:
    assert asked(("host", host)) is None
    assert asked(("host", host), JSON, method="POST") is None


REBOUND = {
    "a name that resolves to this machine": "evil.example:8700",
    "such a name without its port": "evil.example",
    "a name below localhost": "localhost.evil.example:8700",
    "a name above localhost": "evil.localhost:8700",
    "a user before the name": "localhost:8700@evil.example",
    "a user that is a name": "evil.example@localhost:8700",
    "another port": "localhost:8701",
    "no port": "localhost",
    "a dot at the end": "localhost.:8700",
    "a port with zeros": "localhost:08700",
    "a short form of the address": "127.1:8700",
    "the address as a number": "2130706433:8700",
    "any address": "0.0.0.0:8700",
    "another address of loopback": "127.0.0.2:8700",
    "a mapped address": "[::ffff:127.0.0.1]:8700",
    "a list": "localhost:8700, evil.example",
    "two words": "localhost:8700 evil.example",
    "a path": "localhost:8700/",
    "a scheme": "http://localhost:8700",
    "nothing": "",
    "NUL": "localhost:8700\0",
    "Latin-1": "l\xf6calhost:8700",
    "a megabyte": "localhost" * 100_000,
}


@pytest.mark.parametrize("what", REBOUND)
def test_a_name_that_is_not_the_services_is_refused(what: str) -> None:
    assert asked(("host", REBOUND[what])) == 403
    # A rebound page is same-origin to its browser.
    own = (("host", REBOUND[what]), ("origin", f"http://{REBOUND[what]}"), ("sec-fetch-site", "same-origin"))
    assert asked(*own) == 403
    assert asked(*own, JSON, method="POST") == 403


def test_a_request_has_exactly_one_host() -> None:
    assert asked() == 403
    assert asked(("host", "localhost:8700"), ("host", "evil.example")) == 403
    assert asked(("host", "localhost:8700"), ("Host", "evil.example")) == 403


FOREIGN = {
    "another site": "http://evil.example",
    "another site over TLS": "https://evil.example",
    "this machine's other port": "http://localhost:3000",
    "this machine without a port": "http://localhost",
    "another name of this machine": "http://127.0.0.1:8700",
    "another scheme": "https://localhost:8700",
    "a sandboxed frame or a file": "null",
    "an extension": "chrome-extension://abcdefgh",
    "a name that begins alike": "http://localhost:8700.evil.example",
    "a name that ends alike": "http://evil.localhost:8700",
    "a path": "http://localhost:8700/",
    "a list": "http://localhost:8700 http://evil.example",
    "nothing": "",
}


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "POST", "DELETE"])
def test_a_page_of_another_origin_is_refused(method: str, what: str) -> None:
    host = ("host", "localhost:8700")
    assert asked(host, ("origin", FOREIGN[what]), JSON, method=method) == 403
    own = ("origin", "http://localhost:8700")
    assert asked(host, own, ("origin", FOREIGN[what]), JSON, method=method) == 403


def test_a_page_of_the_services_own_is_answered() -> None:
    own = (("host", "Localhost:8700"), ("origin", "http://localhost:8700"), ("sec-fetch-site", "same-origin"))
    assert asked(*own, JSON, method="POST") is None
    assert asked(("host", "localhost:8700"), ("sec-fetch-site", "none")) is None  # typed by a person


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "none, cross-site", "anything"])
def test_what_a_page_of_another_site_loads_is_refused_though_it_names_no_origin(site: str) -> None:
    assert asked(("host", "localhost:8700"), ("sec-fetch-site", site)) == 403
    assert asked(("host", "localhost:8700"), ("sec-fetch-site", "none"), ("sec-fetch-site", site)) == 403


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        " application/json ",
    ],
)
def test_json_is_json_however_it_is_written(kind: str) -> None:
    assert asked(("host", "localhost:8700"), ("content-type", kind), method="POST") is None


NOT_JSON = [
    *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""),
    *("text/plain; application/json", "application/json, text/plain", "text/plain;a=application/json"),
    *("application/jsonp", "application/json; charset=utf-16", "application/json; charset=utf-7"),
    *("application/json\0", "application/json\x0b", "application/json; a=b", "json", "a" * 1_000_000),
]


@pytest.mark.parametrize("kind", NOT_JSON, ids=range(len(NOT_JSON)))
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "post", "get", "TRACE", ""])
def test_what_a_form_can_send_changes_nothing(method: str, kind: str) -> None:
    host = ("host", "localhost:8700")
    assert asked(host, ("content-type", kind), method=method) == 415
    assert asked(host, JSON, ("content-type", kind), method=method) == 415
    assert asked(host, method=method) == 415


def test_a_unix_socket_has_the_names_of_loopback_without_a_port() -> None:
    hosts = allowed_hosts(port=None)
    assert asked(("host", "localhost"), hosts=hosts) is None
    assert asked(("host", "evil.example"), hosts=hosts) == 403


def test_names_are_allowed_by_who_runs_the_service() -> None:
    hosts = allowed_hosts(port=8700, names=["Farm.Example", "proxy:9000", "10.0.0.7", "[FD00::7]:443"])
    assert hosts - HOSTS == {
        *("farm.example", "farm.example:8700", "proxy:9000"),
        *("10.0.0.7", "10.0.0.7:8700", "[fd00::7]:443"),
    }
    secure = (("host", "farm.example"), ("origin", "https://farm.example"))
    assert asked(*secure, hosts=hosts, scheme="https") is None
    assert asked(*secure, hosts=hosts) == 403
    assert asked(("host", "evil.example"), hosts=hosts) == 403


def test_the_usual_port_of_http_is_not_written() -> None:
    assert "localhost" in allowed_hosts(port=80)


WRONG = ["", "*", "*.example", "https://farm.example", "farm.example/", "a b", "a,b", "a:0", "a:b", "a..b"]


@pytest.mark.parametrize("name", [*WRONG, "::1", "[::1", "farm.example\n", "gr\xf6\xdfe.example", "a@b"])
def test_what_is_no_host_cannot_be_allowed(name: str) -> None:
    with pytest.raises(UsageError, match="this is not a host"):
        allowed_hosts(port=8700, names=[name])
