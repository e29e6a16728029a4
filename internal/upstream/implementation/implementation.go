// Package implementation returns what implements an upstream. The types of package upstream have what a user sets,
// and no more; those that implement them also tell a gateway of memory, folders and the end of processes.
//
// Package upstream is above this one, and provides the function when it is initialized.
package implementation

import "github.com/mcp-sse/mcp-sse/jsonrpc"

var provided func(jsonrpc.Dialer) jsonrpc.Dialer

// Provide sets the function. Package upstream calls it when it is initialized.
func Provide(of func(jsonrpc.Dialer) jsonrpc.Dialer) { provided = of }

// Of returns the stdio.Command of an upstream.Command, and the remote.URL of an upstream.URL, also for a pointer to
// one. It returns any other upstream itself.
func Of(up jsonrpc.Dialer) jsonrpc.Dialer { return provided(up) }
