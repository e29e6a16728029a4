//go:build !unix

package stdio

// folderID returns nothing: a folder is its path here.
func folderID(string) string { return "" }
