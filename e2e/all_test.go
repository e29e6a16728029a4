//go:build all

package e2e

// all: make test-all runs each client with each server.
const all = true
