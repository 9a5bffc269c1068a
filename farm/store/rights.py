"""The roles of the farm's database, and the rights of each on every table, view, sequence and function.

No other list of grants exists: `farm db roles` and `farm db upgrade` give exactly these. Where a grant cannot
say which rows are meant, the triggers of the revision 0026 do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from farm.store.new_lines import JOB_COLUMNS
from farm.store.new_runs import WORK


class Role(StrEnum):
    """A login of the database; the names are the same in every database of a server."""

    OWNER = "farm_owner"
    WORKER = "farm_worker"
    SUBMITTER = "farm_submitter"
    SERVICE = "farm_service"
    READER = "farm_reader"


#: The roles that the owner is a member of: it sees their transactions, and can end them.
OWNED = tuple(role for role in Role if role is not Role.OWNER)

# A client that fell asleep in a transaction holds locks that a migration waits for.
_AWAKE = {"idle_in_transaction_session_timeout": "5min"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Traits:
    """A role's settings, how many connections it may have (-1 for any number), and temporary tables."""

    settings: Mapping[str, str] = field(default_factory=dict)
    connections: int = -1
    has_temporary_tables: bool = False


TRAITS: Mapping[Role, Traits] = MappingProxyType(
    {
        Role.OWNER: Traits(has_temporary_tables=True),
        Role.WORKER: Traits(settings=_AWAKE),
        Role.SUBMITTER: Traits(settings=_AWAKE, has_temporary_tables=True),
        Role.SERVICE: Traits(settings=_AWAKE),
        # A dashboard's query that takes longer is a mistake, and must not hold back vacuum. Its queries read
        # the lines of one run among many: an index finds them, and compiling takes longer than running.
        Role.READER: Traits(
            settings={
                "jit": "off",
                "random_page_cost": "1.1",
                "default_transaction_read_only": "on",
                "statement_timeout": "30s",
                "idle_in_transaction_session_timeout": "30s",
            },
            connections=20,
        ),
    }
)

#: The privileges of roles on one object; the owner has all. Each is written as in a GRANT.
Rights = Mapping[Role, tuple[str, ...]]


def _of(privilege: str, *columns: str) -> str:
    return f"{privilege} ({', '.join(columns)})"


_ASKING = (Role.WORKER, Role.SUBMITTER, Role.SERVICE)
_READ: Rights = dict.fromkeys(_ASKING, ("SELECT",))
_NEW_CHECK = ("id", *WORK, "turn", "status")
_NEW_LINE = _of("INSERT", *JOB_COLUMNS, "run_id", "races", "check_id", "shared")
# To lock a row, a role must have the right to change one of its columns.
_LINE = _of("UPDATE", "check_id", "shared", "cancelled")
_MOVED = _of("UPDATE", "priority", "turn")
_RUN = _of("INSERT", "id", "options", "farm_version", "deadline_at", "owner")
# Its constraint lets a digest be changed into itself only.
_TEXTS = ("SELECT", "INSERT", _of("UPDATE", "sha256"))
_FILE = ("sha256", "size", "next_sha256", "next_size")

#: The rights on each table of the farm's schema.
TABLES: Mapping[str, Rights] = MappingProxyType(
    {
        "alembic_version": _READ,
        "compatibility": _READ,
        "environments": {**_READ, Role.WORKER: ("SELECT", "INSERT", "UPDATE")},
        "workers": {**_READ, Role.WORKER: ("SELECT", "INSERT", "UPDATE", "DELETE")},
        "runs": {
            Role.WORKER: ("SELECT", _of("UPDATE", "deadline_at")),
            Role.SUBMITTER: ("SELECT", _RUN, _of("UPDATE", "cancelled_at", "deadline_at")),
            Role.SERVICE: (
                *("SELECT", _RUN, "DELETE"),
                _of("UPDATE", "cancelled_at", "deadline_at", "options"),
            ),
        },
        "manifests": {
            **_READ,
            Role.SUBMITTER: (
                "SELECT",
                _of("INSERT", "run_id", "number", "path", *_FILE),
                _of("UPDATE", *_FILE, "exported_at"),
            ),
        },
        "programs": {**_READ, Role.SUBMITTER: _TEXTS, Role.SERVICE: _TEXTS},
        "checks": {
            Role.WORKER: (
                "SELECT",
                _of("INSERT", *_NEW_CHECK),
                _of("UPDATE", "status", "attempt", "failures", "worker", "started_at", "ahead"),
                _of("UPDATE", "lease_until", "identity"),
            ),
            Role.SUBMITTER: ("SELECT", _of("INSERT", *_NEW_CHECK, "identity"), _MOVED),
            Role.SERVICE: ("SELECT", _of("INSERT", *_NEW_CHECK, "identity"), _MOVED),
        },
        "jobs": {
            Role.WORKER: ("SELECT", _LINE),
            Role.SUBMITTER: ("SELECT", _NEW_LINE, _LINE),
            Role.SERVICE: ("SELECT", _NEW_LINE, _LINE),
        },
        "item_keys": {Role.SUBMITTER: ("SELECT",), Role.SERVICE: ("SELECT", "INSERT")},
        "attempts": {**_READ, Role.WORKER: ("SELECT", "INSERT")},
        "verdicts": {**_READ, Role.WORKER: ("SELECT", "INSERT")},
        "sentences": {Role.WORKER: ("SELECT", "INSERT")},
        "api_keys": {Role.SERVICE: ("SELECT",)},
        "key_uses": {Role.SERVICE: ("SELECT", "INSERT", "UPDATE")},
        "unfinished": {Role.SERVICE: ("SELECT", "INSERT", "UPDATE", "DELETE")},
        "tallies": {
            Role.WORKER: ("SELECT", "INSERT", "DELETE"),
            Role.SUBMITTER: ("SELECT", "INSERT"),
            Role.SERVICE: ("SELECT", "INSERT"),
        },
        "submitting": {Role.SUBMITTER: ("SELECT", "INSERT", "DELETE")},
        "sweeping": {Role.WORKER: ("SELECT", "UPDATE")},
        "pruned_runs": {},
    }
)

_VIEW: Rights = dict.fromkeys((*_ASKING, Role.READER), ("SELECT",))
#: The rights on each view of the schema `report`.
VIEWS: Mapping[str, Rights] = MappingProxyType(
    dict.fromkeys(("lines", "runs", "problems", "queues"), _VIEW),
)

#: The rights on each sequence.
SEQUENCES: Mapping[str, Rights] = MappingProxyType({"checks_id_seq": dict.fromkeys(_ASKING, ("USAGE",))})

_CALL = ("EXECUTE",)
_GUARDS = ("run", "manifest", "new_lines", "lines", "cache_key", "turn", "tally")
#: The rights on each function, by its name and types; a trigger needs none.
FUNCTIONS: Mapping[str, Rights] = MappingProxyType(
    {
        "drop_idle_checks(bigint[])": dict.fromkeys(_ASKING, _CALL),
        "decide_by_text(bigint[], text[], text[], text[], text)": {
            Role.SUBMITTER: _CALL,
            Role.SERVICE: _CALL,
        },
        "take_back(bigint[], text)": {Role.WORKER: _CALL},
        "contest(bigint[])": {Role.WORKER: _CALL},
        "renew_statistics(bigint)": {Role.SUBMITTER: _CALL},
        "recorded_until()": dict.fromkeys(_ASKING, _CALL),
        **{f"guard_{what}()": {} for what in _GUARDS},
    }
)
