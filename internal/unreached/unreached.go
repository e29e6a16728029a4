// Package unreached says in plain words why there is no connection to a server.
package unreached

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"syscall"
)

// Why says why there is no connection, without a name or an address: for clients. It is empty for an error that
// has to speak for itself.
func Why(err error) string { return reason("", err) }

// At is Why for operators: it begins with the place, which is the host as they have configured it, mostly with the
// port, and has the address to which that led.
func At(place string, err error) string {
	if why := reason(place, err); why != "" {
		return place + ": " + why
	}
	return ""
}

// reason names no address if place is empty, and none that is the place.
func reason(place string, err error) string {
	at, to, name, noTLS := "there", "there", "this name", "the server speaks no TLS there, so it is not HTTPS"
	op, isOp := errors.AsType[*net.OpError](err)
	_, isNoTLS := errors.AsType[tls.RecordHeaderError](err)
	dns, isDNS := errors.AsType[*net.DNSError](err)
	if isOp && op.Op == "proxyconnect" {
		at, to, name = "at the proxy", "to the proxy", "the proxy"
		noTLS = "the proxy speaks no TLS, so its address begins with http://"
		if isDNS && place != "" {
			name += ", " + dns.Name
		}
		op, isOp = errors.AsType[*net.OpError](op.Err)
	}
	address := ""
	if isOp && op.Addr != nil && place != "" && op.Addr.String() != place {
		address = op.Addr.String()
	}
	switch {
	case errors.Is(err, syscall.ECONNREFUSED) && address != "":
		return "nothing listens " + at + " (connection refused by " + address + ")"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens " + at + " (connection refused)"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route leads " + to + inBrackets(address)
	case isDNS && dns.IsNotFound:
		return "no address is known for " + name
	case isDNS && place == "": // the error may name the server that was asked
		return "the address of " + name + " cannot be looked up"
	case isDNS:
		return "the address of " + name + " cannot be looked up: " + dns.Err
	case isOp && op.Op == "dial" && op.Timeout():
		return "nothing answers " + at + inBrackets(address)
	case errors.Is(err, http.ErrSchemeMismatch):
		return "the server answers in plain HTTP, not HTTPS"
	case isNoTLS:
		return noTLS
	}
	return ""
}

func inBrackets(address string) string {
	if address == "" {
		return ""
	}
	return " (" + address + ")"
}
