{{- define "sse-server.name" -}}
{{- if contains .Chart.Name .Release.Name -}}{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end -}}
{{- end -}}

{{- define "sse-server.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sse-server.labels" -}}
{{ include "sse-server.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- /* The Secret of the tokens and of the key of ids; "" if there is none. */ -}}
{{- define "sse-server.secret" -}}
{{- if .Values.existingSecret -}}{{ .Values.existingSecret }}
{{- else if .Values.tokens -}}{{ include "sse-server.name" . }}
{{- else if not .Values.insecure -}}{{ fail "set tokens or existingSecret, or insecure: true to serve everybody who reaches the Service" }}
{{- end -}}
{{- end -}}
