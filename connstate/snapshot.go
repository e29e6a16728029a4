package connstate

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/clients"
	"github.com/mcp-sse/mcp-sse/internal/clip"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// SawAttempt notes a start of a session for the connection.
func (c ForHandler) SawAttempt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Attempts++
}

// Failure is a failed initialization.
type Failure struct {
	// Phase is where it failed, Reason how: constants of package metrics.
	Phase  string    `json:"phase"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// SawFailure notes a failed initialization.
func (c ForHandler) SawFailure(phase, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known.Failures == nil {
		c.known.Failures = make(map[string]int)
	}
	c.known.Failures[phase]++
	c.known.LastFailure = &Failure{phase, reason, time.Now()}
}

// Server is what the server says of itself when it is initialized.
type Server struct {
	Name            string `json:"name,omitempty"`
	Version         string `json:"version,omitempty"`
	ProtocolVersion string `json:"protocolVersion"`
}

// SawServer notes what the server of the connection's session says of itself.
func (c ForHandler) SawServer(s Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Initialized = &s
}

// ClientInfo is what the client says of itself when it initializes, shortened.
type ClientInfo struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
}

// sawClient notes what the client says of itself in its initialize.
func (c *Connection) sawClient(m *jsonrpc.Message) {
	text := func(member string) string {
		s, _ := m.Param("clientInfo", member).Text()
		return strings.Clone(strings.ToValidUTF8(clip.Short(s), "")) // s may be long
	}
	info := &ClientInfo{text("name"), text("version")}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known.Client = info
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
	Front           string    `json:"front,omitempty"` // see Client
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

// Program returns which program the client is, by the name in its initialize, else by the product in
// its User-Agent: the name under which it is known, such as claude-code, else what it calls itself, and
// "unknown" if it does not say.
func (s Snapshot) Program() string {
	calls := clients.Product(s.UserAgent)
	if s.Client != nil && s.Client.Name != "" {
		calls = s.Client.Name
	}
	if c, known := clients.Named(calls); known {
		return c.Name
	}
	return cmp.Or(clip.Short(strings.ToValidUTF8(calls, "")), "unknown")
}

// Snapshot returns the connection's current state.
func (c *Connection) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.known
	s.FirstByte, s.LastIn, s.LastOut = unixTime(c.firstByte.Load()), unixTime(c.lastIn.Load()),
		unixTime(c.lastOut.Load())
	s.Queued, s.InFlight, s.UnwrittenBytes = len(c.gate.queue), len(c.requests), c.outbox.unwritten()
	s.RequestsDone, s.RequestsFailed = c.requestsDone.Load(), c.requestsFailed.Load()
	s.MessagesIn, s.MessagesOut = c.messagesIn.Load(), c.messagesOut.Load()
	s.BytesIn, s.BytesOut, s.Heartbeats = c.bytesIn.Load(), c.bytesOut.Load(), c.heartbeats.Load()
	s.Failures = maps.Clone(s.Failures)
	return s
}

func unixTime(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
