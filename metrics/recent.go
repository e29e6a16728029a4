package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Totals are counts of one server, over all transports.
type Totals struct {
	// Restarts are lost sessions that a new one has replaced, and Crashes child processes
	// that ended by themselves with an error or by a signal.
	Restarts, Crashes int
	// LostToStart are clients that left before their server was ready.
	LostToStart int
	// Sessions, warm servers among them, which are Idle, and Children exist now. ChildMemory is what the
	// children hold, in bytes; 0 where the system does not tell.
	Sessions, Idle, Children int
	ChildMemory              int64
}

// Totals returns what m has counted.
func (m *Metrics) Totals() Totals {
	m = m.live()
	m.measureNow()
	return Totals{
		Idle: value(m.poolIdle), ChildMemory: int64(value(m.childMemory)),
		Restarts: value(m.restarts), LostToStart: value(m.lostToStart),
		Sessions: value(m.sessions), Children: value(m.children),
		Crashes: value(m.childExits.WithLabelValues(ChildError)) + value(m.childExits.WithLabelValues(ChildSignal)),
	}
}

// value returns the value of a counter or gauge.
func value(series prometheus.Metric) int {
	var d dto.Metric
	_ = series.Write(&d) // it has a value
	return int(d.GetCounter().GetValue() + d.GetGauge().GetValue())
}

// Hour has counts of one server for each minute of an hour, over all transports. The last
// minute is the current one.
type Hour [60][3]int

// An Hour counts handshakes that worked, requests that were answered, and the answered ones that
// failed, without those that their client cancelled. A request may wait for several starts that fail.
const (
	Handshakes = iota
	Requests
	Errors
)

// Hour returns what m has counted in the last hour.
func (m *Metrics) Hour() Hour {
	r := &m.live().recent
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnLocked()
	return r.hour
}

// recent counts an Hour.
type recent struct {
	mu     sync.Mutex // guards what follows
	hour   Hour
	minute int64 // the last one, since 1970
}

// add counts one of a kind.
func (r *recent) add(kind int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turnLocked()
	r.hour[len(r.hour)-1][kind]++
}

// turnLocked makes the last minute the current one.
func (r *recent) turnLocked() {
	for now := time.Now().Unix() / 60; r.minute < now; r.minute++ {
		r.minute = max(r.minute, now-int64(len(r.hour)))
		copy(r.hour[:], r.hour[1:])
		r.hour[len(r.hour)-1] = [3]int{}
	}
}
