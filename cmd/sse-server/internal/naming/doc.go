// Package naming finds the name of a server for people in the command that starts it, or in its URL:
//
//	npx -y @modelcontextprotocol/server-everything@1.2.3   everything
//	node packages/cats/dist/index.js                       cats, as its package.json says
//	https://mcp.notion.com/mcp                             notion
//
// TestTitle of package config has all cases.
package naming
