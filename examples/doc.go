// Package examples tests the programs in its folders, of one file each:
//
//	servemux  an MCP server beside other routes
//	gorilla   middleware that logs and authenticates, and a tool that knows the user
//	gosdk     a server of the official go-sdk, in one line
//	mcpgo     a server of mcp-go, in one line
//	several   several servers in one process
//	view      several servers at one URL, with chosen tools
//	shutdown  a stop that loses no answer
package examples
