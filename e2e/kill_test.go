package e2e

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
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

// crowds are TypeScript clients that call all the time, by SDK and transport.
type crowds struct {
	t      *testing.T
	ledger string
	by     map[string]*driver
}

// startCrowds starts so many clients for each SDK and transport.
func startCrowds(t *testing.T, url string, each int) *crowds {
	t.Helper()
	c := &crowds{t, filepath.Join(t.TempDir(), "ledger"), map[string]*driver{}}
	for _, over := range []transport{overSSE, streamable} {
		timeout := "60000" // longer than any test waits
		if over == overSSE {
			timeout = "5000" // calls that were under way have lost their stream
		}
		for _, sdk := range []string{"sdk1", "client2"} {
			c.by[fmt.Sprintf("%s over %s", sdk, over)] = startScript(t, "crowd.mjs", "--client", sdk, "--url", url, "--transport", string(over),
				"--clients", fmt.Sprint(each), "--file", c.ledger, "--timeout", timeout)
		}
	}
	return c
}

// goOn waits until each client has had answers to calls that began after it was called.
func (c *crowds) goOn() {
	c.t.Helper()
	for name, d := range c.by {
		r, err := d.step(within(c.t), "progress")
		if err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
		c.t.Logf("%s: all go on after %d ms", name, r.MS)
	}
}

// end ends the calls, checks that what was answered ran, that nothing ran twice but what may,
// and that each call over /mcp has ended, and returns the reports.
func (c *crowds) end() map[string]reply {
	c.t.Helper()
	reports := map[string]reply{}
	var answered []string
	for name, d := range c.by {
		r, err := d.step(within(c.t), "report")
		if err != nil {
			c.t.Fatalf("%s: %v", name, err)
		}
		if strings.HasSuffix(name, string(streamable)) && r.Silent > 0 {
			c.t.Errorf("%s: %d calls got no answer", name, r.Silent)
		}
		reports[name], answered = r, append(answered, r.Answered...)
		c.t.Logf("%s: %d answered, errors: %d retryable, %d not, %d without data; %d without an answer; an error took %d ms at most; %v",
			name, len(r.Answered), r.Retryable, r.NotRetryable, r.Unsent, r.Silent, r.Slowest, r.Errors)
	}
	data, err := os.ReadFile(c.ledger)
	ssetest.Must(c.t, err)
	ran := map[string]int{}
	for line := range strings.Lines(string(data)) {
		call := strings.TrimSpace(line)
		if ran[call]++; ran[call] > 1 && !strings.HasPrefix(call, "look ") {
			c.t.Errorf("%q ran %d times", call, ran[call])
		}
	}
	for _, call := range answered {
		if ran[call] == 0 {
			c.t.Errorf("%q was answered, and has not run", call)
		}
	}
	return reports
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
	g := startGateway(t, fake(t)...)
	c := startCrowds(t, g.url, each)
	c.goOn()
	u, err := url.Parse(g.url)
	ssetest.Must(t, err)
	g.kill()
	startGateway(t, append([]string{"--addr", u.Host}, fake(t)...)...)
	c.goOn()
	var retryable, notRetryable int
	for _, r := range c.end() {
		retryable, notRetryable = retryable+r.Retryable, notRetryable+r.NotRetryable
	}
	if all && (retryable == 0 || notRetryable == 0) {
		t.Errorf("of 50 clients over /mcp, %d were told to repeat their call, and %d not to", retryable, notRetryable)
	}
}
