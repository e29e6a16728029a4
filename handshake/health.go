package handshake

import (
	"errors"
	"sync"
	"time"

	"github.com/mcp-sse/mcp-sse/metrics"
)

// record is what has shown whether sessions can be started.
type record struct {
	forwards bool // SupplierOptions.Forwards

	mu      sync.Mutex // guards what follows
	starts  startVerdict
	failure error     // in startsFail, of the last probe
	probe   *probe    // nil: none runs
	probed  time.Time // when the last probe ended
	health  Health    // but for Draining, Failing, Initialized and Known
	// unsteadyUntil is set while the last failure is the loss of a session soon after its start, else zero. Health
	// shows the server as failing until then.
	unsteadyUntil time.Time
}

// unsteady is how long Health shows a server as failing after a session has ended soon after its start. It is longer
// than the pauses of a server that does so again and again.
const unsteady = time.Minute

// probe is a start that only tests whether a session can be started.
type probe struct {
	done chan struct{} // closed at its end
	err  error         // set before done is closed
}

// startVerdict is what is known of whether a session can be started. A start that works and a probe decide that. A
// start that fails for a client does not: the client may be the reason.
type startVerdict uint8

const (
	startsUndecided startVerdict = iota // nothing has decided
	startsWork                          // the last start worked
	startsDoubted                       // one has failed since: the next call of Ready makes a probe
	startsFail                          // the last probe failed, and none has worked since
)

// NoteStart records a start that worked.
func (r *record) NoteStart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteWorksLocked()
}

// noteWorksLocked notes that a start works now.
func (r *record) noteWorksLocked() {
	r.starts, r.failure, r.health.Started = startsWork, nil, time.Now()
}

// workedLocked reports whether the last start that decided worked.
func (r *record) workedLocked() bool { return r.starts != startsFail && !r.health.Started.IsZero() }

// Worked reports whether a start has ever worked.
func (r *record) Worked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.health.Started.IsZero()
}

// NoteFailure records a failed start and its error. It decides nothing, because its client
// may be the reason: the next call of Ready makes a probe, and Health shows the server as
// failing until a start works. That a server refuses a client's own credentials is no failure.
func (r *record) NoteFailure(err error) {
	if r.refusesClient(err) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(err)
	if r.starts != startsFail {
		r.starts = startsDoubted
	}
}

// refusesClient reports whether a start failed because the server, which has been reached,
// refuses the credentials of one client or of a probe, while those of others may be right.
func (r *record) refusesClient(err error) bool {
	failure, _ := errors.AsType[*Failure](err)
	return r.forwards && failure != nil && failure.Reason == metrics.ReasonDenied
}

// NoteLoss records that a session was lost, and why. soon says that it had not proved itself.
func (r *record) NoteLoss(err error, soon bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteLocked(err)
	if soon {
		r.unsteadyUntil = r.health.Failed.Add(unsteady)
	}
}

// noteLocked notes a failed start or a lost session.
func (r *record) noteLocked(err error) {
	r.health.Failed, r.health.Failure, r.health.Cause = time.Now(), err.Error(), err
	r.unsteadyUntil = time.Time{}
}

// Health is what is known of the server without a probe. Times are zero for what has not
// happened.
type Health struct {
	Draining bool
	// Failing says that the last start failed, or that a session ended soon after its start
	// in the last minute.
	Failing     bool
	Started     time.Time // the last start that worked
	Failed      time.Time // the last failed start or lost session
	Failure     string    // and why
	Cause       error     // the error of Failure; nil: there is none
	Initialized *Server   // what the server last said of itself; nil without a handshake
	Known       bool      // what the server says is remembered
}
