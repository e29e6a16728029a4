package unreached_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
	"github.com/mcp-sse/mcp-sse/internal/unreached"
)

// Operators see the name that they have configured and the address that it led to, clients neither.
func TestWhyThereIsNoConnection(t *testing.T) {
	dial := func(address string, err error) error {
		at, _ := net.ResolveTCPAddr("tcp", address)
		return fmt.Errorf("wrapped: %w", &net.OpError{Op: "dial", Net: "tcp", Addr: at, Err: err})
	}
	proxy := func(err error) error { return &net.OpError{Op: "proxyconnect", Net: "tcp", Err: err} }
	lookUp := func(err *net.DNSError) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	connect := func(err error) error { return os.NewSyscallError("connect", err) }
	const address, place = "10.0.0.3:443", "mcp.example.com:443"
	for _, test := range []struct {
		err           error
		place         string
		whyAt, client string
	}{
		{dial(address, connect(syscall.ECONNREFUSED)), place, "nothing listens there (connection refused by 10.0.0.3:443)", "nothing listens there (connection refused)"},
		{dial(address, connect(syscall.ECONNREFUSED)), address, "nothing listens there (connection refused)", "nothing listens there (connection refused)"},
		{dial(address, connect(syscall.EHOSTUNREACH)), place, "no route leads there (10.0.0.3:443)", "no route leads there"},
		{dial(address, connect(syscall.ENETUNREACH)), address, "no route leads there", "no route leads there"},
		{dial(address, os.ErrDeadlineExceeded), place, "nothing answers there (10.0.0.3:443)", "nothing answers there"},
		{lookUp(&net.DNSError{Err: "no such host", Name: "mcp.example.com", IsNotFound: true}), place, "no address is known for this name", "no address is known for this name"},
		{lookUp(&net.DNSError{Err: "server misbehaving", Name: "mcp.example.com"}), place, "the address of this name cannot be looked up: server misbehaving", "the address of this name cannot be looked up"},
		{proxy(dial("10.0.0.9:3128", connect(syscall.ECONNREFUSED))), place, "nothing listens at the proxy (connection refused by 10.0.0.9:3128)", "nothing listens at the proxy (connection refused)"},
		{proxy(dial("10.0.0.9:3128", connect(syscall.EHOSTUNREACH))), place, "no route leads to the proxy (10.0.0.9:3128)", "no route leads to the proxy"},
		{proxy(lookUp(&net.DNSError{Err: "no such host", Name: "proxy.example", IsNotFound: true})), place, "no address is known for the proxy, proxy.example", "no address is known for the proxy"},
		{fmt.Errorf("wrapped: %w", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), place, "the server speaks no TLS there, so it is not HTTPS", "the server speaks no TLS there, so it is not HTTPS"},
		{proxy(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}), place, "the proxy speaks no TLS, so its address begins with http://", "the proxy speaks no TLS, so its address begins with http://"},
		{http.ErrSchemeMismatch, place, "the server answers in plain HTTP, not HTTPS", "the server answers in plain HTTP, not HTTPS"},
	} {
		ssetest.Want(t, "for an operator", unreached.At(test.place, test.err), test.place+": "+test.whyAt)
		ssetest.Want(t, "for a client", unreached.Why(test.err), test.client)
	}
	ssetest.Want(t, "another error", unreached.At(place, errors.New("tls: bad"))+unreached.Why(errors.New("tls: bad")), "")
}
