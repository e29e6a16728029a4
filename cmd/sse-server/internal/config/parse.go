package config

import (
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/mcp-sse/mcp-sse/front"
	"github.com/mcp-sse/mcp-sse/gateway"
)

// The functions below return as want what is allowed, if that is not what is
// given.

// optional allows an empty text too.
func optional(check func(string) (want string)) func(string) (want string) {
	return func(given string) string {
		if given == "" {
			return ""
		}
		return check(given)
	}
}

func checkAddr(given string) (want string) {
	host, port, err := net.SplitHostPort(given)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || strings.ContainsAny(host, " \t/") {
		return "want HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:8080"
	}
	return ""
}

func checkDir(given string) (want string) {
	if info, err := os.Stat(given); err != nil || !info.IsDir() {
		return "want a directory that exists"
	}
	return ""
}

func checkPrefix(given string) (want string) {
	if front.CheckPrefix(given) != nil {
		return "want a path that starts with / and does not end with it, such as /mcp"
	}
	return ""
}

func checkVariable(name, value string) (want string) {
	if name == "" || strings.ContainsRune(name+value, 0) {
		return "want KEY=VALUE"
	}
	return ""
}

func parseVariableName(given string) (name, want string) { return given, checkVariableName(given) }

func checkVariableName(given string) (want string) {
	if checkVariable(given, "") != "" || strings.Contains(given, "=") {
		want = "want the name of an environment variable"
	}
	return want
}

func checkHeader(name, _ string) (want string) {
	_, want = parseHeaderName(strings.TrimSpace(name))
	return want
}

func parseHeaderName(given string) (name, want string) {
	if err := gateway.CheckHeaderName(given); err != nil {
		want = "want the name of a header that is free to set: " + err.Error()
	}
	return given, want
}

func parseOrigin(given string) (origin, want string) {
	u, err := url.Parse(given)
	if given != "*" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Scheme+"://"+u.Host != given) {
		want = "want * or scheme and host, such as https://app.example.com"
	}
	return given, want
}

// parseHost reads the name of a host. An IPv6 address is compared without brackets.
func parseHost(given string) (host, want string) {
	host = strings.Trim(given, "[]")
	_, notIP := netip.ParseAddr(host)
	if given != "*" && notIP != nil && strings.ContainsAny(given, ":/ []*") {
		want = "want * or a host name without port, such as gateway.example.com"
	}
	return host, want
}

// parsePrefix reads a network, or an address as the network of only itself. An
// IPv4 address in the form of IPv6 is IPv4, which is how clients are compared.
func parsePrefix(given string) (prefix netip.Prefix, want string) {
	if addr, err := netip.ParseAddr(given); err == nil {
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), ""
	}
	prefix, err := netip.ParsePrefix(given)
	if err != nil {
		want = "want a network or an address, such as 10.0.0.0/8 or 192.0.2.7"
	}
	return prefix, want
}

// parseTransport checks the name of a transport.
func parseTransport(given string) (transport, want string) {
	if given != gateway.TransportSSE && given != gateway.TransportStreamable {
		return "", "want " + gateway.TransportSSE + " or " + gateway.TransportStreamable
	}
	return given, ""
}
