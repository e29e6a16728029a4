package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// errSuperseded is the reason of a session that the client's own initialize has
// replaced.
var errSuperseded = errors.New("the client has opened a session with capabilities of its own")

// maxParams bounds the initialize params of a client that are kept for the
// sessions to come, in bytes; with larger ones a client gets the stored result.
const maxParams = 64 << 10

// lateRetry is when it may be worth to ask again for a server that still starts.
const lateRetry = time.Second

// initialize answers a client's own initialize request: from the stored result,
// or from a fresh session when the client declares more than the session's
// handshake did, or when a session is there at last.
func (b *bridge) initialize(m *jsonrpc.Message) {
	b.mu.Lock()
	s := b.current.Load()
	if s == nil && b.failure != nil && (b.restart == nil || handshake.Exceeds(m.Params(), b.params)) {
		// What was tried last may be what failed. A start with the same params
		// that is under way goes on: late is not failed.
		b.own, b.params = false, b.g.params
	}
	fresh := b.g.shared == nil && !b.own && (s == nil || !b.used.Load()) &&
		len(m.Params()) <= maxParams && handshake.Exceeds(m.Params(), b.params)
	if s != nil && !fresh {
		b.mu.Unlock()
		b.c.AnswerNow(m.ID, s.result.Answer(m), "")
		return
	}
	if b.c.State() == connstate.Draining {
		b.mu.Unlock()
		b.Refused(m, connstate.ErrDraining)
		return
	}
	b.openings = append(b.openings, reduced(m))
	if fresh {
		b.own, b.params, b.attempts = true, ownParams(m), 0
		b.current.Store(nil)
		if b.restart != nil {
			b.restart()
		}
	}
	b.wakeLocked()
	b.mu.Unlock()
	if s != nil {
		b.leave(s, errSuperseded)
	}
}

// ownParams are a client's initialize params for a request of the gateway's own.
// A progress token in them would be taken for one of another request.
func ownParams(m *jsonrpc.Message) json.RawMessage {
	params := bytes.Clone(m.Params())
	meta, _ := jsonrpc.Member(params, "_meta")
	if _, ok := jsonrpc.Member(meta, "progressToken"); !ok {
		return params
	}
	return jsonrpc.ReplaceMember(params, jsonrpc.RemoveMember(meta, "progressToken"), "_meta")
}

// reduced is an initialize request without what its answer does not depend on:
// many may wait.
func reduced(m *jsonrpc.Message) *jsonrpc.Message {
	version, ok := jsonrpc.Member(m.Params(), "protocolVersion")
	if !ok || len(version) > 64 {
		version = json.RawMessage(`""`)
	}
	params := append(append([]byte(`{"protocolVersion":`), version...), '}')
	r, err := jsonrpc.Parse(jsonrpc.NewRequest(m.ID, m.Method, params))
	if err != nil {
		return m
	}
	return r
}

// wakeLocked has a start made now. b.mu is held.
func (b *bridge) wakeLocked() {
	if b.starting {
		if b.current.Load() == nil && b.c.State() == connstate.Ready {
			_ = b.c.Move(connstate.Initializing) // the session that made it ready has been replaced
		}
		select {
		case b.kick <- struct{}{}:
		default: // it is awake
		}
		return
	}
	_ = b.c.Move(connstate.Initializing) // from ready, failed; when it is closed nothing starts
	b.backoff, b.wait = nil, 0
	b.launchLocked()
}

// reviveAfter is how long after the last failed start a client's request has
// another one made.
const reviveAfter = 15 * time.Second

// revive has a start made on a connection that had given up, if that was a while
// ago: the server may be there again, and the client cannot know. It reports
// whether there is a start to wait for.
func (b *bridge) revive() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.starting && time.Since(b.failedAt) < reviveAfter {
		return false
	}
	b.wakeLocked()
	return true
}

// autoID is the id of the synthetic initialize towards the client.
func (b *bridge) autoID() jsonrpc.ID {
	return jsonrpc.ID(strconv.Quote("auto-initialize-" + b.c.ID()))
}

// announce sends the response of the synthetic initialize.
func (b *bridge) announce(response []byte) {
	if err := b.c.Announce(response); err != nil {
		b.c.SawFailure(string(handshake.PhaseSending))
		b.g.metrics.HandshakeDone(metrics.HandshakeError, string(handshake.PhaseSending), time.Since(b.c.Opened()), b.c.ShortID())
		b.log().Warn("announcement not sent", "phase", string(handshake.PhaseSending), "err", err)
	}
}

// announceLate tells the client that the start takes longer than it may wait.
// The start goes on: late is not failed.
func (b *bridge) announceLate() {
	failure := b.lateFailure()
	b.mu.Lock()
	defer b.mu.Unlock() // with it, so that this cannot follow the result
	if b.known || b.c.State() != connstate.Initializing {
		return
	}
	b.log().Info("session start takes long", "waited", b.g.opts.InitializationTimeout)
	b.announce(failure.Response(b.autoID()))
}

// whyLate is what those are told who waited for a start in vain: how the last
// one failed, or that it takes long.
func (b *bridge) whyLate() *handshake.Failure {
	b.mu.Lock()
	failure := b.failure
	b.mu.Unlock()
	if failure != nil {
		return failure
	}
	return b.lateFailure()
}

func (b *bridge) lateFailure() *handshake.Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	return &handshake.Failure{
		Phase:   handshake.PhaseProcessing,
		Details: "the server is still starting: it did not answer within " + b.g.opts.InitializationTimeout.String(),
		Attempt: b.attempts, RetryAfter: lateRetry,
	}
}
