{{/* What the pods have in common. */}}

{{/* Where a process finds its servers: in files, because whoever sees a pod sees its variables. farm.environmentVariables ENVIRONMENT */}}
{{- define "farm.environmentVariables" -}}
- {name: FARM_HOME, value: /var/lib/farm}
- {name: FARM_DATABASE_URL_FILE, value: /etc/farm/urls/database}
- {name: FARM_BROKER_URL_FILE, value: /etc/farm/urls/broker}
- {name: FARM_ENVIRONMENT, value: {{ . | quote }}}
{{- end }}

{{/* FARM_* settings from values: farm.settings DICT */}}
{{- define "farm.settings" -}}
{{- range $name, $value := . }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "farm.mounts" -}}
- {name: urls, mountPath: /etc/farm/urls, readOnly: true}
- {name: home, mountPath: /var/lib/farm}
- {name: tmp, mountPath: /tmp}
{{- if .Values.trust.existingSecret }}
- {name: trust, mountPath: /etc/farm/trust, readOnly: true}
{{- end }}
{{- end }}

{{/* Where the URL of a part's role is: farm.database (list ROOT PART), as JSON */}}
{{- define "farm.database" -}}
{{- $database := (index . 0).Values.database -}}
{{- dict "existingSecret" $database.existingSecret "key" (get $database.keys (index . 1) | default $database.key) | toJson -}}
{{- end }}

{{/* farm.volumes (list ROOT DATABASE) */}}
{{- define "farm.volumes" -}}
{{- $root := index . 0 -}}
{{- $database := index . 1 -}}
- name: urls
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ $database.existingSecret }}
          items: [{key: {{ $database.key | quote }}, path: database}]
      - secret:
          name: {{ $root.Values.broker.existingSecret }}
          items: [{key: {{ $root.Values.broker.key | quote }}, path: broker}]
{{- with $root.Values.trust.existingSecret }}
- name: trust
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{/* The volumes of a part that writes little. */}}
{{- define "farm.controlVolumes" -}}
{{ include "farm.volumes" . }}
- {name: home, emptyDir: {sizeLimit: 256Mi}}
- {name: tmp, emptyDir: {sizeLimit: 256Mi}}
{{- end }}

{{/* A pod of the service, metrics, setup or test: farm.controlPod (list ROOT DATABASE) */}}
{{- define "farm.controlPod" -}}
{{- $root := index . 0 -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- include "farm.pullSecrets" $root }}
securityContext:
  {{- include "farm.user" $root | nindent 2 }}
  {{- include "farm.fsGroup" $root | nindent 2 }}
  seccompProfile: {type: RuntimeDefault}
{{- include "farm.placed" $root.Values.control }}
volumes:
  {{- include "farm.controlVolumes" . | nindent 2 }}
{{- end }}

{{/* Whom a pod without root runs as; what is null is left to the cluster. */}}
{{- define "farm.user" -}}
runAsNonRoot: true
{{- with .Values.user.uid }}
runAsUser: {{ int . }}
{{- end }}
{{- with .Values.user.gid }}
runAsGroup: {{ int . }}
{{- end }}
{{- end }}

{{/* The group that owns what is mounted: the Secrets, and the folders to write to. */}}
{{- define "farm.fsGroup" -}}
{{- with .Values.user.fsGroup -}}
fsGroup: {{ int . }}
{{- end }}
{{- end }}

{{/* A container of such a pod. */}}
{{- define "farm.controlContainer" -}}
image: {{ include "farm.image" (list . .Values.image.farm) }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  {{- include "farm.environmentVariables" (include "farm.default" .) | nindent 2 }}
  {{- include "farm.settings" .Values.settings | trim | nindent 2 }}
securityContext:
  {{- include "farm.restricted" . | nindent 2 }}
resources: {{- toYaml .Values.control.resources | nindent 2 }}
volumeMounts:
  {{- include "farm.mounts" . | nindent 2 }}
{{- end }}

{{- define "farm.restricted" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "farm.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Where a pod runs: farm.placed VALUES */}}
{{- define "farm.placed" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* What restarts pods: farm.annotations (list ROOT MORE) */}}
{{- define "farm.annotations" -}}
{{- with (index . 0).Values.secretsRevision }}
lean-proof-farm/secrets-revision: {{ . | quote }}
{{- end }}
{{- with index . 1 }}
{{ toYaml . }}
{{- end }}
{{- end }}
