{{/* What the chart's objects are called, and by what they are found. */}}

{{- define "farm.labels" -}}
{{ include "farm.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "farm.selector" -}}
app.kubernetes.io/name: lean-proof-farm
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* An environment's name as a part of an object's name: farm.environment.slug NAME */}}
{{- define "farm.slug" -}}
{{ . | lower | replace "." "-" | replace "_" "-" }}
{{- end }}

{{/* list ROOT NAME */}}
{{- define "farm.workers" -}}
{{ (index . 0).Release.Name }}-worker-{{ include "farm.slug" (index . 1) }}
{{- end }}

{{/* list ROOT IMAGE */}}
{{- define "farm.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default $root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/* The environment of lines that name none. */}}
{{- define "farm.default" -}}
{{ .Values.defaultEnvironment | default (keys .Values.environments | sortAlpha | first) }}
{{- end }}
