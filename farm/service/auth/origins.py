"""Refuses requests of foreign web pages, by `Host`, `Origin`, `Sec-Fetch-Site` and `Content-Type`. Pure.

A browser on the service's machine reaches the service and runs pages of strangers. Such a page can send
requests from its own origin, and it can make its own name resolve to 127.0.0.1 (DNS rebinding), so that the
browser takes the service for the page's own origin. No page can set `Host`, `Origin` or `Sec-Fetch-Site`:
https://fetch.spec.whatwg.org/#forbidden-request-header and https://www.w3.org/TR/fetch-metadata/
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from farm.errors import UsageError

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}

# A name or an address, in brackets if it is IPv6, and optionally a port.
_HOST = re.compile(r"((?:[a-z0-9_-]+\.)*[a-z0-9_-]+|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?", re.ASCII)
_JSON = re.compile(r'application/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?', re.ASCII | re.IGNORECASE)
# Methods that change nothing: https://www.rfc-editor.org/rfc/rfc9110#name-safe-methods
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_SAFE_SITES = ("same-origin", "none")  # "none": a person typed the address


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """The HTTP status of a refused request, and the message for its `detail`."""

    status: int
    words: str


def allowed_hosts(*, port: int | None, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the allowed values of `Host`: the loopback names with the service's port, and the given names.

    ``port`` is None for a unix socket. A name without a port is also allowed with the service's port. Raises
    `UsageError` for a text that is not a host.
    """
    hosts = {_with_port(host, port) for host in _LOOPBACK}
    for name in names:
        found = _HOST.fullmatch(name.lower())
        if found is None:
            raise UsageError(
                f"--allow-host {name}: this is not a host; give a name or an address, "
                "such as farm.example or farm.example:8443"
            )
        hosts.add(found[0])
        if found[2] is None:
            hosts.add(_with_port(found[1], port))
    return frozenset(hosts)


def refusal(
    method: str, scheme: str, headers: Iterable[tuple[bytes, bytes]], *, hosts: frozenset[str]
) -> Refusal | None:
    """Return why a request is refused, None for one that no foreign page can have made.

    ``method``, ``scheme`` and ``headers`` are those of ASGI, ``hosts`` comes from `allowed_hosts`. The status
    is 415 for a request that changes something and is not JSON, else 403.
    """
    given = _given(headers)
    host = _values(given, b"host")
    return (
        _of_host(host, hosts)
        or _of_origin(_values(given, b"origin"), scheme, host)
        or _of_site(_values(given, b"sec-fetch-site"))
        or _of_type(_values(given, b"content-type"), method)
    )


def page_refusal(
    method: str, scheme: str, headers: Iterable[tuple[bytes, bytes]], *, hosts: frozenset[str]
) -> Refusal | None:
    """Return why a request for the service's own page is refused, None for one that may pass.

    A form must carry its origin, as all browsers send it, so a foreign page's form changes nothing. A proxy
    in front may have terminated TLS. From another site only a link may lead here (see `is_from_elsewhere`).
    """
    given = _given(headers)
    host, origin = _values(given, b"host"), _values(given, b"origin")
    if refused := _of_host(host, hosts):
        return refused
    if any(each not in _own_origins(scheme, host[0]) for each in origin):
        return Refusal(status=403, words="a page of another origin asks; use the service's own page")
    if not is_from_elsewhere(method, given) and (refused := _of_site(_values(given, b"sec-fetch-site"))):
        return refused
    if method in _SAFE_METHODS:
        return None
    if len(origin) != 1:
        return Refusal(status=403, words="the form does not say its origin; use a browser of today")
    if _values(given, b"content-type") != ["application/x-www-form-urlencoded"]:
        return Refusal(status=415, words="the body is not a form of this page")
    return None


def is_from_elsewhere(method: str, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a person followed a link on another site; browsers then send no `Strict` cookie."""
    given = _given(headers)
    return (
        method == "GET"
        and _values(given, b"sec-fetch-site") in (["cross-site"], ["same-site"])
        and _values(given, b"sec-fetch-mode") == ["navigate"]
        and _values(given, b"sec-fetch-dest") == ["document"]
    )


def _own_origins(scheme: str, host: str) -> tuple[str, ...]:
    return (f"{scheme}://{host.lower()}", f"https://{host.lower()}")


def _given(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower(), value.strip(b" \t")) for name, value in headers]


def _values(given: Iterable[tuple[bytes, bytes]], header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in given if name == header]


def _with_port(host: str, port: int | None) -> str:
    return host if port in (None, _DEFAULT_PORTS["http"]) else f"{host}:{port}"


def _of_host(found: list[str], hosts: frozenset[str]) -> Refusal | None:
    if len(found) == 1 and found[0].lower() in hosts:
        return None
    return Refusal(
        status=403,
        words="the Host header names no host of this service; use its own address, "
        "or allow the name: farm serve --allow-host NAME",
    )


def _of_origin(found: list[str], scheme: str, host: list[str]) -> Refusal | None:
    own = f"{scheme}://{host[0].lower()}"
    if all(origin == own for origin in found):
        return None
    return Refusal(status=403, words="a page of another origin asks; the service answers no web page")


def _of_site(found: list[str]) -> Refusal | None:
    if all(site in _SAFE_SITES for site in found):
        return None
    return Refusal(status=403, words="a page of another site asks; the service answers no web page")


def _of_type(found: list[str], method: str) -> Refusal | None:
    if method in _SAFE_METHODS or (len(found) == 1 and _JSON.fullmatch(found[0])):
        return None
    return Refusal(status=415, words="the body is not JSON; send it with Content-Type: application/json")
