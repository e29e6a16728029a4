package listen

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
)

// Adopt gives endpoints the sockets that systemd passes, in place of their addresses: one
// that has the name of an option to its endpoint, another to the first without a socket. check returns an error if
// the address of an option may not be this one.
func Adopt(endpoints []*Endpoint, sockets []*os.File, check func(option, addr string) error, log *slog.Logger) error {
	for _, socket := range sockets {
		defer socket.Close() // net.FileListener takes a copy
		named := socket.Name() == "addr" || socket.Name() == "admin-addr"
		i := slices.IndexFunc(endpoints,
			func(e *Endpoint) bool { return e.conns.Listener == nil && (!named || e.Option == socket.Name()) })
		if i < 0 {
			return fmt.Errorf("systemd passes a socket named %s that no address is left for: set --admin-addr, "+
				"or remove a ListenStream=", socket.Name())
		}
		listener, err := net.FileListener(socket)
		if err != nil {
			return fmt.Errorf("socket %s of systemd: %w: want one of a ListenStream=", socket.Name(), err)
		}
		e := endpoints[i]
		e.conns.Listener = listener
		tcp, ok := listener.(*net.TCPListener)
		if !ok {
			return fmt.Errorf("socket %s of systemd: want a TCP address in ListenStream=", socket.Name())
		}
		if err := check(e.Option, tcp.Addr().String()); err != nil {
			return err
		}
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = limitPeer("", "", raw) // Multipath TCP has no such timeout, only keep-alives
		}
		log.Info("socket of systemd replaces an address", "option", e.Option, "addr", listener.Addr().String())
	}
	return nil
}
