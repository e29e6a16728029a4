package connstate

// Usage is what counts against the limits of a cluster.
type Usage struct {
	Connections int
	// Origins are those that use much of a limit for each of them.
	Origins []OriginUsage
}

// OriginUsage is what one origin uses: a principal at a network.
type OriginUsage struct {
	Origin uint64 // a hash
	Open   int    // connections
	Opened int    // connections since the last Usage
}
