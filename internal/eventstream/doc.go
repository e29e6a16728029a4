// Package eventstream writes the response to one request as a stream of server-sent
// events (WHATWG HTML, server-sent events), in few writes and each of them bounded in
// time.
package eventstream
