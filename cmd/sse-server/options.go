package main

import (
	"net/netip"
	"strings"

	"github.com/mcp-sse/mcp-sse/gateway"
)

// options are the gateway's part of the configuration. Logger, Registry and
// Authenticate are not the user's to set.
func (l *loaded) options() gateway.Options {
	return gateway.Options{
		Prefix:               l.Prefix.value,
		TrustForwardedPrefix: l.TrustForwardedPrefix.value,
		NoAutoInitialize:     !l.AutoInitialize.value,
		Quiet:                !l.Announce.value,
		EventName:            l.Event.value,
		Capabilities:         l.Capabilities.value,
		ForwardHeaders:       l.ForwardHeader.values,
		Name:                 l.server,
		ErrorDetails:         l.ErrorDetails.value,

		Sessions:         l.Sessions.value,
		SessionsSize:     l.SessionsSize.value,
		Warm:             l.warm(),
		StartConcurrency: l.StartConcurrency.value,
		Retry:            l.Retry.value,

		InitializationTimeout: l.InitializationTimeout.value,
		StartTimeout:          l.StartTimeout.value,
		InitializeTimeout:     l.InitializeTimeout.value,
		MaxHandshakeAttempts:  l.MaxHandshakeAttempts.value,
		HeartbeatInterval:     l.HeartbeatInterval.value,
		ConnectionTimeout:     l.ConnectionTimeout.value,
		RequestTimeout:        l.RequestTimeout.value,
		MaxRequestTimeout:     l.MaxRequestTimeout.value,
		HangTimeout:           l.HangTimeout.value,
		WriteTimeout:          l.WriteTimeout.value,
		AnnounceDelay:         l.AnnounceDelay.value,
		ReconnectDelay:        l.ReconnectDelay.value,
		SlowRequest:           l.SlowRequest.value,

		MaxConnections:      l.MaxConnections.value,
		MaxConnectionsPerIP: l.MaxConnectionsPerIP.value,
		ConnectRate:         l.ConnectRate.value,
		ConnectBurst:        l.ConnectBurst.value,
		TrustedProxies:      l.trustedProxies(),

		MaxMessageBytes: l.MaxMessageBytes.value,
		OutboxBytes:     int(l.OutboxBytes.value),
		GateQueue:       l.GateQueue.value,
		MaxInFlight:     l.MaxInFlight.value,
		MaxWaiting:      l.MaxWaiting.value,
		MaxPending:      l.MaxPending.value,

		AllowedOrigins: l.AllowedOrigins.values,
		AllowedHosts:   l.allowedHosts(),
		CORS:           l.CORS.value,
	}
}

// warm is how many servers are kept started. What the options of all servers say
// of it is not meant for one that is not started here.
func (l *loaded) warm() int {
	if l.kind() == kindRemote && l.Sessions.value != gateway.SessionsShared && !l.given("warm") {
		return 0
	}
	return l.Warm.value
}

// allowedHosts are the names; an IPv6 address is compared without brackets.
func (l *loaded) allowedHosts() []string {
	var out []string
	for _, value := range l.AllowedHosts.values {
		out = append(out, strings.Trim(value, "[]"))
	}
	return out
}

// trustedProxies are the networks; the option has checked them.
func (l *loaded) trustedProxies() []netip.Prefix {
	var out []netip.Prefix
	for _, value := range l.TrustedProxies.values {
		if prefix, err := parsePrefix(value); err == nil {
			out = append(out, prefix)
		}
	}
	return out
}
