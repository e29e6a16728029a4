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
	gone     bool  // the first stream ended before its answers came
	cut      error // of the first stream
}

func (h *history) answer(p *page, id, body string) { h.answerAs(p, "message", id, body) }

func (h *history) answerAs(p *page, name, id, body string) {
	p.got(name, `{"jsonrpc":"2.0","id":`+id+`,`+body+`}`)
}

func result(nonce string) string { return `"result":{"text":"` + nonce + `"}` }

// What the ledger must find, and what it must not complain of.
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
		"MissingOnAStreamThatIsGone": {run: func(h *history) { ask(h.one, "1"); h.gone = true }},
		"MissingWithoutA202": {run: func(h *history) {
			h.one.ask("1", "tools/call", false)
			h.one.refuse("1", "reset")
		}},
		"Doubled": {"answered 2 times", func(t tally) int { return t.doubled }, func(h *history) {
			nonce := ask(h.one, "1")
			h.answer(h.one, "1", result(nonce))
			h.answer(h.one, "1", result(nonce))
		}},
		"DoubledByAnError": {"answered 2 times", func(t tally) int { return t.doubled }, func(h *history) {
			h.answer(h.one, "1", result(ask(h.one, "1")))
			h.answer(h.one, "1", timeout)
		}},
		"DoubledOnAStreamThatIsGone": {"answered 2 times", func(t tally) int { return t.doubled }, func(h *history) {
			nonce := ask(h.one, "1")
			h.answer(h.one, "1", result(nonce))
			h.answer(h.one, "1", result(nonce))
			h.gone = true
		}},
		"ResultOfAnotherStream": {"of another one", func(t tally) int { return t.crossed }, func(h *history) {
			mine, other := ask(h.one, "1"), ask(h.two, "1")
			h.answer(h.one, "1", `"result":["`+mine+other+`"]`)
			h.answer(h.two, "1", result(other))
		}},
		"ResultOfAnotherRequest": {"of another request", func(t tally) int { return t.crossed }, func(h *history) {
			mine, other := ask(h.one, "1"), ask(h.one, "2")
			h.answer(h.one, "1", result(mine+other))
			h.answer(h.one, "2", result(other))
		}},
		"ResultOfNobody": {"does not hold", func(t tally) int { return t.crossed }, func(h *history) {
			ask(h.one, "1")
			h.answer(h.one, "1", `"result":{}`)
		}},
		"ErrorOfAnotherStream": {"of another one", func(t tally) int { return t.crossed }, func(h *history) {
			ask(h.one, "1")
			other := ask(h.two, "1")
			h.answer(h.one, "1", `"error":{"code":1,"message":"`+other+`"}`)
			h.answer(h.two, "1", timeout)
		}},
		"NotificationOfAnotherStream": {"of another one", func(t tally) int { return t.crossed }, func(h *history) {
			other := ask(h.two, "1")
			h.answer(h.two, "1", result(other))
			h.one.got("message", `{"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"`+other+`"}}`)
		}},
		"NeverAsked": {"never asked", func(t tally) int { return t.wrong }, func(h *history) {
			h.answer(h.one, "7", timeout)
		}},
		"IdOfAnotherKind": {"never asked", func(t tally) int { return t.wrong }, func(h *history) {
			h.answer(h.one, "1", result(ask(h.one, "1")))
			h.answer(h.one, `"1"`, timeout)
		}},
		"Announced": {run: func(h *history) { h.answerAs(h.one, "mcp-response", `"auto-initialize-x"`, `"result":{}`) }},
		"Late": {"the bound is", func(t tally) int { return t.wrong }, func(h *history) {
			nonce := ask(h.one, "1")
			h.clock = h.clock.Add(h.l.bound + time.Second)
			h.answer(h.one, "1", result(nonce))
		}},
		"UnderAnotherName": {"came as mcp-response", func(t tally) int { return t.wrong }, func(h *history) {
			nonce := ask(h.one, "1")
			h.answerAs(h.one, "mcp-response", "1", result(nonce))
		}},
		"UnderOneNameOfTwo": {"has 1 answers", func(t tally) int { return t.unanswered }, func(h *history) {
			h.one.names = []string{"message", "mcp-response"}
			h.answer(h.one, "1", result(ask(h.one, "1")))
		}},
		"NoMessage": {"no JSON-RPC message", func(t tally) int { return t.wrong }, func(h *history) { h.one.got("message", "hello") }},
		"Cut":       {"cut the stream", func(t tally) int { return t.cut }, func(h *history) { h.cut = errors.New("EOF") }},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{l: newLedger(time.Minute), clock: time.Now()}
			h.l.now = func() time.Time { return h.clock }
			h.one, h.two = h.l.open("message"), h.l.open("message")
			c.run(h)
			h.one.end(!h.gone, h.cut)
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

// The fault tells what was in flight, and when.
func TestLedgerTellsTheHistoryOfAFault(t *testing.T) {
	l := newLedger(time.Minute)
	p := l.open("message")
	p.ask("1", "tools/call", false)
	p.accept("1")
	p.cancel("1")
	p.end(true, nil)
	_, faults := l.report()
	for _, part := range []string{"asked tools/call <1.0>", "got 202", "cancelled"} {
		if len(faults) != 1 || !strings.Contains(faults[0], part) {
			t.Errorf("faults = %q, want one with %q", faults, part)
		}
	}
}
