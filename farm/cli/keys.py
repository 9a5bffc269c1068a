"""The commands that administer the keys of the HTTP service: keys add, keys list and keys revoke."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from typer import Argument

from farm.cli.flags import KeyFlags, spread
from farm.cli.help import CommandGroup
from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import UsageError
from farm.judging.states import Priority
from farm.limits import LONGEST_TIMEOUT

# Slow imports stand in the command that needs them: `farm --help` answers at once.
if TYPE_CHECKING:
    from farm.store.keys import Key, StoredKey

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
_Number = TypeVar("_Number", int, float)

_MOST_PER_SECOND = 1e6
_MOST_IN_FLIGHT = 10_000_000
_MOST_WEIGHT = 100
#: The columns of the list.
_HEADINGS = (
    *(
        "id",
        "name",
        "scopes",
        "priorities",
        "per second",
        "in flight",
        "seconds",
        "weight",
        "added",
        "revoked",
    ),
)


def add_to(app: typer.Typer) -> None:
    """Add this module's commands to the `farm` command."""
    keys = typer.Typer(
        cls=CommandGroup,
        help="Manage the keys of the HTTP service.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    keys.command("add", epilog="Example: farm keys add trainer --scope submit --scope read")(spread(add))
    keys.command("list", epilog="Example: farm keys list")(list_keys)
    keys.command("revoke", epilog="Example: farm keys revoke trainer")(revoke)
    app.add_typer(keys, name="keys")


def add(
    name: Annotated[str, Argument(help="The key's name, such as its user's.")],
    may: KeyFlags,
    as_json: AsJson = False,
) -> None:
    """Make a key and print its token, which the farm does not store and cannot show again."""
    from farm.cli import terminal
    from farm.service.auth.tokens import ApiToken
    from farm.store.keys import Key, Keys, Scope

    token = ApiToken.new()
    key = Key(
        id=token.id,
        name=_named(name),
        scopes=frozenset(map(Scope, _chosen("--scope", may.scope, list(Scope)))),
        classes=frozenset(_chosen("--priority", may.priority, [each.name.lower() for each in Priority])),
        per_second=_limit("--per-second", may.per_second, _MOST_PER_SECOND),
        in_flight=_limit("--in-flight", may.in_flight, _MOST_IN_FLIGHT),
        most_seconds=_limit("--most-seconds", may.most_seconds, LONGEST_TIMEOUT),
        weight=_limit("--weight", may.weight, _MOST_WEIGHT) or 1,
    )
    Keys(Connections.here().engine).add(key, token.sha256)
    if as_json:
        print_json(**_facts(key), token=token.text)
    else:
        typer.echo(token.text)
    terminal.say(f"Key {key.name} ({key.id}): store its token now; it is not shown again")
    if Scope.SUBMIT not in key.scopes:
        scopes = " or ".join(sorted(key.scopes))
        terminal.say(
            f"Warning: key {key.name} may not submit, so there are no proofs that it may {scopes}: "
            "a key reads and cancels only its own batches; make one with --scope submit as well"
        )


def list_keys(as_json: AsJson = False) -> None:
    """List the keys and their rights, the oldest first; tokens are not stored."""
    from farm.cli import terminal
    from farm.store.keys import Keys

    stored = Keys(Connections.here().engine).all()
    if as_json:
        print_json(keys=[_stored_facts(each) for each in stored])
    else:
        terminal.print_cells(_HEADINGS, map(_cells, stored))


def revoke(
    which: Annotated[str, Argument(metavar="NAME|ID", help="The key's name or its id.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a key; every replica of the service refuses its token within five seconds."""
    from farm.cli import terminal
    from farm.store.keys import Keys

    stored = Keys(Connections.here().engine).revoke(which)
    terminal.say(f"Key {stored.key.name} ({stored.key.id}) is revoked")
    if as_json:
        print_json(**_stored_facts(stored))


def _named(name: str) -> str:
    from farm.service.auth.tokens import is_id

    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be a key's name; give at most 64 letters, digits and . _ @ -, "
            "a letter or a digit first"
        )
    if is_id(name):
        raise UsageError(f"{name!r} looks like a key's id; give another name")
    return name


def _chosen(option: str, given: Iterable[str] | None, known: Sequence[str]) -> Sequence[str]:
    chosen = [*dict.fromkeys(given or known)]
    for word in chosen:
        if word not in known:
            raise UsageError(f"{option} {word}: there is no such word; choose from {', '.join(known)}")
    return chosen


def _limit(option: str, value: _Number | None, most: float) -> _Number | None:
    # Not `value <= 0 or value > most`: neither is true of NaN.
    if value is not None and not 0 < value <= most:
        raise UsageError(f"{option} {value}: give a number above 0 and at most {most:.0f}")
    return value


def _facts(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "priorities": sorted(key.classes),
        "per_second": key.per_second,
        "in_flight": key.in_flight,
        "most_seconds": key.most_seconds,
        "weight": key.weight,
    }


def _stored_facts(stored: StoredKey) -> dict[str, object]:
    revoked = stored.revoked_at and stored.revoked_at.isoformat()
    return {**_facts(stored.key), "created_at": stored.created_at.isoformat(), "revoked_at": revoked}


def _cells(stored: StoredKey) -> tuple[str, ...]:
    key = stored.key
    moments = (stored.created_at, stored.revoked_at)
    return (
        key.id,
        key.name,
        ", ".join(sorted(key.scopes)),
        ", ".join(sorted(key.classes)),
        "" if key.per_second is None else f"{key.per_second:g}",
        "" if key.in_flight is None else f"{key.in_flight}",
        "" if key.most_seconds is None else f"{key.most_seconds:g}",
        f"{key.weight}",
        *("" if each is None else each.astimezone().strftime("%Y-%m-%d %H:%M:%S") for each in moments),
    )
