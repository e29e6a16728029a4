//go:build !unix

package crawl

const nonBlocking = 0

func isNotDirectory(error) bool { return false }

func isTransient(error) bool { return false }
