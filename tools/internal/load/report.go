package load

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Fault is something that a correct server never does.
type Fault int

// The faults.
const (
	// Crossed: a message holds the secret of a call that it does not belong to, or of
	// another run against the same server.
	Crossed Fault = iota
	// Unmarked: a message that must hold the secret of its call holds none.
	Unmarked
	// Lost: no answer within Timeout, or none under one of the two event names of the
	// client's other answers.
	Lost
	// Late: an answer to a call that the client has given up.
	Late
	// Duplicated: another answer to the same request, under the same name.
	Duplicated
	// Unknown: an answer to a request that its client has not made.
	Unknown
	// StrayProgress: progress for a call that its client has not made, or after
	// its answer.
	StrayProgress
	// Malformed: an event that is not a JSON-RPC message, or a second endpoint.
	Malformed
	// Cut: a stream that ended.
	Cut
	// Misplaced: an answer, progress or a request of the server that came elsewhere than
	// in the response to the POST of its call. HTTP+SSE has one stream for all.
	Misplaced

	faults = int(Misplaced) + 1
)

var faultNames = [faults]string{"crossed", "unmarked", "lost", "late", "duplicated", "unknown", "strayProgress",
	"malformed", "cut", "misplaced"}

// String returns the name that the fault has in the JSON form of a report.
func (f Fault) String() string { return faultNames[f] }

// Faults counts faults by kind.
type Faults [faults]int64

// MarshalJSON returns an object with all kinds, including those that did not happen.
func (f Faults) MarshalJSON() ([]byte, error) {
	all := make(map[string]int64, faults)
	for kind, count := range f {
		all[Fault(kind).String()] = count
	}
	return json.Marshal(all)
}

// Total returns the number of all faults.
func (f Faults) Total() (sum int64) {
	for _, count := range f {
		sum += count
	}
	return sum
}

// maxEvidence bounds the faults of one kind that a report describes.
const maxEvidence = 5

// Report is what a run has seen.
type Report struct {
	URL      string `json:"url"`
	Tool     string `json:"tool"`
	Clients  int    `json:"clients"`
	InFlight int    `json:"inFlight"`

	// Calls were sent. Answered counts those with a correct result; Refused those with
	// an error, including a tool's, or with a status of the POST other than 2xx.
	Calls    int64 `json:"calls"`
	Answered int64 `json:"answered"`
	Refused  int64 `json:"refused"`
	// Refusal is the first refusal, as it came.
	Refusal string `json:"refusal,omitempty"`

	// The other messages that came: progress of the server, progress by which the gateway
	// says that a call waits for the start of the server, other notifications, requests of
	// the server, results of an initialize that the server has sent to itself.
	Progress      int64 `json:"progress"`
	Starting      int64 `json:"starting"`
	Notifications int64 `json:"notifications"`
	Requests      int64 `json:"requests"`
	Announcements int64 `json:"announcements"`

	Faults Faults `json:"faults"`
	// Evidence describes the first faults of each kind.
	Evidence []string `json:"evidence,omitempty"`

	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"callsPerSecond"` // Answered
	// P50 and P99 are the time from just before the POST to the answer, in nanoseconds
	// in the JSON form.
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
}

// Verdict is the conclusion of a report.
type Verdict int

// The verdicts.
const (
	// Clean: every call was answered, and nothing was wrong.
	Clean Verdict = iota
	// Faulty: at least one fault.
	Faulty
	// Unproven: no fault, but not every call was answered with a result.
	Unproven
)

// Verdict returns the conclusion of the report.
func (r *Report) Verdict() Verdict {
	switch {
	case r.Faults.Total() > 0:
		return Faulty
	case r.Refused > 0 || r.Answered == 0:
		return Unproven
	}
	return Clean
}

// tally collects a Report. It is safe for concurrent use.
type tally struct {
	mu        sync.Mutex
	report    Report          // guarded by mu
	latencies []time.Duration // guarded by mu
}

// count adds to one of the report's counts.
func (t *tally) count(which func(*Report) *int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*which(&t.report)++
}

func (t *tally) countFault(f Fault, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Faults[f]++
	if t.report.Faults[f] <= maxEvidence {
		t.report.Evidence = append(t.report.Evidence, f.String()+": "+fmt.Sprintf(format, args...))
	}
}

func (t *tally) lostCalls() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.report.Faults[Lost]
}

func (t *tally) countRefusal(why string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Refused++
	if t.report.Refusal == "" {
		t.report.Refusal = why
	}
}

// add adds the measurements of a worker.
func (t *tally) add(calls int64, latencies []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.report.Calls += calls
	t.report.Answered += int64(len(latencies))
	t.latencies = append(t.latencies, latencies...)
}

// finish returns the report of a run that took that long.
func (t *tally) finish(took time.Duration) *Report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.report
	r.Seconds = took.Seconds()
	if took > 0 {
		r.PerSecond = float64(r.Answered) / r.Seconds
	}
	r.P50, r.P99 = Percentile(t.latencies, 0.5), Percentile(t.latencies, 0.99)
	return &r
}

// Percentile returns the smallest of the values that at least the share q of them
// does not exceed, and 0 if there are none. It sorts the values.
func Percentile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	at := int(math.Ceil(q*float64(len(values)))) - 1
	return values[min(max(at, 0), len(values)-1)]
}
