package examples

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// patience bounds each step of a test.
const patience = time.Minute

var bin string // folder of the built examples

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "examples")
	if err != nil {
		panic(err)
	}
	bin = dir
	build := exec.Command("go", "build", "-race", "-ldflags=-s -w", "-o", dir, "./...")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	code := 1
	if build.Run() == nil {
		code = m.Run()
	}
	_ = os.RemoveAll(dir) // only a temporary folder
	os.Exit(code)
}

// program is an example that runs.
type program struct {
	cmd   *exec.Cmd
	url   string        // of its first stream
	ended chan struct{} // closed when lines is whole
	lines []string      // of its log
	works chan struct{} // gets a value when it logs that a tool works
}

var serving = regexp.MustCompile(`serving (http://\S+)`)

// run starts an example, and returns when it serves.
func run(t *testing.T, name string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(filepath.Join(bin, name), append([]string{"-addr", "127.0.0.1:0"}, args...)...), ended: make(chan struct{}), works: make(chan struct{}, 1)}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	urls := make(chan string, 1)
	go func() {
		defer close(p.ended)
		for log := bufio.NewScanner(stderr); log.Scan(); {
			p.lines = append(p.lines, log.Text())
			if m := serving.FindStringSubmatch(log.Text()); m != nil {
				urls <- m[1]
			}
			if strings.HasSuffix(log.Text(), "working") {
				p.works <- struct{}{}
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // fails if it has ended
		<-p.ended
		_ = p.cmd.Wait()
	})
	select {
	case p.url = <-urls:
	case <-p.ended:
		t.Fatalf("%s ended at its start: %q", name, p.lines)
	case <-time.After(patience):
		t.Fatalf("%s does not serve", name)
	}
	return p
}

// bearer adds a token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects a client.
func connect(t *testing.T, url, token string, o *mcp.ClientOptions) (*mcp.ClientSession, error) {
	t.Helper()
	transport := &mcp.SSEClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}}
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(), transport, nil)
	if err == nil {
		t.Cleanup(func() { _ = s.Close() }) // the example may have ended
	}
	return s, err
}

// call calls a tool and returns the text of its answer.
func call(t *testing.T, s *mcp.ClientSession, tool string, args any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken("mine")
	result, err := s.CallTool(ctx, params)
	if err != nil || result.IsError || len(result.Content) != 1 {
		t.Fatalf("call %s: got %+v, %v", tool, result, err)
	}
	return result.Content[0].(*mcp.TextContent).Text
}

func mustConnect(t *testing.T, url, token string, o *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	s, err := connect(t, url, token, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestServeMux(t *testing.T) {
	p := run(t, "servemux")
	if got := call(t, mustConnect(t, p.url, "", nil), "greet", map[string]string{"name": "Ada"}); got != "Hello, Ada" {
		t.Errorf("got %q", got)
	}
	resp, err := http.Get(strings.TrimSuffix(p.url, "ai/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "home\n" {
		t.Errorf("the page beside it is %q, %v", body, err)
	}
}

func TestGorilla(t *testing.T) {
	p := run(t, "gorilla")
	for token, want := range map[string]string{"s3cret": "Hello, Ada", "s3same": "Hello, Grace"} {
		if got := call(t, mustConnect(t, p.url, token, nil), "whoami", nil); got != want {
			t.Errorf("token %s: got %q, want %q", token, got, want)
		}
	}
	if _, err := connect(t, p.url, "wrong", nil); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("wrong token: got %v, want 401", err)
	}
}

// TestSDKs covers what a function from message to message could not do: the server
// reports its progress.
func TestSDKs(t *testing.T) {
	for _, name := range []string{"gosdk", "mcpgo"} {
		t.Run(name, func(t *testing.T) {
			reports := make(chan float64, 10)
			o := &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				reports <- r.Params.Progress
			}}
			s := mustConnect(t, run(t, name).url, "", o)
			if got := call(t, s, "count", map[string]int{"steps": 5}); got != "counted" {
				t.Errorf("got %q", got)
			}
			for i := range 5 { // the client may handle them after the answer
				select {
				case got := <-reports:
					if got != float64(i+1) {
						t.Errorf("report %d says %v", i+1, got)
					}
				case <-time.After(patience):
					t.Fatalf("%d reports came, want 5", i)
				}
			}
		})
	}
}

func TestSeveral(t *testing.T) {
	p := run(t, "several", "-admin-addr", "127.0.0.1:0")
	if got := call(t, mustConnect(t, p.url, "", nil), "greet", nil); got != "Hello" {
		t.Errorf("got %q", got)
	}
	clock := mustConnect(t, strings.Replace(p.url, "/greeter/", "/clock/", 1), "", nil)
	if got := call(t, clock, "now", nil); !strings.Contains(got, "T") {
		t.Errorf("got %q, want a time", got)
	}
}

// A view has chosen tools of two servers under chosen names.
func TestView(t *testing.T) {
	s := mustConnect(t, run(t, "view").url, "", nil)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "notes__add notes__find search" {
		t.Errorf("the tools are %s", got)
	}
	for tool, want := range map[string]string{"notes__add": "notes did add", "search": "web did web_search"} {
		if got := call(t, s, tool, nil); got != want {
			t.Errorf("%s: got %q, want %q", tool, got, want)
		}
	}
}

// A call that runs when the program is told to stop gets its answer.
func TestShutdown(t *testing.T) {
	p := run(t, "shutdown")
	s := mustConnect(t, p.url, "", nil)
	answered := make(chan string, 1)
	go func() { answered <- call(t, s, "work", nil) }() // ends with the call, which is bounded
	select {
	case <-p.works:
	case <-time.After(patience):
		t.Fatal("the call does not reach the tool")
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-answered:
		if got != "done" {
			t.Errorf("got %q", got)
		}
	case <-time.After(patience):
		t.Fatal("the call was lost")
	}
	<-p.ended
	if log := strings.Join(p.lines, "\n"); !strings.Contains(log, "stopping") || !strings.HasSuffix(log, "stopped") {
		t.Errorf("got log %q", log)
	}
}
