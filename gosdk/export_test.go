package gosdk

var (
	PartsOf = partsOf
	Encode  = encode
)
