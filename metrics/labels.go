package metrics

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// other replaces a value that is not in the list of an mcp_sse_ label.
	other = "other"
	// otelOther is its counterpart in the OpenTelemetry histograms.
	otelOther = "_other"
	// serverLabel names the server, where a program has several.
	serverLabel = "server"
	// transportLabel names the transport between the client and the gateway.
	transportLabel = "transport"
	// transport is network_transport of both: an SSE stream runs over TCP.
	transport = "tcp"
)

// The functions below return the closed lists of label values, without the
// value for all others.

func closedReasons() []string {
	return []string{ClosedClient, ClosedSlow, ClosedWriteTimeout, ClosedWriteError, ClosedIdle, ClosedShutdown, ClosedServer, ClosedError}
}

// closedErrors returns the close reasons that are errors of a session.
func closedErrors() []string {
	return []string{ClosedSlow, ClosedWriteTimeout, ClosedWriteError, ClosedError}
}

func rejectedReasons() []string {
	return []string{
		RejectedMaxConnections, RejectedPerIP, RejectedRate, RejectedDraining, RejectedBudget,
		RejectedOrigin, RejectedHost, RejectedAuth, RejectedBadRequest,
		RejectedNotFound, RejectedMethod,
	}
}

func postReasons() []string {
	return []string{
		PostUnknownConnection, PostTooLarge, PostInvalidJSON, PostInvalidRequest, PostMediaType,
		PostOrigin, PostHost, PostAuth, PostClosed, PostBadRequest,
		PostNotFound, PostMethod, PostBudget, PostNotAcceptable, PostNoSession,
	}
}

// states returns the states of an open connection. Closed ones are in no gauge.
func states() []string { return []string{"initializing", "ready", "failed", "draining"} }

const stateClosed = "closed"

func handshakeResults() []string { return []string{HandshakeOK, HandshakeError, HandshakeCanceled} }

func gateReasons() []string {
	return []string{GateFull, GateBudget, GateTimeout, GateFailed, GateCanceled, GateClosed}
}

func droppedReasons() []string {
	return []string{
		DroppedUnknownResponse, DroppedUnknownRequest, DroppedInvalidMessage, DroppedTooLong, DroppedNotReady, DroppedClientGone,
		DroppedUnknownProgress, DroppedUnattributed, DroppedUndelivered, DroppedShared,
	}
}

func holders() []string {
	return []string{HeldPost, HeldConnection, HeldGate, HeldQueue, HeldSend, HeldRepeat, HeldOutbox, HeldReply}
}

func childReasons() []string { return []string{ChildOK, ChildError, ChildSignal, ChildClosed} }

// methods returns the methods of requests from client to server in all MCP revisions
// from 2024-11-05 to 2026-07-28. Notifications have no duration.
func methods() []string {
	return []string{
		"initialize", "ping", "server/discover", "subscriptions/listen",
		"tools/list", "tools/call",
		"prompts/list", "prompts/get",
		"resources/list", "resources/read", "resources/templates/list",
		"resources/subscribe", "resources/unsubscribe",
		"completion/complete", "logging/setLevel",
		"tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/update",
	}
}

// errorTypes returns the values of error_type; the empty one means no error. The
// JSON-RPC codes are those of JSON-RPC 2.0, of MCP (-32002 resource not found, -32042
// URL elicitation required), and 0, which go-sdk servers send for errors without a
// code.
func errorTypes() []string {
	return []string{
		"",
		"-32700", "-32600", "-32601", "-32602", "-32603", "-32002", "-32042", "0",
		ErrorTimeout, ErrorSessionLost, ErrorCanceled, ErrorInitialization,
		ErrorClosed, ErrorBusy, ErrorDraining, ErrorInvalid, ErrorTool,
	}
}

// closedSet maps the values of a label to their series. It does not change after New
// and needs no lock.
type closedSet[T any] struct {
	known map[string]T
	rest  T // for all other values
}

func newClosedSet[T any](values []string, rest string, child func(value string) T) closedSet[T] {
	s := closedSet[T]{known: make(map[string]T, len(values)), rest: child(rest)}
	for _, v := range values {
		s.known[v] = child(v)
	}
	return s
}

// of returns the child of a value, or the child for all other values.
func (s closedSet[T]) of(value string) T {
	if c, ok := s.known[value]; ok {
		return c
	}
	return s.rest
}

// builder makes collectors and keeps them for the registry.
type builder struct {
	all    []prometheus.Collector
	labels prometheus.Labels // of all that it makes
}

func (b *builder) add(c prometheus.Collector) { b.all = append(b.all, c) }

func (b *builder) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: b.labels})
	b.add(c)
	return c
}

func (b *builder) counterVec(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: b.labels}, labels)
	b.add(v)
	return v
}

// counters makes one counter for each value of a label, and one for all other values:
// rate() and increase() in an alert see the first event only of a series that existed
// before it.
func (b *builder) counters(name, help, label string, values []string) closedSet[prometheus.Counter] {
	v := b.counterVec(name, help, label)
	return newClosedSet(values, other, func(value string) prometheus.Counter { return v.WithLabelValues(value) })
}

// lazyCounter is a counter whose series the first call makes.
type lazyCounter func() prometheus.Counter

func newLazyCounter(v *prometheus.CounterVec, labels ...string) lazyCounter {
	return sync.OnceValue(func() prometheus.Counter { return v.WithLabelValues(labels...) })
}

// Inc counts one.
func (c lazyCounter) Inc() { c().Inc() }

// lazyCounters is like counters, for series in no alert: the first event makes each
// of them, except those in zeros, which exist from the start.
func (b *builder) lazyCounters(name, help, label string, values []string, zeros ...string) closedSet[lazyCounter] {
	v := b.counterVec(name, help, label)
	return newClosedSet(values, other, func(value string) lazyCounter {
		c := newLazyCounter(v, value)
		if slices.Contains(zeros, value) {
			c()
		}
		return c
	})
}

func (b *builder) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: b.labels})
	b.add(g)
	return g
}

func (b *builder) gaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: b.labels}, labels)
	b.add(v)
	return v
}

func (b *builder) histogram(name, help string, buckets []float64) *histogram {
	return newHistogram(b.histogramVec(name, help, buckets).WithLabelValues())
}

func (b *builder) histogramVec(name, help string, buckets []float64, labels ...string) histogramVec {
	opts := histogramOpts(name, help, buckets)
	opts.ConstLabels = b.labels
	v := prometheus.NewHistogramVec(opts, labels)
	b.add(v)
	return histogramVec{v}
}
