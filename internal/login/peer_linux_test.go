package login

import (
	"net"
	"net/netip"
	"os"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The system tells which user has the other end of a connection, of a socket for both versions of IP too.
func TestPeerUID(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ssetest.Must(t, err)
	defer listener.Close()
	at := listener.Addr().(*net.TCPAddr).AddrPort()
	conn, err := net.Dial("tcp", at.String())
	ssetest.Must(t, err)
	defer conn.Close()
	uid, ok := peerUID(at, conn.LocalAddr().(*net.TCPAddr).AddrPort())
	ssetest.Want(t, "user", uid, os.Getuid())
	ssetest.Want(t, "known", ok, true)
	_, ok = peerUID(at, netip.MustParseAddrPort("127.0.0.1:1"))
	ssetest.Want(t, "a connection that is not there is known", ok, false)
	mapped := netip.MustParseAddrPort("[::ffff:127.0.0.1]:8080")
	if text := encode6(mapped); text != "0000000000000000FFFF00000100007F:1F90" && text != "00000000000000000000FFFF7F000001:1F90" {
		t.Errorf("a mapped address is written as %s", text)
	}
}
