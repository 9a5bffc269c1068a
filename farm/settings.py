"""The farm's settings: every `FARM_*` variable, read once, checked, and never printed with its password.

A setting is declared once, as a field of `Settings`: from that, `make settings` writes the table in the
documentation, the chart's schema and the comments of systemd's settings file.
"""

from __future__ import annotations

import difflib
import enum
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import platformdirs

from farm import allotment
from farm.errors import SettingsError

T = TypeVar("T")

#: Failed attempts of the farm itself after which a check ends as `judge_error`.
ATTEMPTS = 3
#: The ways to run Lean.
WAYS = ("forked", "prepared", "cold")
_LAST_PORT = 65535
_RESERVED = "FARM_TEST_"  # the test suite's own
# The variables that Kubernetes sets in every container for a service called `farm` or `farm-something`:
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_OF_KUBERNETES = re.compile(
    r"""FARM(_[A-Z0-9]+)*?_(
        SERVICE_HOST=.* | SERVICE_PORT(_[A-Z0-9]+)*=\d+
        | PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://.* | PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR)=.*
    )""",
    re.VERBOSE | re.ASCII,
)
_DATABASE_SCHEMES = ("postgresql+psycopg", "postgresql", "postgres")
_BROKER_SCHEMES = ("redis", "rediss", "redis+socket")
_ISOLATIONS = ("rlimit", "landlock", "bwrap", "cgroup", "cgroup1", "cgroup2")


class SettingReader(enum.Flag):
    """The processes that read a setting."""

    COMMANDS = enum.auto()
    SERVICE = enum.auto()
    #: `farm worker`, and the commands that check on this machine.
    WORKER = enum.auto()
    #: A program that uses `farm.client`.
    CLIENT = enum.auto()


COMMANDS, SERVICE, WORKER, CLIENT = SettingReader
ALL = COMMANDS | SERVICE | WORKER


@dataclass(frozen=True, slots=True)
class Variable:
    """A `FARM_*` variable: its readers, its meaning and its default as the documentation gives them.

    The Helm chart takes a variable that is ``in_chart`` from its values; it sets the others itself, or
    not at all.
    """

    readers: SettingReader
    meaning: str
    default: str = ""
    in_chart: bool = False


@dataclass(frozen=True, slots=True)
class _Setting:
    """Reads a variable; a ``secret`` may stand in a file, which the variable with `_FILE` names."""

    variable: Variable
    parse: Callable[[str, str], object]
    secret: bool


def _setting(
    parse: Callable[[str, str], T],
    unset: T | Callable[[], T],
    readers: SettingReader,
    meaning: str,
    default: str = "",
    *,
    in_chart: bool = False,
    secret: bool = False,
) -> T:
    """Declare a field.

    ``parse`` takes the variable's name and value. ``unset`` is the value without it, or computes that;
    ``default`` describes it where the value itself would not.
    """
    variable = Variable(readers, meaning, default or _shown(unset), in_chart)
    metadata = {"setting": _Setting(variable, parse, secret)}
    if callable(unset):
        return field(default_factory=unset, metadata=metadata)
    return field(default=unset, metadata=metadata)


def _shown(value: object) -> str:
    return f"`{value}`" if isinstance(value, str) else f"{value:.0f}"


def _text(_name: str, value: str) -> str:
    return value


def _path(_name: str, value: str) -> Path:
    return Path(value).expanduser().absolute()


def _choice(*choices: str) -> Callable[[str, str], str]:
    def parse(name: str, value: str) -> str:
        value = value.lower()
        if value not in choices:
            raise SettingsError(f"{name}={value!r}: must be one of {', '.join(choices)}")
        return value

    return parse


def _url(*schemes: str) -> Callable[[str, str], str]:
    def parse(name: str, value: str) -> str:
        if value.partition("://")[0] in schemes:
            return value
        raise SettingsError(
            f"{name}={redacted(value)!r}: must begin with {' or '.join(f'{s}://' for s in schemes)}"
        )

    return parse


def database_url(name: str, value: str) -> str:
    """Return a URL of PostgreSQL in SQLAlchemy's form; raises `SettingsError`, which calls it `name`."""
    return sqlalchemy_url(_url(*_DATABASE_SCHEMES)(name, value))


def _isolation(name: str, value: str) -> str:
    value = value.lower()
    if not set(value.split("+")) <= set(_ISOLATIONS):
        raise SettingsError(
            f'{name}={value!r}: must consist of {", ".join(_ISOLATIONS)}, joined by "+", such as cgroup+bwrap'
        )
    return value


def _cgroup(name: str, value: str) -> Path:
    if not Path(value).is_absolute():
        raise SettingsError(
            f"{name}={value!r}: must be the absolute path of a cgroup, such as /sys/fs/cgroup/farm.service"
        )
    return Path(value)


def _number(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise SettingsError(f"{name}={value!r}: must be a number above 0, such as 20")
    return number


def _count(name: str, value: str) -> int:
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", value, flags=re.ASCII):
        raise SettingsError(f"{name}={value!r}: must be a whole number above 0, such as 4")
    return int(value)


def _port(name: str, value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", value, flags=re.ASCII) or int(value) > _LAST_PORT:
        raise SettingsError(f"{name}={value!r}: must be a port from 0 to {_LAST_PORT}, such as 9700")
    return int(value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of one process; the field `name` is read from the variable `FARM_NAME`.

    ``database_url`` is in SQLAlchemy's form and ``broker_url`` in Celery's; both are None when the farm is to
    use its own servers. ``environments`` is None when the file in the home is to be read, ``isolation`` when
    each caller has a default of its own, ``cgroup`` when the process's own one is to be used.
    """

    # fmt: off
    home: Path = _setting(
        _path, lambda: Path(platformdirs.user_data_dir("farm")), ALL,
        "folder for the farm's data: its own servers, caches, `farm.toml`", "`~/.local/share/farm`")
    database_url: str | None = _setting(
        database_url, None, ALL, "PostgreSQL 15 or newer, as `postgresql://user:password@host/name`",
        "the farm's own", secret=True)
    broker_url: str | None = _setting(
        _url(*_BROKER_SCHEMES), None, ALL, "Redis 7 or Valkey, as `redis://:password@host/0`",
        "the farm's own", secret=True)
    environments: Path | None = _setting(
        _path, None, WORKER, "TOML file with this machine's Lean environments",
        "`farm.toml` in `FARM_HOME`, if it exists")
    environment: str = _setting(_text, "core", COMMANDS | SERVICE, "environment of lines that name none")
    servers: str = _setting(
        _choice("auto", "wheels", "system"), "auto", COMMANDS | SERVICE,
        "source of the farm's own servers: `auto`, `wheels`, `system`")
    idle_minutes: float = _setting(
        _number, 10.0, COMMANDS | SERVICE, "idle minutes after which the farm's own servers stop")
    concurrency: int = _setting(
        _count, allotment.cores, WORKER, "checks that a worker runs at once",
        "the CPUs it may use (by affinity, control groups, Slurm)")
    memory_mib: int = _setting(_count, 4096, COMMANDS | SERVICE, "memory limit of one check")
    way: str = _setting(
        _choice(*WAYS), WAYS[0], WORKER, "how a worker runs Lean: `forked`, `prepared`, `cold`; "
        "an unavailable way falls back to the next", in_chart=True)
    images: int | None = _setting(
        _count, None, WORKER, "maximum number of images in a worker, of headers and of contexts, "
        "which take two each; each has private memory besides the modules it maps",
        "`FARM_CONCURRENCY` + 2", in_chart=True)
    images_mib: int = _setting(
        _count, lambda: max(1, allotment.memory_mib() // 2), WORKER,
        "maximum private memory of all images together",
        "half of the memory it may use (by the machine, control groups, Slurm)")
    isolation: str | None = _setting(
        _isolation, None, WORKER,
        "minimum isolation: `rlimit` (any), `landlock`, `bwrap`, `cgroup`, `cgroup1`, `cgroup2`, or some "
        "joined by `+`", "`landlock` for `farm worker`, else any")
    cgroup: Path | None = _setting(
        _cgroup, None, WORKER, "folder of a cgroup delegated to the worker; an unusable one is an error",
        "the worker's own cgroup, where usable", in_chart=True)
    lease_seconds: float = _setting(
        _number, 20.0, ALL, "seconds of silence after which a worker's checks go to another", in_chart=True)
    grace_seconds: float = _setting(
        _number, 30.0, WORKER, "seconds that a stopping worker lets its running checks continue",
        "30; 5 for the farm's own worker")
    attempts: int = _setting(
        _count, ATTEMPTS, ALL, "failed attempts after which a check ends as `judge_error`", in_chart=True)
    queue_limit: int = _setting(
        _count, 10_000_000, COMMANDS | SERVICE,
        "maximum number of waiting checks; a submit that exceeds it is refused", in_chart=True)
    most_seconds: float = _setting(
        _number, 600.0, SERVICE, "longest timeout in seconds that a key of the HTTP service may ask for, "
        "unless the key may more", in_chart=True)
    log_level: str = _setting(
        _choice("debug", "info", "warning", "error"), "info", ALL, "`debug`, `info`, `warning`, `error`",
        in_chart=True)
    log_format: str = _setting(
        _choice("text", "json"), "text", ALL, "how logs are written: `text`, or `json`, one object a line",
        in_chart=True)
    metrics_port: int | None = _setting(
        _port, None, WORKER, "port on which a worker serves metrics; 0 takes a free one", "none: no metrics")
    metrics_address: str = _setting(
        _text, "127.0.0.1", WORKER, "address on which it serves them; whoever reaches it may read them")
    # fmt: on

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Return the settings in ``environ``; an empty variable counts as not set.

        Raises `SettingsError`, naming the variable, its value and the remedy.
        """
        given = {name: value for name, value in environ.items() if _is_ours(name, value)}
        _refuse_unknown(given)
        values: dict[str, object] = {}
        for each, name, setting in _declared():
            value = _secret(given, name) if setting.secret else given.get(name)
            if value is not None:
                values[each] = setting.parse(name, value)
        _refuse_half(values)
        return cls(**values)  # type: ignore[arg-type]  # each parser returns its field's type


def _declared() -> list[tuple[str, str, _Setting]]:
    return [(each.name, f"FARM_{each.name.upper()}", each.metadata["setting"]) for each in fields(Settings)]


def _variables() -> Mapping[str, Variable]:
    found = {}
    for _, name, setting in _declared():
        found[name] = setting.variable
        if setting.secret:
            found[f"{name}_FILE"] = Variable(setting.variable.readers, f"file that contains `{name}`")
    return MappingProxyType(found | _OF_THE_CLIENT)


# `farm.client` reads these itself: it imports nothing else of the farm.
_OF_THE_CLIENT = {
    "FARM_URL": Variable(
        CLIENT,
        "address of a farm's HTTP service, for `farm.client`: "
        "`https://farm.example` or `unix:/run/farm.sock`",
        "the service on this machine",
    ),
    "FARM_TOKEN": Variable(
        CLIENT, "token that `farm.client` shows to the service", "the one that `farm serve` made"
    ),
    "FARM_TOKEN_FILE": Variable(CLIENT, "file that contains `FARM_TOKEN`, read anew for each request"),
}

#: Every variable the farm reads; anything else that starts with `FARM_` is an error.
VARIABLES = _variables()


def redacted(url: str) -> str:
    """Return a URL without its password, fit to be shown.

    The password may stand before the host or among the parameters.
    """
    url = re.sub(r"([?&]\w*password=)[^&]*", r"\1***", url, flags=re.IGNORECASE)
    return re.sub(r"(://[^:/@?]*):.*@", r"\1:***@", url)


def sqlalchemy_url(url: str) -> str:
    """Return a `postgresql://` URL with the driver that SQLAlchemy is to use named in it."""
    return "postgresql+psycopg://" + url.partition("://")[2]


def _is_ours(name: str, value: str) -> bool:
    """Whether the variable is for the farm; Kubernetes sets FARM_METRICS_PORT for a service."""
    return name.startswith("FARM_") and bool(value) and not _OF_KUBERNETES.fullmatch(f"{name}={value}")


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for name in given:
        if name in VARIABLES or name.startswith(_RESERVED):
            continue
        close = difflib.get_close_matches(name, VARIABLES, n=1, cutoff=0.0)[0]
        raise SettingsError(f"{name}: unknown variable; did you mean {close}? Otherwise unset it")


def _refuse_half(values: Mapping[str, object]) -> None:
    found = [f"FARM_{name.upper()}" for name in ("database_url", "broker_url") if name in values]
    if len(found) == 1:
        missing = "FARM_BROKER_URL" if found == ["FARM_DATABASE_URL"] else "FARM_DATABASE_URL"
        raise SettingsError(
            f"{found[0]} is set, but {missing} is not; set both, or neither to use the farm's own servers"
        )


def _secret(given: Mapping[str, str], name: str) -> str | None:
    file = f"{name}_FILE"
    if file not in given:
        return given.get(name)
    if name in given:
        raise SettingsError(f"{name} and {file} are both set; unset one of them")
    try:
        text = Path(given[file]).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}={given[file]!r}: cannot be read ({error}); name a text file") from error
    if not text:
        raise SettingsError(f"{file}={given[file]!r}: the file is empty; write the URL into it")
    return text
