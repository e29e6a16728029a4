package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Duration is a time with a unit.
type Duration time.Duration

// UnmarshalText reads 500ms, 15s, 1h30m, or 0.
func (d *Duration) UnmarshalText(text []byte) error {
	value, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("want a number with a unit (ms, s, m, h), such as 15s, but got %q", text)
	}
	*d = Duration(value)
	return nil
}

// MarshalText writes 1m and 1h where the standard library has 1m0s and 1h0m0s.
func (d Duration) MarshalText() ([]byte, error) {
	return []byte(strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(time.Duration(d).String())), nil
}

// Size is a number of bytes.
type Size int64

// UnmarshalText reads 1048576, 512KiB, 4MiB or 1GiB. Units of 1000 are refused, since
// nobody agrees on what MB means.
func (s *Size) UnmarshalText(text []byte) error {
	for unit, shift := range map[string]int{"GiB": 30, "MiB": 20, "KiB": 10, "": 0} {
		digits, ok := strings.CutSuffix(string(text), unit)
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if ok && err == nil && n <= 1<<30>>shift && n<<shift >= 1<<10 {
			*s = Size(n << shift)
			return nil
		}
	}
	return fmt.Errorf("want bytes from 1KiB to 1GiB, such as 4MiB, 512KiB or 1048576, but got %q", text)
}

// MarshalText writes a default, which is a multiple of 1 MiB.
func (s Size) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%dMiB", s>>20), nil }

// Addr is an address to listen on, or "".
type Addr string

// UnmarshalText reads HOST:PORT.
func (a *Addr) UnmarshalText(text []byte) error {
	host, port, err := net.SplitHostPort(string(text))
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || strings.ContainsAny(host, " \t/") {
		return fmt.Errorf("want HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:8080, but got %q", text)
	}
	*a = Addr(text)
	return nil
}

// network is a network of proxies.
type network netip.Prefix

// String makes the value of the option readable.
func (n network) String() string { return netip.Prefix(n).String() }

// UnmarshalText reads a network, or an address as the network of only itself. An IPv4
// address in the form of IPv6 is IPv4, which is how clients are compared.
func (n *network) UnmarshalText(text []byte) error {
	if addr, err := netip.ParseAddr(string(text)); err == nil {
		addr = addr.Unmap().WithZone("")
		*n = network(netip.PrefixFrom(addr, addr.BitLen()))
		return nil
	}
	prefix, err := netip.ParsePrefix(string(text))
	if err != nil {
		return fmt.Errorf("want a network or an address, such as 10.0.0.0/8 or 192.0.2.7, but got %q", text)
	}
	*n = network(prefix)
	return nil
}
