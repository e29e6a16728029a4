package metrics

import "github.com/prometheus/client_golang/prometheus"

// remoteSeries are the series of remote servers.
type remoteSeries struct {
	responses closedSet[lazyCounter]
	resumed   prometheus.Counter
}

// The classes of responses that RemoteResponse counts.
const (
	RemoteOK          = "2xx"
	RemoteRedirect    = "3xx"
	RemoteRefused     = "4xx"
	RemoteFailed      = "5xx"
	RemoteUnreachable = "none"
)

func remoteClasses() []string {
	return []string{RemoteOK, RemoteRedirect, RemoteRefused, RemoteFailed, RemoteUnreachable}
}

func newRemoteSeries(b *builder) remoteSeries {
	return remoteSeries{
		responses: b.lazyCounters("mcp_sse_remote_responses_total", "HTTP responses of remote servers, by class of their status.",
			"status", remoteClasses()),
		resumed: b.counter("mcp_sse_remote_resumptions_total", "Responses of remote servers that broke off and were resumed."),
	}
}

// RemoteResponse counts an HTTP response of a remote server by its status code, or a
// missing one if code is 0.
func (m *Metrics) RemoteResponse(code int) {
	if m == nil {
		return
	}
	class := RemoteUnreachable
	switch {
	case code >= 500:
		class = RemoteFailed
	case code >= 400:
		class = RemoteRefused
	case code >= 300:
		class = RemoteRedirect
	case code > 0:
		class = RemoteOK
	}
	m.remote.responses.of(class).Inc()
}

// RemoteResumed counts a response that broke off and was resumed.
func (m *Metrics) RemoteResumed() {
	if m == nil {
		return
	}
	m.remote.resumed.Inc()
}
