package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/mcp-sse/mcp-sse/sse"
)

// checkText returns what is allowed if value is not; the name is that of a
// check tag. An empty name allows everything.
func checkText(name, value string) string {
	switch name {
	case "addr":
		return checkAddr(value)
	case "optional-addr":
		if value == "" {
			return ""
		}
		return checkAddr(value)
	case "dir":
		return checkDir(value)
	case "prefix":
		return checkPrefix(value)
	case "origin":
		return checkOrigin(value)
	case "header":
		return checkHeader(value)
	case "host":
		return checkHost(value)
	case "cidr":
		if _, err := parsePrefix(value); err != nil {
			return "want a network or an address, such as 10.0.0.0/8 or 192.0.2.7"
		}
	}
	return ""
}

func checkAddr(value string) string {
	const want = "want HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:8080"
	host, port, err := net.SplitHostPort(value)
	if err != nil || strings.ContainsAny(host, " \t/") {
		return want
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return want
	}
	return ""
}

func checkDir(value string) string {
	if value == "" {
		return ""
	}
	if info, err := os.Stat(value); err != nil || !info.IsDir() {
		return "want a directory that exists"
	}
	return ""
}

func checkPrefix(value string) string {
	if sse.CheckPrefix(value) != nil {
		return "want a path that starts with / and does not end with it, such as /mcp"
	}
	return ""
}

func checkOrigin(value string) string {
	if value == "*" {
		return ""
	}
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") ||
		u.Scheme+"://"+u.Host != value {
		return "want * or scheme and host, such as https://app.example.com"
	}
	return ""
}

func checkHost(value string) string {
	if value == "*" {
		return ""
	}
	_, notIP := netip.ParseAddr(strings.Trim(value, "[]"))
	if notIP != nil && strings.ContainsAny(value, ":/ []*") {
		return "want * or a host name without port, such as gateway.example.com"
	}
	return ""
}

// parsePrefix reads a network, or an address as the network of only itself. An
// IPv4 address in the form of IPv6 is IPv4, which is how clients are compared.
func parsePrefix(value string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(value); err == nil {
		addr = addr.Unmap().WithZone("")
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	return netip.ParsePrefix(value)
}

// object is an option that is a JSON object.
type object struct {
	raw
	value json.RawMessage
}

// Decode implements [kong.MapperValue].
func (o *object) Decode(ctx *kong.DecodeContext) error {
	v, ok := o.next(ctx)
	if !ok {
		return nil
	}
	given := v.String()
	*o = object{raw: raw{given: given}}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(given)); err != nil || !bytes.HasPrefix(compact.Bytes(), []byte("{")) {
		o.want = `want a JSON object, such as {"roots":{"listChanged":true}}`
		return nil
	}
	o.value = compact.Bytes()
	return nil
}

// String implements [setting].
func (o *object) String() string { return yamlText(string(o.value)) }
