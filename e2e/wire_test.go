package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func hasMethod(e event, method string) bool {
	var m struct{ Method string }
	return json.Unmarshal([]byte(e.Data), &m) == nil && m.Method == method
}

func assertNotification(t *testing.T, e event) {
	t.Helper()
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(e.Data), &m); err != nil || string(m["jsonrpc"]) != `"2.0"` || m["method"] == nil || m["id"] != nil {
		t.Errorf("event %q: want a JSON-RPC notification as data", e.Raw)
	}
}

func TestStreamOpensWithEndpointConnectionAndAutoInitialize(t *testing.T) {
	t.Parallel()
	s := openStream(t, startGateway(t).url)
	s.await("the third event", func(event) bool { return len(s.seen()) >= 3 })
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no",
	} {
		if got := s.head.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	got := s.seen()
	endpoint, connection, hello := got[0], got[1], got[2]
	if want := "/sse/" + s.id + "/message"; s.id == "" || endpoint.Name != "endpoint" || endpoint.Data != want || endpoint.Retry != "" {
		t.Errorf("first event:\n%s\nwant endpoint with data %s", endpoint.Raw, want)
	}
	if connection.Name != "connection" || connection.Retry != "1000" || !strings.Contains(connection.Data, s.id) {
		t.Errorf("second event:\n%s\nwant connection with retry 1000 and the connection's id", connection.Raw)
	}
	assertNotification(t, connection)
	m := parseResponse(t, hello.Data)
	if want := `"auto-initialize-` + s.id + `"`; hello.Name != "mcp-response" || string(m.ID) != want || m.Result == nil {
		t.Errorf("third event:\n%s\nwant mcp-response with id %s and a result", hello.Raw, want)
	}
	for _, e := range got {
		if e.ID == "" || strings.Count(e.Raw, "data:") != 1 {
			t.Errorf("event %q: want an id and one line of data", e.Raw)
		}
	}
}

func TestEndpointIsFlushedAlone(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(startGateway(t).url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /sse HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", u.Host)
	in := bufio.NewReader(conn)
	for line := "x"; line != "\r\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatalf("read head: %v", err)
		}
	}
	// One chunk is one flush.
	size, err := in.ReadString('\n')
	if err != nil {
		t.Fatalf("read chunk: %v", err)
	}
	var n int
	if _, err := fmt.Sscanf(size, "%x", &n); err != nil {
		t.Fatalf("chunk size %q: %v", size, err)
	}
	chunk := make([]byte, n)
	if _, err := io.ReadFull(in, chunk); err != nil {
		t.Fatalf("read chunk: %v", err)
	}
	if first, rest, _ := strings.Cut(string(chunk), "\n\n"); !strings.Contains(first, "event: endpoint") || rest != "" {
		t.Errorf("first chunk = %q, want the endpoint event and nothing else", chunk)
	}
}

func TestOpeningEventsAreWithheld(t *testing.T) {
	t.Parallel()
	g := startGateway(t)
	for name, s := range map[string]*stream{
		"?auto=0":           openStream(t, g.url+"?auto=0"),
		"Java's SSE client": openStream(t, g.url, "User-Agent", "Java-http-client/17.0.8"),
	} {
		if got := s.call("1", "echo", `{"message":"m"}`); got != "m" {
			t.Errorf("%s: echo = %q, want m", name, got)
		}
		for _, e := range s.seen() {
			if e.Name == "connection" || strings.Contains(e.Data, "auto-initialize") {
				t.Errorf("%s: came\n%s", name, e.Raw)
			}
		}
	}
}

func TestEventNameIsChosenByTheQuery(t *testing.T) {
	t.Parallel()
	g := startGateway(t)
	for chosen, other := range map[string]string{"mcp-response": "message", "message": "mcp-response"} {
		s := openStream(t, g.url+"?event="+chosen)
		s.accepted(requestJSON("1", "tools/call", callParams("echo", `{"message":"m"}`)))
		if got := parseResponse(t, s.await("response", answers(chosen, "1")).Data).text(t); got != "m" {
			t.Errorf("?event=%s: echo = %q, want m", chosen, got)
		}
		s.accepted(requestJSON("2", "ping", "{}"))
		s.await("response to ping", answers(chosen, "2"))
		if names := namesOf(s, "1"); names != chosen {
			t.Errorf("?event=%s: answers to 1 = %s, want no %s", chosen, names, other)
		}
	}
}

func TestProtocolVersionHeaderMarksAStandardClient(t *testing.T) {
	t.Parallel()
	g := startGateway(t)
	s := openStream(t, g.url, "MCP-Protocol-Version", "2025-11-25")
	s.call("1", "echo", `{"message":"m"}`)
	s.request("2", "ping", "{}")
	if names := namesOf(s, "1"); names != "message" {
		t.Errorf("answers to 1 = %s, want message alone", names)
	}
}

func TestClientsInitializeIsAnsweredUnderItsOwnIDAndVersion(t *testing.T) {
	t.Parallel()
	g := startGateway(t, fake(t)...)
	for requested, want := range map[string]string{"2024-11-05": "2024-11-05", "2025-06-18": "2025-06-18", "1999-01-01": "1999-01-01"} {
		s := openStream(t, g.url)
		got := s.request(`"init"`, "initialize",
			fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"e2e","version":"0"}}`, requested))
		if got.Error != nil || got.Result.ProtocolVersion != want || got.Result.ServerInfo.Name != "fake" {
			t.Errorf("initialize(%s) = %+v (error %v), want version %s from the fake server", requested, got.Result, got.Error, want)
		}
		if names := namesOf(s, `"init"`); names != "message" {
			t.Errorf("answers to initialize = %s, want message alone", names)
		}
	}
}

func TestIDsComeBackUnchanged(t *testing.T) {
	t.Parallel()
	ids := []string{
		`9007199254740993`, `1.5`, `1e3`, `-0`, `0`, `1.50`, `"x"`, `""`, `"1"`, `"\u0041"`, `"é"`,
		`123456789012345678901234567890`, `"` + strings.Repeat("i", 200) + `"`,
	}
	for name, args := range map[string][]string{"Demo": nil, "Child": fake(t), "Everything": everything(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStream(t, startGateway(t, args...).url)
			for _, id := range ids {
				if got := s.call(id, "echo", `{"message":"m"}`); got != "m" && got != "Echo: m" {
					t.Errorf("id %s: echo = %q", id, got)
				}
			}
		})
	}
}

func TestParamsReachTheServerByteForByte(t *testing.T) {
	t.Parallel()
	s := openStream(t, startGateway(t, fake(t)...).url)
	params := `{"name":"wire","arguments":{"big":9007199254740993,"f":1.50,"e":1E3,"esc":"\u00e9\/","z":1,"a":2},"x-unknown":[null,true]}`
	got := s.request(`"mine"`, "tools/call", params).text(t)
	if !strings.Contains(got, `"params":`+params) {
		t.Errorf("the server got %s, want params %s", got, params)
	}
	var sent struct{ ID json.Number }
	if err := json.Unmarshal([]byte(got), &sent); err != nil {
		t.Fatalf("the server got %s: %v", got, err)
	}
	if n, err := sent.ID.Int64(); err != nil || n < 1 {
		t.Errorf("id on the server's side = %s, want a positive integer of the gateway's own", sent.ID)
	}
}

func TestProtocolErrorsOfTheServerPassThrough(t *testing.T) {
	t.Parallel()
	s := openStream(t, startGateway(t, fake(t)...).url)
	got := s.request("1", "x/unknown", "{}")
	if got.Error == nil || got.Error.Code != -32601 || got.Error.Message != "method not found" {
		t.Errorf("x/unknown = %+v (error %v), want the server's own error", got.Result, got.Error)
	}
}

func TestProbeForStreamableHTTPIsTurnedAway(t *testing.T) {
	t.Parallel()
	g := startGateway(t)
	resp, err := newHTTP(t).Post(g.url, "application/json", strings.NewReader(requestJSON("1", "initialize", "{}")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") == "" {
		t.Errorf("POST /sse = %s, Allow %q; want 405 with Allow", resp.Status, resp.Header.Get("Allow"))
	}
}
