package index

// The id of a document has the number of its folder in the bits from folderShift on, and
// the id of a piece has the document's id in the bits from pieceShift on, so that a
// range of ids selects a folder or a document in every table.
const (
	pieceShift  = 12
	maxPieces   = 1 << pieceShift
	folderShift = 28
	maxFiles    = 1 << folderShift
)
