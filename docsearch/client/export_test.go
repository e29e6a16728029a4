package client

import "net/http"

var StateError = stateError

// SetTransport has the client send its requests through t.
func (c *Client) SetTransport(t http.RoundTripper) { c.http.Transport = t }
