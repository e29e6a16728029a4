// Package httpcheck is the way in that the HTTP transports share: it checks Host, Origin,
// method and authentication, finds the address of the client, reads bodies within their
// limits, and refuses with an answer that says what to do.
//
// It knows no session, and of the routes only their names.
package httpcheck
