package bridge

import (
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/handshake"
	"github.com/mcp-sse/mcp-sse/internal/mcp"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
	"github.com/mcp-sse/mcp-sse/metrics"
)

// autoID is the id of the synthetic initialize towards the client.
func (b *Bridge) autoID() jsonrpc.ID {
	return jsonrpc.ID(strconv.Quote("auto-initialize-" + b.c.ID()))
}

// announce sends the response of the synthetic initialize, now or when the
// announce delay is over.
func (b *Bridge) announce(response []byte) { b.c.Announce(response, b.reportNotAnnounced) }

// reportNotAnnounced reports an announcement that could not be delivered.
func (b *Bridge) reportNotAnnounced(err error) {
	b.countFailure(&handshake.Failure{
		Phase: handshake.PhaseSending, Reason: metrics.ReasonSendFailed,
		Details: "the announcement could not be delivered", Err: err,
	}, time.Since(b.c.Opened()))
	b.log().Warn("announcement not sent", "phase", string(handshake.PhaseSending), "err", err)
}

// greet tells the client of its first session, and answers its initialize requests.
func (b *Bridge) greet(a *attachment, waiting []waitingInitialize, first bool) {
	if a.Result() == nil {
		return
	}
	if first {
		b.announce(a.Result().Response(b.autoID()))
	}
	for _, o := range waiting {
		b.c.AnswerNow(o.m.ID, a.Result().Answer(o.m), "")
	}
}

// tellListChanged tells the client that a new session may have other lists.
func (b *Bridge) tellListChanged(a *attachment) {
	if a.Result() == nil {
		return
	}
	for _, method := range []string{mcp.MethodToolsChanged, mcp.MethodPromptsChanged, mcp.MethodResourcesChanged} {
		if kind, _ := mcp.ChangedList(method); a.Result().Advertises(kind, "listChanged") {
			a.client.pass(jsonrpc.NewNotification(method, nil))
		}
	}
}
