// Package httpanswer is the way out that the HTTP transports share: it writes the answer to
// one request, as JSON or as a stream of server-sent events (WHATWG HTML, server-sent
// events), in few writes and each of them bounded in time.
package httpanswer
