package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// crowdReport is what crowd.mjs says of its calls.
type crowdReport struct {
	Answered     []string       `json:"answered"`     // names of the calls
	Retryable    int            `json:"retryable"`    // errors that allow another call,
	NotRetryable int            `json:"notRetryable"` // that do not,
	Unsent       int            `json:"unsent"`       // and without data: nobody took the call, or its connection broke
	Silent       int            `json:"silent"`       // calls without any answer
	Errors       map[string]int `json:"errors"`
	Slowest      int            `json:"slowest"` // ms from a call to its error
	MS           int            `json:"ms"`
}

// Clients whose gateway is killed and started again on the same port go on without being
// told to, over each transport. Over /mcp each call that was under way ends with an error.
// No call runs twice unless it may.
func TestClientsGoOnWhenTheGatewayIsKilled(t *testing.T) {
	t.Parallel()
	each := 2
	if all {
		each = 25
	}
	ledger := filepath.Join(t.TempDir(), "ledger")
	g := startGateway(t, fake(t)...)
	crowds := map[string]*driver{}
	for over, at := range g.endpoints() {
		timeout := "60000" // longer than any test waits
		if over == overSSE {
			timeout = "5000" // calls that were under way have lost their stream
		}
		for _, sdk := range []string{"sdk1", "client2"} {
			crowds[fmt.Sprintf("%s over %s", sdk, over)] = startScript(t, "crowd.mjs", "--client", sdk, "--url", at, "--transport", string(over),
				"--clients", fmt.Sprint(each), "--file", ledger, "--timeout", timeout)
		}
	}
	goOn := func() {
		for name, c := range crowds {
			r, err := c.step(within(t), "progress")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			t.Logf("%s: all go on after %d ms", name, r.MS)
		}
	}
	goOn()
	u, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	g.kill()
	startGateway(t, append([]string{"--addr", u.Host}, fake(t)...)...)
	goOn()
	var reports, answered []string
	var retryable, notRetryable int
	for name, c := range crowds {
		r, err := c.step(within(t), "report")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if strings.HasSuffix(name, string(streamable)) && r.Silent > 0 {
			t.Errorf("%s: %d calls got no answer", name, r.Silent)
		}
		retryable, notRetryable = retryable+r.Retryable, notRetryable+r.NotRetryable
		answered = append(answered, r.Answered...)
		reports = append(reports, fmt.Sprintf("%s: %d answered, errors: %d retryable, %d not, %d without data; %d calls without an answer; an error took %d ms at most; %v",
			name, len(r.Answered), r.Retryable, r.NotRetryable, r.Unsent, r.Silent, r.Slowest, r.Errors))
	}
	data, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	ran, again := map[string]int{}, 0
	for line := range strings.Lines(string(data)) {
		call := strings.TrimSpace(line)
		if ran[call]++; ran[call] == 1 {
			continue
		}
		if again++; !strings.HasPrefix(call, "look ") {
			t.Errorf("%q ran %d times", call, ran[call])
		}
	}
	for _, call := range answered {
		if ran[call] == 0 {
			t.Errorf("%q was answered, and has not run", call)
		}
	}
	if all && (retryable == 0 || notRetryable == 0) {
		t.Errorf("of 50 clients over /mcp, %d were told to repeat their call, and %d not to", retryable, notRetryable)
	}
	t.Logf("%d calls ran, %d answered, %d safe ones again\n%s", len(ran), len(answered), again, strings.Join(reports, "\n"))
}
