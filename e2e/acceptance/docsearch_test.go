package acceptance

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// animals have a document each.
var animals = []string{"okapi", "quagga", "quokka", "tapir"}

// search is an agent with docsearch, which it has started as a server on stdio, and a folder.
type search struct {
	t             *testing.T
	state, folder string
	agent         *mcp.ClientSession
	log           ssetest.Output
}

// startSearch starts docsearch for an agent. No daemon runs then.
func startSearch(t *testing.T) *search {
	t.Helper()
	s := &search{t: t, state: filepath.Join(t.TempDir(), "state"), folder: t.TempDir()}
	for _, animal := range animals {
		text := fmt.Sprintf("# The %s\n\nIn the morning it grazes, and the %s drinks at the river.\n", animal, animal)
		ssetest.Must(t, os.WriteFile(filepath.Join(s.folder, animal+".md"), []byte(text), 0o600))
	}
	t.Cleanup(s.end)
	ssetest.Want(t, "a daemon runs", s.status().Running, false)
	server := s.command("mcp", "--folder", s.folder, "--addr", "127.0.0.1:0")
	server.Stderr = &s.log
	var err error
	s.agent, err = mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: server}, nil)
	ssetest.Must(t, err)
	t.Cleanup(func() { _ = s.agent.Close() }) // how its process ends is no rule
	return s
}

func (s *search) command(args ...string) *exec.Cmd {
	cmd := exec.Command(docsearch, args...)
	cmd.Env = append(os.Environ(), "DOCSEARCH_STATE_DIR="+s.state)
	return cmd
}

// end ends the daemon.
func (s *search) end() {
	s.t.Helper()
	if out, err := s.command("stop").CombinedOutput(); err != nil {
		s.t.Errorf("docsearch stop: %v: %s", err, out)
	}
	if s.t.Failed() {
		s.t.Logf("log of docsearch:\n%s", s.log.Tail())
	}
}

// status is what docsearch tells people of its daemon.
type status struct {
	Running bool   `json:"running"`
	Address string `json:"address"`
	Server  struct {
		PID int `json:"pid"`
	} `json:"server"`
}

func (s *search) status() (now status) {
	s.t.Helper()
	out, err := s.command("status", "--json").Output()
	ssetest.Must(s.t, err)
	ssetest.Must(s.t, json.Unmarshal(out, &now))
	return now
}

// ask calls a tool, which must not fail, and returns its result as JSON.
func (s *search) ask(tool string, arguments map[string]any) string {
	s.t.Helper()
	result, err := s.agent.CallTool(s.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		s.t.Errorf("%s %v: %v", tool, arguments, err)
		return ""
	}
	data, err := json.Marshal(result.StructuredContent)
	if err != nil || result.IsError {
		s.t.Errorf("%s %v: %v %s", tool, arguments, err, data)
	}
	return string(data)
}

// finds checks that a search for an animal finds its document, and returns the id of that.
func (s *search) finds(animal string) string {
	s.t.Helper()
	return s.only(animal, s.ask("search", map[string]any{"query": animal}))
}

// only checks that the document of an animal, and no other, is found.
func (s *search) only(animal, answer string) string {
	s.t.Helper()
	var found struct {
		Results []struct {
			DocumentID string `json:"documentId"`
			Path       string `json:"path"`
		} `json:"results"`
	}
	if err := json.Unmarshal([]byte(answer), &found); err != nil || len(found.Results) != 1 {
		s.t.Errorf("search for %s: %v %s", animal, err, answer)
		return ""
	}
	ssetest.Want(s.t, "path", found.Results[0].Path, filepath.Join(s.folder, animal+".md"))
	return found.Results[0].DocumentID
}

// The five tools all answer.
func TestAllToolsOfDocumentSearchAnswer(t *testing.T) {
	t.Parallel()
	s := startSearch(t)
	id := s.finds("okapi")
	passages := s.ask("search_content", map[string]any{"exact_terms": []string{"okapi"}, "semantic_concepts": []string{"river"}})
	ssetest.WantText(t, "search_content", passages, id, "In the morning it grazes")
	ssetest.WantText(t, "list_folders", s.ask("list_folders", nil), s.folder)
	ssetest.WantText(t, "get_document_data", s.ask("get_document_data", map[string]any{"document_id": id}), "the okapi drinks at the river")
	ssetest.WantText(t, "get_server_info", s.ask("get_server_info", nil), fmt.Sprintf(`"pid":%d`, s.status().Server.PID))
}

// The tool of an agent asks the daemon over REST, as others can.
func TestTheDaemonServesAgentsOverREST(t *testing.T) {
	t.Parallel()
	s := startSearch(t)
	id := s.finds("tapir")
	client := newHTTP(t)
	r := ssetest.Request(t.Context(), http.MethodPost, "http://"+s.status().Address+"/api/v1/search", `{"query":"tapir"}`)
	resp, err := client.Do(r)
	ssetest.Must(t, err)
	defer resp.Body.Close()
	var answer json.RawMessage
	ssetest.Must(t, json.NewDecoder(resp.Body).Decode(&answer))
	ssetest.Want(t, "document that REST finds", s.only("tapir", string(answer)), id)
}

// The first call of an agent starts the daemon.
func TestADaemonThatIsDownIsStarted(t *testing.T) {
	t.Parallel()
	s := startSearch(t)
	s.finds("quagga")
	ssetest.Want(t, "a daemon runs", s.status().Running, true)
}

// When the daemon was killed, the next call of an agent starts another, and is answered.
func TestADaemonThatWasKilledIsStartedAgainUnseenByTheAgent(t *testing.T) {
	t.Parallel()
	s := startSearch(t)
	id := s.finds("quagga")
	killed := s.status().Server.PID
	ssetest.Must(t, syscall.Kill(killed, syscall.SIGKILL))
	ssetest.Want(t, "the document", s.finds("quagga"), id)
	if now := s.status().Server.PID; now == killed {
		t.Errorf("the daemon %d was killed, and serves", now)
	}
}

// A daemon is killed while it has requests: each is repeated at the next one, and answered.
func TestTheRequestsOfADaemonThatIsKilledAreRepeatedUnseenByTheAgent(t *testing.T) {
	t.Parallel()
	s := startSearch(t)
	s.finds("quagga")
	daemon := s.status()
	ssetest.Must(t, syscall.Kill(daemon.Server.PID, syscall.SIGSTOP)) // it answers nothing more
	done := make(chan struct{})
	go func() { // ends with the answers
		defer close(done)
		inParallel(func(n int) { s.finds(animals[n]) })
	}()
	await(t, "a request is at the daemon", func() bool { return isUnread(t, daemon.Address) || isClosed(done) })
	_ = syscall.Kill(daemon.Server.PID, syscall.SIGKILL) // where this comes late, the client has killed it
	<-done
	ssetest.Want(t, "tools that failed", strings.Count(s.log.String(), "tool failed"), 0)
}

// isUnread reports whether the process that listens at an address has a connection from which it
// has not read all.
func isUnread(t *testing.T, address string) bool {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	ssetest.Must(t, err)
	n, err := strconv.Atoi(port)
	ssetest.Must(t, err)
	table, err := os.ReadFile("/proc/net/tcp")
	ssetest.Must(t, err)
	for line := range strings.Lines(string(table)) {
		// sl, local address, remote address, state, bytes to send:bytes to read
		fields := strings.Fields(line)
		if strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", n)) && fields[3] == "01" && !strings.HasSuffix(fields[4], ":00000000") {
			return true
		}
	}
	return false
}
