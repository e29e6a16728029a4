//go:build deploy

package deploytest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// composeFile is what the test uses of a file of Docker Compose.
type composeFile struct {
	Services map[string]struct {
		Build      struct{ Dockerfile, Target string }
		Entrypoint []string
		Ports      []struct {
			HostIP string `json:"host_ip"`
		}
		Healthcheck struct{ Test []string }
		Volumes     []struct{ Target string }
	}
	Configs map[string]struct{ Content string }
}

// Compose's own reader takes the file of Docker Compose. Its commands run here as they do in the image, with the
// paths and addresses of a test: it makes a token for the first client, keeps it, is healthy, and serves nobody
// without it.
func TestCompose(t *testing.T) {
	t.Parallel()
	printed := goTool(t, nil, composeSpec, "-format", "json", "deploy/compose.yaml")
	var file composeFile
	ssetest.Must(t, json.Unmarshal([]byte(printed[strings.Index(printed, "{"):]), &file))
	gateway := file.Services["gateway"]
	if gateway.Ports[0].HostIP != "127.0.0.1" {
		t.Errorf("the port is published at %+v", gateway.Ports)
	}
	dockerfile := readFile(t, filepath.Join("deploy", filepath.Base(gateway.Build.Dockerfile)))
	_, stage, _ := strings.Cut(dockerfile, " AS "+gateway.Build.Target+"\n")
	stage, _, _ = strings.Cut(stage, "\nFROM ")
	home := gateway.Volumes[0].Target
	for _, want := range []string{"WORKDIR " + home + "\n", "USER node\n", "SSE_SERVER_ADDR=0.0.0.0:8080\n"} {
		if !strings.Contains(stage, want) {
			t.Errorf("the image %s has no %q", gateway.Build.Target, want)
		}
	}

	// A volume that the user of the image owns, and npx, which has the server without a registry.
	dir, bin := t.TempDir(), t.TempDir()
	clients, err := filepath.Abs(filepath.Join(root, "e2e/clients/node_modules"))
	ssetest.Must(t, err)
	npx := `test "$1" = -y && exec %[1]s/node/bin/node %[1]s/"$2"/dist/index.js stdio`
	writeFile(t, filepath.Join(bin, "npx"), fmt.Sprintf("#!/bin/sh\n"+npx+"\n", clients))
	ssetest.Must(t, os.Chmod(filepath.Join(bin, "npx"), 0o700))
	ssetest.Must(t, os.Symlink(sseServer(t), filepath.Join(bin, "sse-server")))
	ssetest.Must(t, os.Symlink(filepath.Join(clients, "node/bin/node"), filepath.Join(bin, "node")))
	addr, admin := freeAddr(t), freeAddr(t)
	here := strings.NewReplacer(home+"/", dir+"/", "/etc/sse-server/", dir+"/", "127.0.0.1:9464", admin)
	writeFile(t, filepath.Join(dir, "servers.yaml"), here.Replace(file.Configs["servers"].Content))
	environment := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir, "XDG_STATE_HOME=",
		"SSE_SERVER_ADDR="+addr)
	inImage := func(command []string) *exec.Cmd {
		var args []string
		for _, arg := range command {
			args = append(args, here.Replace(arg))
		}
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Path = installed(t, args[0])
		if args[0] == "node" {
			cmd.Path = filepath.Join(bin, "node")
		}
		cmd.Dir, cmd.Env = dir, environment
		return cmd
	}
	var token string
	for range 2 {
		p := startCmd(t, inImage(gateway.Entrypoint))
		p.until("be healthy", func() error { return inImage(gateway.Healthcheck.Test[1:]).Run() })
		tokens := strings.TrimSpace(readAll(t, filepath.Join(dir, "tokens")))
		name, made, _ := strings.Cut(tokens, ":")
		if token == "" {
			token = made
		}
		info, err := os.Stat(filepath.Join(dir, "tokens"))
		ssetest.Must(t, err)
		if name != "me" || made != token || len(made) < 32 || info.Mode().Perm() != 0o600 {
			t.Errorf("tokens %q (%v), want the token %q of before", tokens, info.Mode(), token)
		}
		url := "http://" + addr + "/everything/mcp"
		if answer := call(t, url, "Authorization: Bearer "+token); !strings.Contains(answer, "Echo: m") {
			t.Errorf("echo: %s", answer)
		}
		if answer := call(t, url, "X-No: token"); !strings.HasSuffix(answer, "\n401") {
			t.Errorf("without a token: %s", answer)
		}
		p.signal(syscall.SIGTERM)
		if err := p.wait(); err != nil {
			t.Errorf("the gateway ended: %v", err)
		}
	}
	if conn, err := net.Dial("tcp", admin); err == nil {
		_ = conn.Close()
		t.Error("the gateway is still there")
	}
	if inImage(gateway.Healthcheck.Test[1:]).Run() == nil {
		t.Error("healthy without a gateway")
	}
}

// call calls the tool echo with a header, and returns the answer with its status in a line of its own.
func call(t *testing.T, url, header string) string {
	t.Helper()
	return run(t, installed(t, "curl"), "-sS", "-w", `\n%{http_code}`, "-H", "Content-Type: application/json", "-H", header,
		"-d", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"m"}}}`, url)
}
