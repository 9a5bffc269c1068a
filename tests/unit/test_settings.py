"""Settings: what the environment may say, and what is answered when it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from farm.errors import SettingsError
from farm.settings import VARIABLES, Settings, redacted, sqlalchemy_url

SERVERS = {
    "FARM_DATABASE_URL": "postgresql://u:secret@db/farm",
    "FARM_BROKER_URL": "redis://:secret@mq:6379/0",
}


def test_an_empty_environment_gives_the_farms_own_servers_and_the_documented_defaults():
    settings = Settings.load({})
    assert (settings.database_url, settings.broker_url, settings.environments) == (None, None, None)
    assert (settings.environment, settings.servers, settings.log_level) == ("core", "auto", "info")
    assert (settings.idle_minutes, settings.lease_seconds, settings.memory_mib) == (10.0, 20.0, 4096)
    assert (settings.way, settings.images) == ("forked", None)
    assert (settings.isolation, settings.cgroup) == (None, None)
    assert settings.concurrency >= 1


def test_an_empty_variable_counts_as_not_set():
    assert Settings.load(dict.fromkeys(VARIABLES, "")) == Settings.load({})


def test_variables_of_others_and_of_the_test_suite_are_not_read():
    assert Settings.load({"FARMER": "x", "HOME": "/x", "FARM_TEST_SERVERS": "x"}) == Settings.load({})


#: What Kubernetes puts into each container beside services called `farm`, `farm-postgres` and `farm-metrics`.
OF_KUBERNETES = {
    "FARM_SERVICE_HOST": "10.96.0.7",
    "FARM_SERVICE_PORT": "8080",
    "FARM_SERVICE_PORT_HTTP_API": "8080",
    "FARM_PORT": "tcp://10.96.0.7:8080",
    "FARM_PORT_8080_TCP": "tcp://10.96.0.7:8080",
    "FARM_PORT_8080_TCP_PROTO": "tcp",
    "FARM_PORT_8080_TCP_PORT": "8080",
    "FARM_PORT_8080_TCP_ADDR": "10.96.0.7",
    "FARM_POSTGRES_SERVICE_HOST": "fd00::7",
    "FARM_POSTGRES_SERVICE_PORT": "5432",
    "FARM_POSTGRES_PORT": "tcp://[fd00::7]:5432",
    "FARM_POSTGRES_PORT_5432_TCP": "tcp://[fd00::7]:5432",
    "FARM_POSTGRES_PORT_5432_TCP_ADDR": "fd00::7",
    "FARM_METRICS_PORT_9_UDP": "udp://10.96.0.9:9",
    "FARM_METRICS_PORT_9_UDP_PROTO": "udp",
    "FARM_METRICS_PORT_9_SCTP_PORT": "9",
}


def test_the_variables_that_kubernetes_makes_of_a_service_are_not_the_farms():
    assert Settings.load(OF_KUBERNETES) == Settings.load({})


@pytest.mark.parametrize(
    "name",
    [
        *("FARM_PORTS", "FARM_HOST", "FARM_SERVICE", "FARM_SERVICE_HOSTS", "FARM_SERVICE_PORTS"),
        *(
            "FARM_PORT_TCP",
            "FARM_PORT_80_HTTP",
            "FARM_PORT_80_TCP_HOST",
            "FARM__SERVICE_HOST",
            "FARM_postgres_PORT",
        ),
    ],
)
def test_what_only_looks_like_a_variable_of_kubernetes_is_refused_with_a_suggestion(name: str):
    with pytest.raises(SettingsError, match=f"^{name}: .*did you mean FARM_"):
        Settings.load({name: "tcp://10.96.0.7:80"})


def test_a_port_that_somebody_sets_is_refused_with_a_suggestion():
    with pytest.raises(SettingsError, match=r"^FARM_PORT: .*did you mean FARM_"):
        Settings.load({"FARM_PORT": "8080"})


def test_every_variable_is_read():
    settings = Settings.load(
        SERVERS
        | {
            "FARM_HOME": "/srv/farm",
            "FARM_ENVIRONMENTS": "/etc/farm/environments.toml",
            "FARM_ENVIRONMENT": "mathlib",
            "FARM_SERVERS": "system",
            "FARM_IDLE_MINUTES": "0.02",
            "FARM_CONCURRENCY": "7",
            "FARM_MEMORY_MIB": "2048",
            "FARM_WAY": "Cold",
            "FARM_IMAGES": "5",
            "FARM_IMAGES_MIB": "3000",
            "FARM_ISOLATION": "cgroup2+Bwrap",
            "FARM_CGROUP": "/sys/fs/cgroup/farm",
            "FARM_LEASE_SECONDS": "2.5",
            "FARM_GRACE_SECONDS": "45",
            "FARM_ATTEMPTS": "5",
            "FARM_QUEUE_LIMIT": "1000",
            "FARM_MOST_SECONDS": "90",
            "FARM_LOG_LEVEL": "DEBUG",
            "FARM_LOG_FORMAT": "JSON",
            "FARM_METRICS_PORT": "9700",
            "FARM_METRICS_ADDRESS": "0.0.0.0",
        }
    )
    assert settings == Settings(
        home=Path("/srv/farm"),
        database_url="postgresql+psycopg://u:secret@db/farm",
        broker_url="redis://:secret@mq:6379/0",
        environments=Path("/etc/farm/environments.toml"),
        environment="mathlib",
        servers="system",
        idle_minutes=0.02,
        concurrency=7,
        memory_mib=2048,
        way="cold",
        images=5,
        images_mib=3000,
        isolation="cgroup2+bwrap",
        cgroup=Path("/sys/fs/cgroup/farm"),
        lease_seconds=2.5,
        grace_seconds=45.0,
        attempts=5,
        queue_limit=1000,
        most_seconds=90.0,
        log_level="debug",
        log_format="json",
        metrics_port=9700,
        metrics_address="0.0.0.0",
    )


def test_the_home_becomes_an_absolute_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    assert Settings.load({"FARM_HOME": "data"}).home == tmp_path / "data"


def test_the_home_follows_the_users_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Settings.load({}).home == tmp_path / "farm"


def test_a_url_may_stand_in_a_file(tmp_path: Path):
    secret = tmp_path / "database"
    secret.write_text("postgresql://u:secret@db/farm\n")
    settings = Settings.load({"FARM_DATABASE_URL_FILE": str(secret), "FARM_BROKER_URL": "redis://mq/0"})
    assert settings.database_url == "postgresql+psycopg://u:secret@db/farm"


@pytest.mark.parametrize(
    ("environ", "words"),
    [
        ({"FARM_CONCURENCY": "2"}, ["FARM_CONCURENCY", "did you mean FARM_CONCURRENCY"]),
        ({"FARM_DATABASE_URI": "x"}, ["FARM_DATABASE_URI", "did you mean FARM_DATABASE_URL"]),
        ({"FARM_IDLE_MINUTES": "soon"}, ["FARM_IDLE_MINUTES='soon'", "a number above 0"]),
        ({"FARM_IDLE_MINUTES": "0"}, ["FARM_IDLE_MINUTES='0'", "above 0"]),
        ({"FARM_LEASE_SECONDS": "inf"}, ["FARM_LEASE_SECONDS='inf'", "above 0"]),
        ({"FARM_LEASE_SECONDS": "nan"}, ["FARM_LEASE_SECONDS='nan'", "above 0"]),
        ({"FARM_CONCURRENCY": "-1"}, ["FARM_CONCURRENCY='-1'", "whole number above 0"]),
        ({"FARM_MEMORY_MIB": "4GB"}, ["FARM_MEMORY_MIB='4GB'", "whole number above 0"]),
        ({"FARM_LOG_LEVEL": "loud"}, ["FARM_LOG_LEVEL='loud'", "debug", "error"]),
        ({"FARM_WAY": "warm"}, ["FARM_WAY='warm'", "forked, prepared, cold"]),
        ({"FARM_IMAGES": "0"}, ["FARM_IMAGES='0'", "whole number above 0"]),
        ({"FARM_IMAGES_MIB": "8G"}, ["FARM_IMAGES_MIB='8G'", "whole number above 0"]),
        (
            {"FARM_ISOLATION": "docker"},
            ["FARM_ISOLATION='docker'", "rlimit, landlock, bwrap", "such as cgroup+bwrap"],
        ),
        ({"FARM_ISOLATION": "cgroup2,bwrap"}, ["FARM_ISOLATION='cgroup2,bwrap'", 'joined by "+"']),
        ({"FARM_ISOLATION": "bwrap+"}, ["FARM_ISOLATION='bwrap+'", 'joined by "+"']),
        (
            {"FARM_CGROUP": "system.slice/farm"},
            ["FARM_CGROUP='system.slice/farm'", "the absolute path of a cgroup"],
        ),
        ({"FARM_METRICS_PORT": "http"}, ["FARM_METRICS_PORT='http'", "a port from 0 to 65535"]),
        ({"FARM_METRICS_PORT": "65536"}, ["FARM_METRICS_PORT='65536'", "a port from 0 to 65535"]),
        ({"FARM_SERVERS": "docker"}, ["FARM_SERVERS='docker'", "auto, wheels, system"]),
        ({"FARM_DATABASE_URL": "postgresql://db/farm"}, ["FARM_BROKER_URL is not", "set both"]),
        ({"FARM_BROKER_URL": "redis://mq/0"}, ["FARM_DATABASE_URL is not", "set both"]),
        ({"FARM_DATABASE_URL": "mysql://db/farm"}, ["FARM_DATABASE_URL='mysql://db/farm'", "postgresql://"]),
        (SERVERS | {"FARM_BROKER_URL": "amqp://mq"}, ["FARM_BROKER_URL='amqp://mq'", "redis://"]),
        (SERVERS | {"FARM_BROKER_URL_FILE": "/x"}, ["FARM_BROKER_URL and FARM_BROKER_URL_FILE", "unset one"]),
        ({"FARM_DATABASE_URL_FILE": "/no/such"}, ["FARM_DATABASE_URL_FILE='/no/such'", "cannot be read"]),
        ({"FARM_DATABASE_URL_FILE": "/dev/null"}, ["FARM_DATABASE_URL_FILE='/dev/null'", "is empty"]),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name_with_the_remedy(
    environ: dict[str, str], words: list[str]
):
    with pytest.raises(SettingsError) as refusal:
        Settings.load(environ)
    assert [word for word in words if word not in str(refusal.value)] == []


def test_a_refused_url_does_not_show_its_password():
    with pytest.raises(SettingsError) as refusal:
        Settings.load({"FARM_DATABASE_URL": "mysql://u:secret@db/farm"})
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@db/farm", "postgresql://u:***@db/farm"),
        ("postgresql://u:se@cr:et/@db/farm", "postgresql://u:***@db/farm"),
        ("redis://:secret@mq:6379/0", "redis://:***@mq:6379/0"),
        ("postgresql://db/farm?user=u&password=secret&x=1", "postgresql://db/farm?user=u&password=***&x=1"),
        ("postgresql://db/farm?sslpassword=secret", "postgresql://db/farm?sslpassword=***"),
        ("postgresql://db:5432/farm", "postgresql://db:5432/farm"),
        ("redis+socket:///run/valkey.sock?virtual_host=0", "redis+socket:///run/valkey.sock?virtual_host=0"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str):
    assert redacted(url) == shown


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_sqlalchemy_is_told_the_driver(scheme: str):
    assert sqlalchemy_url(f"{scheme}://u@db/farm") == "postgresql+psycopg://u@db/farm"
