{{/* What a worker's pod needs for its isolation and its Lean. */}}

{{/* The worker of an environment, as JSON: farm.worker (list ROOT GIVEN) */}}
{{- define "farm.worker" -}}
{{- mergeOverwrite (deepCopy (index . 0).Values.worker) (deepCopy (index . 1)) | toJson -}}
{{- end }}

{{/* Whether the worker needs no right that the Pod Security level restricted refuses. */}}
{{- define "farm.isRestricted" -}}
{{- if has .Values.isolation.level (list "landlock" "none") -}}yes{{- end -}}
{{- end }}

{{/* Whether the pod has a user namespace of its own. */}}
{{- define "farm.hasUserNamespace" -}}
{{- $isolation := .Values.isolation -}}
{{- if and (not (include "farm.isRestricted" .)) $isolation.userNamespaces (not $isolation.privileged) -}}yes{{- end -}}
{{- end }}

{{/* The least that a worker accepts, so that it never judges with less than was asked for. */}}
{{- define "farm.isolation" -}}
{{- get (dict "landlock" "landlock" "namespaces" "bwrap" "cgroup" "cgroup+bwrap" "none" "rlimit") .Values.isolation.level -}}
{{- end }}

{{- define "farm.workerPodSecurity" -}}
{{- if or (include "farm.isRestricted" .) (include "farm.hasUserNamespace" .) -}}
{{- include "farm.user" . }}
{{- else -}}
runAsUser: 0
runAsGroup: 0
{{- end }}
{{ include "farm.fsGroup" . }}
{{- end }}

{{/* Namespaces inside a container: its runtime's filters refuse what makes them, and /proc is masked. */}}
{{- define "farm.workerSecurity" -}}
readOnlyRootFilesystem: true
{{- if include "farm.isRestricted" . }}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- else if .Values.isolation.privileged }}
privileged: true
{{- else }}
{{- if include "farm.hasUserNamespace" . }}
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
procMount: Unmasked
{{- else }}
capabilities:
  drop: [ALL]
  add: [{{ include "farm.rootCapabilities" . }}]
{{- end }}
seccompProfile: {type: Unconfined}
{{- if semverCompare ">=1.30-0" .Capabilities.KubeVersion.Version }}
appArmorProfile: {type: Unconfined}
{{- end }}
{{- end }}
{{- end }}

{{/* What root needs to make namespaces, hand files to another user, and become that user. */}}
{{- define "farm.rootCapabilities" -}}
CHOWN, DAC_OVERRIDE, FOWNER, KILL, NET_ADMIN, SETGID, SETPCAP, SETUID, SYS_ADMIN
{{- end }}

{{/* Before 1.30 AppArmor is said by an annotation. */}}
{{- define "farm.workerAnnotations" -}}
{{- if and (not (include "farm.isRestricted" .)) (not .Values.isolation.privileged) (semverCompare "<1.30-0" .Capabilities.KubeVersion.Version) -}}
container.apparmor.security.beta.kubernetes.io/worker: unconfined
{{- end -}}
{{- end }}

{{/* farm.toml of an environment, "" where the image has it: farm.toml (list NAME GIVEN) */}}
{{- define "farm.toml" -}}
{{- $name := index . 0 -}}
{{- $given := index . 1 -}}
{{- if $given.table -}}
{{- $table := dict -}}
{{- with $given.toolchain -}}{{- $_ := set $table "toolchain" . -}}{{- end -}}
{{- with $given.header -}}{{- $_ := set $table "headers" (list (printf "%s\n" (trimSuffix "\n" .))) -}}{{- end -}}
[environments.{{ toJson $name }}]
{{- /* A TOML string, list or boolean is written as JSON writes it. */}}
{{- range $key, $value := mergeOverwrite $table (deepCopy $given.table) }}
{{- if eq $key "checkers" }}
{{ $key }} = [{{ range $place, $each := $value }}{{ if $place }}, {{ end }}{command = {{ toJson $each.command }}{{ with $each.reads }}, reads = {{ toJson . }}{{ end }}}{{ end }}]
{{- else }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{- end }}
{{ end -}}
{{- end }}

{{/* MiB that a worker's pod may use: docs/operate/environments.md has the formula. */}}
{{- define "farm.workerMib" -}}
{{- add (int .imagesMib) (mul (int .concurrency) (int .memoryMib)) 400 (int .pageCacheMib) -}}
{{- end }}

{{- define "farm.workerResources" -}}
{{- $mib := printf "%sMi" (include "farm.workerMib" .) -}}
{{- $usual := dict "requests" (dict "cpu" (int .concurrency | toString) "memory" $mib) "limits" (dict "memory" $mib) -}}
{{- mergeOverwrite $usual (deepCopy .resources) | toYaml -}}
{{- end }}

{{/* Its own settings and everybody's. */}}
{{- define "farm.workerSettings" -}}
{{- $root := index . 0 -}}
{{- $worker := index . 1 -}}
{{- include "farm.settings" (merge (deepCopy $worker.settings) $root.Values.settings) -}}
{{- end }}
