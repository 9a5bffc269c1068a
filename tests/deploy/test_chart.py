"""The chart, rendered by two Helms: what it makes is valid, fits together, and has no right too many."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from farm_workers.environments import configured
from helm_python.chart import lint, package

from farm.settings import VARIABLES
from farm.version import RELEASE
from tests.commands import Command
from tests.deploy.charts import (
    CASES,
    CHART,
    DEFAULTS,
    IMAGE,
    MATHLIB,
    MINIMAL,
    ROOT,
    VERSIONS,
    Object,
    Pod,
    Refused,
    at,
    by_helm3,
    by_helm4,
    faults,
    helm3,
    merged,
    named,
    objects,
    of_kind,
    pods,
    rendered,
    variables,
    worker,
)

SCHEMA = json.loads((CHART / "values.schema.json").read_text())
CUSTOM = ("ScaledObject", "TriggerAuthentication", "PodMonitor", "PrometheusRule")

#: The versions of Kubernetes from which on the chart makes something else.
CHANGES = ("1.25", "1.27", "1.30", "1.31")

every_case = pytest.mark.parametrize("case", CASES)


@every_case
def test_both_helms_find_nothing_to_complain_of(case: str) -> None:
    report = lint(CHART, CASES[case], strict=True)
    assert [each for each in report["messages"] if "icon" not in each["error"]] == []
    assert report["errors"] == []
    helm3("lint", "--strict", CHART, values=CASES[case])


@every_case
def test_both_helms_make_the_same_objects(case: str) -> None:
    assert objects(by_helm3(CASES[case])) == rendered(CASES[case])


@pytest.mark.parametrize(
    "version",
    [
        each if each in (*CHANGES, VERSIONS[-1]) else pytest.param(each, marks=pytest.mark.long)
        for each in VERSIONS
    ],
)
def test_every_object_is_valid_for_each_kubernetes(version: str) -> None:
    for each in _made_for(max(known for known in CHANGES if int(known[2:]) <= int(version[2:]))):
        if each["kind"] not in CUSTOM:
            assert kubernetes_validate.validate(each, version, strict=True) == version


@cache
def _made_for(version: str) -> list[Object]:
    """Return what the chart makes for a version of Kubernetes, without the cases of more of the same."""
    cases = [values for name, values in CASES.items() if "many" not in name]
    cases += [IMAGE] if int(version[2:]) >= 31 else []
    return [each for values in cases for each in rendered(values, version=version)]


def test_the_chart_makes_something_else_from_just_these_versions_on() -> None:
    asked = {
        version
        for path in (CHART / "templates").iterdir()
        for version in re.findall(r'semverCompare "[<>=]+(1\.\d+)-0"', path.read_text())
    }
    assert {VERSIONS[0], *asked} == {*CHANGES}


def test_every_custom_resource_is_what_its_operator_defines() -> None:
    custom = [each for values in CASES.values() for each in of_kind(rendered(values), *CUSTOM)]
    assert {each["kind"] for each in custom} == {*CUSTOM}
    assert faults(custom) == []


def test_what_checks_custom_resources_finds_what_is_wrong_and_what_is_unknown() -> None:
    (scaled,) = (
        each for each in of_kind(rendered(CASES["everything"]), "ScaledObject") if "mathlib" in str(each)
    )
    unknown = merged(scaled, {"spec": {"cooldownPeriods": 1}})
    wrong = merged(scaled, {"spec": {"triggers": [{"type": "postgresql", "metadata": {"query": 1}}]}})
    assert "cooldownPeriods" in " ".join(faults([unknown]))
    assert "query" in " ".join(faults([wrong]))


REFUSED = {
    "no image": (at("image/worker/repository", ""), "image.worker.repository is empty: "),
    "no database": (at("database/existingSecret", ""), "database.existingSecret is empty: "),
    "no broker": (at("broker/existingSecret", ""), "broker.existingSecret is empty: "),
    "no scaler": (at("scaling/enabled", True), "scaling.existingSecret is empty: "),
    "no host": (at("service/ingress/enabled", True), "service.ingress.host is empty: "),
    "no isolation": (at("isolation/level", "none"), "isolation.acceptNone=true"),
    "no control group": (at("isolation/level", "cgroup"), "set isolation.runtimeClassName"),
    "privileged for nothing": (at("isolation/privileged", True), "isolation.level=cgroup"),
    "no environment": ({"environments": {"core": None}}, "environments is empty: "),
    "no Lean": (at("environments/core/lean", {"baked": False}), "environments.core.lean must say "),
    "two Leans": (at("environments/core/lean", {"claim": "a"}), "exactly one of lean.claim"),
    "no table": (
        {"environments": {"core": {"lean": {"baked": False, "claim": "a"}}}},
        "core.table is empty: ",
    ),
    "no default": ({"environments": {"mathlib": MATHLIB}}, "none: core, mathlib"),
    "a default that is not there": ({"defaultEnvironment": "mathlib"}, "not among the environments: core"),
    "two of a name": (
        {"environments": {"a.b": MATHLIB, "a-b": MATHLIB}, "defaultEnvironment": "core"},
        "would both be the Deployment farm-worker-a-b: rename one",
    ),
    "a long name": (
        {"environments": {"a" * 60: MATHLIB}, "defaultEnvironment": "core"},
        "choose a shorter name",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_with_what_to_set(case: str) -> None:
    changes, words = REFUSED[case]
    values = merged(MINIMAL, changes)
    for render in (by_helm3, by_helm4):
        with pytest.raises(Refused, match=re.escape(words)):
            render(values)


def test_an_image_as_a_volume_is_refused_where_kubernetes_has_none() -> None:
    with pytest.raises(Refused, match=r"mathlib\.lean\.image needs Kubernetes 1\.31"):
        by_helm3(IMAGE, version="1.30")


def _levels(values: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield every level at which the chart has keys of its own; not those whose keys are the user's."""
    free = ("nodeSelector", "labels", "annotations", "podAnnotations", "requests", "limits", "affinity")
    yield path
    for key, value in values.items():
        if isinstance(value, Mapping) and key not in free and (*path, key) != ("environments",):
            yield from _levels(value, (*path, key))


ENVIRONMENT = ("environments", "core")
LEVELS = [*_levels(DEFAULTS), ENVIRONMENT, *((*ENVIRONMENT, key) for key in ("lean", "table", "image"))]
LEVELS += [(*ENVIRONMENT, key) for key in ("settings", "resources")]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: ".".join(level) or "top")
def test_an_unknown_key_is_refused_by_its_name_at_every_level(level: tuple[str, ...]) -> None:
    values = merged(MINIMAL, at("/".join((*level, "unknownKey")), "x"))
    with pytest.raises(Refused, match="unknownKey"):
        by_helm4(values)


def test_the_older_helm_refuses_unknown_keys_as_well() -> None:
    levels = ("", "worker/", "environments/core/lean/")
    for level in levels:
        with pytest.raises(Refused, match="unknownKey"):
            by_helm3(merged(MINIMAL, at(f"{level}unknownKey", 1)))


def test_the_schema_knows_the_settings_and_the_keys_of_a_table() -> None:
    definitions = SCHEMA["definitions"]
    for name in ("settings", "workerSettings"):
        assert definitions[name]["properties"].keys() <= VARIABLES.keys()
    table = definitions["environment"]["properties"]["table"]["properties"]
    assert set(table) == configured._KEYS


@every_case
def test_only_settings_that_the_farm_knows_are_set_and_no_secret_among_them(case: str) -> None:
    for pod in pods(rendered(CASES[case])):
        for container in pod.containers:
            assert all(each.keys() == {"name", "value"} for each in container["env"])
            found = variables(container)
            assert found.keys() <= VARIABLES.keys()
            assert {"FARM_DATABASE_URL_FILE", "FARM_BROKER_URL_FILE"} <= found.keys()
            assert not any("://" in value or "PASSWORD" in name for name, value in found.items())


def _farm_words(container: Object) -> list[str] | None:
    """Return what follows `farm`, None where a container runs something else."""
    return None if "command" in container else list(container["args"])


FARM_WORDS = {
    " ".join(words): words
    for name, values in CASES.items()
    if "many" not in name
    for pod in pods(rendered(values))
    for container in pod.containers
    if (words := _farm_words(container)) is not None
}


@pytest.mark.parametrize("words", FARM_WORDS.values(), ids=FARM_WORDS)
def test_the_commands_of_the_chart_are_the_farms(words: list[str]) -> None:
    said = Command()(*words, "--help")  # an option that there is not is refused first
    assert said.returncode == 0, said.stderr


def test_the_next_commands_that_are_told_are_the_farms_and_name_what_there_is() -> None:
    notes = by_helm4(CASES["everything"], name="proofs")["lean-proof-farm/templates/NOTES.txt"]
    found = {
        (each["kind"].lower(), each["metadata"]["name"])
        for each in rendered(CASES["everything"], name="proofs")
    }
    for kind, name in re.findall(r"(?<= )(deploy|service)/(\S+)", notes):
        assert (kind.replace("deploy", "deployment"), name) in found
    for words in re.findall(r"-- farm (.*)", notes):
        assert Command()(*words.split(), "--help").returncode == 0
    assert "helm test proofs" in notes
    assert "forge" not in notes
    assert "forge" in by_helm4(CASES["no isolation"])["lean-proof-farm/templates/NOTES.txt"]


def test_a_migration_reaches_postgresql_itself_where_the_farm_asks_a_pooler() -> None:
    asked = {
        pod.component: pod.spec["volumes"][0]["projected"]["sources"][0]["secret"]["name"]
        for pod in pods(rendered(CASES["everything"]))
    }
    assert asked.pop("setup") == "farm-postgres"
    assert {*asked.values()} == {"farm-database"}


def test_the_chart_is_of_this_version_of_the_farm() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == RELEASE


def _selects(selector: Object, pod: Pod) -> bool:
    labels = pod.metadata["labels"]
    wanted = selector.get("matchLabels", {})
    among = selector.get("matchExpressions", [])
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        labels.get(each["key"]) in each["values"] for each in among
    )


def _ports(pod: Pod) -> dict[str, int]:
    found = (port for container in pod.containers for port in container.get("ports", []))
    return {port["name"]: port["containerPort"] for port in found}


@every_case
def test_what_selects_pods_selects_the_right_ones_by_ports_that_they_have(case: str) -> None:
    found = rendered(CASES[case])
    there = pods(found)
    for each in found:
        kind, spec = each["kind"], each.get("spec", {})
        if kind in ("Deployment", "PodDisruptionBudget"):
            chosen = [pod for pod in there if _selects(spec["selector"], pod)]
            assert [pod.owner for pod in chosen] == [each["metadata"]["name"]]
        elif kind == "Service":
            chosen = [pod for pod in there if _selects({"matchLabels": spec["selector"]}, pod)]
            assert [pod.component for pod in chosen] == ["service"]
            assert spec["ports"][0]["targetPort"] in _ports(chosen[0])
        elif kind == "PodMonitor":
            chosen = [pod for pod in there if _selects(spec["selector"], pod)]
            assert chosen
            assert all(spec["podMetricsEndpoints"][0]["port"] in _ports(pod) for pod in chosen)
        elif kind == "ScaledObject":
            assert named(found, "Deployment", spec["scaleTargetRef"]["name"])


@every_case
def test_a_pod_reaches_names_postgresql_and_redis_and_is_reached_where_it_serves(case: str) -> None:
    found = rendered(CASES[case])
    policies = of_kind(found, "NetworkPolicy")
    if not policies:
        assert case == "workers alone"
        return
    for pod in pods(found):
        mine = [each["spec"] for each in policies if _selects(each["spec"]["podSelector"], pod)]
        assert {kind for spec in mine for kind in spec["policyTypes"]} == {"Ingress", "Egress"}
        leaving = {port["port"] for spec in mine for rule in spec.get("egress", []) for port in rule["ports"]}
        assert leaving == {53, 5432, 6379, *([5433] if case == "everything" else [])}
        arriving = {
            port["port"] for spec in mine for rule in spec.get("ingress", []) for port in rule["ports"]
        }
        assert arriving == set(_ports(pod))


@every_case
def test_probes_ask_ports_that_there_are_and_mounts_have_their_volumes(case: str) -> None:
    for pod in pods(rendered(CASES[case])):
        volumes = {each["name"] for each in pod.spec["volumes"]}
        used = {mount["name"] for container in pod.containers for mount in container["volumeMounts"]}
        assert used == volumes
        for container in pod.containers:
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if probe in container:
                    assert container[probe]["httpGet"]["port"] in _ports(pod)
            assert ("livenessProbe" in container) == ("ports" in container)


@every_case
def test_every_file_that_a_process_is_told_of_is_mounted(case: str) -> None:
    for pod in pods(rendered(CASES[case])):
        for container in pod.containers:
            mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
            told = [
                *variables(container).values(),
                *(word.partition("=")[2] for word in container.get("args", [])),
            ]
            for path in told:
                if path.startswith("/"):
                    assert any(Path(path).is_relative_to(each) for each in mounted), path


@every_case
def test_no_pod_has_more_rights_than_it_needs(case: str) -> None:
    for pod in pods(rendered(CASES[case])):
        assert pod.spec["automountServiceAccountToken"] is False
        assert pod.spec["enableServiceLinks"] is False
        for container in pod.containers:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"] is True
            assert container["resources"]["limits"]["memory"]
            writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
            assert writable == {"/var/lib/farm", "/tmp"}
            if pod.component != "worker":
                assert security == {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                }
                assert pod.spec["securityContext"]["runAsNonRoot"] is True
                assert pod.spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}


UNCONFINED = {"seccompProfile": {"type": "Unconfined"}, "appArmorProfile": {"type": "Unconfined"}}
NONE = {"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": False}
USER = {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001}
RESTRICTED = NONE | {"seccompProfile": {"type": "RuntimeDefault"}}
LEVEL_OF = {
    "minimal": ("landlock", None, USER, RESTRICTED),
    "namespaces": ("bwrap", False, USER, NONE | UNCONFINED | {"procMount": "Unmasked"}),
    "cgroup by a class": ("cgroup+bwrap", False, USER, NONE | UNCONFINED | {"procMount": "Unmasked"}),
    "cgroup by privilege": ("cgroup+bwrap", None, {"runAsUser": 0}, {"privileged": True}),
    "no isolation": ("rlimit", None, USER, RESTRICTED),
}


@pytest.mark.parametrize("case", LEVEL_OF)
def test_a_worker_has_what_its_isolation_needs_and_accepts_no_less(case: str) -> None:
    least, host_users, user, security = LEVEL_OF[case]
    pod = worker(CASES[case])
    (container,) = pod.containers
    assert variables(container)["FARM_ISOLATION"] == least
    assert pod.spec.get("hostUsers") is host_users
    assert user.items() <= pod.spec["securityContext"].items()
    assert container["securityContext"] == {"readOnlyRootFilesystem": True, **security}


def test_a_cluster_may_give_uid_and_groups() -> None:
    """OpenShift refuses a pod that names another uid or group than those of its namespace."""
    named = {"runAsUser", "runAsGroup", "fsGroup"}
    found = pods(rendered(CASES["uids of the cluster"]))
    assert {pod.component for pod in found} >= {"worker", "service"}
    for pod in found:
        assert pod.spec["securityContext"]["runAsNonRoot"] is True
        assert not named & pod.spec["securityContext"].keys()
        for container in pod.containers:
            assert not named & container["securityContext"].keys()


def test_a_uid_or_a_group_is_left_out_alone_or_is_another() -> None:
    for left in ("uid", "gid", "fsGroup"):
        security = worker(merged(MINIMAL, at(f"user/{left}", None))).spec["securityContext"]
        words = {"uid": "runAsUser", "gid": "runAsGroup", "fsGroup": "fsGroup"}
        assert security.keys() >= {*words.values()} - {words[left]}
        assert words[left] not in security
    other = worker(merged(MINIMAL, {"user": {"uid": 1000660000, "fsGroup": 5}})).spec["securityContext"]
    assert (other["runAsUser"], other["runAsGroup"], other["fsGroup"]) == (1000660000, 10001, 5)


def test_a_worker_that_needs_root_keeps_it_where_the_cluster_gives_uids() -> None:
    given = {"user": {"uid": None, "gid": None, "fsGroup": None}}
    security = worker(merged(CASES["root"], given)).spec["securityContext"]
    assert (security["runAsUser"], "fsGroup" in security) == (0, False)


@pytest.mark.parametrize("uid", [0, -1, "10001", 1.5])
def test_root_and_what_is_no_number_is_no_uid(uid: object) -> None:
    with pytest.raises(Refused, match="uid"):
        by_helm4(merged(MINIMAL, at("user/uid", uid)))


def test_before_kubernetes_130_apparmor_is_turned_off_by_an_annotation() -> None:
    (pod,) = (
        each for each in pods(rendered(CASES["namespaces"], version="1.29")) if each.component == "worker"
    )
    assert (
        pod.metadata["annotations"]["container.apparmor.security.beta.kubernetes.io/worker"] == "unconfined"
    )
    assert "appArmorProfile" not in pod.containers[0]["securityContext"]
    annotations = worker(CASES["namespaces"]).metadata["annotations"]
    assert not any("apparmor" in each for each in annotations)


def test_a_stopping_pod_has_the_time_that_its_worker_takes() -> None:
    for environment, seconds in (("mathlib-4.22", 20), ("Own_Lean", 30)):
        pod = worker(CASES["everything"], environment)
        assert variables(pod.containers[0])["FARM_GRACE_SECONDS"] == str(seconds)
        assert pod.spec["terminationGracePeriodSeconds"] == seconds + 15


def test_an_own_setting_of_an_environment_takes_precedence() -> None:
    own, other = (worker(CASES["everything"], name).containers[0] for name in ("mathlib-4.22", "Own_Lean"))
    assert (variables(own)["FARM_LEASE_SECONDS"], variables(other)["FARM_LEASE_SECONDS"]) == ("40", "30")
    assert variables(own)["FARM_QUEUE_LIMIT"] == "10000000"
    assert len(own["env"]) == len(variables(own))
    assert (own["image"], other["image"]) == ("registry/worker:2026-01", "registry/own:1")


def test_a_workers_memory_is_what_the_page_says() -> None:
    page = (ROOT / "docs" / "operate" / "environments.md").read_text()
    assert "FARM_IMAGES_MIB + FARM_CONCURRENCY x memory of a check + 400 MiB + the library's files" in page
    (container,) = worker(CASES["everything"], "mathlib-4.22").containers
    mib = f"{2048 + 8 * 4096 + 400 + 2048}Mi"
    assert container["resources"] == {
        "requests": {"cpu": "8", "memory": mib},
        "limits": {"memory": mib, "ephemeral-storage": "20Gi"},
    }


def test_the_table_of_an_environment_is_what_the_farm_reads(tmp_path: Path) -> None:
    found = rendered(CASES["everything"])
    text = named(found, "ConfigMap", "farm-worker-mathlib-4-22")["data"]["farm.toml"]
    file = tmp_path / "farm.toml"
    file.write_text(text)
    (table,) = configured.tables(file, required=True).values()
    assert table == {"toolchain": "4.22.0", "headers": ["import Mathlib\n"], **MATHLIB["table"]}  # type: ignore[dict-item]
    assert list(tomllib.loads(text)["environments"]) == ["mathlib-4.22"]
    configured.Table("mathlib-4.22", table)


def _templates(values: Mapping[str, Any]) -> dict[str, Pod]:
    return {
        pod.owner: pod for pod in pods(rendered(values)) if pod.component in ("worker", "service", "metrics")
    }


WORKERS = {f"farm-worker-{name}" for name in ("core", "mathlib-4-22", "own-lean")}


@pytest.mark.parametrize(
    ("change", "restarted"),
    [
        (at("environments/mathlib-4.22/table/options", ["-DmaxHeartbeats=1"]), {"farm-worker-mathlib-4-22"}),
        (
            at("secretsRevision", "3"),
            {*WORKERS, "farm-service", "farm-metrics"},
        ),
        (at("service/replicas", 5), set()),
        (at("worker/maxReplicas", 50), set()),
        (at("monitoring/rules/enabled", False), set()),
    ],
    ids=lambda value: "" if isinstance(value, set) else json.dumps(value),
)
def test_a_change_restarts_the_pods_that_it_concerns_and_no_others(
    change: dict[str, Any], restarted: set[str]
) -> None:
    before = _templates(CASES["everything"])
    after = _templates(merged(CASES["everything"], change))
    assert {owner for owner in before if before[owner] != after[owner]} == restarted


def test_a_newer_chart_alone_restarts_nothing(tmp_path: Path) -> None:
    newer = Path(package(CHART, destination=tmp_path, version="9.9.9", app_version="9.9.9"))
    values = merged(CASES["everything"], at("image/worker/digest", "sha256:" + "b" * 64))
    values["environments"].pop("Own_Lean")
    texts = by_helm4(values, chart=newer)
    found = objects("\n---\n".join(text for path, text in texts.items() if not path.endswith(".txt")))
    after = {pod.owner: pod for pod in pods(found)}
    before = _templates(values)
    assert {owner: after[owner] for owner in before} == before


def test_an_environment_that_scales_has_no_fixed_number_of_workers() -> None:
    for deployment in of_kind(rendered(CASES["everything"]), "Deployment"):
        is_worker = deployment["metadata"]["labels"]["app.kubernetes.io/component"] == "worker"
        assert ("replicas" in deployment["spec"]) != is_worker


def test_the_rules_and_dashboards_are_those_of_the_monitoring() -> None:
    monitoring = ROOT / "docker" / "monitoring"
    found = rendered(CASES["everything"])
    assert named(found, "PrometheusRule", "farm-farm")["spec"] == yaml.safe_load(
        (monitoring / "rules.yaml").read_text()
    )
    boards = {path.name: path for path in (monitoring / "grafana" / "dashboards").glob("*.json")}
    shown = [
        each for each in of_kind(found, "ConfigMap") if "grafana_dashboard" in each["metadata"]["labels"]
    ]
    assert len(shown) == len(boards) == 5
    for each in shown:
        ((name, text),) = each["data"].items()
        assert json.loads(text) == json.loads(boards[name].read_text())
        assert len(json.dumps(each)) < 1 << 20


def test_prometheus_finds_the_jobs_that_the_rules_name() -> None:
    jobs = {
        each["metadata"]["name"]: each["spec"]["podMetricsEndpoints"][0]["relabelings"][0]["replacement"]
        for each in of_kind(rendered(CASES["everything"]), "PodMonitor")
    }
    configuration = yaml.safe_load((ROOT / "docker" / "monitoring" / "prometheus.yaml").read_text())
    assert {*jobs.values()} == {job["job_name"] for job in configuration["scrape_configs"]}
    assert jobs == {"farm-worker": "farm-workers", "farm-metrics": "farm"}


def test_the_chart_can_be_packed_with_all_that_it_reads(tmp_path: Path) -> None:
    packed = Path(package(CHART, destination=tmp_path))
    assert by_helm4(CASES["everything"], chart=packed) == by_helm4(CASES["everything"])


def _block(text: str) -> dict[str, Any]:
    """Return the first block of YAML that is indented by four spaces."""
    found = re.search(r"(?:^    .*\n)+", text, re.MULTILINE)
    assert found is not None
    block: dict[str, Any] = yaml.safe_load(found[0])
    return block


def test_the_values_that_are_shown_as_examples_are_taken() -> None:
    page = (ROOT / "docs" / "operate" / "helm.md").read_text()
    by_helm4(_block(page.partition("**3. Write values.**")[2]))
    scaling = _block(page.partition("\n## Scaling to zero\n")[2])
    monitoring = _block(page.partition("\n## Monitoring\n")[2])
    by_helm4(merged(merged(MINIMAL, scaling), monitoring))
    comment = re.search(r"^# environments:\n(?:# .*\n)+", (CHART / "values.yaml").read_text(), re.MULTILINE)
    assert comment is not None
    shown = yaml.safe_load(re.sub("^# ", "", comment[0], flags=re.MULTILINE))
    by_helm4({**MINIMAL, **shown})


def _leaves(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value and key not in ("labels", "settings", "resources"):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value


def test_the_page_has_each_value_with_its_default() -> None:
    page = (ROOT / "docs" / "operate" / "helm.md").read_text().partition("\n## Values\n")[2]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*?) \| \S", page, re.MULTILINE)
    shown = {path: yaml.safe_load(default.strip("`")) if default else "" for path, default in rows}
    own = {f"environments.NAME.{key}" for key in ("toolchain", "header", "image", "table")}
    own |= {f"environments.NAME.lean.{key}" for key in ("claim", "image", "baked")}
    expected = dict(_leaves(DEFAULTS))
    assert shown.keys() == expected.keys() | own
    assert {path: shown[path] for path in expected} == expected
