package login

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// peerUID returns the user who has the socket at the other end of a connection of this machine; false if it is not
// found.
func peerUID(local, remote netip.AddrPort) (uid int, ok bool) {
	for file, encode := range map[string]func(netip.AddrPort) string{
		"/proc/net/tcp": encode4, "/proc/net/tcp6": encode6, // which has those of IPv4 too, of a socket for both
	} {
		if uid, ok = ownerIn(file, encode(remote), encode(local)); ok {
			return uid, true
		}
	}
	return 0, false
}

// ownerIn returns the user of the socket with these addresses in a table of /proc/net.
func ownerIn(file, local, remote string) (uid int, ok bool) {
	table, err := os.Open(file)
	if err != nil {
		return 0, false
	}
	defer table.Close()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		fields := strings.Fields(lines.Text()) // sl local_address rem_address st queues timer retrnsmt uid …
		if len(fields) > 7 && fields[1] == local && fields[2] == remote {
			uid, err = strconv.Atoi(fields[7])
			return uid, err == nil
		}
	}
	return 0, false
}

// encode4 writes an address as /proc/net/tcp does: the bytes as a number of this machine.
func encode4(at netip.AddrPort) string {
	ip := at.Addr().Unmap()
	if !ip.Is4() {
		return ""
	}
	bytes := ip.As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(bytes[:]), at.Port())
}

// encode6 writes an address as /proc/net/tcp6 does: four such numbers.
func encode6(at netip.AddrPort) string {
	bytes := at.Addr().As16()
	var text strings.Builder
	for i := 0; i < len(bytes); i += 4 {
		fmt.Fprintf(&text, "%08X", binary.NativeEndian.Uint32(bytes[i:]))
	}
	return fmt.Sprintf("%s:%04X", text.String(), at.Port())
}
