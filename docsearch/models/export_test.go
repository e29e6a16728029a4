package models

import (
	"net/url"
	"time"
)

// IsSafe gives tests isSafe.
func IsSafe(u *url.URL, plain bool) bool { return isSafe(u, plain) }

// WithSilence sets the longest time without bytes.
func (i *Installer) WithSilence(d time.Duration) { i.silent = d }

// WithoutPause has an Installer try again at once.
func (i *Installer) WithoutPause() { i.pause = 1 }

// AfterStep has a function called after each step on the disk, until the function that it returns is
// called.
func AfterStep(f func()) (reset func()) {
	afterStep = f
	return func() { afterStep = func() {} }
}
