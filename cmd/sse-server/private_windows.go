package main

import "os"

// checkPrivate returns an error unless there is a directory. Those below the profile of a user inherit its list of who
// may open them: the user, the system and administrators.
func checkPrivate(dir string) error {
	_, err := os.Stat(dir)
	return err
}

// checkOwned is checkPrivate.
func checkOwned(dir string) error { return checkPrivate(dir) }
