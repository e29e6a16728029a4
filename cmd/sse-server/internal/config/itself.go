package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/naming"
	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/environ"
	"github.com/mcp-sse/mcp-sse/internal/hosts"
	"github.com/mcp-sse/mcp-sse/internal/httpcheck"
	"github.com/mcp-sse/mcp-sse/internal/upstream/remote"
)

// NameTheServer says what to do about a command that leads back to sse-server.
const NameTheServer = "name the MCP server itself in the command"

// maxParents is how many gateways may be above one that starts a server. Some are meant to be: an agent may be a
// server, and have servers of its own behind an sse-server.
const maxParents = 3

// checkParents returns an error if the server would be started by a gateway below too many others, which is so if
// the command of one starts the same one again, by whatever shell or launcher.
func (s *Server) checkParents(c *Config) error {
	starts := c.Does == "serve" || c.Does == "stdio" && c.Connect == nil || c.Does == "check" && c.Check.Start ||
		c.Does == "tools"
	if !starts || s.Kind() != OfCommand || len(c.Parents) < maxParents {
		return nil
	}
	// The reason comes first: each gateway above passes on the beginning of what this one says.
	return fmt.Errorf("it starts itself again and again: %s (%s: %d gateways are above this one, "+
		"each started by the one before; if they are meant to be, unset %s)",
		NameTheServer, s.Place(commandKey), len(c.Parents), environ.ParentsVariable)
}

// passOn are programs that do no more than to pass requests on to the address among their arguments.
var passOn = []string{"sse-server", npmPackage, "mcp-remote", "mcp-proxy", "supergateway"}

// checkItself returns an error if the server is this sse-server itself: requests would go round in circles.
// In check --start --url URL the URL may be that of a gateway that runs, so there it is a warning.
func (s *Server) checkItself(c *Config) error {
	option, who, addresses := "url", "", []string{s.remote.Address}
	switch {
	case c.Does != "serve" && c.Does != "check" || c.Diagnoses():
		return nil
	case s.Kind() == OfCommand:
		option, who, addresses = commandKey, ", to which it passes everything on", addressesIn(s.process.command)
	}
	for _, address := range addresses {
		at, err := url.Parse(address)
		if err != nil || !c.isServedAt(at) {
			continue
		}
		place := remote.URL{Address: address}.Place()
		if c.Does == "check" && s.given["url"] == "--url" && !c.Check.Offline {
			c.warn("%s %s is the address of sse-server itself with these options: it could not serve that",
				s.Place("url"), place)
			continue
		}
		return s.refuse(option, "%s is the address of this server itself%s: want that of another one, "+
			"or another address with --addr if another server is there", place, who)
	}
	return nil
}

// urlOptions are the options of these programs that take the address, which may also be an argument alone. The address
// of --connect is only a name.
var urlOptions = []string{"--url", "--sse", "--streamableHttp"}

// passesOn reports whether a command starts such a program on this machine, by itself or by a launcher such as
// npx. The programs that ssh or docker start run elsewhere, where localhost is another one.
func passesOn(command []string) bool {
	if len(command) == 0 || naming.RunsInContainer(command) {
		return false
	}
	name, _ := naming.OfCommand(command, "")
	return slices.Contains(passOn, strings.ToLower(name))
}

// addressesIn returns the addresses to which a command passes requests on.
func addressesIn(command []string) (all []string) {
	if !passesOn(command) {
		return nil
	}
	before := ""
	for _, word := range command[1:] {
		option, value, has := strings.Cut(word, "=")
		switch {
		case has && slices.Contains(urlOptions, option):
			all = append(all, value)
		case strings.Contains(word, "://") && (slices.Contains(urlOptions, before) ||
			!strings.HasPrefix(word, "-") && !strings.HasPrefix(before, "-")):
			all = append(all, word)
		}
		before = word
	}
	return all
}

// isServedAt reports whether a server of c is at a URL.
func (c *Config) isServedAt(at *url.URL) bool {
	route := strings.TrimSuffix(path.Clean("/"+at.Path), "/")
	if public, err := url.Parse(c.PublicURL); c.PublicURL != "" && err == nil &&
		strings.EqualFold(at.Host, public.Host) {
		below, isBelow := strings.CutPrefix(route, strings.TrimSuffix(public.Path, "/"))
		if isBelow && c.isRoute(below) {
			return true
		}
	}
	return c.isHere(at) && c.isRoute(route)
}

// isRoute reports whether a path is one at which a server of c is.
func (c *Config) isRoute(route string) bool {
	return route == "" || slices.ContainsFunc(c.Endpoints(), func(s *Server) bool {
		of, ok := strings.CutPrefix(route, c.PrefixOf(s))
		return ok && slices.Contains([]string{"", gateway.Path, "/sse"}, of)
	})
}

// isHere reports whether a URL has the port of the address that c serves on, and a host that leads there.
func (c *Config) isHere(at *url.URL) bool {
	host, port, err := net.SplitHostPort(string(c.Addr))
	if err != nil || hosts.Port(at) != port || port == "0" {
		return false
	}
	if host == "" || isUnspecified(host) { // it listens on all addresses of this machine
		name, err := os.Hostname()
		return httpcheck.IsLoopback(at.Host) || isUnspecified(at.Hostname()) ||
			isOfThisMachine(at.Hostname()) || err == nil && isName(at.Hostname(), name)
	}
	own := addressesOf(host)
	return strings.EqualFold(at.Hostname(), host) ||
		slices.ContainsFunc(addressesOf(at.Hostname()),
			func(addr netip.Addr) bool { return slices.Contains(own, addr) })
}

// addressesOf returns the addresses to which a host may lead that is one, or is this machine by its name: who
// connects to localhost, or to no concrete address, tries both, and who listens at localhost gets one of them.
// Other names are not looked up: what they lead to may change.
func addressesOf(host string) []netip.Addr {
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && !addr.IsUnspecified():
		return []netip.Addr{addr.Unmap()}
	case err == nil || strings.EqualFold(host, "localhost"):
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	return nil
}

func isUnspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}

// isOfThisMachine reports whether an address is that of a network interface.
func isOfThisMachine(host string) bool {
	ip := net.ParseIP(host)
	addrs, err := net.InterfaceAddrs()
	return ip != nil && err == nil && slices.ContainsFunc(addrs, func(addr net.Addr) bool {
		of, ok := addr.(*net.IPNet)
		return ok && of.IP.Equal(ip)
	})
}

// isName reports whether a host is a machine that calls itself name, with or without its domain. A domain that the
// name does not have is not guessed: it may be that of another machine.
func isName(host, name string) bool {
	first, _, _ := strings.Cut(name, ".")
	host = strings.TrimSuffix(host, ".")
	return host != "" && (strings.EqualFold(host, name) || strings.EqualFold(host, first))
}
