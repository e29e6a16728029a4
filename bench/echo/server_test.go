package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// exchange returns the lines that the server answers to lines that come together.
func exchange(t *testing.T, shuffle bool, lines ...string) []string {
	t.Helper()
	var out bytes.Buffer
	if err := newServer(strings.NewReader(strings.Join(lines, "\n")+"\n"), &out, shuffle).run(); err != nil {
		t.Fatal(err)
	}
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// A call that asks is answered after the client.
func TestAsk(t *testing.T) {
	var out bytes.Buffer
	s := newServer(strings.NewReader(strings.Join([]string{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"progress","arguments":{"message":"m"}}}`,
		`{"jsonrpc":"2.0","id":"other","result":{}}`,
		`{"jsonrpc":"2.0","id":"ask-1","error":{"code":1,"message":"no"}}`,
	}, "\n")+"\n"), &out, false)
	s.ask = true
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
	want := `{"jsonrpc":"2.0","id":"ask-1","method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}` +
		"\n" + `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"m"}]}}` + "\n"
	if out.String() != want {
		t.Errorf("got %s, want %s", &out, want)
	}
}

func TestAnswers(t *testing.T) {
	const echoed = `{"content":[{"type":"text","text":"a\"b"}]}`
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"Initialize": {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}`,
			[]string{`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1.0"}}}`}},
		"Ping":         {`{"jsonrpc":"2.0","id":"p","method":"ping"}`, []string{`{"jsonrpc":"2.0","id":"p","result":{}}`}},
		"Notification": {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil},
		"Tools":        {`{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, []string{`{"jsonrpc":"2.0","id":1.5,"result":` + string(toolList) + `}`}},
		"Echo": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":"a\"b"},"_meta":{"progressToken":9}}}`,
			[]string{`{"jsonrpc":"2.0","id":1,"result":` + echoed + `}`}},
		"Progress": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","arguments":{"message":"a\"b"},"_meta":{"progressToken":9}}}`,
			[]string{
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1,"total":2,"message":"a\"b"}}`,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":2,"total":2,"message":"a\"b"}}`,
				`{"jsonrpc":"2.0","id":1,"result":` + echoed + `}`,
			}},
		"ProgressWithoutToken": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"progress","arguments":{"message":"a\"b"}}}`,
			[]string{`{"jsonrpc":"2.0","id":1,"result":` + echoed + `}`}},
		"NoMessage": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"message":1}}}`,
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"message must be a string"}}`}},
		"NoSuchTool": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"message":"m"}}}`,
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"there are the tools echo and progress"}}`}},
		"NoSuchMethod": {`{"jsonrpc":"2.0","id":1,"method":"x"}`,
			[]string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := exchange(t, false, c.in); !slices.Equal(got, c.want) {
				t.Errorf("answers to %s =\n%q, want\n%q", c.in, got, c.want)
			}
		})
	}
}

func TestNoJSONIsAnsweredWithAnError(t *testing.T) {
	got := exchange(t, false, "no JSON")
	if len(got) != 1 || !strings.HasPrefix(got[0], `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`) {
		t.Errorf("answer = %q, want a parse error", got)
	}
}

func TestLineOverTheLimitEndsTheServer(t *testing.T) {
	err := newServer(strings.NewReader(strings.Repeat("x", maxLine+1)), &bytes.Buffer{}, false).run()
	if err == nil {
		t.Error("run = nil, want an error")
	}
}

// calls returns 100 requests of a tool, with their ids as messages.
func calls(tool string) (lines []string) {
	for i := range 100 {
		lines = append(lines, fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"message":"%d"},"_meta":{"progressToken":%d}}}`, i, tool, i, i))
	}
	return lines
}

func TestInOrderWithoutShuffle(t *testing.T) {
	for i, line := range exchange(t, false, calls("echo")...) {
		if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, i); !strings.HasPrefix(line, want) {
			t.Fatalf("answer %d = %s, want %s…", i, line, want)
		}
	}
}

// Of 100! orders the one of the requests does not come by chance.
func TestShuffleAnswersAllInAnotherOrder(t *testing.T) {
	plain, shuffled := exchange(t, false, calls("progress")...), exchange(t, true, calls("progress")...)
	if slices.Equal(plain[200:], shuffled[200:]) {
		t.Error("the answers came in the order of the requests")
	}
	slices.Sort(plain)
	slices.Sort(shuffled)
	if !slices.Equal(plain, shuffled) {
		t.Errorf("shuffled answers = %q, want the same as without shuffle", shuffled)
	}
}

func TestShuffleReportsProgressBeforeItsAnswer(t *testing.T) {
	answered := false
	for _, line := range exchange(t, true, calls("progress")...) {
		report := strings.Contains(line, "notifications/progress")
		if report && answered {
			t.Fatalf("progress came after an answer: %s", line)
		}
		answered = answered || !report
	}
}

func TestDiesAtACall(t *testing.T) {
	var out bytes.Buffer
	s := newServer(strings.NewReader(strings.Join(calls("echo"), "\n")+"\n"), &out, false)
	s.dieAt = 100
	if err := s.run(); !errors.Is(err, errDied) || out.Len() > 0 {
		t.Errorf("run = %v, answers %q, want %v and none", err, &out, errDied)
	}
	s = newServer(strings.NewReader(strings.Join(calls("echo"), "\n")+"\n"), &out, false)
	s.dieAt = 101
	if err := s.run(); err != nil || strings.Count(out.String(), "\n") != 100 {
		t.Errorf("run = %v, answers %q, want 100", err, &out)
	}
}
