package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

func echoRequest(id int, owner string) string {
	return requestJSON(strconv.Itoa(id), "tools/call",
		fmt.Sprintf(`{"name":"echo","arguments":{"message":"%s-%d"},"_meta":{"progressToken":%d}}`, owner, id, id))
}

func assertOwn(t *testing.T, s *stream, id int, owner string) {
	t.Helper()
	n := strconv.Itoa(id)
	got := parseResponse(t, s.await("response to "+n, answers("message", n)).Data).text(t)
	if want := fmt.Sprintf("%s-%d", owner, id); got != want && got != "Echo: "+want {
		t.Errorf("%s asked %d and got %q", owner, id, got)
	}
}

func assertEchoes(t *testing.T, s *stream, id int, owner string) {
	t.Helper()
	s.accepted(echoRequest(id, owner))
	assertOwn(t, s, id, owner)
}

// assertEachAnsweredOnce asserts that no id was answered twice so far.
func assertEachAnsweredOnce(t *testing.T, s *stream) {
	t.Helper()
	seen := map[string]int{}
	for _, e := range s.seen() {
		if e.Name != "message" {
			continue
		}
		if m := parseResponse(t, e.Data); m.ID != nil && !strings.Contains(e.Data, `"method"`) {
			seen[string(m.ID)]++
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("request %s was answered %d times", id, n)
		}
	}
}
