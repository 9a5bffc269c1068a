"""The command `farm db roles`: makes the roles of the database, and writes or prints their passwords."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from farm.cli.options import AsJson, print_json
from farm.connections import Connections
from farm.errors import RoleRefused, UsageError
from farm.settings import database_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from farm.store.rights import Role
    from farm.store.roles import Made


#: The commands that need another role than `farm_submitter`.
_NEEDED = {
    **dict.fromkeys(("db upgrade", "keys", "prune", "environments declare"), "farm_owner"),
    "worker": "farm_worker",
    **dict.fromkeys(("serve", "metrics"), "farm_service"),
}


def remedy(error: RoleRefused, arguments: Sequence[str]) -> str:
    """Return a sentence that names the role a command needs, "" if PostgreSQL refused that very role."""
    words = [word for word in arguments if not word.startswith("-")]
    found = [_NEEDED[name] for name in (" ".join(words[:2]), " ".join(words[:1])) if name in _NEEDED]
    role = found[0] if found else "farm_submitter"
    if error.role == role:
        return ""
    command = f"farm {words[0]}" if words else "this command"
    return f" `{command}` needs the role {role}: name its URL in FARM_DATABASE_URL"


def add_to(database: typer.Typer) -> None:
    """Add this module's command to `farm db`."""
    example = "Example: farm db roles --admin-url postgresql://postgres@db.example/farm --passwords passwords"
    database.command("roles", epilog=example)(db_roles)


def db_roles(
    admin_url: Annotated[
        str | None,
        Option(help="URL of an administrator who may create roles; without, the farm's own database."),
    ] = None,
    passwords: Annotated[
        Path | None,
        Option(help="Folder with a file for each role's password; a missing file is made with a random one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make the database's roles, one for each part of the farm, and give each the rights that it needs.

    To change a password, remove its file and type this again. Without a folder each new role gets a random
    password, which is printed once, and the others keep theirs.
    """
    from farm.cli import terminal
    from farm.store.rights import Role
    from farm.store.roles import make_roles

    url = Connections.here().urls[0] if admin_url is None else database_url("--admin-url", admin_url)
    kept = {} if passwords is None else {role: _kept(passwords / role) for role in Role}
    random = {role: secrets.token_hex(24) for role in Role}
    made = make_roles(url, passwords=kept, new_passwords=random)
    shown = {} if kept else {role: random[role] for role in Role if role in made.new}
    if as_json:
        print_json(**_facts(made, shown))
        return
    for role, password in shown.items():
        typer.echo(f"{role}\t{password}")
    words = f"{len(made.new)} new" if made.new else "none of them new"
    where = f"; their passwords are in {passwords}" if kept else ""
    terminal.say(f"The roles {', '.join(Role)} have their rights, {words}{where}")
    if shown:
        terminal.say("Keep the passwords above: no command shows them again")
    for line in _remarks(made):
        terminal.say(line)


def _facts(made: Made, shown: Mapping[Role, str]) -> dict[str, object]:
    return {
        "new": sorted(made.new),
        "passwords": dict(shown),
        "owners_before": list(made.owners_before),
        "has_tables": made.has_tables,
    }


def _remarks(made: Made) -> list[str]:
    from farm.store.rights import Role

    remarks = [
        f"The role {name} owned the tables, and is now a member of {Role.OWNER}, so that what runs goes on; "
        f"when each part uses its own role: REVOKE {Role.OWNER} FROM {name}"
        for name in made.owners_before
    ]
    if not made.has_tables:
        remarks.append(f"Now make the tables, as {Role.OWNER}, who gives the rights on them: farm db upgrade")
    return remarks


def _kept(path: Path) -> str:
    """Return the password in a file, which is made with a random one where there is none."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(f"{secrets.token_hex(24)}\n")
        password = path.read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"--passwords {path}: cannot be read or written ({error}); name a folder of yours"
        ) from error
    if not password:
        raise UsageError(f"--passwords {path}: the first line is empty; write the password there")
    return password
