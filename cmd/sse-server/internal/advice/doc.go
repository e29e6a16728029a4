// Package advice knows what to do about a server that does not start, by the reason that sse-server gives and by
// the last lines of its stderr.
package advice
