//go:build deploy

package deploytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// token is in the file of tokens of each gateway that Prometheus scrapes.
const token = "a-token-of-prometheus"

// threeServers are a server that works, one that ends at each start, and one at whose
// address nobody listens.
const threeServers = `
  healthy: {command: [SSE-SERVER, stdio], sessions: shared}
  looping: {command: [sh, -c, "echo the disk is full >&2; exit 1"]}
  remote: {url: "http://REMOTE/mcp"}
`

// gateway is an sse-server with a file of servers.
type gateway struct {
	*process
	addr, admin string
	config      string // the file
	remote      string // the address of the remote server
}

// startGateway starts a gateway with these servers. In them, SSE-SERVER is the program, and
// REMOTE the address of a remote server.
func startGateway(t *testing.T, servers string) *gateway {
	t.Helper()
	dir := t.TempDir()
	g := &gateway{addr: freeAddr(t), admin: freeAddr(t), config: filepath.Join(dir, "servers.yaml"), remote: freeAddr(t)}
	tokens := filepath.Join(dir, "tokens")
	writeFile(t, tokens, "prometheus:"+token+"\n")
	writeFile(t, g.config, fmt.Sprintf("addr: %s\nadmin-addr: %s\nauth-tokens-file: %s\nmax-connections-per-ip: 500\nconnect-rate: 0\nservers:%s", g.addr, g.admin, tokens,
		strings.NewReplacer("SSE-SERVER", sseServer(t), "REMOTE", g.remote).Replace(servers)))
	g.process = start(t, []string{"XDG_STATE_HOME=" + dir}, sseServer(t), "--config", g.config)
	g.prints("msg=serving")
	return g
}

// fetch returns the body of the answer to a GET with the token, which must have status 200.
func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.DefaultClient.Do(ssetest.Request(t.Context(), http.MethodGet, url, "", "Authorization", "Bearer "+token))
	ssetest.Must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, resp.Status, err, body)
	}
	return string(body)
}

// api is the HTTP API of Prometheus or Alertmanager.
type api struct {
	t    *testing.T
	base string
}

// ask decodes the answer to a GET.
func (a api) ask(path string, query url.Values, answer any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(fetch(a.t, a.base+path+"?"+query.Encode())), answer); err != nil {
		a.t.Fatalf("%s: %v", path, err)
	}
}

// samples returns the result of a query: the values, without those that are NaN.
func (a api) samples(expr string) (values []float64) {
	a.t.Helper()
	var answer struct {
		Data struct{ Result []struct{ Value [2]any } }
	}
	a.ask("/api/v1/query", url.Values{"query": {expr}}, &answer)
	for _, sample := range answer.Data.Result {
		value, err := strconv.ParseFloat(sample.Value[1].(string), 64)
		ssetest.Must(a.t, err)
		if !math.IsNaN(value) {
			values = append(values, value)
		}
	}
	return values
}

// startPrometheus starts Debian's Prometheus with the files of deploy/prometheus, which it
// scrapes and evaluates each second. change changes the rules.
func startPrometheus(t *testing.T, g *gateway, alertmanager string, change func(rules string) string, flags ...string) api {
	t.Helper()
	dir, addr := t.TempDir(), freeAddr(t)
	tokenFile := filepath.Join(dir, "token")
	writeFile(t, tokenFile, token)
	writeFile(t, filepath.Join(dir, "rules.yml"), change(readFile(t, "deploy/prometheus/rules.yml")))
	config := filepath.Join(dir, "prometheus.yml")
	writeFile(t, config, replaced(t, readFile(t, "deploy/prometheus/prometheus.yml"),
		"15s", "1s", "127.0.0.1:9464", g.admin, "127.0.0.1:9093", alertmanager, "/etc/prometheus/sse-server.token", tokenFile))
	run(t, installed(t, "promtool"), "check", "config", config)
	p := start(t, nil, append([]string{installed(t, "prometheus"), "--config.file", config, "--web.listen-address", addr,
		"--storage.tsdb.path", filepath.Join(dir, "data"), "--log.level=warn"}, flags...)...)
	return ready(p, addr)
}

// ready waits until Prometheus or Alertmanager answers, which it does some time after it
// has begun to listen.
func ready(p *process, addr string) api {
	p.t.Helper()
	p.until("be ready at "+addr, func() error {
		resp, err := http.Get("http://" + addr + "/-/ready")
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
	return api{p.t, "http://" + addr}
}

func unchanged(rules string) string { return rules }

// Each alert fires for what it is meant for, and is silent again. It names a server, an
// instance or a reason, and links to a heading that says what to do.
func TestRules(t *testing.T) {
	t.Parallel()
	promtool, dir := installed(t, "promtool"), filepath.Join(root, "deploy/prometheus")
	if printed := run(t, promtool, "check", "rules", filepath.Join(dir, "rules.yml")); !strings.Contains(printed, "SUCCESS") {
		t.Error(printed)
	}
	run(t, promtool, "test", "rules", filepath.Join(dir, "rules_test.yml"))

	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, For          string
				Labels, Annotations map[string]string
			}
		}
	}
	ssetest.Must(t, yaml.Unmarshal([]byte(readFile(t, "deploy/prometheus/rules.yml")), &rules))
	tests, alerts := readFile(t, "deploy/prometheus/rules_test.yml"), 0
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if r.Alert == "" {
				continue
			}
			alerts++
			if !strings.Contains(tests, "name: "+r.Alert+"\n") && !strings.Contains(tests, "name: "+r.Alert+" ") {
				t.Errorf("%s: no test", r.Alert)
			}
			if r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("%s: for, severity, summary or description is missing", r.Alert)
			}
			if !hasHeading(t, r.Annotations["runbook_url"]) {
				t.Errorf("%s: %s is no heading", r.Alert, r.Annotations["runbook_url"])
			}
		}
	}
	if alerts < 15 {
		t.Errorf("%d alerts", alerts)
	}
}

// hasHeading reports whether a link to a file of the repository names one of its headings.
func hasHeading(t *testing.T, link string) bool {
	t.Helper()
	path, ok := strings.CutPrefix(link, "https://github.com/mcp-sse/mcp-sse/blob/main/")
	path, fragment, _ := strings.Cut(path, "#")
	if !ok {
		return strings.HasPrefix(link, "https://github.com/mcp-sse/mcp-sse/issues")
	}
	for line := range strings.Lines(readFile(t, path)) {
		if heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
			slug := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			if strings.ReplaceAll(slug, " ", "-") == fragment {
				return true
			}
		}
	}
	return false
}

// Under load, each query of the dashboard has data in Debian's Prometheus, and promtool has
// nothing to say about the scrape. With native histograms, Prometheus takes those.
func TestDashboard(t *testing.T) {
	t.Parallel()
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID         int
			Title      string
			Type       string
			Datasource struct{ UID string }
			Targets    []struct{ Expr string }
		}
	}
	ssetest.Must(t, json.Unmarshal([]byte(readFile(t, "deploy/grafana/dashboard.json")), &dashboard))
	g := startGateway(t, threeServers)
	p := startPrometheus(t, g, freeAddr(t), unchanged)
	native := startPrometheus(t, g, freeAddr(t), unchanged, "--enable-feature=native-histograms")
	streams := openStreams(t, g, map[string]int{"healthy": 4, "looping": 2, "remote": 2})

	variables := strings.NewReplacer("$job", "sse-server", "$instance", g.admin, "$server", "healthy|looping|remote", "$__rate_interval", "10s")
	var queries []string
	for _, panel := range dashboard.Panels {
		if panel.Type != "row" && (len(panel.Targets) == 0 || panel.Datasource.UID != "${datasource}") {
			t.Errorf("panel %q has no query, or a data source of its own", panel.Title)
		}
		for _, target := range panel.Targets {
			queries = append(queries, variables.Replace(target.Expr))
		}
	}
	if len(queries) < 20 || strings.Contains(strings.Join(queries, ""), "$") {
		t.Fatalf("of the dashboard: %q", queries)
	}
	underLoad := func(p api, queries ...string) {
		t.Helper()
		eventually(t, "data for each query", func() error {
			openStream(t, g, "healthy").Close()
			for _, s := range streams {
				if ok := s.call(); ok != (s.server == "healthy") {
					t.Errorf("a call of %s: %v", s.server, ok)
				}
			}
			queries = slices.DeleteFunc(queries, func(query string) bool { return len(p.samples(query)) > 0 })
			if len(queries) > 0 {
				return fmt.Errorf("none for %q", queries)
			}
			return nil
		})
	}
	underLoad(p, queries...)
	underLoad(native, `histogram_quantile(0.95, sum by (server) (rate(mcp_server_operation_duration_seconds[10s])))`,
		`histogram_count(sum(mcp_sse_handshake_duration_seconds)) > 0`)

	for _, v := range dashboard.Templating.List {
		selector, label, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(variables.Replace(v.Definition), "label_values("), ")"), ", "+v.Name)
		if v.Definition != "" && (!ok || label != "" || len(p.samples("count by ("+v.Name+") ("+selector+")")) != map[string]int{"job": 1, "instance": 1, "server": 3}[v.Name]) {
			t.Errorf("the variable %s: %s", v.Name, v.Definition)
		}
	}
	check := exec.CommandContext(t.Context(), installed(t, "promtool"), "check", "metrics")
	check.Stdin = strings.NewReader(fetch(t, "http://"+g.admin+"/metrics"))
	if printed, err := check.CombinedOutput(); err != nil || len(printed) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, printed)
	}
}
