package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/compose"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/selection"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/upstream/stdio"
)

var update = flag.Bool("update", false, "rewrite docs/reference/config.md from the options")

const secret = "s3cret-0123456789"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mustLoad loads a configuration that must be right.
func mustLoad(t *testing.T, env map[string]string, args ...string) *Config {
	t.Helper()
	c, err := Load(args, clitest.Environment(env), new(Config))
	if err != nil {
		t.Fatalf("load %q: %v", args, err)
	}
	return c
}

// wantRefusal loads a configuration that is wrong: the error is one line, which has want,
// and no secret.
func wantRefusal(t *testing.T, env map[string]string, want string, args ...string) {
	t.Helper()
	_, err := Load(args, clitest.Environment(env), new(Config))
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), secret) {
		t.Errorf("%q: got %v, want one line with %q", args, err, want)
	}
}

// byName returns the flags of a configuration by name.
func (c *Config) byName() map[string]*kong.Flag {
	all := map[string]*kong.Flag{}
	for _, f := range c.flags {
		all[f.Name] = f
	}
	return all
}

func TestValuesThatAreTaken(t *testing.T) {
	for _, tc := range []struct{ flag, given, want string }{
		{"addr", "[::1]:80", "[::1]:80"},
		{"heartbeat-interval", "1500ms", "1.5s"},
		{"heartbeat-interval", "0", "0s"},
		{"idle-timeout", "1h", "1h"},
		{"start-timeout", "90m", "1h30m"},
		{"max-connections", "10_000", "10000"},
		{"connect-rate", "0.5", "0.5"},
		{"max-message-bytes", "1 GiB", "1024MiB"},
		{"max-message-bytes", "2097152", "2MiB"},
		{"max-message-bytes", "2048KiB", "2MiB"},
		{"auto-initialize", "no", "false"},
		{"transports", "sse", "sse"},
	} {
		c := mustLoad(t, nil, "--"+tc.flag+"="+tc.given)
		ssetest.Want(t, "--"+tc.flag+"="+tc.given, flagText(c.byName()[tc.flag].Target), tc.want)
	}
}

// makeCertificate returns the files of a certificate and its key.
func makeCertificate(t *testing.T) (cert, key string) {
	t.Helper()
	private := clitest.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der := clitest.Must(x509.CreateCertificate(rand.Reader, template, template, private.Public(), private))
	bytes := clitest.Must(x509.MarshalPKCS8PrivateKey(private))
	return clitest.WriteFile(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		clitest.WriteFile(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes})))
}

func TestBadFlags(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n")
	cert, key := makeCertificate(t)
	_, other := makeCertificate(t)
	folder, wide := t.TempDir(), clitest.WriteFile(t, "utf16.yaml", "\xff\xfea\x00")
	for want, args := range map[string][]string{
		"unknown flag --nonsense":                                        {"--nonsense"},
		"unknown flag --port, did you mean --addr 127.0.0.1:8080?":       {"--port"},
		"unexpected argument npx: the command to serve":                  {"npx"},
		`unexpected argument chek, did you mean check?`:                  {"chek"},
		"goes after --config, as in: sse-server --config":                {"servers.yaml"},
		"goes after --url, as in: sse-server --url https":                {"https://a/mcp"},
		"the command: nothing comes after --":                            {"--"},
		"unknown flag --start":                                           {"--start"},
		`--for: nothing is known of "tray", did you mean `:               {"check", "--for", "tray"},
		"--warm: want a value, as in: --warm N":                          {"--warm"},
		"--addr: want HOST:PORT":                                         {"--addr", "8080"},
		"--admin-addr: want HOST:PORT with a port":                       {"--admin-addr", "a:http"},
		"--log-level: want one of debug, info":                           {"--log-level", "INFO"},
		"--only: want one of read-only, non-destructive, but":            {"--only", "readonly"},
		`--include: the glob "a[b]" cannot be read`:                      {"--include", "x,a[b]"},
		`--resources: a glob is empty`:                                   {"--resources", ""},
		"--transports: want one of sse, streamable, but":                 {"--transports", "sse,stdio"},
		"--start-timeout: want a number with a unit":                     {"--start-timeout", "15"},
		"--request-timeout: 0 is refused":                                {"--request-timeout", "0"},
		"--shutdown-timeout: want more than 0, such as 15s":              {"--shutdown-timeout=-1s"},
		`--max-connections: want 0 or more, such as 2, but got "-1"`:     {"--max-connections=-1"},
		"--connect-rate: want a number up to":                            {"--connect-rate", "NaN"},
		"--max-message-bytes: want bytes from":                           {"--max-message-bytes", "1MB"},
		"--max-message-bytes: want bytes from 1KiB":                      {"--max-message-bytes", "7"},
		"--trusted-proxies: want a network":                              {"--trusted-proxies", "proxy.example"},
		"--dir: want a directory that exists":                            {"--dir", "/does/not/exist", "--", "x"},
		"--env: want KEY=VALUE":                                          {"--env", secret, "--", "x"},
		"--env: A is given twice":                                        {"--env", "A=1", "--env", "A=2", "--", "x"},
		"the command: want a program":                                    {"--", ""},
		"--config: want a value, as in: --config FILE":                   {"--config"},
		"--config: there is no file /does/not/exist":                     {"--config", "/does/not/exist"},
		"--config: " + folder + " is a folder: name a file":              {"--config", folder},
		"--env-file: " + folder + " is a folder: name a file":            {"--env-file", folder, "--", "x"},
		"--config: " + wide + " is in UTF-16: save it in UTF-8":          {"--config", wide},
		"--tls-cert: also needs --tls-key":                               {"--tls-cert", "c.pem"},
		"--tls-key: also needs --tls-cert":                               {"--tls-key", "k.pem"},
		"unknown flag --command: the command to serve goes after --":     {"--command", "x"},
		"unknown flag --cmd: the command to serve goes after --":         {"--cmd", "x"},
		"the command: neither an argument nor a variable":                {"--env", "A=\x00", "--", "x"},
		"--tls-cert: there is no file c.pem":                             {"--tls-cert", "c.pem", "--tls-key", "k.pem"},
		"--tls-key: there is no file k.pem":                              {"--tls-cert", tokens, "--tls-key", "k.pem"},
		"--tls-cert: " + tokens + " holds no certificate in PEM":         {"--tls-cert", tokens, "--tls-key", tokens},
		"--tls-key: " + tokens + " holds no private key in PEM":          {"--tls-cert", cert, "--tls-key", tokens},
		"--tls-cert: " + key + " holds a private key":                    {"--tls-cert", key, "--tls-key", cert},
		"--tls-key: " + cert + " holds a certificate":                    {"--tls-cert", cert, "--tls-key", cert},
		"--tls-cert: " + cert + " does not belong to the key of tls-key": {"--tls-cert", cert, "--tls-key", other},
		"--env: has no effect without a command":                         {"--env", "A=1"},
		"--header: has no effect without a url":                          {"--header", "A: b", "--", "x"},
		"--url: want either a command or a URL":                          {"--url", "https://a", "--", "x"},
		"--addr: other machines may reach :8080":                         {"--addr", ":8080"},
		"--addr: other machines may reach gw.example":                    {"--addr", "gw.example:8080"},
		"--admin-addr: other machines may reach 0.0.0.0":                 {"--admin-addr", "0.0.0.0:9090"},
		"--admin-addr: want another port than --addr, which has 8081":    {"--addr", "127.0.0.1:8081", "--admin-addr", "127.0.0.1:8081", "--", "x"},
		"--url: the address of the server is not a URL":                  {"--url", "::" + secret},
		"is not a URL: write it as http://HOST:PORT/mcp":                 {"--url", "http://a " + secret + "/mcp"},
		"--url: the address of the server names no host":                 {"--url", "http:///" + secret},
		"--header: want 'NAME: VALUE'":                                   {"--url", "https://a", "--header", secret},
		"the transport sets Content-Type itself":                         {"--url", "https://a", "--header", "content-type: " + secret},
		"the environment variable NOPE is not set":                       {"--url", "https://a", "--header", "A: ${NOPE}"},
		"want a } after ${NAME}":                                         {"--url", "https://a", "--header", "A: ${" + secret},
		"--header: A: there is no file /does/not/exist":                  {"--url", "https://a", "--header", "A: ${file:/does/not/exist}"},
		"would get the tokens of --auth-tokens-file":                     {"--url", "https://a", "--forward-header", "authorization", "--auth-tokens-file", tokens},
	} {
		wantRefusal(t, nil, want, args...)
	}
	for _, args := range [][]string{
		{"--addr", ":8080", "--insecure"}, {"--addr", ":8080", "--auth-tokens-file", tokens}, {"--addr", "[::ffff:127.0.0.1]:8080"},
		{"--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}, {"stdio", "--", "x"}, {"--", "stdio"}, {"check"},
		{"serve", "--warm", "1"}, {"--warm", "1", "check", "--start"},
	} {
		mustLoad(t, nil, args...)
	}
}

// An option that check --url cannot use is refused, with what to write.
func TestCheckOfAURL(t *testing.T) {
	const url = "check --url http://127.0.0.1:1/mcp "
	for args, want := range map[string]string{
		url + "--origin foo":                           `--origin: want a scheme and a host, such as https://app.example.com, but got "foo"`,
		url + "--origin https://app.example.com/page":  `--origin: want a scheme and a host, such as https://app.example.com, but got`,
		url + "--origin *":                             "--origin: want a scheme and a host",
		url + "--start --wait 70s":                     "--wait: has no effect with --start, which opens a session with the server; leave out --start",
		url + "--start --origin https://a":             "--origin: has no effect with --start",
		url + "--offline --json":                       "--json: has no effect with --offline",
		"check --wait 70s":                             "--wait: has no effect without --url",
		"check --url 127.0.0.1:8080/mcp":               "did you mean http://127.0.0.1:8080/mcp?",
		"check --url localhost:8080/mcp":               "did you mean http://localhost:8080/mcp?",
		"check --url [::1]:8080/mcp":                   "did you mean http://[::1]:8080/mcp?",
		"check --url gw:8080/mcp":                      "did you mean http://gw:8080/mcp?",
		"check --url gw.example.com/mcp?key=" + secret: "did you mean https://gw.example.com/mcp?",
		"check --url u:" + secret + "@gw.example.com/": "did you mean https://gw.example.com/?",
	} {
		wantRefusal(t, nil, want, strings.Fields(args)...)
	}
	for _, args := range []string{"foo", "ws://gw.example.com/mcp", "mailto:x", "http:///mcp", "/mcp", ":8080"} {
		if _, err := Load([]string{"check", "--url", args}, clitest.Environment(nil), new(Config)); err == nil || strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: got %v", args, err)
		}
	}
	for _, origin := range []string{"https://app.example.com", "http://localhost:3000"} {
		mustLoad(t, nil, "check", "--url", "http://127.0.0.1:1/mcp", "--origin", origin)
	}
}

// An option of another program leads to the option here that people mean by it.
func TestMistakesAreExplained(t *testing.T) {
	wantRefusal(t, map[string]string{"SSE_SERVER_WARM": "yes"}, `SSE_SERVER_WARM: want a number, 0 or more, such as 2, but got "yes"`, "--", "x")
	for args, want := range map[string]string{
		"--warm yes -- x":              `--warm: want a number, 0 or more, such as 2, but got "yes"`,
		"-v":                           "unknown flag -v, did you mean --log-level debug, or --version?",
		"--token abc":                  "did you mean --auth-tokens-file FILE?",
		"--url https://a --token a":    "did you mean --header 'Authorization: Bearer TOKEN'?",
		"--api-key=a --url=https://a":  "did you mean --header 'Authorization: Bearer TOKEN'?",
		"--stdio npx -y x":             "unknown flag --stdio: use: sse-server -- npx -y x",
		"check servers.yaml":           "as in: sse-server check --config servers.yaml",
		"check https://a/mcp":          "as in: sse-server check --url https://a/mcp",
		"check --start servers.yaml":   "as in: sse-server check --config servers.yaml",
		"connect cursor http://a":      "connect: the address of a server goes after --url, as in: sse-server connect cursor --url http://a",
		"-e A=1 -- x":                  "unknown flag -e, did you mean --env NAME=VALUE?",
		"--env A=1 B=2 -- x":           "unexpected argument B=2: each variable has its own --env, as in: --env A=1 --env B=2",
		"--header X: y --url http://a": "unexpected argument y: write a header in quotes, as in: --header 'NAME: VALUE'",
		"—config gw.yaml":              "unexpected argument —config: an editor has replaced its dashes: write --config",
		"check –offline":               "unexpected argument –offline: an editor has replaced its dashes: write --offline",
		"--transport sse":              "unknown flag --transport, did you mean --transports?",
		"--sse-path /events":           "unknown flag --sse-path: HTTP+SSE is at /sse; --prefix puts a path before it",
		"--messagePath /m":             "unknown flag --messagePath: each client is told where it posts its messages",
		"--daemon":                     "unknown flag --daemon: sse-server stays in the foreground; docs/operations.md has a unit of systemd",
		"--quiet":                      "unknown flag --quiet, did you mean --log-level error?",
		"--proxy http://p":             "unknown flag --proxy: the environment variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY name the proxy to remote servers",
		"check --url 127.0.0.1:1921":   "--url: the address of the server must begin with http:// or https://",
		"--timeout 5s":                 "did you mean --request-timeout 60s, or --start-timeout for the start of the server?",
		"--port 8000":                  "unknown flag --port, did you mean --addr 127.0.0.1:8000?",
		"--port=8000 -- x":             "unknown flag --port, did you mean --addr 127.0.0.1:8000?",
		"-p 8000":                      "unknown flag -p, did you mean --addr 127.0.0.1:8000?",
		"--host 0.0.0.0 --port 8000":   "unknown flag --host, did you mean --addr 0.0.0.0:8000?",
		"--listen :9000":               "unknown flag --listen, did you mean --addr 127.0.0.1:9000?",
		"--outputTransport sse":        "unknown flag --outputTransport: both transports are served at one URL; --transports sse serves",
		"npx -y pkg":                   "the command to serve goes after --, as in: sse-server -- npx -y pkg",
		"check npx -y pkg --port 1":    "as in: sse-server check -- npx -y pkg --port 1",
		"tools gw.yml":                 "as in: sse-server tools --config gw.yml",
		"tools my-server":              `tools: no server or view is called "my-server"; want one of demo; the command to serve goes after --, as in: sse-server tools -- my-server`,
		"--debug":                      "did you mean --log-level debug?",
		"--shared":                     "did you mean --sessions shared?",
		"--oauth":                      "unknown flag --oauth: it is a key of the file that --config names, such as oauth: {issuer",
		"--oauth x":                    "unknown flag --oauth: it is a key of the file that --config names",
		"--audit-log true -- x":        `--audit-log: want the path of a file, or - for stdout, but got "true"`,
		"--log-file x":                 "unknown flag --log-file: the log goes to stderr: put 2> FILE after the command",
		"--no-auth":                    "unknown flag --no-auth: there is no authentication without --auth-tokens-file and oauth",
		"--ui":                         "unknown flag --ui: a page is at the URL of each server for browsers",
		"--path /x":                    "unknown flag --path, did you mean --prefix PATH, before /mcp?",
		"--named-server a 'x'":         "unknown flag --named-server: several servers are listed in a file, below servers",
		"--named-server-config a.json": "unknown flag --named-server-config: several servers are listed in a file",
		"--pass-environment -- x":      "unknown flag --pass-environment: a command gets the environment without it",
		"--baseUrl http://a":           "unknown flag --baseUrl: a client is told paths alone",
		"--allow-origin *":             "unknown flag --allow-origin, did you mean --allowed-origins ORIGIN?",
		"--max-sessions 5":             "unknown flag --max-sessions, did you mean --max-connections N?",
		"--reload":                     "unknown flag --reload, did you mean --watch?",
		"--warm 1000000 -- x":          `--warm: want a number up to 1000, as each is a process, but got "1000000"`,
		"--name ünï -- x":              `--name: want letters of a-z, digits, _ and -, such as uni, but got "ünï"`,
		"--command x":                  "unknown flag --command: the command to serve goes after --",
		"--name":                       "--name: want a value, as in: --name NAME",
		"--heartbeat-interval -5s":     `--heartbeat-interval: want 0 or more, such as 15s, but got "-5s"`,
		"--request-timeout -5s":        `--request-timeout: want more than 0, such as 15s, but got "-5s"`,
		"--idle-timeout -5s":           `--idle-timeout: want 0 or more, such as 15s, but got "-5s"`,
		"--max-connections -1":         `--max-connections: want 0 or more, such as 2, but got "-1"`,
		"--connect-rate -0.5":          `--connect-rate: want 0 or more, such as 2, but got "-0.5"`,
		"--max-message-bytes -1":       `--max-message-bytes: want bytes from 1KiB to 1GiB, such as 4MiB, but got "-1"`,
		"--dir -x -- x":                `--dir: want DIR, but "-x" looks like a flag: write --dir=-x if it is the value`,
		"--heartbeat-interval=-5s":     `--heartbeat-interval: want 0 or more, such as 15s, but got "-5s"`,
		"--warm=-1 -- x":               `--warm: want 0 or more, such as 2, but got "-1"`,
		"check --for":                  "--for: want a value, as in: --for CLIENT",
		"--start":                      "unknown flag --start: it goes after check",
		"mcp.json":                     "goes after --config, as in: sse-server --config mcp.json",
		"--sse https://a/sse --outputTransport stdio": "use: sse-server stdio --url https://a/sse",
		"--streamableHttp https://a/mcp":              "use: sse-server stdio --url https://a/mcp",
		"--sse":                                       "both transports are served at one URL",
		"stdio --addr 127.0.0.1:1 -- x":               "--addr: has no effect on stdio",
		"stdio --auth-tokens-file t -- x":             "--auth-tokens-file: has no effect on stdio",
		"--auth-tokens-file " + clitest.WriteFile(t, "t", "a:sha256:abc\n"): "line 1: the token wants 64 hex digits after sha256:",
	} {
		wantRefusal(t, nil, want, strings.Fields(args)...)
	}
	wantRefusal(t, nil, `as in: sse-server -- sh -c 'echo '\''$A'\'''`, "sh", "-c", "echo '$A'")
	wantRefusal(t, nil, "as in: sse-server -- npx -y x", "npx -y x")
	for _, args := range [][]string{
		{"--stdio", "npx -y x", "--port", "8000"}, {"--port=8000", "--stdio=npx -y x"}, {"--stdio", "npx", "-y", "x", "--port", "8000", "--ssePath", "/a"},
		{"--port", "8000", "--stdio=npx", "-y", "x"},
	} {
		wantRefusal(t, nil, ": use: sse-server --addr 127.0.0.1:8000 -- npx -y x", args...)
	}
	mustLoad(t, map[string]string{"SSE_SERVER_ADDR": "0.0.0.0:8080"}, "stdio", "--", "x") // as an image has it
}

func TestBadFiles(t *testing.T) {
	const demo = "servers: {a: {}}\n"
	for content, want := range map[string]string{
		"addr: 127.0.0.1:0\nlogLevel: x\n":            `:2:1: unknown key "logLevel" (did you mean log-level?); see`,
		"config: x\n":                                 `:1:1: unknown key "config"`,
		"max-connections: many\n":                     `:1:18: max-connections: want a number, 0 or more, such as 2, but got "many"`,
		"max-connections: 1.5\n":                      `:1:18: max-connections: want a number, 0 or more`,
		"max-connections: [1]\n":                      `:1:18: max-connections: `,
		"insecure: maybe\n":                           `:1:11: insecure: want true or false, but got`,
		"log-level: loud\n":                           `:1:12: log-level: want one of debug`,
		"exclude: [a, \"!b\"]\n":                      `:1:10: exclude: the glob "!b" cannot be read`,
		"servers:\n  a: {prompts: [\"{\"]}\n":         `:2:16: prompts: the glob "{" cannot be read`,
		"start-timeout: 5\n":                          `:1:16: start-timeout: want a number with a unit`,
		"addr: [a]\n":                                 `:1:7: addr: `,
		"env: [A]\n":                                  `:1:6: env: want KEY=VALUE`,
		"env: {A: {B: " + secret + "}}\n":             `:1:6: env: a YAML mapping is not supported`,
		"command: []\n":                               `:1:10: command: want a program and its arguments`,
		"command: {a: b}\n":                           `:1:10: command: a YAML mapping is not supported`,
		"command: [a, [b]]\n":                         `:1:10: command: a YAML sequence is not supported`,
		"addr: a\naddr: b\n":                          `:2:1: mapping key "addr" already defined`,
		"header: {A: \"" + secret + "\n":              `:1:13: `,
		"\taddr: x\n":                                 `:1:`,
		"addr\n":                                      `:1:1: want lines of NAME: VALUE, with a space after the colon, such as command: [npx, -y, server]`,
		"command: npx\nargs: -y pkg\n":                `:2:7: args: want a list, such as [-y, server]`,
		"command:[x]\n":                               `:1:1: want lines of NAME: VALUE, with a space after the colon`,
		"addr: 127.0.0.1:0\n---\naddr: 127.0.0.1:1\n": `: want one YAML document`,

		"# later\n": `: the file is empty; want options`,
		"{}\n":      `: the file is empty; want options`,
		"url: https://a\nheader: {A: >" + secret + "}\n": `:2:13: `,
		"url: https://a\nheader: >" + secret + "\n":      `:2:9: write the text below on lines of its own`,

		"":                              `: the file is empty; want options`,
		"\ufeff \n":                     `: the file is empty; want options`,
		"servers:\n":                    `:1:10: servers: want a mapping of names to options`,
		"comand: x\n":                   `:1:1: unknown key "comand" (did you mean command?); see sse-server --help`,
		"mcpservers: {a: {}}\n":         `:1:1: unknown key "mcpservers" (did you mean mcpServers?); see`,
		"server: {a: {}}\n":             `:1:1: unknown key "server" (did you mean servers?); see`,
		"servers: {a: {comand: [x]}}\n": `:1:15: unknown key "comand" in servers.a (did you mean command?); see`,
		`{"mcpServers": {}}`:            `:1:16: mcpServers: want a mapping of names to servers`,
		`{"mcpServers": {"a": []}}`:     `:1:22: want a mapping with command or url`,
		`{"mcpServers": {"A b": {"comand": "x"}}}`:                                   `:1:17: mcpServers.A b: want command or url (did you mean command?)`,
		`{"mcpServers": {"a": {"args": ["x"]}}}`:                                     `:1:17: mcpServers.a: want command or url`,
		`{"mcpServers": {"a": {"url": "ws:` + secret + `"}}}`:                        `:1:30: url: the address of the server`,
		`{"mcpServers": {"a": {"url": "https://a", "headers": {"A": "${NO}"}}}}`:     `:1:54: headers: A: the environment variable NO`,
		`{"mcpServers": {"a": {"url": "https://a", "headers": ["` + secret + `"]}}}`: `:1:54: headers: want 'NAME: VALUE'`,
		`{"mcpServers": {"a": {"command": "x", "args": {}}}}`:                        `:1:47: command: a YAML mapping is not supported`,
		`{"mcpServers": {"a": {"command": "x", "disabled": true}}}`:                  `:1:16: mcpServers: all servers are disabled`,
		`{"mcpServers": {"a": {"command": "x", "enabled": false}}}`:                  `:1:16: mcpServers: all servers are disabled`,
		`{"mcpServers": {"A b": {"command": "x"}, "a.b": {"url": "https://a"}}}`:     `:1:42: mcpServers.a.b: want another name: /a-b is that of `,
		`{"servers": {"a": {}}, "mcpServers": {"A": {"command": "x"}}}`:              `:1:39: mcpServers.A: want another name: /a is that of `,
		`{"mcpServers": {"Healthz": {"command": "x"}}}`:                              `:1:17: mcpServers.Healthz: want another name: /healthz`,
		`{"mcpServers": {"語": {"command": "x"}}}`:                                    `:1:17: mcpServers.語: want a name with a letter of a-z`,
		`{"mcpServers": {"a": {"command": "x"}}, "auth-token-file": "x"}`:            `:1:41: unknown key "auth-token-file" (did you mean auth-tokens-file?); see`,
		`{"mcpServers": {"a": {"command": "x", "args": ["-y"`:                        `:1:47: its closing ] is missing`,
		"servers: [a]\n":                                  `:1:10: servers: want a mapping of names to options`,
		"servers: {}\n":                                   `:1:10: servers: want a mapping of names to options`,
		"servers:\n  a: npx\n":                            `:2:6: servers.a: want options, such as {command: [npx, -y, server]}`,
		"servers: {a: [npx, -y, x]}\n":                    `:1:14: servers.a: want options, such as {command: [npx, -y, server]}`,
		"servers:\n  a:\n  command: [x]\n":                `:3:12: servers.command: want options, such as {command: [npx, -y, server]}; if command is an option of the server above, indent it more`,
		"warm: -1\n":                                      `:1:7: warm: want 0 or more, such as 2, but got "-1"`,
		"max-connections-per-ip: -1\n":                    `:1:25: max-connections-per-ip: want 0 or more, such as 2, but got "-1"`,
		"warm: 200000000\n":                               `:1:7: warm: want a number up to 1000, as each is a process, but got "200000000"`,
		"max-connections: 200000000\n":                    `:1:18: max-connections: want a number up to 100000000, but got "200000000"`,
		"audit-log: true\n":                               `:1:12: audit-log: want the path of a file, or - for stdout, but got "true"`,
		"servers: {b: {command: [x], disabled: true}}\n":  `:1:29: unknown key "disabled": put # before each line of the server; entries of mcpServers may have it`,
		"heartbeat-interval: -5s\n":                       `:1:21: heartbeat-interval: want 0 or more, such as 15s, but got "-5s"`,
		"request-timeout: -5s\n":                          `:1:18: request-timeout: want more than 0, such as 15s, but got "-5s"`,
		"servers:\n\ta: {}\n":                             `:2:1: indent with spaces`,
		"command: [\"C:\\Users\\me\\x.exe\"]\n":           `:1:11: in double quotes write`,
		"servers:\n  My Server: {}\n":                     `:2:3: servers.My Server: want at most 64 letters of a-z, digits, _ and -, as it is part of the path, such as my-server`,
		"command: [npx, -y, @scope/x]\n":                  `:1:20: write a word that begins with '@' in quotes, as in [npx, -y, "@scope/server"]`,
		"warm: yes\n":                                     `:1:7: warm: want a number, 0 or more, such as 2, but got "yes"`,
		"startTimeout: 3s\n":                              `:1:1: unknown key "startTimeout" (did you mean start-timeout?); see sse-server --help-all`,
		"start_timeout: 3s\n":                             `:1:1: unknown key "start_timeout" (did you mean start-timeout?)`,
		"servers:\n  sse: {}\n":                           `:2:3: servers.sse: want another name`,
		"servers:\n  a: {addr: \"127.0.0.1:0\"}\n":        `:2:7: unknown key "addr" in servers.a; see`,
		"servers:\n  a: {dir: /}\n":                       `:2:12: dir: has no effect without a command`,
		"servers:\n  a: {command: [x], url: https://b}\n": `:2:26: url: want either a command or a URL`,
		"command: [x]\n" + demo:                           `:1:10: command: want it in an entry of servers`,
		"url: https://a\n" + demo:                         `:1:6: url: want it in an entry of servers`,
	} {
		path := clitest.WriteFile(t, "gw.yaml", content)
		wantRefusal(t, nil, path+want, "--config", path)
	}
	for _, content := range []string{"addr:\nenv:\n", "env: {A: b}\ndir: /\n" + demo} {
		mustLoad(t, nil, "--config", clitest.WriteFile(t, "gw.yaml", content))
	}
}

func TestPrecedence(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", "warm: 7\nallowed-hosts: [file.example]\nauto-initialize: false\n")
	env := map[string]string{"SSE_SERVER_CONFIG": path, "SSE_SERVER_WARM": "8", "SSE_SERVER_ALLOWED_HOSTS": "a,b", "SSE_SERVER_LOG_LEVEL": ""}
	for _, tc := range []struct {
		env              map[string]string
		args             []string
		flag, want, from string
	}{
		{nil, nil, "warm", "", ""},
		{nil, []string{"-c", path}, "warm", "7", path + ":1:7: warm"},
		{env, nil, "warm", "8", "SSE_SERVER_WARM"},
		{env, []string{"--warm", "9"}, "warm", "9", "--warm"},
		{env, []string{"--warm", "9", "--warm=10"}, "warm", "10", "--warm"},
		{env, nil, "allowed-hosts", "a,b", "SSE_SERVER_ALLOWED_HOSTS"},
		{env, []string{"--allowed-hosts", "c", "--allowed-hosts", "d,e"}, "allowed-hosts", "c,d,e", "--allowed-hosts"},
		{env, nil, "auto-initialize", "false", path + ":3:18: auto-initialize"},
		{env, []string{"--auto-initialize"}, "auto-initialize", "true", "--auto-initialize"},
		{nil, []string{"--no-auto-initialize"}, "auto-initialize", "false", "--auto-initialize"},
		{env, nil, "log-level", "info", ""}, // an empty variable is not set
		{map[string]string{"SSE_SERVER_PORT": "tcp://10.0.0.1:80"}, nil, "addr", "127.0.0.1:8080", ""},
	} {
		c := mustLoad(t, tc.env, tc.args...)
		if got := flagText(c.byName()[tc.flag].Target); got != tc.want || c.given[tc.flag] != tc.from {
			t.Errorf("%v %q: --%s is %s from %q, want %s from %q", tc.env, tc.args, tc.flag, got, c.given[tc.flag], tc.want, tc.from)
		}
	}
}

// A text that YAML takes for a number is passed to the child as it is written.
func TestScalarsOfTheFileAreTexts(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", "command: [x, 1.10, 010, true]\nenv: {VERSION: 1.10, \"A,B\": \"c,d\"}\n")
	c := mustLoad(t, nil, "-c", path)
	if want := []string{"x", "1.10", "010", "true"}; !slices.Equal(c.Command, want) {
		t.Errorf("command: got %q, want %q", c.Command, want)
	}
	if want := []string{"VERSION=1.10", "A,B=c,d"}; !slices.Equal(c.Env, want) {
		t.Errorf("env: got %q, want %q", c.Env, want)
	}
	c = mustLoad(t, map[string]string{"SSE_SERVER_ENV": "A=1,2\nB=x=y\n"}, "--", "x")
	if want := []string{"A=1,2", "B=x=y"}; !slices.Equal(c.Env, want) {
		t.Errorf("the variable: got %q, want %q", c.Env, want)
	}
}

func TestServersOfTheFile(t *testing.T) {
	path := clitest.WriteFile(t, "gw.yaml", `
request-timeout: 2m
prefix: /p
env: {A: "1"}
servers:
  docs: {command: [npx, -y, docs], max-in-flight: 9, env: {B: "2"}}
  remote:
    url: https://a/mcp
    header: {Authorization: "Bearer ${TOKEN}"}
    request-timeout: 20m
  0_a-b: {sessions: shared}
`)
	c := mustLoad(t, map[string]string{"TOKEN": secret, "SSE_SERVER_WARM": "3"}, "-c", path, "--max-in-flight", "5")
	var got []string
	for _, s := range c.Each() {
		o := c.Gateway(s, gateway.Options{})
		got = append(got, fmt.Sprintln(o.Name, o.Prefix, s.Kind(), o.Warm, o.MaxInFlight, o.RequestTimeout, o.Sessions, len(s.Env)))
	}
	want := []string{
		"docs /p/docs command 3 9 2m0s per-connection 1\n",
		"remote /p/remote url 0 5 20m0s per-connection 1\n", // nothing to keep warm
		"0_a-b /p/0_a-b demo 3 5 2m0s shared 1\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	ssetest.Want(t, "header", c.Servers[1].remote.Header.Get("Authorization"), "Bearer "+secret)
	ssetest.Want(t, "variable of its own in the place of that of all", c.Servers[0].Env[0], "B=2")
}

// A child that saves its state at the end may take its time.
func TestCloseTimeout(t *testing.T) {
	for want, args := range map[time.Duration][]string{2 * time.Second: {"--", "x"}, time.Minute: {"--close-timeout", "1m", "--", "x"}} {
		child, _ := mustLoad(t, nil, args...).Upstream().(stdio.Command)
		ssetest.Want(t, "close timeout", child.CloseTimeout, want)
	}
}

// A flag, a variable or the file says who gets the page; without them the gateway decides.
func TestPage(t *testing.T) {
	yes, no := clitest.WriteFile(t, "yes.yaml", "page: true\n"), clitest.WriteFile(t, "no.yaml", "page: false\n")
	for _, c := range []struct {
		want gateway.Page
		env  string
		args []string
	}{
		{want: gateway.PageAuto},
		{want: gateway.PageOff, args: []string{"--no-page"}},
		{want: gateway.PageOff, args: []string{"--page=false"}},
		{want: gateway.PageOn, args: []string{"--page"}},
		{want: gateway.PageOff, env: "false"},
		{want: gateway.PageOn, env: "true"},
		{want: gateway.PageOff, args: []string{"--config", no}},
		{want: gateway.PageOn, args: []string{"--config", yes}},
		{want: gateway.PageOff, args: []string{"--config", yes, "--no-page"}},
	} {
		got := mustLoad(t, map[string]string{"SSE_SERVER_PAGE": c.env}, c.args...)
		ssetest.Want(t, fmt.Sprint(c.args, c.env), got.Gateway(&got.Server, gateway.Options{}).Page, c.want)
	}
}

// Without options the gateway has its own defaults; each number of the options reaches
// the gateway, 0 as what switches the limit off.
func TestOptionsOfTheGateway(t *testing.T) {
	c := mustLoad(t, nil)
	want := gateway.Defaults()
	want.Transports, want.Logger = []gateway.Transport{gateway.TransportSSE, gateway.TransportStreamable}, nil
	if got := c.Gateway(&c.Server, gateway.Options{}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	c = mustLoad(t, nil, "--heartbeat-interval=0", "--idle-timeout=0", "--max-connections=0", "--connect-rate=0",
		"--max-connections-per-ip=3", "--initialization-timeout=1s", "--start-timeout=2s", "--request-timeout=3s",
		"--max-message-bytes=4KiB",
		"--error-details=safe", "--allowed-origins=https://a", "--allowed-hosts=::1", "--trusted-proxies=10.0.0.1,::ffff:192.0.2.1,::1/127", "--no-auto-initialize")
	o := c.Gateway(&c.Server, gateway.Options{})
	got := []any{o.HeartbeatInterval, o.IdleTimeout, o.MaxConnections, o.ConnectRate, o.MaxConnectionsPerIP, o.InitializationTimeout, o.StartTimeout,
		o.RequestTimeout, o.MaxMessageBytes, o.ErrorDetails, o.AllowedOrigins[0], o.AllowedHosts[0], fmt.Sprint(o.TrustedProxies), o.NoAutoInitialize}
	wanted := []any{time.Duration(-1), time.Duration(-1), -1, -1.0, 3, time.Second, 2 * time.Second,
		3 * time.Second, int64(4 << 10), gateway.ErrorDetailsSafe, "https://a", "::1", "[10.0.0.1/32 192.0.2.1/32 ::1/127]", true}
	if !slices.Equal(got, wanted) {
		t.Errorf("got %v\nwant %v", got, wanted)
	}
}

// A selection is of one server, or of all that have none. An empty list in the file is another thing than none. A
// client's own file has keys of the same names, which are not ours.
func TestSelectionOfAServer(t *testing.T) {
	if s := mustLoad(t, nil).Server; s.selection() != nil || s.Rules() != nil {
		t.Errorf("without options: got %+v", s.selection())
	}
	path := clitest.WriteFile(t, "gw.yaml", `
exclude: [delete_*]
servers:
  a: {include: ["*issue*", get_me], only: non-destructive, resources: ["x:{a,b}"]}
  b: {exclude: [], prompts: []}
`)
	c := mustLoad(t, nil, "-c", path)
	got := fmt.Sprintf("%#v %#v", *c.Servers[0].selection(), *c.Servers[1].selection())
	want := fmt.Sprintf("%#v %#v",
		compose.Selection{Include: []string{"*issue*", "get_me"}, Exclude: []string{"delete_*"}, Only: compose.OnlyNonDestructive, Resources: []string{"x:{a,b}"}},
		compose.Selection{Exclude: []string{}, Prompts: []string{}})
	ssetest.Want(t, "selections of the file", got, want)
	ssetest.Want(t, "the rules of b leave out all prompts", c.Servers[1].Rules().Name(selection.Prompts, "x").Allowed(), false)

	flags := mustLoad(t, map[string]string{"SSE_SERVER_EXCLUDE": "a,b"}, "stdio", "--include", "read_*,list_*", "--resources", "x:{a,b}", "--resources=y:*", "--", "x")
	got = fmt.Sprintf("%#v", *flags.Gateway(&flags.Server, gateway.Options{}).Select)
	ssetest.Want(t, "selection of flags", got, fmt.Sprintf("%#v",
		compose.Selection{Include: []string{"read_*", "list_*"}, Exclude: []string{"a", "b"}, Resources: []string{"x:{a,b}", "y:*"}}))

	mine := clitest.WriteFile(t, "client.json", `{"prompts": [{"name": "[x]"}], "mcpServers": {"a": {"command": "x", "exclude": ["delete_*"]}}}`)
	c = mustLoad(t, nil, "-c", mine)
	ssetest.Want(t, "exclude in an entry of a client", c.Each()[0].Exclude[0], "delete_*")
	ssetest.WantText(t, "warnings", strings.Join(c.Warnings, "\n"), "ignored, as they are the client's own: prompts")
}

// An error of the gateway names the options as they were given.
func TestErrorsOfTheGatewayNameOptions(t *testing.T) {
	for want, args := range map[string][]string{
		"--sessions: contradicts --auto-initialize: ":                       {"--sessions", "shared", "--no-auto-initialize"},
		"--max-connections-per-ip: must be at most --max-connections":       {"--max-connections", "5", "--max-connections-per-ip", "6"},
		"--warm: has no effect on a remote server":                          {"--warm", "2", "--url", "https://a/mcp"},
		"--forward-header: contradicts --sessions: ":                        {"--forward-header", "A", "--sessions", "shared", "--url", "https://a"},
		"--warm: contradicts --principal-env: ":                             {"--warm", "2", "--principal-env", "P", "--", "x"},
		`--allowed-origins: "a.example" is not an origin: `:                 {"--allowed-origins", "a.example"},
		`--prefix: must be a path such as "/tools", without a slash at the`: {"--prefix", "/tools/"},
	} {
		c := mustLoad(t, nil, args...)
		server := c.Each()[0]
		_, err := gateway.New(cmpUpstream(server), c.Gateway(server, gateway.Options{}))
		if err == nil {
			t.Errorf("%q: no error", args)
		} else if got := c.Explain(server, err).Error(); !strings.HasPrefix(got, want) {
			t.Errorf("%q: got %s, want %s", args, got, want)
		}
	}
}

// A proxy keeps idle connections for as long as ten minutes: ours last longer, so that no request meets their end.
func TestIdleConnectionsOutliveThoseOfProxies(t *testing.T) {
	if c := mustLoad(t, nil); time.Duration(c.HTTPIdleTimeout) <= 10*time.Minute {
		t.Errorf("http-idle-timeout is %v", time.Duration(c.HTTPIdleTimeout))
	}
	ssetest.Want(t, "http-idle-timeout", time.Duration(mustLoad(t, nil, "--http-idle-timeout", "20m").HTTPIdleTimeout), 20*time.Minute)
}

// Each field of the gateway's options that an error may name has an option, or cannot be given.
func TestFieldsOfTheGatewayHaveOptions(t *testing.T) {
	all := mustLoad(t, nil).byName()
	fixed := []string{"SinglePath", "Title", "Authenticate", "Reauthenticate", "Logger", "TracerProvider", "Registry"}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[gateway.Options]()) {
		option := optionOf[field.Name]
		if _, given := all[option]; field.IsExported() && !given && option != nameKey && !slices.Contains(fixed, field.Name) {
			t.Errorf("%s: there is no option %q", field.Name, option)
		}
	}
}

// Lines of each help fit into 100 columns, whatever the terminal has, end with no space, and leave a default whole.
func TestLinesOfTheHelpAreWhole(t *testing.T) {
	defaults := newConfig()
	commands := [][]string{nil}
	for _, command := range newParser(defaults, &defaults.Server).Model.Children {
		commands = append(commands, []string{command.Name})
	}
	for _, columns := range []string{"", "80", "100", "200"} {
		t.Setenv("COLUMNS", columns)
		for _, command := range commands {
			for _, flag := range []string{"--help", "--help-all"} {
				args := append(slices.Clone(command), flag)
				for line := range strings.Lines(mustLoad(t, nil, args...).HelpText) {
					line = strings.TrimSuffix(line, "\n")
					n := utf8.RuneCountInString(line)
					isBroken := strings.HasSuffix(line, "[default") || strings.Contains(line, joint)
					if n > 100 || strings.HasSuffix(line, " ") || isBroken {
						t.Errorf("%q at %q columns: a line of %d columns: %q", args, columns, n, line)
					}
				}
			}
		}
	}
}

// Each flag is in a help: of the command that has it, or of all. The short one has those that most need.
func TestHelpHasEveryOption(t *testing.T) {
	help := func(args ...string) string {
		return strings.Join(strings.Fields(mustLoad(t, nil, args...).HelpText), " ") + " "
	}
	isIn := func(name, help string) bool {
		return strings.Contains(help, "--"+name+" ") || strings.Contains(help, "--"+name+"=") || strings.Contains(help, "--[no-]"+name+" ")
	}
	short, all := help("--help", "--warm", "3"), help("--help-all")
	common := 0
	defaults := newConfig()
	model := newParser(defaults, &defaults.Server).Model
	for _, f := range model.Flags {
		if f.Hidden {
			continue
		}
		if !isIn(f.Name, all) || f.Group == nil || !strings.HasSuffix(f.Help, ".") {
			t.Errorf("--%s: want it in --help-all, a group and a sentence", f.Name)
		}
		if f.Tag.Has("common") && !f.Tag.Has("only") {
			common++
		}
		if isIn(f.Name, short) != f.Tag.Has("common") {
			t.Errorf("--%s: in the short help: %t", f.Name, isIn(f.Name, short))
		}
	}
	if common > 20 {
		t.Errorf("the short help has %d flags, want 20 at most", common)
	}
	for _, command := range model.Children {
		own, whole := help(command.Name, "--help"), help(command.Name, "--help-all")
		if len(command.Flags) > 0 && isIn("addr", own) {
			t.Errorf("%s --help has the flags of all commands", command.Name)
		}
		for _, f := range command.Flags {
			if !f.Hidden && (!isIn(f.Name, own) || !isIn(f.Name, whole)) {
				t.Errorf("--%s is in no help of %s", f.Name, command.Name)
			}
		}
	}
	for _, want := range []string{"With --start, also try", "With --for CLIENT, also say what", "[default 127.0.0.1:8080]", "[default 1m]", "${NAME}", "--help-all lists all flags"} {
		if !strings.Contains(short, want) {
			t.Errorf("%q is missing in\n%s", want, short)
		}
	}
}

// To write the lists: go test ./cmd/sse-server/internal/config -run Reference -update
func TestReferenceIsComplete(t *testing.T) {
	const (
		path  = "../../../../docs/reference/config.md"
		begin = "<!-- options: written by go test ./cmd/sse-server/internal/config -run Reference -update -->\n"
		end   = "<!-- /options -->\n"
	)
	data := clitest.Must(os.ReadFile(path))
	before, rest, _ := strings.Cut(string(data), begin)
	lists, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has lost its marks", path)
	}
	groups := map[string]string{}
	var order []string
	known := map[string]bool{}
	for _, f := range mustLoad(t, nil).flags {
		if f.Hidden {
			continue
		}
		known["--"+f.Name], known["--no-"+f.Name], known[envName(f.Name)] = true, f.Tag.Negatable != "", true
		if groups[f.Group.Title] == "" {
			order = append(order, f.Group.Title)
			groups[f.Group.Title] = "\n## " + f.Group.Title + "\n\n"
		}
		value := ""
		if f.Default != "" {
			value = " (`" + f.Default + "`)"
		}
		name := "`" + strings.TrimSpace(f.Name+" "+f.PlaceHolder) + "`"
		groups[f.Group.Title] += fmt.Sprintf("- %s%s: %s\n", name, value, f.Help)
	}
	defaults := newConfig()
	for _, command := range newParser(defaults, &defaults.Server).Model.Children {
		for _, f := range command.Flags { // described in prose
			known["--"+f.Name] = true
		}
	}
	var want strings.Builder
	for _, title := range order {
		want.WriteString(groups[title])
	}
	want.WriteString("\n")
	if *update {
		ssetest.Must(t, os.WriteFile(path, []byte(before+begin+want.String()+end+after), 0o644))
	} else if lists != want.String() {
		t.Errorf("%s is not what the options say; run this test with -update", path)
	}
	for _, name := range regexp.MustCompile(`--[a-z][a-z-]+|SSE_SERVER_[A-Z_]+[A-Z]`).FindAllString(before+after, -1) {
		if !known[name] {
			t.Errorf("%s names %s, which is not there", path, name)
		}
	}
}

// TestExamplesAreTaken loads the files that the pages show.
func TestExamplesAreTaken(t *testing.T) {
	secrets := t.TempDir()
	for _, name := range []string{"tokens", "token", "github"} {
		ssetest.Must(t, os.WriteFile(filepath.Join(secrets, name), []byte("alice:0123456789abcdef\n"), 0o600))
	}
	env := map[string]string{"TOKEN": "x", "SEARCH_TOKEN": "x", "GITHUB_TOKEN": "x", "INTROSPECTION_TOKEN": "x"}
	places := strings.NewReplacer("/etc/sse-server/", secrets+"/", "/run/credentials/sse-server.service/", secrets+"/", "/run/secrets/", secrets+"/")
	for path, least := range map[string]int{"docs/reference/config.md": 1, "docs/getting-started.md": 1, "docs/operations.md": 1, "deploy/README.md": 1, "deploy/servers.yaml": 1} {
		data := clitest.Must(os.ReadFile("../../../../" + path))
		text := string(data)
		if strings.HasSuffix(path, ".yaml") {
			text = "```yaml\n" + text + "\n```"
		}
		examples := regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```").FindAllStringSubmatch(text, -1)
		if len(examples) < least {
			t.Errorf("%s has %d examples, want at least %d", path, len(examples), least)
		}
		for _, example := range examples {
			if strings.Contains(example[1], "# Pattern: a file of another program") {
				continue
			}
			mustLoad(t, env, "--config", clitest.WriteFile(t, "gw.yaml", places.Replace(example[1])))
		}
	}
}

func FuzzFile(f *testing.F) {
	for _, seed := range []string{"addr: x\n", "servers:\n  a: {warm: 2}\n  b: &x {}\n  c: *x\n", "env: {A: b}\ncommand: [a]\n", "? a\n: b\n", "<<: {a: b}\n", "url: 'https://${TOKEN}'\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		if strings.Contains(content, "file") || strings.Contains(content, "tls") {
			return // may name files of this machine
		}
		path := clitest.WriteFile(t, "gw.yaml", content)
		c, err := Load([]string{"--config", path}, clitest.Environment(map[string]string{"TOKEN": secret}), new(Config))
		if err != nil && strings.Contains(err.Error(), secret) || err == nil && strings.Contains(fmt.Sprint(c.Warnings), secret) {
			t.Errorf("the secret is shown: %v", err)
		}
	})
}

// A file that nests deeply is refused before it is parsed, which would take gigabytes.
func TestFileThatNestsDeeply(t *testing.T) {
	var indented strings.Builder
	for n := range 100 {
		fmt.Fprintf(&indented, "%sa:\n", strings.Repeat(" ", n))
	}
	const nested, long = "it is nested over 64 levels deep", "too much is below keys that are too long"
	key := strings.Repeat("k", 50_000)
	for name, test := range map[string]struct{ content, want string }{
		"brackets":              {"command: " + strings.Repeat("[", 100_000), "1:73: " + nested},
		"brackets and tabs":     {"command: " + strings.Repeat("[\t", 50_000), nested},
		"brackets between text": {"command: " + strings.Repeat(`["]",`, 20_000), nested},
		"brackets after quotes": {"command: " + strings.Repeat(`["a]"  ,  `, 10_000), nested},
		"brackets on lines":     {strings.Repeat("[\n", 100_000), "65:1: " + nested},
		"brackets in items":     {strings.Repeat("- [", 30_000), nested},
		"braces":                {strings.Repeat("{a: ", 100_000), nested},
		"braces of quoted keys": {strings.Repeat(`{"}":`, 20_000), nested},
		"items":                 {strings.Repeat("- ", 100_000) + "a", "1:129: " + nested},
		"items and tabs":        {strings.Repeat("-\t", 50_000) + "a", nested},
		"items of keys":         {strings.Repeat("- a: ", 20_000), nested},
		"keys with ?":           {strings.Repeat("? ", 50_000) + "a", nested},
		"levels":                {indented.String(), "65:65: " + nested},
		"a long key":            {key + ": [" + strings.Repeat("a,", 25_000) + "]", long},
		"a long key of a brace": {"{" + key + ": [" + strings.Repeat("a,", 25_000) + "]}", long},
		"a long key of a list":  {key + ":\n" + strings.Repeat("- a\n", 12_000), long},
	} {
		path := clitest.WriteFile(t, "gw.yaml", test.content)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Load([]string{"-c", path}, clitest.Environment(nil), new(Config))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path+":") {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 200 {
			t.Errorf("%s: took %d MiB", name, took)
		}
	}
	path := clitest.WriteFile(t, "gw.yaml", strings.Repeat("# [[[[ {{{{\n", 100)+"command: [x, 'a[', \"b[[[\", 'd{']\n"+"env: {A: \"1\", B: \"{{\"}\n")
	if _, err := Load([]string{"-c", path}, clitest.Environment(nil), new(Config)); err != nil {
		t.Errorf("brackets in texts: %v", err)
	}
	path = clitest.WriteFile(t, "gw.yaml", "command:\n- x\n"+strings.Repeat("- '[{' # [{\n- a[\n", 1000)+"servers: {}\n")
	if _, err := Load([]string{"-c", path}, clitest.Environment(nil), new(Config)); err == nil || !strings.Contains(err.Error(), ":2003:") {
		t.Errorf("the place of an error after a long list: %v", err)
	}
}

// The secrets of a server stay hidden from children when that server has left the file.
func TestSecretsStayHiddenAfterAReload(t *testing.T) {
	env := map[string]string{"TOKEN": secret}
	before := mustLoad(t, env, "-c", clitest.WriteFile(t, "gw.yaml", "servers:\n  a: {url: https://a/mcp, header: {Authorization: \"Bearer ${TOKEN}\"}}\n  b: {command: [x]}\n"))
	after, err := Load([]string{"-c", clitest.WriteFile(t, "gw.yaml", "servers:\n  b: {command: [x]}\n")}, clitest.Environment(env), before)
	ssetest.Must(t, err)
	if after.Servers[0].passes("TOKEN", "") {
		t.Error("the child of b gets the secret of a")
	}
}

// After its client has left, a server has a minute of peace: it is an option of a command, whose defaults kong does not
// take from the value.
func TestAServerIsLeftAloneForAMinute(t *testing.T) {
	c := mustLoad(t, nil, "stdio", "--", "true")
	ssetest.Want(t, "LearnAfter", time.Duration(c.Stdio.LearnAfter), time.Minute)
}
