package connstate

import (
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// SawAttempt notes a start of a session for the connection.
func (c *Connection) SawAttempt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts++
}

// Failure is a failed initialization.
type Failure struct {
	// Phase is where it failed, Reason how: constants of package metrics.
	Phase  string    `json:"phase"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// SawFailure notes a failed initialization.
func (c *Connection) SawFailure(phase, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failures == nil {
		c.failures = make(map[string]int)
	}
	c.failures[phase]++
	c.lastFailure = &Failure{phase, reason, time.Now()}
}

// Server is what the server says of itself when it is initialized.
type Server struct {
	Name            string `json:"name,omitempty"`
	Version         string `json:"version,omitempty"`
	ProtocolVersion string `json:"protocolVersion"`
}

// SawServer notes what the server of the connection's session says of itself.
func (c *Connection) SawServer(s Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = &s
}

// ClientInfo is what the client says of itself when it initializes, shortened.
type ClientInfo struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
}

// maxClientText bounds each text that a client says of itself, in bytes.
const maxClientText = 64

// sawClient notes what the client says of itself in its initialize.
func (c *Connection) sawClient(m *jsonrpc.Message) {
	text := func(member string) string {
		s, _ := m.Param("clientInfo", member).Text()
		return strings.Clone(strings.ToValidUTF8(s[:min(maxClientText, len(s))], "")) // s may be long
	}
	info := &ClientInfo{text("name"), text("version")}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clientInfo = info
}

// Snapshot is the state of a connection at one moment. Times are zero for what has
// not happened.
type Snapshot struct {
	// ID is the shortened id, as in the logs.
	ID              string    `json:"id"`
	State           State     `json:"state"`
	Since           time.Time `json:"since"`
	Transport       Transport `json:"transport,omitempty"`
	Remote          string    `json:"remote,omitempty"`
	Principal       string    `json:"principal,omitempty"`
	UserAgent       string    `json:"userAgent,omitempty"`
	Dialect         Dialect   `json:"dialect,omitempty"`
	ProtocolVersion string    `json:"protocolVersion,omitempty"`
	// Reached is Ready if the connection ever was, else its last state before it was
	// closed.
	Reached State `json:"-"`
	// Client is what the client has said of itself; nil if it has not initialized.
	Client *ClientInfo `json:"client,omitempty"`
	// Initialized is what the server of the last session said of itself.
	Initialized *Server   `json:"initialized,omitempty"`
	Reason      Reason    `json:"reason,omitempty"`
	Opened      time.Time `json:"opened"`
	// Ready is when the connection first had a session; Since, while it is ready, when
	// it got the current one.
	Ready          time.Time `json:"ready,omitzero"`
	FirstByte      time.Time `json:"firstByte,omitzero"`
	LastIn         time.Time `json:"lastIn,omitzero"`
	LastOut        time.Time `json:"lastOut,omitzero"`
	Queued         int       `json:"queued"`
	InFlight       int       `json:"inFlight"`
	RequestsDone   int64     `json:"requestsDone"`
	RequestsFailed int64     `json:"requestsFailed"` // of RequestsDone, those answered with an error
	UnwrittenBytes int       `json:"unwrittenBytes"`
	MessagesIn     int64     `json:"messagesIn"`
	MessagesOut    int64     `json:"messagesOut"`
	BytesIn        int64     `json:"bytesIn"`
	BytesOut       int64     `json:"bytesOut"`
	Heartbeats     int64     `json:"heartbeats"`
	Attempts       int       `json:"handshakeAttempts"`
	// Failures counts failed initializations, by phase.
	Failures    map[string]int `json:"handshakeFailures,omitempty"`
	LastFailure *Failure       `json:"lastFailure,omitempty"`
}

// Snapshot returns the connection's current state.
func (c *Connection) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Snapshot{
		ID: c.ShortID(), State: c.state, Since: c.since,
		Transport: c.client.Transport, Principal: c.client.Principal, UserAgent: c.client.UserAgent,
		Dialect: c.dialect, ProtocolVersion: c.protocolVersion, Reason: c.reason,
		Opened: c.opened, Ready: c.ready,
		FirstByte: unixTime(c.firstByte.Load()), LastIn: unixTime(c.lastIn.Load()), LastOut: unixTime(c.lastOut.Load()),
		Queued: len(c.gate.queue), InFlight: len(c.requests), RequestsDone: c.requestsDone.Load(), RequestsFailed: c.requestsFailed.Load(),
		UnwrittenBytes: c.outbox.unwritten(),
		MessagesIn:     c.messagesIn.Load(), MessagesOut: c.messagesOut.Load(),
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		Heartbeats: c.heartbeats.Load(), Attempts: c.attempts,
		Client: c.clientInfo, Initialized: c.server, LastFailure: c.lastFailure, Reached: c.state,
	}
	switch {
	case !c.ready.IsZero():
		s.Reached = Ready
	case c.state == Closed:
		s.Reached = c.last
	}
	if c.client.Addr.IsValid() {
		s.Remote = c.client.Addr.String()
	}
	for phase, n := range c.failures {
		if s.Failures == nil {
			s.Failures = make(map[string]int)
		}
		s.Failures[phase] = n
	}
	return s
}

func unixTime(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
