package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/config"
)

// notify tells systemd a state, such as systemd.SdNotifyReady, if it waits for one
// (Type=notify). A reload is between SdNotifyReloading and SdNotifyReady.
func notify(log *slog.Logger, state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		log.Warn("systemd not notified", "state", state, "err", err)
	}
}

// adopt gives the endpoints the sockets that systemd passes, in place of their addresses: one
// that has the name of an option to its endpoint, another to the first without a socket.
func (d *daemon) adopt(sockets []*os.File, c *config.Config) error {
	for _, socket := range sockets {
		defer socket.Close() // net.FileListener takes a copy
		named := socket.Name() == "addr" || socket.Name() == "admin-addr"
		i := slices.IndexFunc(d.endpoints,
			func(e *endpoint) bool { return e.conns.Listener == nil && (!named || e.option == socket.Name()) })
		if i < 0 {
			return fmt.Errorf("systemd passes a socket named %s that no address is left for: set --admin-addr, or remove a ListenStream=", socket.Name())
		}
		listener, err := net.FileListener(socket)
		if err != nil {
			return fmt.Errorf("socket %s of systemd: %w: want one of a ListenStream=", socket.Name(), err)
		}
		e := d.endpoints[i]
		e.conns.Listener = listener
		tcp, ok := listener.(*net.TCPListener)
		if !ok {
			return fmt.Errorf("socket %s of systemd: want a TCP address in ListenStream=", socket.Name())
		}
		if err := c.CheckExposure(e.option, config.Addr(tcp.Addr().String())); err != nil {
			return err
		}
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = limitPeer("", "", raw) // Multipath TCP has no such timeout, only keep-alives
		}
		d.log.Info("socket of systemd replaces an address", "option", e.option, "addr", listener.Addr().String())
	}
	return nil
}
