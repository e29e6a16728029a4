package acceptance

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The first event of GET /sse is the endpoint, the second says that the client is connected.
func TestAStreamBeginsWithTheEndpointAndTheConnection(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "names answers").open("") // it returns when the first event was the endpoint
	s.announced()
	ssetest.Want(t, "second event", s.all(nil)[0].Name, "connection")
}

// The gateway initializes the server, and announces its result, with no word of the client.
func TestTheGatewayInitializesTheServerWithNoWordOfTheClient(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "names answers").open("")
	ssetest.Want(t, "server in the announced result", s.announced().Result.ServerInfo.Name, "scripted")
}

// A server is started before its first client comes, and another one when that takes it: a boot
// may take longer than clients wait.
func TestAServerIsReadyBeforeItsClient(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "names answers", "--warm", "1")
	for n := range 3 {
		g.awaitMetric(1, "mcp_sse_pool_idle")
		g.open("").announced()
		g.awaitMetric(float64(n+1), "mcp_sse_pool_takes_total", `result="hit"`)
	}
}

// By default a server is ready before its first client while nothing is known of it.
func TestAnUnknownServerIsReadyBeforeItsFirstClient(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "names answers")
	g.awaitMetric(1, "mcp_sse_pool_idle")
	g.open("").announced()
	g.awaitMetric(1, "mcp_sse_pool_takes_total", `result="hit"`)
}

// Nothing runs for nobody: a gateway whose server is known is ready, and starts no process before a client
// calls.
func TestAKnownServerHasNoProcessBeforeACall(t *testing.T) {
	t.Parallel()
	first := startGateway(t, "names answers", "--start-check")
	await(t, "what the server said is kept", func() bool { return ssetest.Remembered(t) })
	first.stop()
	g := startGateway(t, "names answers", "--start-check")
	status, _ := g.do(http.MethodGet, g.admin+"/readyz")
	ssetest.Want(t, "status of /readyz", status, http.StatusOK)
	g.open("?event=message").announced()
	ssetest.Want(t, "processes", g.metric("mcp_sse_children"), 0)
	g.stop()
	ssetest.Want(t, "processes that were started", len(g.logged("server started")), 0)
}

// remembered starts a gateway whose server waits for a file before it answers initialize, lets a client
// ask for the lists, stops it, and starts another one whose server is not answered before start is called.
func remembered(t *testing.T) (g *gateway, start func()) {
	file := filepath.Join(t.TempDir(), "initialize now")
	start = func() { ssetest.Must(t, os.WriteFile(file, nil, 0o600)) }
	start()
	g = startGateway(t, "initializes late", "--warm", "0", "--env", fileVariable+"="+file)
	s := g.open("?event=message")
	s.post("0", "tools/list", "{}")
	s.answer("0")
	await(t, "what the server said is kept", func() bool { return ssetest.Remembered(t) })
	s.leave()
	g.stop()
	ssetest.Must(t, os.Remove(file))
	return startGateway(t, "initializes late", "--warm", "0", "--env", fileVariable+"="+file), start
}

// From the second start of the gateway on, a client has initialize and its lists before its server is
// up, and its call waits for that.
func TestAClientHasItsListsBeforeItsServerIsUp(t *testing.T) {
	t.Parallel()
	g, start := remembered(t)
	s := g.open("?event=message")
	ssetest.Want(t, "server in the announced result", s.announced().Result.ServerInfo.Name, "scripted")
	s.post("0", "tools/list", "{}")
	s.answer("0")
	s.call("1", "echo", `{"text":"after the start"}`)
	ssetest.Want(t, "requests that wait", g.metric("mcp_sse_gate_depth"), 1)
	start()
	s.wantText("1", "after the start")
}

// A client has a process only once it calls.
func TestAClientThatOnlyLooksHasNoProcess(t *testing.T) {
	t.Parallel()
	g, start := remembered(t)
	for range 3 {
		s := g.open("?event=message")
		s.announced()
		s.post("0", "tools/list", "{}")
		s.answer("0")
	}
	ssetest.Want(t, "processes", g.metric("mcp_sse_children"), 0)
	start()
}

// A request that a client posts before the handshake is over waits, and is answered in order.
func TestAPOSTBeforeTheHandshakeWaitsAndIsAnsweredInOrder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "initialize now")
	g := startGateway(t, "initializes late", "--env", fileVariable+"="+file)
	s := g.open("?event=message")
	for n := range 4 {
		s.call(strconv.Itoa(n), "echo", fmt.Sprintf(`{"text":"result %d"}`, n))
	}
	ssetest.Want(t, "requests that wait", g.metric("mcp_sse_gate_depth"), 4)
	ssetest.WantText(t, "events before the handshake", s.seen(), "connection")
	ssetest.Must(t, os.WriteFile(file, nil, 0o600))
	var order []string
	for n := range 4 {
		s.wantText(strconv.Itoa(n), fmt.Sprintf("result %d", n))
	}
	for _, e := range s.all(nil) {
		if e.Name != "connection" {
			order = append(order, string(parse(t, e.Data).ID))
		}
	}
	ssetest.Want(t, "order of answers, after the announcement", order[1:], []string{"0", "1", "2", "3"})
}

// wantFailure checks that a client that says nothing is told of a failure in this phase, and
// that its request is answered with the same.
func (g *gateway) wantFailure(phase string) {
	g.t.Helper()
	s := g.open("")
	failure := s.announced().Error.Data
	ssetest.Want(g.t, "type of the announced error", failure.Type, "initialization_error")
	ssetest.Want(g.t, "phase of the announced error", failure.Phase, phase)
	s.call("1", "echo", `{"text":"never"}`)
	failure = s.answer("1").Error.Data
	ssetest.Want(g.t, "type of the error of a request", failure.Type, "initialization_error")
	ssetest.Want(g.t, "phase of the error of a request", failure.Phase, phase)
	if g.metric("mcp_sse_handshakes_total", `result="error"`, fmt.Sprintf("phase=%q", phase)) == 0 {
		g.t.Errorf("no failure in the phase %s is counted", phase)
	}
}

// A server that cannot be started: the request could not be created.
func TestAFailureToStartTheServerIsAnnouncedWithThePhaseRequestCreation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "server")
	ssetest.Must(t, os.WriteFile(file, []byte("this is no program"), 0o700))
	serve(t, "--", file).wantFailure("request_creation")
}

// A server that refuses: the request was not processed.
func TestARefusalOfTheServerIsAnnouncedWithThePhaseRequestProcessing(t *testing.T) {
	t.Parallel()
	startGateway(t, "refuses").wantFailure("request_processing")
}

// A client that does not read cannot be told: the log and the metrics have the phase.
func TestAnAnnouncementThatCannotBeSentIsCountedInThePhaseResponseSending(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "introduces at length")
	address := strings.TrimPrefix(g.url, "http://")
	deaf, err := net.Dial("tcp", address)
	ssetest.Must(t, err)
	defer deaf.Close()
	ssetest.Must(t, deaf.(*net.TCPConn).SetReadBuffer(1<<10))
	_, err = io.WriteString(deaf, "GET /sse HTTP/1.1\r\nHost: "+address+"\r\n\r\n")
	ssetest.Must(t, err)
	head, err := http.ReadResponse(bufio.NewReaderSize(deaf, 1<<10), nil) // all that it reads
	ssetest.Must(t, err)
	post := g.url + "/sse/" + head.Header.Get("X-Connection-ID") + "/message"
	g.awaitMetric(1, "mcp_sse_handshakes_total", `result="ok"`)
	client := newHTTP(t)
	ping := fmt.Sprintf(`{"jsonrpc":"2.0","id":"%01000d","method":"ping"}`, 1) // its answers fill what room is left for a client
	await(t, "the gateway gives up a client that does not read", func() bool {
		resp, err := client.Do(ssetest.Request(t.Context(), http.MethodPost, post, ping))
		ssetest.Must(t, err)
		ssetest.Must(t, resp.Body.Close())
		return resp.StatusCode == http.StatusNotFound
	})
	g.awaitMetric(1, "mcp_sse_handshakes_total", `phase="response_sending"`, `result="error"`)
	await(t, "it is logged", func() bool {
		lines := g.logged("announcement not sent")
		return len(lines) > 0 && lines[0].Phase == "response_sending"
	})
}

// With auto-initialize off there is only what MCP 2024-11-05 has: the endpoint, and an answer to
// each request, of which initialize is the first.
func TestWithoutAutoInitializeTheTransportIsPlain(t *testing.T) {
	t.Parallel()
	s := startGateway(t, "names answers", "--no-auto-initialize").open("")
	s.post("1", "initialize", `{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{"name":"client","version":"1"}}`)
	ssetest.Want(t, "server in the result", s.answer("1").Result.ServerInfo.Name, "scripted")
	ssetest.Must(t, s.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	s.call("2", "echo", `{"text":"plain"}`)
	s.wantText("2", "plain")
	for _, e := range s.all(nil) {
		if id := string(parse(t, e.Data).ID); e.Name != "message" || id != "1" && id != "2" {
			t.Errorf("there is more than answers: %s %s", e.Name, e.Data)
		}
	}
}
