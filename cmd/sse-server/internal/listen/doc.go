// Package listen serves addresses: it takes them, or sockets that systemd passes, bounds their TCP connections, and
// ends so that whoever has connected gets an answer. It does not know what is served.
//
//	endpoint.go  one address: its listener, its server and its URL
//	conns.go     its TCP connections
//	systemd.go   sockets of systemd
package listen
