// Package subnet says which addresses limits count as one client.
package subnet

import "net/netip"

// Of returns an IPv4 address, or the /64 of an IPv6 address, which one host can use
// as a whole. All invalid addresses share the zero Prefix.
func Of(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, _ := addr.Prefix(bits) // fails for the zero Addr only
	return p
}
