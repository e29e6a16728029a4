//go:build !unix

package discovery

import "os"

// NoFollow is the flag that has os.OpenFile fail if the file is a symbolic link. It is 0
// where the system has none.
const NoFollow = 0

// othersWrite reports false, as the mode says nothing here.
func othersWrite(os.FileInfo) bool { return false }

// owned reports true: on this system the access list of the user's profile decides.
func owned(os.FileInfo) bool { return true }
