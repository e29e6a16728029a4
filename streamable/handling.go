package streamable

import (
	"context"
	"net/http"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// The goroutine of a POST would only wait while a server in this process handles the request:
// it runs the handler itself. If there is something to write before the handler has returned,
// another goroutine writes the response. With HTTP/2, and where nothing can be flushed, the
// response would not end before the handler, so it does not run there.

var _ jsonrpc.Waiter = (*exchange)(nil)

// Take takes the handling of the request, while the goroutine passes it on.
func (x *exchange) Take(h jsonrpc.Handling) bool {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if !x.taking {
		return false
	}
	x.taking, x.handling = false, h
	return true
}

// Returned makes the goroutine write the response again, unless another one does.
func (x *exchange) Returned() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.out.busy, x.returned = nil, true
}

// pass passes the messages of the POST on, and writes the response.
func (x *exchange) pass(p *post) {
	x.p = p
	wait := x.wait() // now: later another goroutine may write the response
	x.taking = len(p.messages) == 1 && !p.stream && x.opens == "" && !x.st.json && p.r.ProtoMajor == 1
	if x.taking {
		p.messages[0].Waiter = x
	}
	x.h.receive(x.s, p)
	if h := x.taken(); h != nil {
		x.handle(h, wait)
		return
	}
	x.run()
}

// taken returns the handling that the goroutine has taken; it takes none any more.
func (x *exchange) taken() jsonrpc.Handling {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.taking = false
	if x.handling == nil {
		return nil
	}
	x.out.busy = x
	select {
	case <-x.out.wake:
		x.out.signal()
	default:
	}
	return x.handling
}

// handle runs the handler of the request, and writes the response. The response becomes a
// stream after wait.
func (x *exchange) handle(h jsonrpc.Handling, wait time.Duration) {
	timer := time.AfterFunc(wait, x.becomeStream)
	stop := context.AfterFunc(x.r.Context(), x.lost)
	returned := false
	defer func() {
		timer.Stop()
		stop()
		x.Returned()
		if x.relief.Wait(); x.relieved {
			x.s.stay()
		}
		switch {
		case x.panicked != nil:
			panic(x.panicked) // net/http ends the request
		case !returned: // runtime.Goexit: net/http writes nothing more
			if !x.relieved {
				x.w.Header()["Connection"] = closed
				x.run()
			}
			x.endNow()
		case !x.relieved:
			x.run()
		case x.events != nil:
			x.events.Expire() // as detach, which was too early for this
		}
	}()
	h.Run()
	returned = true
}

// lost ends the response of a client that is gone.
func (x *exchange) lost() {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.out.signal()
}

// relieve starts a goroutine that writes the response in place of the one that runs the
// handler. The session's mu is held.
func (x *exchange) relieve() {
	x.relieved = true
	x.relief.Add(1)
	go func() { // ends with the response; the goroutine of the request waits for it
		defer x.relief.Done()
		defer func() { x.panicked = recover() }() // of a middleware's writer
		defer x.s.leave()
		x.run()
		x.endEarly()
	}()
}

// endEarly ends a response that is over before the handler has returned, as after a timeout.
func (x *exchange) endEarly() {
	x.s.mu.Lock()
	returned := x.returned
	x.s.mu.Unlock()
	if !returned {
		x.p.freeBody()
		x.endNow()
	}
}

// endNow ends a response that net/http would end when the goroutine of the request returns, or
// not at all. So it takes the TCP connection from net/http, and closes it. Behind a middleware
// that has no Hijack, the client has the answer, and its end is left to net/http.
func (x *exchange) endNow() {
	if x.ended {
		return
	}
	x.ended = true
	c := http.NewResponseController(x.w)
	_ = c.SetWriteDeadline(time.Now().Add(x.h.opts.WriteTimeout)) // where there is none, Flush waits
	flushed := c.Flush() == nil
	conn, _, err := c.Hijack()
	if err != nil {
		_ = c.SetWriteDeadline(time.Time{})
		return
	}
	if flushed && x.events != nil && x.r.ProtoAtLeast(1, 1) {
		_ = conn.SetWriteDeadline(time.Now().Add(x.h.opts.WriteTimeout)) // it is a TCP connection
		_, _ = conn.Write([]byte("0\r\n\r\n"))                           // the last chunk; a client that is gone needs none
	}
	_ = conn.Close() // the same
}
