package upstream

// The bounds that tests run into.
const (
	SendLimit           = sendLimit
	DefaultMaxLineBytes = defaultMaxLineBytes
)
