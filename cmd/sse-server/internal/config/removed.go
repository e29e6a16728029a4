package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// removed are the options that earlier versions had, and what replaces each.
var removed = map[string]string{
	"demo":                       "sse-server serves the demo server if there is neither a command nor url",
	"stdio":                      "use the subcommand, as in: sse-server stdio -- npx -y server",
	"check-config":               "use the subcommand, as in: sse-server check --config FILE",
	"max-line-bytes":             "a message of a server may have 16 MiB",
	"bearer-token-file":          "use header, with 'Authorization: Bearer ${file:PATH}'",
	"url-transport":              "sse-server finds out which transport the remote server has",
	"require-initialize":         "set auto-initialize to false, which implies it",
	"trust-forwarded-prefix":     "X-Forwarded-Prefix is believed from trusted-proxies",
	"announce":                   "clients ask for a stream without announcements by ?auto=0",
	"event":                      "clients choose the name of events by ?event=NAME",
	"capabilities":               "the handshake of the gateway declares none",
	"sessions-size":              "sessions: shared has one session",
	"start-concurrency":          "16 servers start at a time",
	"retry":                      "requests that change nothing are repeated when their session is lost",
	"initialize-timeout":         "a client's initialize waits 50s, or three times start-timeout if that is less",
	"max-handshake-attempts":     "a connection gives up after 5 failed starts",
	"connection-timeout":         "use idle-timeout",
	"session-timeout":            "use idle-timeout",
	"resume-time":                "events are kept for 5m",
	"resume-bytes":               "64 MiB of events are kept",
	"max-request-timeout":        "it is ten times request-timeout",
	"hang-timeout":               "a server is pinged when a request has timed out",
	"read-timeout":               "a client has 10s to send a request",
	"write-timeout":              "a client has 10s to read 64 KiB",
	"announce-delay":             "it is 100ms",
	"reconnect-delay":            "it is 1s",
	"slow-request":               "requests over 5s are logged as slow",
	"max-tcp-connections":        "it follows from max-connections",
	"max-tcp-connections-per-ip": "use max-connections-per-ip and connect-rate",
	"max-sessions":               "it is max-connections and warm together",
	"connect-burst":              "it is twice connect-rate",
	"max-held-bytes":             "it is a quarter of the environment variable GOMEMLIMIT, or 512 MiB without that",
	"outbox-bytes":               "1 MiB may wait for a client",
	"gate-queue":                 "64 messages of a connection may wait for the handshake",
	"max-waiting":                "1024 requests of a session may wait",
	"max-pending":                "a connection may have 4096 unanswered requests",
	"cors":                       "it is on when allowed-origins is set",
}

// refuseRemoved returns an error if a flag or variable is one of those removed.
func refuseRemoved(args []string, lookupEnv func(string) (string, bool)) error {
	for _, arg := range args {
		if flag, _, _ := strings.Cut(arg, "="); strings.HasPrefix(flag, "--") {
			name := strings.TrimPrefix(strings.TrimPrefix(flag, "--"), "no-")
			if by := removed[name]; by != "" {
				return fmt.Errorf("%s is gone: %s", flag, by)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(removed)) {
		if text, _ := lookupEnv(envName(name)); text != "" {
			return fmt.Errorf("%s is gone: %s", envName(name), removed[name])
		}
	}
	return nil
}

// envName returns the environment variable of an option.
func envName(name string) string {
	return "SSE_SERVER_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}
