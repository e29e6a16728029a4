// Package exchange holds what the transports over HTTP share: how a session sends
// its requests, and what the responses mean.
//
// A transport sends through an [Endpoint]. It enters each call in a table of
// [Calls], posts the request with Do, and gives the response to a [Reader], which
// returns the answer, a JSON-RPC error to answer with, or the reason why the session
// is over. Messages that get no answer go through a [Poster], in order, and
// cancellations beside them. A stream that belongs to no request is read with an
// [EventReader] and [Endpoint.Deliver].
//
// No error of this package holds what may be secret in a URL.
package exchange
