// Package e2e tests the built sse-server against real clients and real servers.
//
// Nothing here imports the gateway: the tests see what a user sees, a process
// with flags, an address, a log and an exit code. The clients are the SDKs that
// people use, the TypeScript ones driven through clients/run.mjs. See README.md.
package e2e
