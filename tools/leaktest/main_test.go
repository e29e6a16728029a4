package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// echoServer is an MCP server over HTTP+SSE. With broadcast it sends each answer
// to all clients, as some bridges do.
type echoServer struct {
	broadcast bool
	header    string // of a request that is accepted, "name: value"; empty: any

	mu      sync.Mutex
	streams map[string]chan string // by path; guarded by mu
}

func (s *echoServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if name, value, ok := strings.Cut(s.header, ": "); ok && r.Header.Get(name) != value {
		http.Error(w, "who are you", http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodPost {
		s.receive(w, r)
		return
	}
	path, out := s.open()
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: endpoint\ndata: %s\n\n", path)
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case data := <-out:
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", data)
		case <-r.Context().Done():
			s.mu.Lock()
			delete(s.streams, path)
			s.mu.Unlock()
			return
		}
	}
}

func (s *echoServer) open() (path string, out chan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = map[string]chan string{}
	}
	path, out = fmt.Sprintf("/post/%p", &out), make(chan string, 10_000) // more than any test sends
	s.streams[path] = out
	return path, out
}

func (s *echoServer) receive(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string            `json:"name"`
			Arguments map[string]string `json:"arguments"`
		} `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	result := `{}`
	switch {
	case m.ID == nil:
		return
	case m.Method == "tools/list":
		result = `{"tools":[{"name":"echo","inputSchema":{"properties":{"message":{"type":"string"}}}}]}`
	case m.Method == "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, m.Params.Arguments["message"])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, out := range s.streams {
		if path == r.URL.Path || s.broadcast && m.Method == "tools/call" {
			out <- fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		}
	}
}

// leaktest runs the program against a server.
func leaktest(t *testing.T, s *echoServer, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	srv := httptest.NewServer(s)
	defer srv.Close()
	var out, errors bytes.Buffer
	all := append([]string{"--clients", "4", "--calls", "80", "--in-flight", "2", srv.URL + "/sse"}, args...)
	code = run(t.Context(), all, &out, &errors)
	return code, out.String(), errors.String()
}

func TestRightServer(t *testing.T) {
	t.Parallel()
	code, out, _ := leaktest(t, &echoServer{})
	if code != exitClean || !strings.HasPrefix(out, "CLEAN: nothing crossed, nothing was lost\n") || !strings.Contains(out, "80 sent, 80 answered right, 0 refused") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
}

func TestServerThatBroadcasts(t *testing.T) {
	t.Parallel()
	code, out, _ := leaktest(t, &echoServer{broadcast: true})
	if code != exitFaulty || !strings.HasPrefix(out, "FAULTY: clients got what belongs to others\n") || !strings.Contains(out, "with the secret of client ") || !strings.Contains(out, " more\n") {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
}

func TestJSON(t *testing.T) {
	for name, c := range map[string]struct {
		broadcast bool
		code      int
		verdict   string
	}{
		"Right": {false, exitClean, "clean"},
		"Wrong": {true, exitFaulty, "faulty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, _ := leaktest(t, &echoServer{broadcast: c.broadcast}, "--json")
			var report struct {
				Verdict string           `json:"verdict"`
				Calls   int              `json:"calls"`
				Faults  map[string]int64 `json:"faults"`
			}
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			crossed, ok := report.Faults["crossed"]
			if code != c.code || report.Verdict != c.verdict || report.Calls != 80 || !ok || crossed > 0 != c.broadcast {
				t.Errorf("exit code %d, output:\n%s", code, out)
			}
		})
	}
}

func TestHeaderFlag(t *testing.T) {
	t.Parallel()
	if code, out, _ := leaktest(t, &echoServer{header: "Authorization: Bearer x"}, "-H", "Authorization: Bearer x"); code != exitClean {
		t.Errorf("exit code %d, output:\n%s", code, out)
	}
}

func TestCannotRun(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"Refused":     {[]string{"-H", "Authorization: no"}, "401"},
		"BadHeader":   {[]string{"-H", "password"}, "--header takes NAME:VALUE"},
		"NoSuchTool":  {[]string{"--tool", "x"}, "there is no tool x"},
		"NoSuchFlag":  {[]string{"--x"}, "--x"},
		"TwoURLs":     {[]string{"http://127.0.0.1/sse"}, "unexpected argument"},
		"BadDuration": {[]string{"--timeout", "5"}, "timeout"},
		"NoClients":   {[]string{"--clients=-1"}, "at least 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &echoServer{}
			if name == "Refused" {
				s.header = "Authorization: yes"
			}
			code, out, errors := leaktest(t, s, c.args...)
			if code != exitUnproven || out != "" || !strings.Contains(errors, c.want) {
				t.Errorf("exit code %d, output %q, error %q, want %d and an error with %q", code, out, errors, exitUnproven, c.want)
			}
		})
	}
}

func TestHelpNamesTheExitCodes(t *testing.T) {
	var out, errors bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &out, &errors); code != 0 || !strings.Contains(out.String(), "Exit code 0") {
		t.Errorf("exit code %d, output:\n%s%s", code, &out, &errors)
	}
}
