// Package e2e tests the built docsearch as its users run it: over stdio, over REST, and
// behind sse-server. It has no code outside its tests.
package e2e
