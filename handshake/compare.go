package handshake

import (
	"slices"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/remember"
)

// A session that comes into use may have other lists than its client was told of while it rested.

// lookFirst is how long the messages of a client that has rested wait for the look at its session.
const lookFirst = time.Second

// lookBefore looks at a session before its client's messages can change what it says.
func (r *run) lookBefore(a *attachment) {
	look := a.session.look
	if look == nil { // a reload has switched it off
		return
	}
	a.session.startLook()
	select {
	case <-look.done:
	case <-a.asks: // it may want its answer first
	case <-time.After(lookFirst):
	case <-a.session.Over():
	case <-r.ctx.Done():
	}
}

// compare tells the client if the lists of a session that comes into use differ from what it was told, now
// or once they have been read.
func (r *run) compare(a *attachment) {
	look := a.session.look
	switch {
	case look == nil: // a reload has switched memory off: nobody compares any more
		if told := r.told.Swap(nil); told != nil && r.follows == afterRest {
			r.tellChanged(nil, told)
		}
	case look.isOver():
		r.tellDifferences(a, look.answers)
	default:
		r.supplier.Go(func() { // ends with the look, the session and the connection
			select {
			case <-look.done:
				if r.current.Load() == a {
					r.tellDifferences(a, look.answers)
				}
			case <-a.session.Done():
			case <-r.ctx.Done():
			}
		})
	}
}

// tellDifferences tells the client which lists of its session, if they could be read, differ from what it
// was told.
func (r *run) tellDifferences(a *attachment, now *remember.Answers) {
	told := r.told.Load()
	switch {
	case now == nil && told != nil && told.Partial: // it was told of others, and its own lists cannot be read
		r.told.Store(a.session.unread())
		r.notifyListsChanged(resultOf(told), told.Has)
		return
	case now == nil:
		return
	case told == nil:
		r.told.Store(now)
		return
	}
	tell := *now
	if !told.Partial { // after the nearest memory a difference is expected
		if told.Initialize != now.Initialize {
			r.limited().Warn("the server answers initialize otherwise than remembered", a.session.ServerAttrs()...)
		}
		tell.Initialize = told.Initialize // the client knows nothing else
	}
	r.told.Store(&tell)
	r.logDifferences(told, now)
	r.tellChanged(told, now)
}

func (r *run) logDifferences(told, now *remember.Answers) {
	for _, kind := range remember.Kinds() {
		if told.Has(kind) && !told.SameLists(now, kind) {
			r.log().Info("a list differs from what is remembered", "list", kind)
		}
	}
}

// noteMissing notes what the client was told of and the server no longer has.
func (a *attachment) noteMissing() {
	told := a.bridge.told.Load()
	if told == nil {
		return
	}
	promised := resultOf(told)
	for _, kind := range remember.Kinds() {
		if promised.Advertises(kind) && !a.session.Result().Advertises(kind) {
			a.missing = append(a.missing, kind)
		}
	}
}

// lacks reports whether a session lacks what a request needs, although the client was told that the
// server has it.
func (a *attachment) lacks(method string) bool {
	kind, _, _ := strings.Cut(method, "/")
	return slices.Contains(a.missing, kind)
}
