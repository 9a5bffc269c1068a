"""The commands that serve the farm: over HTTP, and to language models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from farm.cli.flags import spread
from farm.connections import Connections
from farm.errors import UsageError
from farm.extras import remedy


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    app.command(epilog="Example: farm serve --port 8700")(spread(serve))
    app.command(epilog="Example: farm mcp --http 127.0.0.1:8701")(mcp)


@dataclass(frozen=True, kw_only=True, slots=True)
class AddressFlags:
    """The address of the service, and the names under which clients reach it."""

    host: Annotated[str, Option(help="Address to listen on; one that others reach needs keys.")] = "127.0.0.1"
    port: Annotated[int, Option(help="Port to listen on; 0 takes a free one.", min=0, max=65535)] = 8700
    uds: Annotated[
        Path | None, Option(help="Unix socket to listen on instead, for this user's programs only.")
    ] = None
    allow_host: Annotated[
        list[str] | None, Option(help="Name by which clients reach the service; can be given several times.")
    ] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TlsFlags:
    """The certificate and key of HTTPS, or none for HTTP. Raises `UsageError` for one without the other."""

    tls_certificate: Annotated[Path | None, Option(help="Certificate chain in PEM, for HTTPS.")] = None
    tls_key: Annotated[Path | None, Option(help="Private key of the certificate in PEM.")] = None

    def __post_init__(self) -> None:
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise UsageError("give both --tls-certificate and --tls-key, or neither")


def serve(
    *,
    address: AddressFlags,
    token: Annotated[
        bool,
        Option(
            help="Demand a token; without, every user of this machine may ask. Only on a loopback address."
        ),
    ] = True,
    body_mib: Annotated[int, Option(help="Maximum size of a request in MiB.", min=1, max=4096)] = 64,
    page_key: Annotated[
        list[str] | None,
        Option(help="Key that sees the runs of farm submit on the page; can be given several times."),
    ] = None,
    tls: TlsFlags,
) -> None:
    """Serve the farm over HTTP: batches in, verdicts and rewards out. docs/use/http.md says how."""
    from farm import log
    from farm.cli import terminal
    from farm.service.backend import THREADS
    from farm.service.server import Listening, run

    where = Listening(
        host=address.host,
        port=address.port,
        uds=address.uds,
        names=tuple(address.allow_host or ()),
        body_mib=body_mib,
        needs_token=token,
        certificate=tls.tls_certificate,
        private_key=tls.tls_key,
        page_keys=tuple(page_key or ()),
    )
    connections = Connections.here(threads=THREADS + 2)
    log.configure(connections.settings.log_level, connections.settings.log_format)
    with terminal.busy("Preparing the farm"):
        connections.environments()
    # Logs are kept and read by others, so they never contain the token.
    run(connections, where, say=terminal.say, tells_token=not log.is_json())


def mcp(
    *,
    http: Annotated[
        str | None,
        Option(
            metavar="HOST:PORT",
            help="Serve over HTTP at this address, to clients with a key; the host is 127.0.0.1 if left out.",
        ),
    ] = None,
    skill: Annotated[bool, Option("--skill", help="Print the skill file for agents, and end.")] = False,
) -> None:
    """Offer a served farm to language models, as an MCP server on stdin and stdout or over HTTP."""
    from farm.agents import pages

    if skill:
        if http is not None:
            raise UsageError("--skill prints a file and serves nothing; leave --http out")
        typer.echo(pages.skill(), nl=False)
        return
    where = None if http is None else _place(http)
    try:
        from farm.agents.server import run as offer
    except ModuleNotFoundError as error:
        raise UsageError(remedy(error)) from error
    from farm.client import NoService

    try:
        offer() if where is None else _offer_over_http(*where)
    except NoService as error:
        raise UsageError(str(error)) from error


def _place(text: str) -> tuple[str, int]:
    """Return the host and the port in the words of `--http`. Raises UsageError."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise UsageError(f"--http {text}: give an address with a port, such as 127.0.0.1:8701")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def _offer_over_http(host: str, port: int) -> None:
    from farm.agents import over_http
    from farm.cli import terminal

    try:
        bound = over_http.bound_to(host, port)
    except OSError as error:
        raise UsageError(f"--http {host}:{port}: {error.strerror or error}; give another address") from error
    with bound:
        shown = f"[{host}]" if ":" in host else host
        terminal.say(
            f"Listening on http://{shown}:{bound.getsockname()[1]}{over_http.PATH}; clients send a key: "
            "Authorization: Bearer KEY"
        )
        over_http.serve(bound)
