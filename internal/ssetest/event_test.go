package ssetest_test

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestRead(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	in := bufio.NewReader(strings.NewReader("id: 1\nevent: endpoint\ndata: /a\n\n: heartbeat\n\nretry: 5\ndata: " + long + "\n\n"))
	want := []ssetest.Event{
		{ID: "1", Name: "endpoint", Data: "/a", Lines: 1, Raw: "id: 1\nevent: endpoint\ndata: /a"},
		{Comment: "heartbeat", Raw: ": heartbeat"},
		{Retry: "5", Data: long, Lines: 1, Raw: "retry: 5\ndata: " + long},
	}
	for i, w := range want {
		if got, err := ssetest.Read(in); err != nil || got != w || got.IsComment() != (i == 1) {
			t.Errorf("block %d = %.100v, %v", i, got, err)
		}
	}
	if _, err := ssetest.Read(in); err != io.EOF {
		t.Errorf("the end = %v, want io.EOF", err)
	}
}

func TestReadIsStrict(t *testing.T) {
	for _, text := range []string{"\n", "data:x\n\n", "odd: x\n\n", "data\n\n", "data: x\n", "data: x"} {
		if e, err := ssetest.Read(bufio.NewReader(strings.NewReader(text))); err == nil || err == io.EOF {
			t.Errorf("Read(%q) = %v, %v, want an error", text, e, err)
		}
	}
}

func TestReadAny(t *testing.T) {
	in := bufio.NewReader(strings.NewReader("event:message\r\ndata:  {}\r\nodd\r\n\r\n:\n\n"))
	want := []ssetest.Event{{Name: "message", Data: " {}", Lines: 1}, {}}
	for i, w := range want {
		if got, err := ssetest.ReadAny(in); err != nil || got != w {
			t.Errorf("block %d = %+v, %v", i, got, err)
		}
	}
}
