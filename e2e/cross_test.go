package e2e

import (
	"fmt"
	"strconv"
	"sync"
	"testing"
)

// tokens returns 50 arguments of echo that only their owner knows.
func tokens(owner string) (args []map[string]any, want []string) {
	for i := range 50 {
		token := fmt.Sprintf("%s-%d", owner, i)
		args = append(args, map[string]any{"message": token})
		want = append(want, token)
	}
	return args, want
}

// Every SDK counts its ids from 0 or 1, so two clients of a kind use the same.
func TestTwoClientsWithTheSameIDsNeverCross(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"Demo": nil, "Child": fake(t)} {
		t.Run(name, func(t *testing.T) {
			forEachClient(t, lasting, func(t *testing.T, k kind) {
				g := startGateway(t, args...)
				var wg sync.WaitGroup
				for _, owner := range []string{"anna", "ben"} {
					c := connect(t, k, g.at(k))
					wg.Go(func() {
						args, want := tokens(owner)
						got, err := c.callAll(within(t), "echo", args)
						if err != nil {
							t.Errorf("%s: %v", owner, err)
							return
						}
						for i := range want {
							if got[i] != want[i] {
								t.Errorf("%s: echo(%s) = %q", owner, want[i], got[i])
							}
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// By hand, so that the ids are surely the same and the progress tokens too.
func TestTwoStreamsWithTheSameIDsNeverCross(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"Demo": nil, "Child": fake(t), "Everything": everything(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, args...)
			anna, ben := openStream(t, g.url), openStream(t, g.url+"?event=message")
			for id := 1; id <= 50; id++ {
				anna.accepted(echoRequest(id, "anna"))
				ben.accepted(echoRequest(id, "ben"))
			}
			for id := 1; id <= 50; id++ {
				assertOwn(t, anna, id, "anna")
				assertOwn(t, ben, id, "ben")
			}
		})
	}
}

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
