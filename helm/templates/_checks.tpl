{{/* What cannot work is refused here, with what to set. Rendered once, before everything else. */}}

{{- define "farm.checks" -}}
{{- range list "farm" "worker" -}}
{{- if not (index $.Values.image .).repository -}}
{{- fail (printf "image.%s.repository is empty: build the image `%s` (docs/operate/images.md), push it, and set its repository here" . .) -}}
{{- end -}}
{{- end -}}
{{- if not .Values.database.existingSecret -}}
{{- fail (printf "database.existingSecret is empty: make a Secret whose key `%s` holds postgresql://user:password@host/name, such as: kubectl create secret generic farm-database --from-file=%s=database-url.txt; then set database.existingSecret=farm-database" .Values.database.key .Values.database.key) -}}
{{- end -}}
{{- if not .Values.broker.existingSecret -}}
{{- fail (printf "broker.existingSecret is empty: make a Secret whose key `%s` holds redis://:password@host/0, such as: kubectl create secret generic farm-broker --from-file=%s=broker-url.txt; then set broker.existingSecret=farm-broker" .Values.broker.key .Values.broker.key) -}}
{{- end -}}
{{- if and .Values.scaling.enabled (not .Values.scaling.existingSecret) -}}
{{- fail (printf "scaling.existingSecret is empty: make a Secret whose key `%s` holds the connection string of the role farm_reader, as KEDA reaches PostgreSQL, or set scaling.enabled=false" .Values.scaling.key) -}}
{{- end -}}
{{- if and .Values.service.ingress.enabled (not .Values.service.ingress.host) -}}
{{- fail "service.ingress.host is empty: set the name by which clients reach the service, or service.ingress.enabled=false" -}}
{{- end -}}
{{- include "farm.checkIsolation" . -}}
{{- include "farm.checkEnvironments" . -}}
{{- end }}

{{- define "farm.checkIsolation" -}}
{{- $isolation := .Values.isolation -}}
{{- if and (eq $isolation.level "none") (not $isolation.acceptNone) -}}
{{- fail "isolation.level is none: a proof could then forge verdicts, because its code reaches what the worker reaches; set isolation.level=landlock, or isolation.acceptNone=true where every proof comes from people you trust" -}}
{{- end -}}
{{- if and (eq $isolation.level "cgroup") (not $isolation.runtimeClassName) (not $isolation.privileged) -}}
{{- fail "isolation.level is cgroup, and containers may not write their control group: set isolation.runtimeClassName to a class that lets them, such as one with containerd's cgroup_writable, or isolation.privileged=true" -}}
{{- end -}}
{{- if and $isolation.privileged (ne $isolation.level "cgroup") -}}
{{- fail "isolation.privileged is for isolation.level=cgroup only: set one of the two otherwise" -}}
{{- end -}}
{{- end }}

{{- define "farm.checkEnvironments" -}}
{{- $root := . -}}
{{- if not .Values.environments -}}
{{- fail "environments is empty: name at least one Lean environment, as the comment in values.yaml shows" -}}
{{- end -}}
{{- if and (gt (len .Values.environments) 1) (not .Values.defaultEnvironment) -}}
{{- fail (printf "defaultEnvironment is empty, and there are several environments: set it to the one of lines that name none: %s" (keys .Values.environments | sortAlpha | join ", ")) -}}
{{- end -}}
{{- if and .Values.defaultEnvironment (not (hasKey .Values.environments .Values.defaultEnvironment)) -}}
{{- fail (printf "defaultEnvironment is %s, which is not among the environments: %s" .Values.defaultEnvironment (keys .Values.environments | sortAlpha | join ", ")) -}}
{{- end -}}
{{- $seen := dict -}}
{{- range $name, $given := .Values.environments -}}
{{- $workers := include "farm.workers" (list $root $name) -}}
{{- if hasKey $seen $workers -}}
{{- fail (printf "environments.%s and environments.%s would both be the Deployment %s: rename one" (get $seen $workers) $name $workers) -}}
{{- end -}}
{{- $_ := set $seen $workers $name -}}
{{- if gt (len $workers) 63 -}}
{{- fail (printf "environments.%s: the Deployment's name %s has %d characters, and KEDA takes 63: choose a shorter name for the environment or the release" $name $workers (len $workers)) -}}
{{- end -}}
{{- include "farm.checkLean" (list $root $name $given) -}}
{{- end -}}
{{- end }}

{{/* list ROOT NAME GIVEN */}}
{{- define "farm.checkLean" -}}
{{- $root := index . 0 -}}
{{- $name := index . 1 -}}
{{- $given := index . 2 -}}
{{- $lean := $given.lean | default dict -}}
{{- $mounted := or $lean.claim $lean.image -}}
{{- $ways := 0 -}}
{{- range list $lean.claim $lean.image $lean.baked -}}{{- if . -}}{{- $ways = add1 $ways -}}{{- end -}}{{- end -}}
{{- if ne (int $ways) 1 -}}
{{- fail (printf "environments.%s.lean must say where its Lean is: set exactly one of lean.claim (a PersistentVolumeClaim), lean.image (an image that is mounted) and lean.baked=true (the worker's image has it)" $name) -}}
{{- end -}}
{{- if and $mounted (not $given.table) -}}
{{- fail (printf "environments.%s.table is empty: say where Lean and its modules are in what is mounted at /lean, as in farm.toml, such as lean: /lean/toolchain/bin/lean and lean_path: [/lean/mathlib/.lake/build/lib/lean]" $name) -}}
{{- end -}}
{{- if and $lean.image (semverCompare "<1.31-0" $root.Capabilities.KubeVersion.Version) -}}
{{- fail (printf "environments.%s.lean.image needs Kubernetes 1.31 with ImageVolume, or 1.35; this is %s: set lean.claim or lean.baked" $name $root.Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- end }}
