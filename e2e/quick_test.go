//go:build !all

package e2e

// all: make test runs one client of each SDK with each kind of server.
const all = false
