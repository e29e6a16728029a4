module github.com/mcp-sse/mcp-sse/docsearch

go 1.26.0
