package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// history is a made-up run on two streams; a ledger must find what is wrong in it.
type history struct {
	l        *ledger
	one, two *page
	clock    time.Time
	cut      error // of the first stream
}

func (h *history) answer(p *page, id, body string) { h.answerAs(p, "message", id, body) }

func (h *history) answerAs(p *page, name, id, body string) {
	p.got(name, `{"jsonrpc":"2.0","id":`+id+`,`+body+`}`)
}

func result(nonce string) string { return `"result":{"text":"` + nonce + `"}` }

// The ledger must find each of these faults, and must not complain of the rest.
func TestLedgerFindsWhatIsWrong(t *testing.T) {
	const timeout = `"error":{"code":-32000,"message":"m","data":{"reason":"timeout"}}`
	ask := func(p *page, id string) string {
		nonce := p.ask(id, "tools/call", false)
		p.accept(id)
		return nonce
	}
	for name, c := range map[string]struct {
		want string // in the one fault; empty: none
		kind func(tally) int
		run  func(h *history)
	}{
		"Answered": {run: func(h *history) { h.answer(h.one, "1", result(ask(h.one, "1"))) }},
		"Error":    {run: func(h *history) { ask(h.one, "1"); h.answer(h.one, "1", timeout) }},
		"Missing": {"has 0 answers", func(t tally) int { return t.unanswered }, func(h *history) {
			ask(h.one, "1")
		}},
		"Doubled": {"answered 2 times", func(t tally) int { return t.doubled }, func(h *history) {
			nonce := ask(h.one, "1")
			h.answer(h.one, "1", result(nonce))
			h.answer(h.one, "1", result(nonce))
		}},
		"ResultOfAnotherStream": {"of another one", func(t tally) int { return t.crossed }, func(h *history) {
			mine, other := ask(h.one, "1"), ask(h.two, "1")
			h.answer(h.one, "1", `"result":["`+mine+other+`"]`)
			h.answer(h.two, "1", result(other))
		}},
		"ResultOfNobody": {"does not hold", func(t tally) int { return t.crossed }, func(h *history) {
			ask(h.one, "1")
			h.answer(h.one, "1", `"result":{}`)
		}},
		"NotificationOfAnotherStream": {"of another one", func(t tally) int { return t.crossed }, func(h *history) {
			other := ask(h.two, "1")
			h.answer(h.two, "1", result(other))
			h.one.got("message", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"`+other+`"}}`)
		}},
		"NeverAsked": {"never asked", func(t tally) int { return t.wrong }, func(h *history) {
			h.answer(h.one, "7", timeout)
		}},
		"Late": {"the bound is", func(t tally) int { return t.wrong }, func(h *history) {
			nonce := ask(h.one, "1")
			h.clock = h.clock.Add(h.l.bound + time.Second)
			h.answer(h.one, "1", result(nonce))
		}},
		"UnderAnotherName": {"came as mcp-response", func(t tally) int { return t.wrong }, func(h *history) {
			nonce := ask(h.one, "1")
			h.answerAs(h.one, "mcp-response", "1", result(nonce))
		}},
		"Cut": {"cut the stream", func(t tally) int { return t.cut }, func(h *history) { h.cut = errors.New("EOF") }},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{l: newLedger(time.Minute), clock: time.Now()}
			h.l.now = func() time.Time { return h.clock }
			h.one, h.two = h.l.open("message"), h.l.open("message")
			c.run(h)
			h.one.end(true, h.cut)
			h.two.end(true, nil)
			counts, faults := h.l.report()
			switch {
			case c.want == "" && len(faults) > 0:
				t.Errorf("faults = %q, want none", faults)
			case c.want != "" && (len(faults) != 1 || !strings.Contains(faults[0], c.want)):
				t.Errorf("faults = %q, want one with %q", faults, c.want)
			case c.kind != nil && c.kind(counts) != 1:
				t.Errorf("counted %v, want 1 of the kind of %q", counts, faults)
			}
		})
	}
}
