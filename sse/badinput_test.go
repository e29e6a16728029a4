package sse_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/internal/pipetest"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
	"github.com/mcp-sse/mcp-sse/sse"
)

// readAnswer reads an answer from a connection that a test wrote a request to.
func readAnswer(t testing.TB, conn net.Conn) (*http.Response, string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func TestBadMessages(t *testing.T) {
	s := openSession(t, config{})
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, test := range []struct {
		name, body string
		code       int
	}{
		{"empty", "", jsonrpc.CodeParseError},
		{"blank", " \r\n\t", jsonrpc.CodeParseError},
		{"text", "hello", jsonrpc.CodeParseError},
		{"truncated", `{"jsonrpc":"2.0","id":1,"method":"ec`, jsonrpc.CodeParseError},
		{"two messages", `{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}`, jsonrpc.CodeParseError},
		{"newline-separated", "{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"b\"}", jsonrpc.CodeParseError},
		{"trailing comma", `{"jsonrpc":"2.0","method":"a",}`, jsonrpc.CodeParseError},
		{"single quotes", `{'jsonrpc':'2.0','method':'a'}`, jsonrpc.CodeParseError},
		{"NaN", `{"jsonrpc":"2.0","id":NaN,"method":"a"}`, jsonrpc.CodeParseError},
		{"byte order mark", "\xef\xbb\xbf" + `{"jsonrpc":"2.0","method":"a"}`, jsonrpc.CodeParseError},
		{"UTF-16", "{\x00\"\x00", jsonrpc.CodeParseError},
		{"10,000 levels", `{"jsonrpc":"2.0","id":1,"method":"a","params":` + nested(10_000) + `}`, jsonrpc.CodeParseError},
		{"10,000 open levels", strings.Repeat(`{"a":`, 10_000), jsonrpc.CodeParseError},
		{"invalid UTF-8", `{"jsonrpc":"2.0","id":1,"method":"` + "\xff\xfe" + `"}`, jsonrpc.CodeParseError},
		{"surrogate bytes", `{"jsonrpc":"2.0","id":1,"method":"` + "\xed\xa0\x80" + `"}`, jsonrpc.CodeParseError},
		{"NUL", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\x00\"}", jsonrpc.CodeParseError},
		{"NUL after", `{"jsonrpc":"2.0","method":"a"}` + "\x00", jsonrpc.CodeParseError},
		{"gzip", "\x1f\x8b\x08\x00", jsonrpc.CodeParseError},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"a"}]`, jsonrpc.CodeInvalidRequest},
		{"empty batch", `[]`, jsonrpc.CodeInvalidRequest},
		{"string", `"x"`, jsonrpc.CodeInvalidRequest},
		{"null", `null`, jsonrpc.CodeInvalidRequest},
		{"empty object", `{}`, jsonrpc.CodeInvalidRequest},
		{"no version", `{"id":1,"method":"a"}`, jsonrpc.CodeInvalidRequest},
		{"version 1", `{"jsonrpc":"1.0","id":1,"method":"a"}`, jsonrpc.CodeInvalidRequest},
		{"version as number", `{"jsonrpc":2.0,"id":1,"method":"a"}`, jsonrpc.CodeInvalidRequest},
		{"method is a number", `{"jsonrpc":"2.0","id":1,"method":1}`, jsonrpc.CodeInvalidRequest},
		{"params is a string", `{"jsonrpc":"2.0","id":1,"method":"a","params":"x"}`, jsonrpc.CodeInvalidRequest},
		{"id null", `{"jsonrpc":"2.0","id":null,"method":"a"}`, jsonrpc.CodeInvalidRequest},
		{"id of a response null", `{"jsonrpc":"2.0","id":null,"result":{}}`, jsonrpc.CodeInvalidRequest},
		{"response without id", `{"jsonrpc":"2.0","result":{}}`, jsonrpc.CodeInvalidRequest},
		{"id is an object", `{"jsonrpc":"2.0","id":{},"method":"a"}`, jsonrpc.CodeInvalidRequest},
		{"id is true", `{"jsonrpc":"2.0","id":true,"method":"a"}`, jsonrpc.CodeInvalidRequest},
		{"huge id", `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1<<20) + `","method":"a"}`, jsonrpc.CodeInvalidRequest},
		{"huge number as id", `{"jsonrpc":"2.0","id":` + strings.Repeat("9", 100_000) + `,"method":"a"}`, jsonrpc.CodeInvalidRequest},
		{"two ids", `{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`, jsonrpc.CodeInvalidRequest},
		{"two methods, one escaped", `{"jsonrpc":"2.0","id":1,"method":"a","\u006dethod":"b"}`, jsonrpc.CodeInvalidRequest},
		{"result and error", `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`, jsonrpc.CodeInvalidRequest},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"a","result":{}}`, jsonrpc.CodeInvalidRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, body := post(t, s.client, s.url, test.body)
			e, ok := refusalOf(body)
			if res.StatusCode != http.StatusBadRequest || !ok || e.Code != test.code || len(body) > 1000 {
				t.Errorf("got %d %.300s, want 400 and %d", res.StatusCode, body, test.code)
			}
			s.works(t)
		})
	}
}

func TestMessageSizeLimit(t *testing.T) {
	const limit = 1000
	pad := func(size int) string {
		const before, after = `{"jsonrpc":"2.0","method":"n","params":["`, `"]}`
		return before + strings.Repeat("x", size-len(before)-len(after)) + after
	}
	f := newFixture(t, config{sse: sse.Options{Options: front.Options{MaxMessageBytes: limit}}})
	srv := start(t, f)
	s := attach(t, f, srv.Client(), srv.URL)
	for _, size := range []int{limit - 1, limit, limit + 1, 10 * limit} {
		want := http.StatusAccepted
		if size > limit {
			want = http.StatusRequestEntityTooLarge
		}
		body := pad(size)
		if len(body) != size {
			t.Fatalf("the message has %d bytes, want %d", len(body), size)
		}
		for _, chunked := range []bool{false, true} {
			var reader io.Reader = strings.NewReader(body)
			if chunked {
				reader = io.MultiReader(reader) // hides the length
			}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, reader)
			req.Header.Set("Content-Type", "application/json")
			res, answer := do(t, s.client, req)
			if res.StatusCode != want || want != 202 && (!isRefusal(answer) || !strings.Contains(answer, "1000")) {
				t.Errorf("%d bytes, chunked %v: got %d %s, want %d", size, chunked, res.StatusCode, answer, want)
			}
		}
	}
	s.works(t)
	if n := f.count(t, "mcp_sse_posts_rejected_total", "reason", metrics.PostTooLarge); n != 4 {
		t.Errorf("got %v rejections counted, want 4", n)
	}
}

// 100 MB are refused by their announced length, and without one after the limit:
// the rest is not read.
func TestHugeBodyIsNotRead(t *testing.T) {
	const size = 100 << 20
	for _, head := range []string{fmt.Sprintf("Content-Length: %d", size), "Transfer-Encoding: chunked"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, config{sse: sse.Options{Options: front.Options{MaxMessageBytes: 1 << 20}}})
			p := pipetest.Serve(f, protocols("h1"), nil)
			defer p.Stop()
			s := attach(t, f, p.Client, "http://gateway")
			conn := p.Dial()
			defer conn.Close()
			sent := make(chan int, 1)
			go func() {
				n, _ := fmt.Fprintf(conn, "POST /sse/%s/message HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n%s\r\n\r\n", s.c.ID(), head)
				piece := strings.Repeat("[", 64<<10)
				for i, err := 0, error(nil); err == nil && i < size/len(piece); i++ {
					if strings.HasPrefix(head, "Transfer") {
						_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(piece), piece)
					} else {
						_, err = io.WriteString(conn, piece)
					}
					n += len(piece)
				}
				sent <- n
			}()
			res, body := readAnswer(t, conn)
			if res.StatusCode != http.StatusRequestEntityTooLarge || !isRefusal(body) {
				t.Errorf("%s: got %d %s", head, res.StatusCode, body)
			}
			s.works(t)
			_ = conn.Close()
			if n := <-sent; n > 2<<20 {
				t.Errorf("%s: %d bytes of the body were read", head, n)
			}
		})
	}
}

// trickle writes a byte a second until it fails or has written 100.
func trickle(w io.Writer, piece string) {
	for range 100 {
		if _, err := io.WriteString(w, piece); err != nil {
			return
		}
		time.Sleep(time.Second)
	}
}

// A body that trickles in holds its request for ReadTimeout at most, also when
// the server itself has no timeouts.
func TestSlowBodyIsBounded(t *testing.T) {
	overBoth(t, func(t *testing.T, protocol string) {
		f := newFixture(t, config{sse: sse.Options{Options: front.Options{ReadTimeout: 3500 * time.Millisecond}}})
		p := pipetest.Serve(f, protocols(protocol), nil)
		defer p.Stop()
		s := attach(t, f, p.Client, "http://gateway")
		defer s.Body.Close()
		var res *http.Response
		var answer string
		before := time.Now()
		if protocol == "h1" { // by hand: the client may see its write fail before the answer
			conn := p.Dial()
			defer conn.Close()
			fmt.Fprintf(conn, "POST /sse/%s/message HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", s.c.ID())
			go trickle(conn, "1\r\n \r\n")
			res, answer = readAnswer(t, conn)
		} else {
			body, w := io.Pipe()
			defer w.CloseWithError(io.EOF)
			go trickle(w, " ")
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url, body)
			req.Header.Set("Content-Type", "application/json")
			res, answer = do(t, p.Client, req)
		}
		if took := time.Since(before); res.StatusCode != http.StatusBadRequest || !isRefusal(answer) || took != 3500*time.Millisecond {
			t.Errorf("got %d %s after %v", res.StatusCode, answer, took)
		}
		s.works(t)
	})
}
