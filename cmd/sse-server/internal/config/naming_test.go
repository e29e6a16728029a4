package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// People see a server under the name that they know it by.
func TestTitle(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "petstore")
	for file, content := range map[string]string{"package.json": `{"name": "plain"}`, "dist/index.js": "", "packages/cats/package.json": `{"name": "@x/cats-mcp"}`, "packages/server/package.json": `{"name": "server"}`} {
		ssetest.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o700))
		ssetest.Must(t, os.WriteFile(filepath.Join(folder, file), []byte(content), 0o600))
	}
	ssetest.Must(t, os.MkdirAll(filepath.Join(folder, "empty/my-server/src"), 0o700))
	t.Chdir(folder)
	for args, want := range map[string]string{
		"": "demo",
		"-- npx -y @modelcontextprotocol/server-everything":                           "everything",
		"-- npx -y @x/server-filesystem@1.2.3 /data":                                  "filesystem",
		"-- npx --yes --package=@acme/mcp-tools tools":                                "tools",
		"-- npx -y -p typescript --package=@acme/mcp-notes notes-mcp --fast":          "notes",
		"-- npm exec -p tsx --package typescript -- tsx packages/cats/src/main.ts":    "cats",
		"-- npx -p @acme/mcp-tools -p typescript -c tools":                            "tools",
		"-- npm exec -- @a/notes-mcp":                                                 "notes",
		"-- /usr/bin/npx mcp-server-git":                                              "git",
		"-- uvx mcp-server-fetch@latest":                                              "fetch",
		"-- uvx --from git+https://github.com/a/b serena start":                       "serena",
		"-- uv --directory /srv/weather run weather.py":                               "weather",
		"-- docker run -i --rm -e TOKEN -v /a:/b ghcr.io/github/github-mcp-server:v1": "github",
		"-- node /srv/weather/dist/index.js":                                          "weather",
		"-- node /x/my-server/dist/index.js":                                          "my-server",
		"-- node ./index.js":                                                          "plain",
		"-- node dist/index.js":                                                       "plain",
		"-- node dist/other.js":                                                       "other",
		"-- tsx packages/cats/src/main.ts":                                            "cats",
		"-- node packages/server/index.js":                                            "plain",
		"--dir empty/my-server -- python src/server.py":                               "my-server",
		"-- python -m mcp_server_time --local":                                        "time",
		"-- python3 server.py":                                                        "plain",
		"-- node -e console.log(1)":                                                   "node",
		"-- node --eval=console.log(1)":                                               "node",
		"-- python3 -u -c print(1) x":                                                 "python3",
		"-- npx tsx packages/cats/src/main.ts":                                        "cats",
		"-- npx -y tsx@latest watch dist/index.js":                                    "plain",
		"-- npx ts-node packages/cats/src/main.ts":                                    "cats",
		"-- npx tsx":                          "tsx",
		"-- uv run python -m mcp_server_time": "time",
		"-- docker run -i --rm node:22 node /srv/weather/index.js": "node",
		"-- env A=b npx -y x":              "x",
		"-- go run ./cmd/notes":            "notes",
		"-- java -jar target/petstore.jar": "petstore",
		"-- ./my-server --verbose":         "my-server",
		"-- cat":                           "cat",
		"-- sh -c cat":                     "sh",
		"-- ./Üñ":                          "un",
		"-- ./мир":                         "server",
		"--name docs -- npx -y x":          "docs",
		"--url https://mcp.notion.com/mcp": "notion",
		"--url https://example.com/mcp":    "example",
		"--url http://127.0.0.1:1/mcp":     "remote",
		"--url http://gateway:8080/mcp":    "gateway",
	} {
		if c := mustLoad(t, nil, strings.Fields(args)...); c.Title(c.Each()[0]) != want {
			t.Errorf("%s: it is called %q, want %q", args, c.Title(c.Each()[0]), want)
		}
	}
	file := clitest.WriteFile(t, "gw.yaml", "servers: {docs: {command: [npx, x]}}\n")
	if c := mustLoad(t, nil, "-c", file); c.Title(c.Servers[0]) != "docs" {
		t.Errorf("an entry is called %q", c.Title(c.Servers[0]))
	}
	for args, want := range map[string]string{
		"--name Docs!":           `--name: want letters`,
		"--name docs -c " + file: "--name: the keys of servers name them",
	} {
		if _, err := Load(strings.Fields(args), clitest.Environment(nil), new(Config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}
