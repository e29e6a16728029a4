//go:build all

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcpgateway "github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/gosdk"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

var images = flag.Bool("images", false, "write the screenshots of the page to docs/images")

// In a real browser: people use the page of each server, also of one that is hostile, fails or is slow,
// and nothing goes wrong in the console. A machine without Chromium fails the test.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("a program is missing: apt-get install chromium")
	}
	npm(t, "playwright-core/package.json")
	const token = "sesame-token-of-the-browser"
	dir, addr, shots := t.TempDir(), "127.0.0.1:0", ""
	if *images {
		addr = "127.0.0.1:8080" // as on all pages of the documentation
		shots, err = filepath.Abs("../docs/images")
		ssetest.Must(t, err)
	}
	tokens, config, began := filepath.Join(dir, "tokens"), filepath.Join(dir, "servers.yaml"), filepath.Join(dir, "slow-begins")
	server, err := filepath.Abs(filepath.Join(clientsDir, "pageserver.mjs"))
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(tokens, []byte(token+"\n"), 0o600))
	ssetest.Must(t, os.WriteFile(config, fmt.Appendf(nil, `
servers:
  bookshop: {command: [%[1]q, %[2]q], remember: false} # so that its first messages wait at the gate
  hostile: {command: [%[1]q, %[2]q, hostile]}
  deep: {command: [%[1]q, %[2]q, deep]}
  workshop: {command: [%[1]q, %[2]q, workshop], heartbeat-interval: 1s}
  broken: {command: [sh, -c, "echo connecting >&2; echo the database is down >&2; exit 3"]}
  slow: {command: [sh, -c, "while [ ! -e %[3]s ]; do sleep 0.1; done; exec %[1]s %[2]s"]}
  demo: {exclude: ["delete_*"]}
`, node(t), server, began), 0o600))
	open := startGateway(t, "--addr", addr, "--config", config)
	locked := startGateway(t, "--auth-tokens-file", tokens)
	issuer := startIssuer(t)
	_, issued := startProtected(t, issuer, "page")
	_, noClient := startProtected(t, issuer, "")
	remote := startGateway(t, "--url", issued+"/jwt/mcp")
	remoteOfList := startGateway(t, "--url", issued+"/opaque/mcp")
	waiting := startGateway(t, "--url", noClient+"/jwt/mcp")
	breaks := filepath.Join(dir, "breaks")
	till := []string{"--name", "till", "--", "sh", "-c", `[ ! -e "$0" ] || { echo the drawer is stuck >&2; exit 3; }; exec "$@"`, breaks, node(t), server}
	restarted := startGateway(t, till...)
	about, _ := json.Marshal(map[string]string{
		"executablePath": browser, "gateway": strings.TrimSuffix(open.url, "/bookshop/mcp"), "admin": open.admin, "slowWaitsFor": began,
		"locked": strings.TrimSuffix(locked.url, "/mcp"), "token": token, "issued": issued + "/jwt/mcp", "noClient": noClient + "/jwt/mcp",
		"restarted": restarted.url, "breaks": breaks, "remote": remote.url, "remoteOfList": remoteOfList.url, "waiting": waiting.url, "mounted": mountPages(t), "images": shots,
	})
	use := exec.CommandContext(t.Context(), node(t), "browser.mjs", string(about))
	use.Dir = clientsDir
	if *images {
		use.Env = append(os.Environ(), "FONTCONFIG_FILE="+fontsOfPictures(t, dir))
	}
	faults := &output{}
	use.Stderr = faults
	in, err := use.StdinPipe()
	ssetest.Must(t, err)
	out, err := use.StdoutPipe()
	ssetest.Must(t, err)
	ssetest.Must(t, use.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch lines.Text() {
		case "restart":
			restarted.kill()
			at := strings.TrimSuffix(strings.TrimPrefix(restarted.url, "http://"), "/mcp")
			restarted = startGateway(t, append([]string{"--addr", at}, till...)...)
		case "end the login":
			endLogin(t)
		default:
			t.Log(lines.Text())
			continue
		}
		fmt.Fprintln(in, lines.Text())
	}
	if err := use.Wait(); err != nil {
		t.Errorf("%v\n%s", err, faults)
	}
}

// fontsOfPictures returns the configuration of fonts with which pictures are taken: what the page calls the fonts of
// the system is a good one.
func fontsOfPictures(t *testing.T, dir string) string {
	t.Helper()
	const config = `<?xml version="1.0"?>
<fontconfig>
<include>/etc/fonts/fonts.conf</include>
%s</fontconfig>
`
	aliases := ""
	for font, names := range map[string][]string{"Inter": {"system-ui", "sans-serif"}, "Noto Sans Mono": {"ui-monospace", "monospace"}} {
		found, err := exec.Command("fc-list", font).Output()
		if err != nil || len(found) == 0 {
			t.Fatalf("pictures are taken with %s: apt-get install fontconfig fonts-inter fonts-noto-mono", font)
		}
		for _, name := range names {
			aliases += fmt.Sprintf("<match target=\"pattern\"><test name=\"family\"><string>%s</string></test>"+
				"<edit name=\"family\" mode=\"prepend\" binding=\"strong\"><string>%s</string></edit></match>\n", name, font)
		}
	}
	file := filepath.Join(dir, "fonts.conf")
	ssetest.Must(t, os.WriteFile(file, fmt.Appendf(nil, config, aliases), 0o600))
	return file
}

// mountPages serves a tool at several places of a program of its own, and returns the URL of that.
func mountPages(t *testing.T) string {
	t.Helper()
	routes := http.NewServeMux()
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	type greeting struct {
		Name string `json:"name"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name}}}, nil, nil
	})
	mount := func(opts mcpgateway.Options) http.Handler {
		gw, err := mcpgateway.New(gosdk.Server(server), opts)
		ssetest.Must(t, err)
		t.Cleanup(func() { _ = gw.Shutdown(context.WithoutCancel(t.Context())) })
		return gw
	}
	alone := mount(mcpgateway.Options{SinglePath: true})
	routes.Handle("/alone/tool", alone)
	routes.Handle("/alone/tool/", alone)
	routes.Handle("/ai/", http.StripPrefix("/ai", mount(mcpgateway.Options{})))
	routes.Handle("/own/", mount(mcpgateway.Options{Prefix: "/own/prefix"}))
	routes.Handle("/old/", mount(mcpgateway.Options{Prefix: "/old", Transports: []mcpgateway.Transport{mcpgateway.TransportSSE}}))
	routes.Handle("/new/", mount(mcpgateway.Options{Prefix: "/new", Transports: []mcpgateway.Transport{mcpgateway.TransportStreamable}}))
	routes.Handle("/passive/", mount(mcpgateway.Options{Prefix: "/passive", NoAutoInitialize: true}))
	routes.Handle("/", mount(mcpgateway.Options{}))
	s := httptest.NewServer(routes)
	t.Cleanup(s.Close)
	return s.URL
}
