package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/fsnotify/fsnotify"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/observe"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// live is a program whose configuration changes while it runs.
type live struct {
	*program
	dir    string
	client *http.Client
}

// startLive runs the program with gw.yaml in a folder, on an address of its own, and an
// admin address.
func startLive(t *testing.T, content string, args ...string) *live {
	t.Helper()
	l := &live{dir: t.TempDir(), client: newClient(t, &http.Transport{})}
	l.write(t, "gw.yaml", content)
	l.program = start(t, append([]string{"--config", filepath.Join(l.dir, "gw.yaml"), "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--initialization-timeout", "5m"}, args...)...)
	return l
}

// write replaces a file by renaming another one over it, as editors do. It writes the path of the folder for {DIR} in
// the content. A key has no braces, so no key can contain that.
func (l *live) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(l.dir, name)
	err := os.WriteFile(path+"~", []byte(strings.ReplaceAll(content, "{DIR}", l.dir)), 0o600)
	if err == nil {
		err = os.Rename(path+"~", path)
	}
	ssetest.Must(t, err)
}

// reload asks for a reload, and returns the status and the body of the answer.
func (l *live) reload(t *testing.T, token string) (int, string) {
	t.Helper()
	resp, body := ask(t, l.client, http.MethodPost, l.admin+reloadPath, token)
	return resp.StatusCode, body
}

// wantReload reloads.
func (l *live) wantReload(t *testing.T) {
	t.Helper()
	if code, body := l.reload(t, ""); code != http.StatusOK || strings.TrimSpace(body) != `{"status":"reloaded"}` {
		t.Errorf("reload: got %d %s, want that it worked", code, body)
	}
}

// wantRefusal reloads, and checks the faults.
func (l *live) wantRefusal(t *testing.T, want string) {
	t.Helper()
	code, body := l.reload(t, "")
	var answer struct{ Faults []string }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || code != http.StatusUnprocessableEntity || !strings.HasPrefix(strings.Join(answer.Faults, "\n"), want) {
		t.Errorf("reload: got %d %s, want 422 and %s", code, body, want)
	}
}

// connections returns the ids of the open connections.
func (l *live) connections(t *testing.T) (ids []string) {
	t.Helper()
	_, body := get(t, l.client, l.admin+"/connections", "")
	var all struct{ Connections []struct{ ID string } }
	ssetest.Must(t, json.Unmarshal([]byte(body[strings.Index(body, "{"):]), &all))
	for _, c := range all.Connections {
		ids = append(ids, c.ID)
	}
	slices.Sort(ids)
	return ids
}

// openMany opens n streams of each server.
func (l *live) openMany(t *testing.T, n int, names ...string) {
	t.Helper()
	var wg sync.WaitGroup
	for _, name := range names {
		for range n {
			wg.Go(func() { ssetest.Open(t, l.client, l.server(name)+"?auto=0", nil) })
		}
	}
	wg.Wait()
}

// metric returns the line of a series.
func (l *live) metric(t *testing.T, name string) string {
	t.Helper()
	_, body := get(t, l.client, l.admin+"/metrics", "")
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name+" ") || strings.HasPrefix(line, name+"{") {
			return strings.TrimSpace(strings.TrimPrefix(line, name))
		}
	}
	return ""
}

// serial returns the number of the certificate that a new TCP connection gets.
func (l *live) serial(t *testing.T) string {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(l.base(), "https://"), &tls.Config{InsecureSkipVerify: true})
	ssetest.Must(t, err)
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

func echo(t *testing.T, session *mcp.ClientSession) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"message": "hi"}})
	if err != nil || result.IsError {
		t.Errorf("echo: got %v, %v", result, err)
	}
}

// Whatever is wrong in the file, the configuration of before serves on, and no stream ends.
func TestReloadWithFaults(t *testing.T) {
	t.Parallel()
	const good = "servers:\n  a: {}\n  b: {sessions: shared}\n"
	l := startLive(t, good)
	l.openMany(t, 60, "a", "b")
	sessions := []*mcp.ClientSession{connectTo(t, l.server("a")), connectTo(t, l.server("b"))}
	before, hash := l.connections(t), l.metric(t, "mcp_config_hash")
	gw := filepath.Join(l.dir, "gw.yaml")
	faults := 0
	for content, want := range map[string]string{
		"servers:\n  a: {}\n  b: {sesions: shared}\n": gw + `:3:7: unknown key "sesions" in servers.b (did you mean sessions?); see`,
		"servers:\n  a: {}\n  b: {sess":               gw + `:3:`,
		"":                                            gw + `: the file is empty`,
		good + "log-format: json\nprefix: /p\n":       gw + ":5:9: prefix: cannot change while sse-server runs: restart it\n" + gw + ":4:13: log-format: cannot",
		good + "id-key-file: {DIR}/other\n":           gw + `:4:14: id-key-file: cannot change`,
		good + "tls-cert: {DIR}/none\n":               gw + `:4:11: tls-cert: `,
		"max-connections: 1\n":                        gw + `: one server or several cannot change`,
		good + "auth-tokens-file: {DIR}/none\n":       gw + `:4:19: auth-tokens-file: there is no file`,
		good + "allowed-origins: [x]\n":               gw + `:4:18: allowed-origins: "x" is not an origin`,
		"servers:\n  a: {max-connections: 1}\n  c: {max-connections: 1, max-connections-per-ip: 2}\n": gw + `:3:51: max-connections-per-ip: must be at most`,
		"servers:\n  a: {}\n  b: {command: [no-such-program]}\n":                                      gw + `:3:16: command: start "no-such-program": there is no such program`,
		"servers:\n  a: {}\n  Bad: {}\n":                                                              gw + `:3:3: servers.Bad: want at most 64`,
		"servers:\n  a: {max-message-bytes: 1GiB}\n  b: {sessions: shared}\nwarm: 1\n":                gw + `:2:26: max-message-bytes: must be at most`,
	} {
		l.write(t, "gw.yaml", content)
		l.wantRefusal(t, want)
		faults++
	}
	ssetest.Must(t, os.Remove(gw))
	l.hangup <- syscall.SIGHUP
	if line := l.log.await(t, faults+1, "configuration not reloaded"); !strings.Contains(line, "by=SIGHUP") || !strings.Contains(line, "there is no file") {
		t.Errorf("without the file: got %s", line)
	}
	ssetest.Want(t, "mcp_config_last_reload_successful", l.metric(t, "mcp_config_last_reload_successful"), "0")
	if all := l.connections(t); len(before) != 122 || !slices.Equal(all, before) {
		t.Errorf("of %d connections there are %d, want all of 122", len(before), len(all))
	}
	l.openMany(t, 1, "a") // its limit has not changed
	after := l.connections(t)
	l.write(t, "gw.yaml", "# as before\n"+good)
	l.wantReload(t)
	if got := l.metric(t, "mcp_config_last_reload_successful"); got != "1" || l.metric(t, "mcp_config_hash") != hash {
		t.Errorf("after a good reload: successful is %s, and the hash %s, want 1 and %s", got, l.metric(t, "mcp_config_hash"), hash)
	}
	if all := l.connections(t); !slices.Equal(all, after) {
		t.Errorf("of %d connections there are %d, want all", len(after), len(all))
	}
	for _, session := range sessions {
		echo(t, session)
	}
}

// Servers come, go and change; streams of the others stay, and those of a server that
// changes too.
func TestReloadOfServers(t *testing.T) {
	t.Parallel()
	child := childConfig(t, "")
	l := startLive(t, "servers:\n  same: {}\n  other: "+child+"\n  fixed: {}\n  gone: {}\n")
	l.openMany(t, 50, "same", "other")
	same, other, gone, fixed := connectTo(t, l.server("same")), connectTo(t, l.server("other")), connectTo(t, l.server("gone")), connectTo(t, l.server("fixed"))
	l.write(t, "gw.yaml", "log-level: debug\nservers:\n  new: {}\n  same: {max-connections: 51}\n  other: "+childConfig(t, ", dir: /")+"\n  fixed: {sessions: shared}\n")
	l.wantReload(t)
	_, _ = gone.Wait(), fixed.Wait() // an end
	for _, session := range []*mcp.ClientSession{same, other, connectTo(t, l.server("new")), connectTo(t, l.server("fixed"))} {
		echo(t, session)
	}
	ssetest.Want(t, "connections", len(l.connections(t)), 104)
	wantStatus(t, l.client, l.server("same"), "", http.StatusServiceUnavailable)
	wantStatus(t, l.client, l.server("gone"), "", http.StatusNotFound, "/new/mcp, /same/mcp")
	ssetest.WantText(t, "log", l.log.String(), "level=DEBUG")
}

// A single server changes in place too. A change that its gateway cannot make is refused.
func TestReloadOfOneServer(t *testing.T) {
	t.Parallel()
	l := startLive(t, "max-connections: 2\n")
	session := connectTo(t, l.url)
	l.write(t, "gw.yaml", "max-connections: 1\nsessions: shared\nlog-level: debug\n")
	l.wantRefusal(t, filepath.Join(l.dir, "gw.yaml")+":2:11: sessions: cannot change while sse-server runs: restart it")
	l.write(t, "gw.yaml", "max-connections: 1\n")
	l.wantReload(t)
	wantStatus(t, l.client, l.url, "", http.StatusServiceUnavailable)
	echo(t, session)
	if strings.Contains(l.log.String(), "level=DEBUG") {
		t.Error("a reload that was refused has changed the level of the log")
	}
}

// A principal without tokens loses its connections, the others keep theirs.
func TestReloadOfTokens(t *testing.T) {
	t.Parallel()
	tokens := map[string]string{"alice": "alice-0123456789abcdef", "bob": "bob-0123456789abcdef"}
	l := startLive(t, "servers: {a: {}}\n")
	open := func(principal string) *mcp.ClientSession {
		t.Helper()
		session, err := tryConnect(t, l.server("a"), tokens[principal])
		if err != nil {
			t.Fatalf("%s: %v", principal, err)
		}
		return session
	}
	nobody := open("")
	l.write(t, "tokens", "alice:"+tokens["alice"]+"\nbob:"+tokens["bob"]+"\n")
	l.write(t, "gw.yaml", "servers: {a: {}}\nauth-tokens-file: {DIR}/tokens\n")
	l.wantReload(t)
	_ = nobody.Wait()
	l.log.await(t, 1, "reason=revoked")
	alice, bob := open("alice"), open("bob")
	if code, _ := l.reload(t, ""); code != http.StatusUnauthorized {
		t.Errorf("reload without a token: got %d, want 401", code)
	}
	l.write(t, "tokens", "bob:other-0123456789abcdef\nbob:"+tokens["bob"]+"\n")
	if code, body := l.reload(t, tokens["alice"]); code != http.StatusOK {
		t.Errorf("reload: got %d %s, want 200", code, body)
	}
	_ = alice.Wait()
	l.log.await(t, 2, "reason=revoked")
	echo(t, bob)
	if _, err := tryConnect(t, l.server("a"), tokens["alice"]); err == nil {
		t.Error("alice connects with the token that is gone")
	}
	if log := l.log.String(); strings.Contains(log, "0123456789abcdef") {
		t.Errorf("the log has a token:\n%s", log)
	}
}

// A reload keeps the key of ids, or that there is none, and so the names of tokens without one.
func TestReloadKeepsTheIDKey(t *testing.T) {
	t.Parallel()
	const token = "unnamed-0123456789abcdef"
	for _, hasKey := range []bool{true, false} {
		l := &live{dir: t.TempDir(), client: newClient(t, &http.Transport{})}
		state := filepath.Join(l.dir, "state")
		if !hasKey {
			l.write(t, "state", "no folder")
		}
		l.write(t, "tokens", token+"\n")
		l.program = startWith(t, map[string]string{"STATE_DIRECTORY": state},
			"--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--auth-tokens-file", filepath.Join(l.dir, "tokens"))
		session, err := tryConnect(t, l.url, token)
		ssetest.Must(t, err)
		if !hasKey {
			err = errors.Join(os.Remove(state), os.Mkdir(state, 0o700))
		}
		ssetest.Must(t, err)
		l.write(t, "state/id-key", strings.Repeat("other", 10))
		if code, body := l.reload(t, token); code != http.StatusOK {
			t.Errorf("reload: got %d %s, want 200", code, body)
		}
		echo(t, session)
		if log := l.log.String(); strings.Contains(log, "reason=revoked") {
			t.Errorf("the log has a stream that was revoked:\n%s", log)
		}
	}
}

// New connections get the new certificate. One that does not match its key is refused.
func TestReloadOfTheCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := newCertificate(t), newCertificate(t)
	l := &live{dir: dir, client: newClient(t, &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}})}
	l.write(t, "cert", first.cert)
	l.write(t, "key", first.key)
	cert, key := filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	l.program = start(t, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	ssetest.Open(t, l.client, l.url, nil)
	l.write(t, "cert", second.cert)
	l.wantRefusal(t, "--tls-cert: ")
	ssetest.Want(t, "certificate after one without its key", l.serial(t), first.serial)
	l.write(t, "key", second.key)
	l.wantReload(t)
	ssetest.Want(t, "certificate", l.serial(t), second.serial)
	if len(l.connections(t)) != 1 {
		t.Error("the stream has ended")
	}
}

// Reloads that are asked for at the same time run one after the other. SIGHUP does not end
// the daemon, with or without a file, and a reload changes nothing that is as before.
func TestReloadsAtOnce(t *testing.T) {
	t.Parallel()
	l := &live{client: newClient(t, &http.Transport{})}
	l.program = start(t, "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--sessions", "shared")
	session := connectTo(t, l.url)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { l.wantReload(t) })
	}
	l.hangup <- syscall.SIGHUP
	l.hangup <- syscall.SIGHUP
	wg.Wait()
	l.log.await(t, 1, "by=SIGHUP")
	echo(t, session)
	wantStatus(t, l.client, l.admin+reloadPath, "", http.StatusMethodNotAllowed)
	if resp, body := ask(t, l.client, http.MethodPost, l.base()+reloadPath, ""); resp.StatusCode != http.StatusNotFound || !strings.Contains(body, "admin-addr") {
		t.Errorf("on the main address: got %s %s, want 404 and where it is", resp.Status, body)
	}
	if log := l.log.String(); strings.Contains(log, "server replaced") || strings.Contains(log, "level=ERROR") {
		t.Errorf("a reload of the same has changed something:\n%s", log)
	}
	l.signals <- syscall.SIGTERM
	l.wantExit(exit.OK)
}

// The watch sees files that are replaced, also by the symbolic links of Kubernetes, and
// files that they name; it tells each fault once.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	version := func(name, content string) {
		t.Helper()
		l := &live{dir: filepath.Join(dir, name)}
		err := os.Mkdir(l.dir, 0o700)
		l.write(t, "gw.yaml", content)
		if err == nil {
			err = os.Symlink(name, filepath.Join(dir, "..data~"))
		}
		if err == nil {
			err = os.Rename(filepath.Join(dir, "..data~"), filepath.Join(dir, "..data"))
		}
		ssetest.Must(t, err)
	}
	version("..1", "warm: 1\n")
	ssetest.Must(t, os.Symlink("..data/gw.yaml", filepath.Join(dir, "gw.yaml")))
	ssetest.Must(t, os.Mkdir(filepath.Join(dir, "new"), 0o700))
	l := &live{dir: dir}
	l.program = start(t, "--watch", "--config", filepath.Join(dir, "gw.yaml"), "--addr", "127.0.0.1:0")
	const reloaded = `msg="configuration reloaded" by=watch changed=`
	for i, step := range []struct {
		change func()
		want   string
	}{
		{func() { version("..2", "warm: 2\n") }, reloaded},
		{func() { version("..3", "wram: 3\n") }, `gw.yaml:1:1: unknown key`},
		{func() { version("..4", "wram: 3\n"); version("..5", "warm: 2\n") }, reloaded},
		{func() { l.write(t, "gw.yaml", "warm: 3\n") }, reloaded},
		{func() {
			l.write(t, "tokens", "alice:0123456789abcdef\n")
			l.write(t, "gw.yaml", "auth-tokens-file: {DIR}/tokens\n")
		}, reloaded},
		{func() { l.write(t, "tokens", "bob:0123456789abcdef\n") }, reloaded},
		{func() { l.write(t, "gw.yaml", "auth-tokens-file: {DIR}/new/tokens\n") }, "there is no file"},
		{func() { l.write(t, "new/tokens", "eve:0123456789abcdef\n") }, reloaded},
	} {
		step.change()
		if line := l.log.await(t, i+1, "by=watch"); !strings.Contains(line, step.want) {
			t.Errorf("step %d: got %s, want %s", i, line, step.want)
		}
	}
}

// Where gateways cannot take the place of those before, nothing is left of those that were made for it.
func TestFailedReplacementLeavesNoGateway(t *testing.T) {
	load := func(servers string) *config.Config {
		return mustLoad(t, nil, "--addr", "127.0.0.1:0", "--config", clitest.WriteFile(t, "gw.yaml", "servers:\n"+servers))
	}
	log := slog.New(slog.DiscardHandler)
	d := &daemon{log: log, turn: make(chan struct{}, 1), common: gateway.Options{Logger: log, Registry: metrics.NewRegistry()}}
	ssetest.Must(t, d.replaceGateways(load("  a: {}\n")))
	ssetest.Must(t, d.gw.Shutdown(t.Context()))
	if err := d.replaceGateways(load("  b: {}\n")); err == nil {
		t.Fatal("servers that have ended take another gateway")
	}
	families, err := d.common.Registry.Gather()
	ssetest.Must(t, err)
	for _, family := range families {
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if label.GetName() == "server" && label.GetValue() == "b" {
					t.Errorf("%s has a series of the gateway", family.GetName())
				}
			}
		}
	}
}

// A reload that fails gives no view a new server: the gateway that was made for it has ended.
func TestFailedReplacementLeavesViewsTheirServers(t *testing.T) {
	load := func(servers, views string) *config.Config {
		content := "servers: {" + servers + "}\nviews: {" + views + "}\n"
		return mustLoad(t, nil, "--addr", "127.0.0.1:0", "--config", clitest.WriteFile(t, "gw.yaml", content))
	}
	log := slog.New(slog.DiscardHandler)
	d := &daemon{log: log, turn: make(chan struct{}, 1), common: gateway.Options{Logger: log, Registry: metrics.NewRegistry()}}
	ssetest.Must(t, d.replaceGateways(load("a: {}", "v: {servers: {a: {}}}, w: {servers: {a: {}}}")))
	members := func() (names []string) {
		for _, m := range d.views["v"].Members() {
			names = append(names, m.Name)
		}
		return names
	}
	next := load("a: {}, b: {}", "v: {servers: {a: {}, b: {}}}, w: {servers: {a: {}}}")
	ssetest.Must(t, d.replaceGateways(next))
	ssetest.Want(t, "members after a reload", strings.Join(members(), " "), "a b")
	ssetest.Must(t, d.gateways["w"].Shutdown(t.Context()))
	next = load("a: {}, b: {}, c: {}", "v: {servers: {a: {}, c: {}}}, w: {servers: {a: {}}}")
	if err := d.replaceGateways(next); err == nil {
		t.Fatal("a gateway that has ended takes other options")
	}
	ssetest.Want(t, "members after a reload that fails", strings.Join(members(), " "), "a b")
	ssetest.Must(t, d.gw.Shutdown(t.Context()))
}

// The watch says nothing of what is as before, and each fault once.
func TestWatchIsSilent(t *testing.T) {
	t.Parallel()
	var log output
	level := new(slog.LevelVar)
	loads := []string{"--warm=0", "--warm=-1", "--warm=-1", "--no-such", "--warm=0"}
	load := func(running *config.Config) (*config.Config, error) {
		flag := loads[0]
		loads = loads[1:]
		return config.Load([]string{"--addr", "127.0.0.1:0", flag}, clitest.Environment(nil), running)
	}
	c, err := load(new(config.Config))
	ssetest.Must(t, err)
	loads = append([]string{"--warm=0"}, loads...) // the same again
	d, err := newDaemon(c, load, observe.NewLogger(&log, level, "text"), level, &observe.AuditLog{}, &observe.Tracing{})
	if err == nil {
		err = d.listen()
	}
	ssetest.Must(t, err)
	defer func() { _ = errors.Join(d.endpoints[0].Close(), d.gw.Shutdown(context.Background())) }()
	for range len(loads) {
		_ = d.reload(t.Context(), byWatch)
	}
	var got []string
	for line := range strings.Lines(log.String()) {
		if _, text, ok := strings.Cut(line, "by=watch"); ok {
			got = append(got, text[:min(13, len(text))])
		}
	}
	if want := []string{` err="--warm:`, ` err="unknown`, ` changed=noth`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// When changes are lost, the watch looks at the files.
func TestWatchAfterLostChanges(t *testing.T) {
	t.Parallel()
	watcher := clitest.Must(fsnotify.NewWatcher())
	loads := make(chan int)
	d := &daemon{audit: &observe.AuditLog{},
		log: slog.New(slog.DiscardHandler), turn: make(chan struct{}, 1), watcher: watcher,
		load: func(*config.Config) (*config.Config, error) { loads <- 1; return nil, errors.New("of no matter") },
	}
	d.metrics = clitest.Must(metrics.NewConfig(metrics.NewRegistry()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.reloadWhenAsked(ctx, nil)
	}()
	<-loads // for changes since the start
	watcher.Errors <- fsnotify.ErrEventOverflow
	<-loads
	cancel()
	<-ended
}
