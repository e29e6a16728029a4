//go:build deploy

package deploytest

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

const chart = "deploy/helm/sse-server"

// The modules that hold the schemas of what the chart renders, and their files.
const (
	kubernetes      = "k8s.io/kubernetes@v1.37.2"
	kubernetesAPI   = "api/openapi-spec/swagger.json"
	operator        = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	operatorMonitor = "jsonnet/prometheus-operator/servicemonitors-crd.json"
)

// Kubernetes takes the objects that the chart renders, with all its parts and with few.
func TestChart(t *testing.T) {
	t.Parallel()
	full := `
tokens: {alice: alices-token}
replicaCount: 3
env: [{name: SEARCH_TOKEN, valueFrom: {secretKeyRef: {name: search, key: token}}}]
config:
  prefix: /ai
  max-message-bytes: 16777216
  servers:
    files: {command: [node, /srv/files.js], warm: 1}
    search: {url: 'https://mcp.example.com/mcp', header: {Authorization: 'Bearer ${SEARCH_TOKEN}'}}
networkPolicy: {from: [{namespaceSelector: {}}], metricsFrom: [{podSelector: {matchLabels: {app: prometheus}}}]}
serviceMonitor: {enabled: true, labels: {release: prometheus}, tokenSecret: {name: scraper}}
volumes: [{name: files, emptyDir: {}}]
volumeMounts: [{name: files, mountPath: /srv}]
`
	schemas := kubernetesSchemas(t)
	for name, test := range map[string]struct {
		values string
		kinds  []string
	}{
		"full":     {full, []string{"ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "Secret", "Service", "Service", "ServiceMonitor"}},
		"replicas": {"{tokens: {alice: alices-token}, config: {nats: 'nats://nats:4222'}}", []string{"ConfigMap", "Deployment", "NetworkPolicy", "Secret", "Service", "Service"}},
		"insecure": {"insecure: true", []string{"ConfigMap", "Deployment", "NetworkPolicy", "Service", "Service"}},
		"existing": {"{existingSecret: mine, networkPolicy: {enabled: false}}", []string{"ConfigMap", "Deployment", "Service", "Service"}},
	} {
		dir := t.TempDir()
		values, rendered := filepath.Join(dir, "values.yaml"), filepath.Join(dir, "rendered.yaml")
		writeFile(t, values, test.values)
		goTool(t, nil, helm, "lint", "--strict", chart, "-f", values)
		writeFile(t, rendered, goTool(t, nil, helm, "template", "release", chart, "-f", values))
		goTool(t, nil, kubeconform, "-strict", "-schema-location", schemas+"/{{.ResourceKind}}.json", rendered)

		if bound := strings.Contains(readAll(t, rendered), "sessionAffinity"); bound == (name == "replicas") {
			t.Errorf("%s: clients stay at a replica: %v", name, bound)
		}
		text := readAll(t, rendered)
		for _, part := range []string{`cluster-addr: ":7946"`, "{name: cluster, containerPort: 7946}", "ports: [{port: cluster}]"} {
			if has := strings.Contains(text, part); has != (name == "replicas") {
				t.Errorf("%s: %s: %v", name, part, has)
			}
		}
		manifests := readManifests(t, rendered)
		var kinds []string
		for _, manifest := range manifests {
			kinds = append(kinds, manifest.Kind)
			if job := manifest.Metadata.Labels[manifest.Spec.JobLabel]; manifest.Kind == "ServiceMonitor" && job != "sse-server" {
				t.Errorf("%s: the job is %q, which deploy/prometheus/rules.yml does not know", name, job)
			}
		}
		if slices.Sort(kinds); !slices.Equal(kinds, test.kinds) {
			t.Errorf("%s: kinds %v, want %v", name, kinds, test.kinds)
		}
		checkPod(t, dir, manifests)
	}

	if printed, err := tryTool(t, root, nil, helm, "template", chart); err == nil || !strings.Contains(printed, "set tokens") {
		t.Errorf("without tokens: %v: %s", err, printed)
	}
	if printed, err := tryTool(t, root, nil, helm, "template", chart, "--set", "insecure=true,config.addr=:1,replicas=2"); err == nil ||
		!strings.Contains(printed, "addr") || !strings.Contains(printed, "replicas") {
		t.Errorf("with wrong values: %v: %s", err, printed)
	}
}

// manifest is what the tests look at in a rendered manifest.
type manifest struct {
	Kind       string
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
	Metadata   struct{ Labels map[string]string }
	Spec       struct {
		JobLabel string `yaml:"jobLabel"`
		Template struct {
			Spec struct{ Containers []struct{ Args []string } }
		}
	}
}

func readManifests(t *testing.T, name string) (all []manifest) {
	t.Helper()
	file, err := os.Open(name)
	ssetest.Must(t, err)
	defer file.Close()
	for decoder := yaml.NewDecoder(file); ; {
		var one manifest
		switch err := decoder.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, one)
	}
}

// checkPod gives sse-server the arguments, the configuration and the secret of the pod, in
// folders of the test.
func checkPod(t *testing.T, dir string, manifests []manifest) {
	t.Helper()
	files := map[string]string{"tokens": "alice:another-token", "id-key": strings.Repeat("k", 48)} // of an existing Secret
	var args []string
	for _, manifest := range manifests {
		maps.Copy(files, manifest.StringData)
		if manifest.Kind == "ConfigMap" {
			maps.Copy(files, manifest.Data)
		}
		for _, container := range manifest.Spec.Template.Spec.Containers {
			args = container.Args
		}
	}
	if !slices.Contains(args, "--watch") {
		t.Errorf("arguments %q: a change of the ConfigMap is not loaded", args)
	}
	mounted := strings.NewReplacer("/etc/sse-server/secret", dir, "/etc/sse-server/config", dir)
	for name, content := range files {
		writeFile(t, filepath.Join(dir, name), mounted.Replace(content))
	}
	check := []string{"env", "SEARCH_TOKEN=secret", sseServer(t), "check"}
	for _, arg := range args {
		check = append(check, mounted.Replace(arg))
	}
	if printed := run(t, check...); !strings.Contains(printed, "configuration ok") {
		t.Errorf("check: %s", printed)
	}
}

// kubernetesSchemas writes the JSON schemas of what the chart renders, one a file, and
// returns their folder. They refuse unknown members, as kubectl apply does.
func kubernetesSchemas(t *testing.T) string {
	t.Helper()
	var api struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	decode(t, moduleFile(t, kubernetes, kubernetesAPI), &api)
	closeObjects(api.Definitions)
	// The document says less of these two than the API server takes.
	api.Definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = map[string]any{"type": []string{"string", "integer"}}
	api.Definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = map[string]any{"type": []string{"string", "number"}}

	var monitor struct {
		Spec struct {
			Versions []struct {
				Schema struct{ OpenAPIV3Schema map[string]any }
			}
		}
	}
	decode(t, moduleFile(t, operator, operatorMonitor), &monitor)
	closeObjects(monitor.Spec.Versions[0].Schema.OpenAPIV3Schema)

	dir := t.TempDir()
	write := func(name string, schema any) {
		text, err := json.Marshal(schema)
		ssetest.Must(t, err)
		writeFile(t, filepath.Join(dir, name+".json"), string(text))
	}
	write("kubernetes", api)
	write("servicemonitor", monitor.Spec.Versions[0].Schema.OpenAPIV3Schema)
	for _, kind := range []string{"apps.v1.Deployment", "core.v1.ConfigMap", "core.v1.Secret", "core.v1.Service", "networking.v1.NetworkPolicy", "policy.v1.PodDisruptionBudget"} {
		name := strings.ToLower(kind[strings.LastIndex(kind, ".")+1:])
		write(name, map[string]any{"$ref": "kubernetes.json#/definitions/io.k8s.api." + kind})
	}
	return dir
}

// closeObjects makes the objects of a schema refuse members that they do not name.
func closeObjects[S any](schema map[string]S) {
	for name, part := range schema {
		if part, ok := any(part).(map[string]any); ok {
			closeObjects(part)
			if _, object := part["properties"].(map[string]any); object && name != "properties" && name != "metadata" {
				part["additionalProperties"] = false
			}
		}
	}
}

// moduleFile returns the path of a file of a module, which the go command downloads.
func moduleFile(t *testing.T, module, name string) string {
	t.Helper()
	var downloaded struct{ Dir string }
	ssetest.Must(t, json.Unmarshal([]byte(run(t, "go", "mod", "download", "-json", module)), &downloaded))
	return filepath.Join(downloaded.Dir, name)
}
