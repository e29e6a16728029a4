//go:build deploy

package deploytest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The README's way is walked line by line under systemd itself, with a server of Node.js.
// Then the gateway is updated, reloaded and scraped while somebody connects all the time. At
// the end its configuration is faulty, and repaired.
func TestREADMEUnderSystemd(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("only root can boot systemd in namespaces")
	}
	readme := readFile(t, "deploy/README.md")
	_, section, _ := strings.Cut(readme, "\n## systemd\n")
	_, yaml, _ := strings.Cut(section, "```yaml\n")
	yaml, _, _ = strings.Cut(yaml, "```")
	_, reload, _ := strings.Cut(section, "To load an edit")
	_, repair, _ := strings.Cut(section, "To start both after that")
	_, prometheus, _ := strings.Cut(readme, "\n## Prometheus and Grafana\n")
	const clients = "/srv/repo/e2e/clients/node_modules/"
	driver := `
sudo() { "$@"; }
make() { test "$*" = build && install -D /srv/work/sse-server bin/sse-server; }
cat > config.yaml <<'YAML'
` + replaced(t, yaml, `[npx, -y, "@modelcontextprotocol/server-everything"]`,
		"["+clients+"node/bin/node, "+clients+"@modelcontextprotocol/server-everything/dist/index.js, stdio]") + `YAML
trap 'systemctl status --no-pager sse-server; journalctl --no-pager -n 50 -u sse-server' ERR
` + commands(section) + `
systemctl is-active sse-server.socket sse-server
ask() {
	curl -sS --fail-with-body http://127.0.0.1:8080/mcp -H 'Content-Type: application/json' \
		-H "Authorization: Bearer $(sed -n 1s/.*://p /etc/sse-server/tokens)" \
		-d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"under systemd"}}}' |
		grep 'Echo: under systemd'
}
ask
{ set +ex; while test ! -e /tmp/enough; do curl -sS -o /dev/null -w '%{http_code}\n' http://127.0.0.1:8080/none 2>&1; done; } > /tmp/codes &
for update in 1 2 3; do
	sudo install -m 755 bin/sse-server /usr/local/bin/
	sudo systemctl restart sse-server
	ask
done
within() { timeout 60 bash -c "until $1; do sleep 0.1; done"; }
pid=$(systemctl show -P MainPID sse-server)
sudo sed -i 's/^start-timeout: .*/start-timeout: 3m/' /etc/sse-server/config.yaml
` + commands(reload) + `
within "journalctl --no-pager -u sse-server | grep 'configuration reloaded'"
test "$(systemctl show -P MainPID sse-server)" = "$pid"
ask
` + commands(prometheus) + `
within "curl -sSg 'http://127.0.0.1:9090/api/v1/query?query=up{job=\"sse-server\"}' | grep '\"value\":\[[0-9.]*,\"1\"\]'"
ask
touch /tmp/enough
wait
sort /tmp/codes | uniq -c
test "$(sort -u /tmp/codes)" = 404
sudo sed -i 's/^start-timeout: .*/start-timeout: soon/' /etc/sse-server/config.yaml
sse-server check --config /etc/sse-server/config.yaml && exit 1
systemctl reset-failed sse-server # counts starts anew
systemctl restart sse-server && exit 1
test "$(systemctl is-failed sse-server)" = failed # and not about to start again
systemctl is-active sse-server.socket
journalctl --no-pager -u sse-server | grep 'start-timeout: want'
within '! curl -sS -m 1 http://127.0.0.1:8080/ && systemctl is-failed sse-server.socket'
sudo sed -i 's/^start-timeout: .*/start-timeout: 2m/' /etc/sse-server/config.yaml
` + commands(repair) + `
ask
systemctl stop sse-server.socket sse-server
test "$(systemctl is-failed sse-server)" = inactive
echo walked
`
	work := t.TempDir()
	writeFile(t, filepath.Join(work, "driver"), driver)
	run(t, "cp", sseServer(t), work)
	boot(t, work)
	if log := readAll(t, filepath.Join(work, "log")); !strings.Contains(log, "\nwalked\n") {
		t.Error(log)
	}
}

// commands returns the first block of commands of a section.
func commands(section string) (block string) {
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			block += command
		} else if block != "" {
			break
		}
	}
	return block
}

// boot runs boot.sh, in a cgroup of its own.
func boot(t *testing.T, work string) {
	t.Helper()
	repo, err := filepath.Abs(root)
	ssetest.Must(t, err)
	mounted, _, _ := strings.Cut(run(t, "findmnt", "-n", "-o", "TARGET", "-t", "cgroup2"), "\n")
	group, err := os.MkdirTemp(mounted, "deploytest-")
	ssetest.Must(t, err)
	t.Cleanup(func() {
		eventually(t, "remove "+group, func() error { return removeDirs(group) })
	})
	p := startCmd(t, exec.Command("sh", "-c", `echo $$ > "$0/cgroup.procs"; exec unshare -m -p -C -i -u -n -f --kill-child sh boot.sh "$@"`, group, work, repo))
	_ = p.wait() // systemd leaves with no fixed code when it powers off
}

// removeDirs removes a folder of folders, from the bottom up.
func removeDirs(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		err = os.Remove(dirs[i])
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
