{{/* The name of the chart, or nameOverride. */}}
{{- define "teescope.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{/* The prefix of the names of all objects. 52 characters leave room for "-agent" and a controller's hash within 63. */}}
{{- define "teescope.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Labels of all objects. */}}
{{- define "teescope.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "teescope.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: teescope
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels that select the pods of a component: (list . "agent"). */}}
{{- define "teescope.selector" -}}
{{- $top := index . 0 -}}
app.kubernetes.io/name: {{ include "teescope.name" $top }}
app.kubernetes.io/instance: {{ $top.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end -}}

{{- define "teescope.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The service account of a component: (list . "agent"). */}}
{{- define "teescope.serviceAccount" -}}
{{- $top := index . 0 -}}
{{- $account := (index $top.Values (index . 1)).serviceAccount -}}
{{- if $account.create -}}
{{- $account.name | default (printf "%s-%s" (include "teescope.fullname" $top) (index . 1)) -}}
{{- else -}}
{{- $account.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The names of a component's service, which requests may use: (list . "agent"). */}}
{{- define "teescope.hosts" -}}
{{- $top := index . 0 -}}
{{- $name := printf "%s-%s" (include "teescope.fullname" $top) (index . 1) -}}
{{- $inNamespace := printf "%s.%s" $name $top.Release.Namespace -}}
{{- $service := printf "%s.svc" $inNamespace -}}
{{- $full := printf "%s.%s" $service $top.Values.clusterDomain -}}
{{- join "," (list $name $inNamespace $service $full) -}}
{{- end -}}

{{/* Environment of a component. It wins over the configuration file: (list . "agent"). */}}
{{- define "teescope.env" -}}
{{- $part := index (index . 0).Values (index . 1) -}}
- name: TEESCOPE_LISTEN
  value: {{ printf ":%d" (int $part.port) | quote }}
- name: TEESCOPE_WEB_HOSTS
  value: {{ include "teescope.hosts" . | quote }}
{{- if $part.webConfig.secretName }}
- name: TEESCOPE_WEB_CONFIG_FILE
  value: /etc/teescope/web/web.yml
{{- else }}
- name: TEESCOPE_WEB_INSECURE
  value: "true"
{{- end }}
{{- if $part.config }}
- name: TEESCOPE_CONFIG
  value: /etc/teescope/config/teescope.yml
{{- end }}
{{- end -}}

{{- define "teescope.mounts" -}}
{{- $part := index (index . 0).Values (index . 1) -}}
{{- if $part.config }}
- name: config
  mountPath: /etc/teescope/config
  readOnly: true
{{- end }}
{{- if $part.webConfig.secretName }}
- name: web
  mountPath: /etc/teescope/web
  readOnly: true
{{- end }}
{{- end -}}

{{- define "teescope.volumes" -}}
{{- $top := index . 0 -}}
{{- $part := index $top.Values (index . 1) -}}
{{- if $part.config }}
- name: config
  configMap:
    name: {{ include "teescope.fullname" $top }}-{{ index . 1 }}
{{- end }}
{{- if $part.webConfig.secretName }}
- name: web
  secret:
    secretName: {{ $part.webConfig.secretName }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* A probe. The kubelet has no password: with webConfig it only connects. (list . "agent" "/-/ready") */}}
{{- define "teescope.probe" -}}
{{- $part := index (index . 0).Values (index . 1) -}}
{{- if $part.webConfig.secretName -}}
tcpSocket:
  port: http
{{- else -}}
httpGet:
  path: {{ index . 2 }}
  port: http
{{- end }}
{{- end -}}

{{/* Where the server finds the agents of this release: a namespace and the labels of pods. */}}
{{- define "teescope.discovery" -}}
kubernetes={{ .Release.Namespace }}/app.kubernetes.io/name={{ include "teescope.name" . }},app.kubernetes.io/instance={{ .Release.Name }},app.kubernetes.io/component=agent
{{- end -}}
