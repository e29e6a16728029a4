//go:build deploy

package deploytest

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// sooner makes each minute of the rules three seconds, and the hour three minutes.
func sooner(rules string) string {
	return regexp.MustCompile(`(\d+)m\b`).ReplaceAllStringFunc(regexp.MustCompile(`\b1h\b`).ReplaceAllString(rules, "60m"), func(minutes string) string {
		n, _ := strconv.Atoi(minutes[:len(minutes)-1]) // the pattern has digits
		return fmt.Sprintf("%ds", 3*n)
	})
}

// startAlertmanager starts Debian's Alertmanager, which tells nobody, at addr.
func startAlertmanager(t *testing.T, addr string) api {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	writeFile(t, config, "route: {receiver: none}\nreceivers: [{name: none}]\n")
	p := start(t, nil, installed(t, "prometheus-alertmanager"), "--config.file", config, "--storage.path", filepath.Join(dir, "data"),
		"--web.listen-address", addr, "--cluster.listen-address=", "--log.level=warn")
	return ready(p, addr)
}

// firing returns the alerts of Alertmanager that are not resolved, as "alert server".
func (a api) firing() map[string]bool {
	a.t.Helper()
	var alerts []struct {
		Labels struct{ Alertname, Server string }
	}
	a.ask("/api/v2/alerts", url.Values{"active": {"true"}}, &alerts)
	all := make(map[string]bool)
	for _, alert := range alerts {
		all[alert.Labels.Alertname+" "+alert.Labels.Server] = true
	}
	return all
}

// statusPage returns the failing servers that the status page names first, in Chromium.
func (g *gateway) statusPage() (failing []string) {
	g.t.Helper()
	page := run(g.t, installed(g.t, "chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+g.t.TempDir(),
		"--dump-dom", "http://operator:"+token+"@"+g.admin+"/status")
	if !regexp.MustCompile(`<h1 id="headline">`).MatchString(page) {
		g.t.Fatalf("the status page is\n%s", page)
	}
	for _, found := range regexp.MustCompile(`id="f-(\w+)"`).FindAllStringSubmatch(page, -1) {
		failing = append(failing, found[1])
	}
	slices.Sort(failing)
	return failing
}

// Of three servers two fail. Alertmanager and the status page name them alone, the operator
// mistypes a repair and then repairs both in the file, the alerts are resolved, and none of
// 200 clients has lost its stream.
func TestOperatorsDay(t *testing.T) {
	t.Parallel()
	g, alertmanager := startGateway(t, threeServers), freeAddr(t)
	alerts := startAlertmanager(t, alertmanager)
	startPrometheus(t, g, alertmanager, sooner, "--rules.alert.resend-delay=1s")
	streams := openStreams(t, g, map[string]int{"healthy": 160, "looping": 20, "remote": 20})

	// wait calls the tool of each server by each client until the alerts are right. Calls of
	// the healthy server always get their answers.
	wait := func(what string, repaired bool, right func(firing map[string]bool) bool) {
		t.Helper()
		eventually(t, what, func() error {
			answered := 0
			for _, s := range streams {
				switch ok := s.call(); {
				case ok:
					answered++
				case s.server == "healthy":
					t.Errorf("%s: a call of a healthy server failed", what)
				}
			}
			firing := alerts.firing()
			for alert := range firing {
				if regexp.MustCompile(` healthy$`).MatchString(alert) {
					t.Errorf("%s: %s fires", what, alert)
				}
			}
			if !right(firing) || repaired && answered < len(streams) {
				return fmt.Errorf("%d of %d calls have results, and what fires is %q", answered, len(streams), slices.Sorted(maps.Keys(firing)))
			}
			return nil
		})
	}
	edit := func(pairs ...string) {
		t.Helper()
		text, err := os.ReadFile(g.config)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, g.config, replaced(t, string(text), pairs...))
		g.signal(syscall.SIGHUP)
	}

	wait("alerts of both servers", false, func(firing map[string]bool) bool {
		return firing["McpServerDown looping"] && firing["McpServerDown remote"] && firing["McpServerCrashLoops looping"] && firing["McpCallsFail remote"]
	})
	if got, want := g.statusPage(), []string{"looping", "remote"}; !slices.Equal(got, want) {
		t.Errorf("the status page says that %q fail, want %q", got, want)
	}

	edit("command: [sh,", "comand: [sh,")
	wait("an alert of the mistake", false, func(firing map[string]bool) bool { return firing["McpConfigReloadFailed "] })

	remote := freeAddr(t)
	start(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, sseServer(t), "--addr", remote, "--max-connections-per-ip", "500").prints("msg=serving")
	edit(`comand: [sh, -c, "echo the disk is full >&2; exit 1"]`, "command: ["+sseServer(t)+", stdio]", "url: \"http://"+g.remote, "url: \"http://"+remote)
	wait("no alerts, and an answer for each client", true, func(firing map[string]bool) bool { return len(firing) == 0 })
	if failing := g.statusPage(); len(failing) > 0 {
		t.Errorf("the status page says that %q fail", failing)
	}
	for _, s := range streams {
		if s.ended.Load() {
			t.Errorf("a stream of %s has ended", s.server)
		}
	}
}

// unwellServers fail in other ways: one prints text, one starts slowly, one fails at every
// second start, and the others have as many clients as they may, or more.
const unwellServers = `
  chatty: {command: [sh, -c, "(while echo hello; do sleep 0.2; done) & exec SSE-SERVER stdio"], sessions: shared}
  halting: {command: [sh, -c, "rmdir HALT 2>&- || { mkdir HALT; exit 1; }; exec SSE-SERVER stdio"]}
  hanging: {command: [SSE-SERVER, stdio], sessions: shared}
  late: {command: [sh, -c, "sleep 6; exec SSE-SERVER stdio"]}
  crowded: {command: [SSE-SERVER, stdio], sessions: shared, max-connections: 4, max-connections-per-ip: 0}
  healthy: {command: [SSE-SERVER, stdio], sessions: shared}
`

// Each alert for the ways in which servers and clients go on, but not well, fires for its
// server, and one for the gateway when it has gone.
func TestAlertsOfTheDaemon(t *testing.T) {
	t.Parallel()
	g := startGateway(t, strings.ReplaceAll(unwellServers, "HALT", filepath.Join(t.TempDir(), "halt")))
	p := startPrometheus(t, g, freeAddr(t), sooner)
	openStreams(t, g, map[string]int{"chatty": 1, "crowded": 4, "healthy": 1})
	hanging, recent := openStream(t, g, "hanging"), []*stream{}
	missing := []string{
		"McpServerBreaksProtocol chatty", "McpHandshakesFail halting", "McpCallsHang hanging",
		"McpServerStartsSlowly late", "McpClientsRefused crowded", "McpConnectionsNearLimit crowded",
	}
	fires := func(alert, server string) bool {
		return len(p.samples(fmt.Sprintf(`ALERTS{alertstate="firing", alertname=%q, server=%q}`, alert, server))) > 0
	}
	rounds := 0
	eventually(t, "alerts", func() error {
		if rounds%2000 == 0 {
			hanging.post("sleep", `{"seconds":60}`)
		}
		if rounds++; rounds%40 == 0 { // slow starts are observed when clients come and stay for it
			recent = append(recent, openStream(t, g, "halting"), openStream(t, g, "late"))
		}
		if len(recent) > 20 {
			recent[0].Close()
			recent = recent[1:]
		}
		if _, err := g.dial("crowded"); err == nil || !strings.Contains(err.Error(), "503") {
			t.Errorf("a stream over the limit: %v", err)
		}
		missing = slices.DeleteFunc(missing, func(alert string) bool {
			name, server, _ := strings.Cut(alert, " ")
			return fires(name, server)
		})
		if len(missing) > 0 {
			return fmt.Errorf("none of %q", missing)
		}
		return nil
	})
	if n := len(p.samples(`ALERTS{server="healthy"}`)); n > 0 {
		t.Errorf("%d alerts of the healthy server", n)
	}
	g.stop()
	eventually(t, "McpGatewayDown", func() error {
		if !fires("McpGatewayDown", "") {
			return errors.New("it does not fire")
		}
		return nil
	})
}
