package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config holds the series of a program that serves gateways: about its configuration, which it
// can load again, its audit log and its traces. Make it with [NewConfig]. It is safe for
// concurrent use.
type Config struct {
	successful, timestamp, hash prometheus.Gauge
	auditLost, spansDropped     prometheus.Counter
	tcpLimit                    prometheus.Counter
}

// NewConfig makes the series and registers them with reg. It fails if reg has them.
func NewConfig(reg *prometheus.Registry) (*Config, error) {
	var f factory
	c := &Config{
		successful: f.gauge("mcp_config_last_reload_successful",
			"1 if the last reload of the configuration worked, 0 if it was refused."),
		timestamp: f.gauge("mcp_config_last_reload_success_timestamp_seconds",
			"When the configuration was last loaded, in seconds since 1970."),
		hash: f.gauge("mcp_config_hash",
			"A number that is the same for the same configuration, whatever its secrets."),
		auditLost: f.counter("mcp_sse_audit_lines_lost_total", "Lines of the audit log that could not be written."),
		tcpLimit: f.counter("mcp_sse_tcp_limit_reached_total",
			"Times that TCP connections reached their limit: those that wait for a request give way."),

		spansDropped: f.counter("mcp_sse_spans_dropped_total", "Spans that could not be exported."),
	}
	return c, reg.Register(&set{all: f.all})
}

// Loaded records that a configuration with this hash is in use.
func (c *Config) Loaded(hash float64) {
	c.successful.Set(1)
	c.timestamp.Set(float64(time.Now().UnixMilli()) / 1000)
	c.hash.Set(hash)
}

// AuditLost counts lines of the audit log that could not be written.
func (c *Config) AuditLost(lines int) { c.auditLost.Add(float64(lines)) }

// SpansDropped counts spans that could not be exported.
func (c *Config) SpansDropped(n int) { c.spansDropped.Add(float64(n)) }

// TCPLimitReached counts that TCP connections have reached their limit.
func (c *Config) TCPLimitReached() { c.tcpLimit.Inc() }

// Refused records that a reload has failed.
func (c *Config) Refused() { c.successful.Set(0) }
