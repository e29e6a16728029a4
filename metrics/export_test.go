package metrics

// The closed lists of what comes from outside.
var (
	Methods    = methods
	ErrorTypes = errorTypes
)
