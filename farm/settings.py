"""The farm's settings: every `FARM_*` variable, read once, checked, and never printed with its password."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import platformdirs

from farm import allotment
from farm.errors import SettingsError

#: Every variable of the farm, with its meaning; any other name that starts with `FARM_` is an error.
VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "FARM_HOME": "data folder of the farm's own servers; by default the user's data folder",
        "FARM_DATABASE_URL": "PostgreSQL, as postgresql://user:password@host/name; by default the farm's own",
        "FARM_DATABASE_URL_FILE": "file that contains FARM_DATABASE_URL",
        "FARM_BROKER_URL": "Redis or Valkey, as redis://:password@host/0; by default the farm's own",
        "FARM_BROKER_URL_FILE": "file that contains FARM_BROKER_URL",
        "FARM_ENVIRONMENTS": "TOML file with this machine's Lean environments (FARM_HOME/farm.toml)",
        "FARM_ENVIRONMENT": "environment of lines that name none (core)",
        "FARM_SERVERS": "source of the farm's own servers: auto, wheels or system (auto)",
        "FARM_IDLE_MINUTES": "idle minutes after which the farm's own servers stop (10)",
        "FARM_CONCURRENCY": "checks a worker runs at once (the CPUs it may use)",
        "FARM_MEMORY_MIB": "memory limit of one check in MiB (4096)",
        "FARM_WAY": "how a worker runs Lean: forked, snapshot or cold (forked)",
        "FARM_IMAGES": "maximum number of images in a worker (FARM_CONCURRENCY + 2)",
        "FARM_IMAGES_MIB": "maximum private memory of all images in MiB (half of the machine's)",
        "FARM_SNAPSHOT_MIB": "maximum disk space of header snapshots in MiB (8192)",
        "FARM_ISOLATION": "minimum isolation, such as cgroup+bwrap or rlimit (a worker: bwrap)",
        "FARM_CGROUP": "folder of a cgroup delegated to the worker; by default its own",
        "FARM_LEASE_SECONDS": "seconds of silence after which a worker's checks go to another (20)",
        "FARM_GRACE_SECONDS": "seconds that a stopping worker lets its running checks continue (30)",
        "FARM_ATTEMPTS": "failed attempts after which a check ends as judge_error (3)",
        "FARM_QUEUE_LIMIT": "maximum number of waiting checks; a submit beyond it is refused (10000000)",
        "FARM_MOST_SECONDS": "longest timeout that a key of the HTTP service may ask for, in seconds (600)",
        "FARM_URL": "address of a farm's HTTP service, for farm.client; by default this machine's",
        "FARM_TOKEN": "token that farm.client shows to the service",
        "FARM_TOKEN_FILE": "file that contains FARM_TOKEN; read again for each request",
        "FARM_LOG_LEVEL": "debug, info, warning or error (info)",
        "FARM_LOG_FORMAT": "how logs are written: text, or json, one object a line (text)",
        "FARM_METRICS_PORT": "port on which a worker serves metrics, 0 for a free one; by default none",
        "FARM_METRICS_ADDRESS": "address on which a worker serves metrics (127.0.0.1)",
    }
)

#: The ways to run Lean.
WAYS = ("forked", "snapshot", "cold")
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
_ISOLATIONS = ("rlimit", "bwrap", "cgroup", "cgroup1", "cgroup2")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """The settings of a process; `VARIABLES` explains each field.

    ``database_url`` is in SQLAlchemy's form and ``broker_url`` in Celery's; both are None when the farm is to
    use its own servers. ``environments`` is None when the file in the home is to be read, ``isolation`` when
    each checking process takes its default, ``cgroup`` when the process's own group is to be used.
    """

    home: Path
    database_url: str | None
    broker_url: str | None
    environments: Path | None
    environment: str
    servers: str
    idle_minutes: float
    concurrency: int
    memory_mib: int
    way: str
    images: int | None
    images_mib: int
    snapshot_mib: int
    isolation: str | None
    cgroup: Path | None
    lease_seconds: float
    grace_seconds: float
    attempts: int
    queue_limit: int
    most_seconds: float
    log_level: str
    log_format: str
    metrics_port: int | None
    metrics_address: str

    @classmethod
    def load(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Return the settings in ``environ``; an empty variable counts as not set.

        Raises `SettingsError`, naming the variable, its value and the remedy.
        """
        given = {name: value for name, value in environ.items() if _is_ours(name, value)}
        _refuse_unknown(given)
        database_url, broker_url = _urls(given)
        return cls(
            home=_path(given, "FARM_HOME") or Path(platformdirs.user_data_dir("farm")),
            database_url=database_url,
            broker_url=broker_url,
            environments=_path(given, "FARM_ENVIRONMENTS"),
            environment=given.get("FARM_ENVIRONMENT", "core"),
            servers=_choice(given, "FARM_SERVERS", ("auto", "wheels", "system")),
            idle_minutes=_number(given, "FARM_IDLE_MINUTES", 10.0),
            concurrency=_count(given, "FARM_CONCURRENCY") or allotment.cores(),
            memory_mib=_count(given, "FARM_MEMORY_MIB") or 4096,
            way=_choice(given, "FARM_WAY", WAYS),
            images=_count(given, "FARM_IMAGES"),
            images_mib=_count(given, "FARM_IMAGES_MIB") or max(1, allotment.memory_mib() // 2),
            snapshot_mib=_count(given, "FARM_SNAPSHOT_MIB") or 8192,
            isolation=_isolation(given, "FARM_ISOLATION"),
            cgroup=_cgroup(given, "FARM_CGROUP"),
            lease_seconds=_number(given, "FARM_LEASE_SECONDS", 20.0),
            grace_seconds=_number(given, "FARM_GRACE_SECONDS", 30.0),
            attempts=_count(given, "FARM_ATTEMPTS") or 3,
            queue_limit=_count(given, "FARM_QUEUE_LIMIT") or 10_000_000,
            most_seconds=_number(given, "FARM_MOST_SECONDS", 600.0),
            log_level=_choice(given, "FARM_LOG_LEVEL", ("info", "debug", "warning", "error")),
            log_format=_choice(given, "FARM_LOG_FORMAT", ("text", "json")),
            metrics_port=_port(given, "FARM_METRICS_PORT"),
            metrics_address=given.get("FARM_METRICS_ADDRESS", "127.0.0.1"),
        )


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


def _urls(given: Mapping[str, str]) -> tuple[str | None, str | None]:
    database_url = _url(given, "FARM_DATABASE_URL", _DATABASE_SCHEMES)
    broker_url = _url(given, "FARM_BROKER_URL", _BROKER_SCHEMES)
    if database_url is None and broker_url is None:
        return None, None
    if database_url is None or broker_url is None:
        found, missing = "FARM_DATABASE_URL", "FARM_BROKER_URL"
        if database_url is None:
            found, missing = missing, found
        raise SettingsError(
            f"{found} is set, but {missing} is not; set both, or neither to use the farm's own servers"
        )
    return sqlalchemy_url(database_url), broker_url


def _url(given: Mapping[str, str], name: str, schemes: tuple[str, ...]) -> str | None:
    url = _secret(given, name)
    if url is None or url.partition("://")[0] in schemes:
        return url
    raise SettingsError(
        f"{name}={redacted(url)!r}: must begin with {' or '.join(f'{s}://' for s in schemes)}"
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


def _path(given: Mapping[str, str], name: str) -> Path | None:
    return Path(given[name]).expanduser().absolute() if name in given else None


def _choice(given: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    value = given.get(name, choices[0]).lower()
    if value not in choices:
        raise SettingsError(f"{name}={value!r}: must be one of {', '.join(choices)}")
    return value


def _isolation(given: Mapping[str, str], name: str) -> str | None:
    if name not in given:
        return None
    value = given[name].lower()
    if not set(value.split("+")) <= set(_ISOLATIONS):
        raise SettingsError(
            f'{name}={value!r}: must consist of {", ".join(_ISOLATIONS)}, joined by "+", such as cgroup+bwrap'
        )
    return value


def _cgroup(given: Mapping[str, str], name: str) -> Path | None:
    value = given.get(name)
    if value is None:
        return None
    if not Path(value).is_absolute():
        raise SettingsError(
            f"{name}={value!r}: must be the absolute path of a cgroup, such as /sys/fs/cgroup/farm.service"
        )
    return Path(value)


def _number(given: Mapping[str, str], name: str, default: float) -> float:
    value = given.get(name, str(default))
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise SettingsError(f"{name}={value!r}: must be a number above 0, such as {default:g}")
    return number


def _count(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not re.fullmatch(r"0*[1-9][0-9]{0,8}", value, flags=re.ASCII):
        raise SettingsError(f"{name}={value!r}: must be a whole number above 0, such as 4")
    return int(value)


def _port(given: Mapping[str, str], name: str) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", value, flags=re.ASCII) or int(value) > _LAST_PORT:
        raise SettingsError(f"{name}={value!r}: must be a port from 0 to {_LAST_PORT}, such as 9700")
    return int(value)
